"""The only bridge from async callers to sync engines: calls in, pieces out to threads, online before bulk.

A piece is what one run computes (`encoders.pieces`). Where cost is linear in tokens, as here, it is one text at its
exact length: nothing is padded, an item's result never depends on its neighbours, and abandoned work stops after the
item in progress. Elsewhere it is a batch of like lengths. An item that makes a piece fail fails alone: the others are
computed again one by one.

Each work class has its own lane and its own threads, as many as there are cores; all share the engines' sessions. The
threads of the bulk lane run at a lower priority, so the operating system gives a contended core to online items at once
and leaves bulk about 5 % of it: bulk fills idle cores, gives way within a scheduling tick, also to the event loop, and
never starves. Measured with plain threads on two idle cores, bulk items of 256 tokens (29 ms) on both; an online item
of ten tokens took (means of two rounds of 150):

    without bulk                                       2.0 ms (p50)    2.6 ms (p99)
    bulk at a lower priority                           1.7             5.3
    bulk at the same priority                          3.3             9.2
    bulk runs aborted on arrival (`terminate`)         2.1             6.0, and bulk lost a fifth of its rate

Behind one shared queue it would wait for a whole item. The batch policy on top of the priority was compared on a busy
machine, through this scheduler, in 12 interleaved rounds: online calls went from 4.9, 12.4 and 20.5 ms (p50, p90, p99)
to 2.9, 7.6 and 15.4 ms.

So a piece of bulk work is not what an online item waits for, and one text of 256 tokens (28 ms) may stay whole: nothing
below a run of the session can be cut, taking short texts first only puts off the long ones, and `terminate` above cost
more than it gave. Batches, which could be cut, are kept below 20 ms (`encoders.curve`).

A bulk thread needs the interpreter lock between two items, and one that holds it while all cores are busy holds up the
event loop. So chunking and writing run at the same low priority, and one of the bulk threads rests while requests are
seen, also those whose vectors are known (`give_way`). A Retrieve every 50 ms beside indexing, two cores, 300 to 500 of
them, p50, p95, p99 and worst in ms:

    with nothing beside it                             6.3     7.9     9.3     9.7
    chunking and writing at normal priority            6.3    20      44      76 to 126
    at the priority of bulk work (`bulk_threads`)      6.4    13      18      22 to 30
    and one bulk thread resting                        6.1     8.8    11.6    18 to 26, indexing at 0.6 of its rate
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from encoders.calls import Call
from encoders.costs import CostMeter, SchedulerStats
from encoders.cpu import lower_priority_of_this_thread
from encoders.errors import EncoderError, EncodingFailed, WorkExpired
from encoders.lanes import Job, Lane
from encoders.pieces import EXACT, PiecePolicy
from encoders.types import Engine, Outcome, TokenizedText, WorkClass
from encoders.workers import Post, Workers

T = TypeVar("T")

_GIVE_WAY_NS = 250_000_000  # how long after an online call the resting thread rests


class TokenScheduler:
    """Runs engines for any number of event loops. Its threads start with it and end with `stop`."""

    def __init__(self, workers: int, capacity_items: int) -> None:
        """`workers` threads and a queue of `capacity_items` for each work class."""
        if workers < 1 or capacity_items < 1:
            raise ValueError(f"a scheduler needs at least 1 worker and 1 item, not {workers} and {capacity_items}")
        self._count = workers
        self._policies: dict[str, PiecePolicy] = {}
        self._lanes = {work_class: Lane(capacity_items, self.policy_of) for work_class in WorkClass}
        self._costs = CostMeter()
        self.bulk_threads = ThreadPoolExecutor(1, "bulk", initializer=lower_priority_of_this_thread)
        """For what belongs to bulk work besides the engines, such as chunking, at the same low priority."""
        self._stopped = threading.Event()
        self._online_seen_ns = 0
        self.workers = Workers(self._work)
        """The threads: whether all of them live, and who wants to know."""
        for work_class in WorkClass:
            for number in range(workers):
                rests = work_class is WorkClass.BULK and 0 < number == workers - 1
                self.workers.fill(Post(work_class, number, rests))

    @property
    def ending(self) -> bool:
        """Whether a stop was asked for."""
        return self._stopped.is_set()

    def policy_of(self, model_id: str) -> PiecePolicy:
        """Returns how pieces are cut for a model: one text a run until something else was measured."""
        return self._policies.get(model_id, EXACT)

    def set_policy(self, model_id: str, policy: PiecePolicy) -> None:
        """Cuts pieces for a model so from now on; its engines must take such pieces."""
        self._policies[model_id] = policy

    def give_way(self) -> None:
        """Lets a bulk thread rest for a while: somebody is waiting, be it not for an engine."""
        self._online_seen_ns = time.monotonic_ns()

    async def submit(
        self,
        engine: Engine[T],
        items: Sequence[TokenizedText],
        work_class: WorkClass,
        deadline_ns: int | None,
    ) -> list[Outcome[T]]:
        """Computes all items; returns one outcome an item, in order, at the latest when the deadline passes.

        `deadline_ns` is on the clock of `time.monotonic_ns`; items that are not done by then are `WorkExpired`.
        Cancelling drops what has not started.

        Raises:
            SchedulerFull: the queue of this class has no room for all items; nothing was accepted.
            SchedulerStopped: the scheduler takes no more work.
        """
        if not items:
            return []
        if not self.workers.healthy:
            self.workers.heal()
        lane = self._lanes[work_class]
        now = time.monotonic_ns()
        if work_class is WorkClass.ONLINE:
            self.give_way()
        call = Call(engine, items, deadline_ns, now, by_length=self.policy_of(engine.model_id).batches)
        lane.put(call, lambda: self._costs.ns_per_token(engine.model_id) / self._count)
        timer = None
        if deadline_ns is not None:
            delay_s = max(0.0, (deadline_ns - now) / 1e9)
            timer = asyncio.get_running_loop().call_later(delay_s, lane.close, call, WorkExpired())
        try:
            return await call.future
        finally:
            if timer is not None:
                timer.cancel()
            if not call.closed:
                lane.close(call, WorkExpired())

    def stats(self) -> SchedulerStats:
        """Says what is queued, how many threads live, and what each model costs a token."""
        online, bulk = self._lanes[WorkClass.ONLINE], self._lanes[WorkClass.BULK]
        return SchedulerStats(
            workers=self._count,
            alive_threads=self.workers.alive_count,
            queued_online_items=online.queued_items,
            queued_bulk_items=bulk.queued_items,
            ns_per_token=self._costs.all(),
        )

    def stop(self, timeout_s: float = 30.0) -> None:
        """Refuses new calls, finishes the accepted ones for at most `timeout_s`, fails the rest, and ends the threads.

        Blocks: an event loop calls it through `asyncio.to_thread`.
        """
        self.workers.stop()
        self._stopped.set()
        for lane in self._lanes.values():
            lane.stop()
        self.workers.join(time.monotonic() + timeout_s)
        for lane in self._lanes.values():
            lane.abort()
        self.workers.join(time.monotonic() + timeout_s)
        self.bulk_threads.shutdown(cancel_futures=True)

    def _work(self, post: Post) -> None:
        if post.work_class is WorkClass.BULK:
            lower_priority_of_this_thread()
        lane = self._lanes[post.work_class]
        piece: list[Job[Any]] | None = None
        try:
            while (piece := self._next(lane, post.gives_way)) is not None:
                self._compute(lane, piece)
                piece = None  # a thread that waits keeps no call alive
        finally:
            # Left over only when an engine raised what is no `Exception`: no caller may wait for ever.
            unsettled: list[Job[Any]] = piece or []
            for job in unsettled:
                lane.settle(job, _failed(job, EncodingFailed(job.call.engine.model_id), 0))

    def _next(self, lane: Lane, gives_way: bool) -> list[Job[Any]] | None:
        while gives_way and time.monotonic_ns() - self._online_seen_ns < _GIVE_WAY_NS:
            if self._stopped.wait(_GIVE_WAY_NS / 1e9):
                break
        return lane.take()

    def _compute(self, lane: Lane, piece: list[Job[Any]]) -> None:
        engine = piece[0].call.engine
        begun = time.monotonic_ns()
        error: EncoderError
        try:
            values = engine.run([job.item for job in piece])
        except EncoderError as failure:
            error = failure
        except Exception as cause:
            error = EncodingFailed(engine.model_id)
            error.__cause__ = cause
        else:
            self._settle(lane, piece, values, time.monotonic_ns() - begun)
            return
        if len(piece) == 1:
            lane.settle(piece[0], _failed(piece[0], error, time.monotonic_ns() - begun))
            return
        for job in piece:
            self._compute(lane, [job])

    def _settle(self, lane: Lane, piece: list[Job[Any]], values: Sequence[Any], spent_ns: int) -> None:
        tokens = sum(job.item.token_count for job in piece)
        self._costs.add(piece[0].call.engine.model_id, tokens, spent_ns)
        for job, value in zip(piece, values, strict=True):
            # What a batch took is charged to its items by their tokens, so times add up.
            share_ns = spent_ns * job.item.token_count // max(tokens, 1)
            outcome = Outcome(value, None, job.item.token_count, job.item.truncated, job.queue_ns, share_ns)
            lane.settle(job, outcome)


def _failed(job: Job[Any], error: EncoderError, spent_ns: int) -> Outcome[Any]:
    return Outcome(None, error, job.item.token_count, job.item.truncated, job.queue_ns, spent_ns)
