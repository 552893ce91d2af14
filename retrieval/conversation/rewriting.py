"""Makes a follow-up self-contained as the settings say: by the rules, or by a model with the rules to fall back on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from retrieval.conversation.checking import usable_question
from retrieval.conversation.rules import Standalone, leans_on_history, standalone_by_rules, unchanged
from retrieval.conversation.side_model import SideModel
from retrieval.conversation.transcript import transcript
from retrieval.errors import BackendError, DeadlineExceeded, Overloaded
from retrieval.settings.generation import ConversationSettings
from retrieval.speech import Speaker, Turn

REWRITING = (
    "Rewrite the last question of the conversation so that it can be understood without the conversation. Replace "
    "pronouns and what is left out by the words that they stand for. Keep its language. Do not answer it, do not add "
    "anything. Reply with the question alone, on one line."
)
"""Never depends on a request, so that a model server keeps it cached."""

_MAX_OUTPUT_TOKENS = 96
_READ_TURNS = 6
_LONGEST_TURN = 600  # code points


class Rewriter:
    """Rewrites questions; holds nothing of any request."""

    def __init__(self, settings: Callable[[], ConversationSettings]) -> None:
        self._settings = settings

    async def standalone(
        self, question: str, turns: Sequence[Turn], model: SideModel | None, deadline_ns: int
    ) -> Standalone:
        """Returns the question as it is to be searched. Whatever goes wrong with the model, the rules' words serve.

        `deadline_ns` is on the clock of `time.monotonic_ns`; without a model the rules decide alone.
        """
        settings = self._settings()
        if settings.rewrite == "off" or not turns:
            return unchanged(question)
        if settings.rewrite == "model" and model is not None and leans_on_history(question, turns):
            until_ns = min(deadline_ns, time.monotonic_ns() + settings.rewrite_timeout_ms * 1_000_000)
            text, backend = await _asked(model, question, turns, until_ns)
            if text:
                return Standalone(text, text != question, backend if text != question else "")
        return standalone_by_rules(question, turns)


async def _asked(model: SideModel, question: str, turns: Sequence[Turn], until_ns: int) -> tuple[str, str]:
    """Returns what the model made of the question and its backend; an empty text when that cannot be used."""
    said = [turn for turn in turns if turn.speaker is not Speaker.TOOL][-_READ_TURNS:]
    text = f"{transcript(said, _LONGEST_TURN)}\nLast question: {' '.join(question.split())}"
    try:
        async with asyncio.timeout((until_ns - time.monotonic_ns()) / 1e9):
            written, backend = await model.write(REWRITING, text, _MAX_OUTPUT_TOKENS, until_ns)
    except (BackendError, Overloaded, DeadlineExceeded, TimeoutError):
        return "", ""
    return usable_question(written, question, turns), backend
