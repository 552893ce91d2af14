"""How much context each backend can take beside all else of a prompt, and which part of a context that is.

Everything is counted once a tokenizer, however many backends have it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from retrieval.assembly import PassageCounter, generation_budget
from retrieval.assembly.budget import LEAST_CONTEXT_TOKENS
from retrieval.assembly.fitting import fit_context
from retrieval.assembly.long_texts import estimated_count
from retrieval.dispatch.types import Service
from retrieval.errors import InvalidRequest
from retrieval.routing.asking import Asking
from retrieval.types import Context

_NO_BOUND = 1 << 40  # tokens
_TURN_TOKENS = 8  # at most, of what names the speaker of a turn and parts it from the next
_FEW_SOURCES = 10
_MARK_TOKENS = 8  # at most, of a mark that is longer than a rank, and of naming it once more in a ranking


@dataclass(frozen=True, slots=True)
class Fit:
    """The part of a context that a backend can take."""

    context: Context
    passages: int  # of the whole context
    prompt_tokens: int  # all of the prompt, this context included

    @property
    def kept(self) -> int:
        """How many of the passages fit."""
        return len(self.context.citations)

    @property
    def lost(self) -> float:
        """What does not fit, in [0, 1]: each passage weighs one by its rank, since those further down help less."""
        if self.kept == self.passages:
            return 0.0
        whole = sum(1.0 / rank for rank in range(1, self.passages + 1))
        return sum(1.0 / rank for rank in range(self.kept + 1, self.passages + 1)) / whole


class Measure:
    """Counts for one request."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._needs: dict[str, int] = {}
        self._fits: dict[tuple[str, int], Context] = {}

    def budget(self, service: Service, sources: int = 0) -> int:
        """Returns the tokens of context that fit into the backend's window, at most as many as were asked for.

        Where sources are ordered for prefix reuse, room is kept for their marks and ranking: for ten of them at least,
        but no more than half, which few sources do not need.

        Raises:
            InvalidRequest: all else of the prompt, or the answer, leaves no room for context.
        """
        window = service.settings.context_window_tokens
        room = window - self._need(service.counter)
        if room < LEAST_CONTEXT_TOKENS:
            self._refuse(window, room, service.counter)
        if service.settings.order == "prefix":
            room -= min(room // 2, _MARK_TOKENS * (1 + max(_FEW_SOURCES, sources)))
        return min(self._asking.asked_context_tokens, room)

    def fit(self, service: Service, context: Context) -> Fit:
        """Returns the part of the context that the backend can take.

        Raises: what `budget` raises.
        """
        budget, counter = self.budget(service, len(context.citations)), service.counter
        if (counter.name, budget) not in self._fits:
            self._fits[counter.name, budget] = fit_context(context, budget, counter)
        fitted = self._fits[counter.name, budget]
        fixed_tokens = self._need(counter) - self._asking.max_output_tokens
        return Fit(fitted, len(context.citations), fixed_tokens + fitted.token_count)

    def _need(self, counter: PassageCounter) -> int:
        """Returns the tokens that the answer and all of the prompt but the context take."""
        if counter.name not in self._needs:
            self._needs[counter.name] = _NO_BOUND - self._room(_NO_BOUND, counter) + self._extra(counter)
        return self._needs[counter.name]

    def _room(self, window: int, counter: PassageCounter) -> int:
        asking = self._asking
        return generation_budget(
            window, asking.instructions, asking.question, asking.max_output_tokens, counter, _NO_BOUND
        )

    def _extra(self, counter: PassageCounter) -> int:
        """Counts the tools, and the conversation turn by turn: most turns were counted for the request before."""
        said, tools = self._asking.conversation, self._asking.tools
        texts = [turn.text for turn in said.turns] + ([said.summary] if said.summary else [])
        tokens = sum(estimated_count(text, counter) + _TURN_TOKENS for text in texts) + (_TURN_TOKENS if texts else 0)
        offered = (tools.definitions, tools.choice) if tools else ()
        return tokens + sum(estimated_count(text, counter) for text in offered)

    def _refuse(self, window: int, room: int, counter: PassageCounter) -> NoReturn:
        """Says what is too long; what is too long by itself first."""
        without = self._room(window, counter)  # raises when it does not even fit without them
        extra = without - room
        bound = without - LEAST_CONTEXT_TOKENS
        raise InvalidRequest(
            "tools" if self._asking.tools else "history",
            f"at most {bound} tokens with the conversation",
            f"the conversation and the tools have {extra} tokens, {bound} fit beside question and answer in a window "
            f"of {window} tokens; send fewer",
        )
