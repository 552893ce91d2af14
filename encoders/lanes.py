"""A bounded queue of one work class, between the event loops that submit calls and the threads that compute items."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from encoders.calls import Call
from encoders.errors import EncoderError, SchedulerFull, SchedulerStopped, WorkExpired
from encoders.fair_queue import FairQueue
from encoders.pieces import PiecePolicy, Shape
from encoders.types import Outcome, TokenizedText

T = TypeVar("T")
PolicyOf = Callable[[str], PiecePolicy]
"""Returns how pieces are cut for a model id."""


@dataclass(frozen=True, slots=True)
class Job(Generic[T]):
    """One item on its way to a worker."""

    call: Call[T]
    position: int
    taken_ns: int

    @property
    def item(self) -> TokenizedText:
        """What is to be computed."""
        return self.call.items[self.position]

    @property
    def queue_ns(self) -> int:
        """How long the item waited."""
        return self.taken_ns - self.call.submitted_ns


class Lane:
    """Accepts whole calls or refuses them, hands out pieces, and gives each call its outcomes at once."""

    def __init__(self, capacity_items: int, policy_of: PolicyOf) -> None:
        self._capacity_items = capacity_items
        self._policy_of = policy_of
        self._queue = FairQueue()
        self._open_calls: set[Call[Any]] = set()
        self._changed = threading.Condition(threading.Lock())
        self._stopped = False
        self.queued_items = 0
        self.queued_tokens = 0

    def put(self, call: Call[Any], ns_per_token: Callable[[], float]) -> None:
        """Accepts all items of a call. `ns_per_token` is asked to tell a refused caller when to come again.

        Raises:
            SchedulerFull: the items would exceed the bound.
            SchedulerStopped: no more work is taken.
        """
        with self._changed:
            if self._stopped:
                raise SchedulerStopped
            if self.queued_items + len(call.items) > self._capacity_items:
                retry_after_ms = max(1.0, self.queued_tokens * ns_per_token() / 1e6)
                raise SchedulerFull(self.queued_items, self._capacity_items, retry_after_ms)
            self._open_calls.add(call)
            self._queue.put(call)
            self.queued_items += call.waiting_items
            self.queued_tokens += call.waiting_tokens
            self._changed.notify(len(call.items))

    def take(self) -> list[Job[Any]] | None:
        """Waits for the next piece, items of one engine; None once the lane is stopped and empty.

        Calls past their deadline end here, and what they still wait for is never computed.
        """
        with self._changed:
            while True:
                taken = self._queue.take()
                if taken is None:
                    if self._stopped:
                        return None
                    self._changed.wait()
                    continue
                now = time.monotonic_ns()
                first = self._job(*taken, now)
                if not self._ends_late(first.call, now):
                    return [first, *self._company(first)]

    def _company(self, first: Job[Any]) -> list[Job[Any]]:
        policy = self._policy_of(first.call.engine.model_id)
        if not policy.batches:
            return []
        shape = Shape.of(first.item.token_count)

        def fits(call: Call[Any]) -> bool:
            nonlocal shape
            if call.engine is not first.call.engine or self._ends_late(call, first.taken_ns):
                return False
            joined = shape.with_text(call.next_tokens, policy)
            shape = joined or shape
            return joined is not None

        return [self._job(call, position, first.taken_ns) for call, position in self._queue.take_with(fits)]

    def _job(self, call: Call[Any], position: int, now_ns: int) -> Job[Any]:
        self.queued_items -= 1
        self.queued_tokens -= call.items[position].token_count
        return Job(call, position, now_ns)

    def _ends_late(self, call: Call[Any], now_ns: int) -> bool:
        if call.deadline_ns is None or now_ns < call.deadline_ns:
            return False
        self._close(call, WorkExpired())
        return True

    def settle(self, job: Job[T], outcome: Outcome[T]) -> None:
        """Notes the outcome of an item; the last one of a call wakes its caller."""
        with self._changed:
            if not job.call.settle(job.position, outcome):
                return
            self._open_calls.discard(job.call)
        job.call.deliver()

    def close(self, call: Call[Any], error: EncoderError) -> None:
        """Ends a call before its time: what has not started never will, and what has is dropped when it comes."""
        with self._changed:
            self._close(call, error)

    def stop(self) -> None:
        """Takes no more calls; workers leave when the accepted ones are done."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def abort(self) -> None:
        """Ends all calls that are not done."""
        with self._changed:
            for call in list(self._open_calls):
                self._close(call, SchedulerStopped())

    def _close(self, call: Call[Any], error: EncoderError) -> None:
        if call.closed:
            return
        self.queued_items -= call.waiting_items
        self.queued_tokens -= call.waiting_tokens
        self._open_calls.discard(call)
        call.close(error, time.monotonic_ns())
        call.deliver()
