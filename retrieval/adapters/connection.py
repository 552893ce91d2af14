"""A connection that threads and event loops share.

Frameworks call a retriever from threads, from coroutines, and from a thread whose event loop is running (a notebook).
A channel of grpc.aio belongs to one loop; a plain channel belongs to none, and its calls are futures. So there is one
plain channel, every call is a future, and whoever asked waits for it in its own way.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Any

import grpc

from headrace.v1 import retrieval_pb2 as retrieval
from headrace.v1 import retrieval_pb2_grpc
from retrieval.adapters.errors import HeadraceError
from retrieval.client import CHANNEL_OPTIONS, error_info

_Answer = Future[retrieval.RetrieveResponse]


class Connection:
    """Asks one server; the channel is opened by the first call, kept, and closed with the connection or by `close`.

    `timeout_s` bounds each call; None means no bound. A copy, also in another process, opens a channel of its own.
    """

    def __init__(self, target: str, api_key: str | None, timeout_s: float | None) -> None:
        self._given = (target, api_key, timeout_s)
        self._metadata = (("authorization", f"Bearer {api_key}"),) if api_key else ()
        self._lock = threading.Lock()
        self._stub: retrieval_pb2_grpc.RetrievalServiceStub | None = None
        self._closing: weakref.finalize[[], Connection] | None = None

    def __reduce__(self) -> tuple[type[Connection], tuple[Any, ...]]:
        return Connection, self._given

    def retrieve(self, request: retrieval.RetrieveRequest) -> list[retrieval.Hit]:
        """Returns the hits, best first; waits as a thread does.

        Raises:
            HeadraceError: the server refused, failed, or was not reached in time.
        """
        with self._asked(request) as answer:
            return list(answer.result().hits)

    async def aretrieve(self, request: retrieval.RetrieveRequest) -> list[retrieval.Hit]:
        """Returns the hits, best first; waits as a coroutine does, and cancelling it cancels the call.

        Raises:
            HeadraceError: the server refused, failed, or was not reached in time.
        """
        with self._asked(request) as answer:
            return list((await asyncio.wrap_future(answer)).hits)

    def close(self) -> None:
        """Closes the channel; calls that run fail, and a later call opens another."""
        with self._lock:
            if self._closing is not None:
                self._closing()
            self._stub = self._closing = None

    @contextmanager
    def _asked(self, request: retrieval.RetrieveRequest) -> Iterator[_Answer]:
        """Sends; who leaves before the answer is there cancels the call."""
        call = self._open().Retrieve.future(request, timeout=self._given[2], metadata=self._metadata)
        answer: _Answer = Future()
        call.add_done_callback(partial(_settle, answer))
        try:
            yield answer
        finally:
            call.cancel()

    def _open(self) -> retrieval_pb2_grpc.RetrievalServiceStub:
        with self._lock:
            if self._stub is None:
                channel = grpc.insecure_channel(self._given[0], options=CHANNEL_OPTIONS)
                self._stub = retrieval_pb2_grpc.RetrievalServiceStub(channel)
                self._closing = weakref.finalize(self, channel.close)
            return self._stub


def _settle(answer: _Answer, call: Any) -> None:
    """Hands on what became of a call; `call` is a future of grpc and, as its types do not say, a `grpc.Call`."""
    if not answer.set_running_or_notify_cancel():
        return
    if call.code() is grpc.StatusCode.OK:
        answer.set_result(call.result())
    else:
        answer.set_exception(_refusal(call))


def _refusal(call: grpc.Call) -> HeadraceError:
    found = error_info(call)
    reason, facts = (found.reason, found.metadata) if found else ("", {})
    return HeadraceError(call.code().name, reason, facts, call.details() or call.code().name)
