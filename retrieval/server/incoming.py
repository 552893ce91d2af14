"""Messages as they come in: what does not parse, and callers that are refused while they are still sending."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import grpc.aio
from google.protobuf.message import DecodeError

from retrieval.errors import InvalidRequest

_LINGER_S = 1.0
_QUIET_S = 0.1
_PARSE_BOUND = "a message of this method; strings are valid UTF-8, messages nest at most 100 deep"


class Unparsed:
    """Stands for a message that does not parse."""


def tolerant(deserialize: Callable[[bytes], Any] | None) -> Callable[[bytes], Any] | None:
    """Parses without raising, since gRPC would answer for us, without a reason and with the wrong status."""
    if deserialize is None:
        return None

    def parse(data: bytes) -> Any:
        try:
            return deserialize(data)
        except DecodeError:
            return Unparsed()

    return parse


def parsed(message: Any) -> Any:
    """Returns the message.

    Raises:
        InvalidRequest: it did not parse.
    """
    if isinstance(message, Unparsed):
        raise InvalidRequest("request", _PARSE_BOUND, "the request does not parse; send a well-formed message")
    return message


async def parsed_stream(messages: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Gives the messages of a stream, as `parsed` does."""
    async for message in messages:
        yield parsed(message)


async def linger(messages: AsyncIterator[Any]) -> None:
    """Reads on for a moment: gRPC's client reports a write that fails instead of the status that made it fail."""
    with suppress(TimeoutError, StopAsyncIteration, grpc.aio.InternalError):
        async with asyncio.timeout(_LINGER_S):
            while True:
                await asyncio.wait_for(anext(messages), _QUIET_S)
