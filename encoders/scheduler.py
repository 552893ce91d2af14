"""The only bridge from async callers to sync engines: calls in, single items out to threads, online before bulk.

Cost is linear in tokens here, so items are computed one at a time at their exact length: nothing is padded, an item's
result never depends on its neighbours, a failing item fails alone, and abandoned work stops after the item in progress.

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

A bulk thread needs the interpreter lock between two items, and one that holds it while all cores are busy holds up the
event loop. So chunking and writing run at the same low priority, and one of the bulk threads rests while online work is
seen. A Retrieve every 50 ms beside indexing, two cores, 300 to 500 of them, p50, p95, p99 and worst in ms:

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
from encoders.types import Engine, Outcome, TokenizedText, WorkClass

T = TypeVar("T")

_GIVE_WAY_NS = 250_000_000  # how long after an online call the resting thread rests


class TokenScheduler:
    """Runs engines for any number of event loops. Its threads start with it and end with `stop`."""

    def __init__(self, workers: int, capacity_items: int) -> None:
        """`workers` threads and a queue of `capacity_items` for each work class."""
        if workers < 1 or capacity_items < 1:
            raise ValueError(f"a scheduler needs at least 1 worker and 1 item, not {workers} and {capacity_items}")
        self._workers = workers
        self._lanes = {work_class: Lane(capacity_items) for work_class in WorkClass}
        self._costs = CostMeter()
        self._threads: set[threading.Thread] = set()
        self.bulk_threads = ThreadPoolExecutor(1, "bulk", initializer=lower_priority_of_this_thread)
        """For what belongs to bulk work besides the engines, such as chunking, at the same low priority."""
        self._changing = threading.Lock()
        self._stopped = False
        self._online_seen_ns = 0
        self._ending = threading.Event()
        for work_class in WorkClass:
            for number in range(workers):
                self._start_thread(work_class, gives_way=work_class is WorkClass.BULK and 0 < number == workers - 1)

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
        lane = self._lanes[work_class]
        now = time.monotonic_ns()
        if work_class is WorkClass.ONLINE:
            self._online_seen_ns = now
        call = Call(engine, items, deadline_ns, now)
        lane.put(call, self._costs.ns_per_token(engine.model_id) / self._workers)
        timer = None
        if deadline_ns is not None:
            delay_s = max(0.0, (deadline_ns - now) / 1e9)
            timer = asyncio.get_running_loop().call_later(delay_s, lane.close, call, WorkExpired())
        try:
            return await call.future
        finally:
            if timer is not None:
                timer.cancel()
            lane.close(call, WorkExpired())

    def stats(self) -> SchedulerStats:
        """Says what is queued, how many threads live, and what each model costs a token."""
        online, bulk = self._lanes[WorkClass.ONLINE], self._lanes[WorkClass.BULK]
        return SchedulerStats(
            workers=self._workers,
            alive_threads=sum(thread.is_alive() for thread in tuple(self._threads)),
            queued_online_items=online.queued_items,
            queued_bulk_items=bulk.queued_items,
            ns_per_token=self._costs.all(),
        )

    def stop(self, timeout_s: float = 30.0) -> None:
        """Refuses new calls, finishes the accepted ones for at most `timeout_s`, fails the rest, and ends the threads.

        Blocks: an event loop calls it through `asyncio.to_thread`.
        """
        with self._changing:
            self._stopped = True
        self._ending.set()
        for lane in self._lanes.values():
            lane.stop()
        self._join(time.monotonic() + timeout_s)
        for lane in self._lanes.values():
            lane.abort()
        self._join(time.monotonic() + timeout_s)
        self.bulk_threads.shutdown(cancel_futures=True)

    def _join(self, until: float) -> None:
        for thread in tuple(self._threads):
            thread.join(max(0.0, until - time.monotonic()))

    def _start_thread(self, work_class: WorkClass, *, gives_way: bool) -> None:
        name = f"encoder-{work_class.name.lower()}"
        thread = threading.Thread(target=self._work, args=(work_class, gives_way), name=name, daemon=True)
        with self._changing:
            if self._stopped:
                return
            self._threads = {alive for alive in self._threads if alive.is_alive()} | {thread}
            thread.start()

    def _work(self, work_class: WorkClass, gives_way: bool) -> None:
        if work_class is WorkClass.BULK:
            lower_priority_of_this_thread()
        lane = self._lanes[work_class]
        try:
            while (job := self._next(lane, gives_way)) is not None:
                self._compute(lane, job)
        finally:
            # Reached without a stop only when an engine raised what is no `Exception`: another thread takes over.
            self._start_thread(work_class, gives_way=gives_way)

    def _next(self, lane: Lane, gives_way: bool) -> Job[Any] | None:
        while gives_way and time.monotonic_ns() - self._online_seen_ns < _GIVE_WAY_NS:
            if self._ending.wait(_GIVE_WAY_NS / 1e9):
                break
        return lane.take()

    def _compute(self, lane: Lane, job: Job[Any]) -> None:
        value: Any = None
        # Stays when an engine raises what is no `Exception`: that ends this thread, but no caller may wait for ever.
        error: EncoderError | None = EncodingFailed(job.call.engine.model_id)
        begun = time.monotonic_ns()
        try:
            value, error = job.call.engine.run([job.item])[0], None
        except EncoderError as failure:
            error = failure
        except Exception as cause:
            error = _caused(EncodingFailed(job.call.engine.model_id), cause)
        finally:
            spent = time.monotonic_ns() - begun
            if error is None:
                self._costs.add(job.call.engine.model_id, job.item.token_count, spent)
            outcome = Outcome(value, error, job.item.token_count, job.item.truncated, job.queue_ns, spent)
            lane.settle(job, outcome)


def _caused(error: EncoderError, cause: Exception) -> EncoderError:
    error.__cause__ = cause
    return error
