"""One request to one server: from the queue for it to the last piece, with everything that is noted about it.

A failure says nothing of the next step: who sends decides. Whatever happens, an attempt is settled once and its place
and stream are given back once.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace

import structlog

from retrieval.dispatch.breaker import Permit
from retrieval.dispatch.endpoint import Endpoint
from retrieval.dispatch.failures import blames_server, outcome_of, says_full
from retrieval.dispatch.lane import Place
from retrieval.dispatch.types import Job, Leg
from retrieval.errors import BackendCut, BackendError, BackendTimeout, BackendUnavailable, Overloaded
from retrieval.route import Attempt, Outcome
from retrieval.speech import BackendEnd, Delta
from retrieval.types import Arrangement, Prompt

_NO_END = "its stream ended before the answer did"
_AT_DEADLINE_NS = 10_000_000  # an error so close to the request's deadline was brought about by it
_log = structlog.get_logger("headrace")


class Exchange:
    """A request to a server and what comes back. `enter`, `first`, `next` until the end, `finish`; always `close`."""

    def __init__(self, endpoint: Endpoint, leg: Leg, job: Job, *, hedge: bool = False, retry: bool = False) -> None:
        self.endpoint = endpoint
        self.prompt: Prompt  # once it is sent
        self.arrangement: Arrangement  # once it is sent
        self.outcome: Outcome | None = None  # None until it is settled
        self.queue_ns = 0
        self.first_token_ns = 0
        self.token_ns = 0  # mean, of a whole answer
        self.hedge = hedge
        self.called_off = False  # whether a race closes it
        self._leg = leg
        self._job = job
        self._retry = retry
        self._now_ns = endpoint.now_ns
        self._asked_ns = endpoint.now_ns()
        self._sent_ns = 0
        self._heard_ns = 0  # when the latest piece came
        self._pieces_count = 0
        self._chars = 0
        self._full = False  # whether the server said that it has no room
        self._place: Place | None = None
        self._permit: Permit | None = None
        self._pieces: AsyncGenerator[Delta | BackendEnd, None]  # once it is sent

    async def enter(self) -> bool:
        """Waits for a place; returns whether the server gets requests, which it may have lost meanwhile.

        Raises:
            Overloaded: there is no place, or none in time.
        """
        try:
            self._place = await self.endpoint.lane.acquire(self._job.ticket)
        except Overloaded:
            self.queue_ns = self._now_ns() - self._asked_ns
            self.settle(Outcome.REFUSED)
            raise
        self.queue_ns = self._place.waited_ns
        self._permit = self.endpoint.breaker.enter()
        if self._permit is None:
            self.settle(Outcome.REFUSED)
            self.release()
        return self._permit is not None

    async def start(self) -> Delta | BackendEnd:
        """Waits for a place, sends the request, and returns the first piece; raises what `enter` and `first` do."""
        if not await self.enter():
            raise self.endpoint.left_alone()
        return await self.first()

    async def first(self) -> Delta | BackendEnd:
        """Sends the request and returns the first piece.

        Raises:
            BackendUnavailable, BackendTimeout: nothing of an answer came.
        """
        self._send()
        try:
            piece = await anext(self._pieces)
        except StopAsyncIteration:
            raise self._failed(BackendUnavailable(self.endpoint.backend.name, _NO_END)) from None
        except (BackendUnavailable, BackendTimeout) as error:
            self._failed(error)
            raise
        except BackendError as error:
            raise self._failed(BackendUnavailable(self.endpoint.backend.name, _NO_END)) from error
        self._began()
        self._note(piece)
        return piece

    async def next(self) -> Delta | BackendEnd:
        """Returns the next piece.

        Raises:
            BackendCut: the answer broke off.
        """
        try:
            piece = await anext(self._pieces)
        except StopAsyncIteration:
            raise self._failed(BackendCut(self.endpoint.backend.name, self._chars, _NO_END)) from None
        except BackendCut as error:
            self._failed(error)
            raise
        except BackendError as error:
            raise self._failed(BackendCut(self.endpoint.backend.name, self._chars)) from error
        self._note(piece)
        return piece

    def finish(self, end: BackendEnd) -> None:
        """Notes that the answer is whole."""
        tokens = end.usage.output_tokens or self._pieces_count
        if tokens > 1:
            self.token_ns = (self._heard_ns - self._sent_ns - self.first_token_ns) // (tokens - 1)
        self.endpoint.figures.ended(self.token_ns, tokens)
        self.endpoint.arranger.learn(self._job.root, self._leg.context, self.arrangement, end.usage)
        self.settle(Outcome.ANSWERED)

    def settle(self, outcome: Outcome, *, blamed: bool = False) -> None:
        """Notes what became of it; only the first call counts. `blamed` says that the server is at fault."""
        if self.outcome is not None:
            return
        self.outcome = outcome
        blamed = blamed or (outcome in (Outcome.LEFT, Outcome.TIMEOUT) and self._hung)
        if self._is_silent:
            self.first_token_ns = self._now_ns() - self._sent_ns
            if outcome is Outcome.LOST and not self.hedge:
                # It would have taken longer still: left out, the slowest would be missing from the quantiles.
                self.endpoint.figures.began(self.first_token_ns)
        self.endpoint.ended(outcome, self._permit, blamed=blamed)

    def abandon(self, outcome: Outcome | None = None) -> None:
        """Settles it as `outcome`, or as an error of another kind than backends are meant to raise when it is None."""
        if outcome is None:
            self.settle(Outcome.CUT if self._heard_ns else Outcome.FAILED, blamed=bool(self._sent_ns))
        else:
            self.settle(outcome)

    def release(self) -> None:
        """Gives its place back."""
        if self._place is not None:
            self._place.release(overloaded=self._full)

    async def close(self) -> None:
        """Stops the server's work and gives the place back."""
        try:
            if self._sent_ns:
                await self._pieces.aclose()
        finally:
            self.release()

    def attempt(self) -> Attempt:
        """Returns it as ledgers show it; once it is settled."""
        outcome = self.outcome or Outcome.FAILED
        endpoint = self.endpoint
        return Attempt(endpoint.backend.name, endpoint.server, outcome, self.hedge, self.queue_ns, self.first_token_ns)

    @property
    def _is_silent(self) -> bool:
        return bool(self._sent_ns) and not self._heard_ns

    @property
    def _hung(self) -> bool:
        """Whether its server was silent for so long that it is at fault, though the caller's time ended it."""
        return self._is_silent and self._now_ns() - self._sent_ns >= self.endpoint.figures.patience_ns

    def _send(self) -> None:
        root, context, arranger = self._job.root, self._leg.context, self.endpoint.arranger
        self.arrangement = arranger.arrange(root, context)
        self.prompt = self._job.prompt(context, self.arrangement)
        params = replace(self._job.params, affinity=self._job.affinity or root)
        self._pieces = self.endpoint.backend.stream(self.prompt, params)
        self._sent_ns = self._now_ns()
        self.endpoint.sending(hedge=self.hedge, retry=self._retry)
        arranger.sent(root, context, self.arrangement)

    def _began(self) -> None:
        self.first_token_ns = self._now_ns() - self._sent_ns
        if self._place is not None:
            self._place.first_token(self.first_token_ns)
        if self._permit is not None:
            self._permit = self.endpoint.begun(self._permit, self.first_token_ns)

    def _note(self, piece: Delta | BackendEnd) -> None:
        if isinstance(piece, Delta):
            self._heard_ns = self._now_ns()
            self._pieces_count += 1
            self._chars += len(piece.text)

    def _failed(self, error: BackendError) -> BackendError:
        blamed = blames_server(error) and not self._timed_out_by_request(error)
        self._full = says_full(error) and blamed
        outcome = outcome_of(error)
        _log.warning(
            "backend_attempt_failed",
            backend=self.endpoint.backend.name,
            server=self.endpoint.server,
            outcome=outcome.value,
            error=type(error).__name__,
        )
        self.settle(outcome, blamed=blamed)
        return error

    def _timed_out_by_request(self, error: BackendError) -> bool:
        """Whether the request's own deadline ended it: a hasty caller must not close a server off for others."""
        late = self._now_ns() >= self._job.params.deadline_ns - _AT_DEADLINE_NS
        return late and isinstance(error, (BackendTimeout, BackendCut))
