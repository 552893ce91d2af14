"""A backend that knows what is right: it says the gold answer of the question if the prompt holds it, and cites where.

It stands for a model that reads well and invents nothing, so that what a replay measures is the cache. It is told which
request comes next, and it sees the prompt: without a passage that holds the answer it says so and cites nothing, and
such an answer is kept by no careful cache. A look-alike that was made for the trace has no known answer; what it says
then is its question's alone, so that nothing else agrees with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator

from bench._common.traces.events import Ask
from retrieval.assembly import PassageCounter
from retrieval.speech import BackendEnd, Delta, FinishReason, GenerationParams, Usage
from retrieval.types import Citation, Context, Prompt

NAME = "oracle"
_UNKNOWN = "The sources do not say."
_INSTRUCTION_TOKENS = 100  # about, with the question


class Oracle:
    """The `Backend` of a replay."""

    name = NAME
    model = "gold answers"
    context_window_tokens = 32_768

    def __init__(self, counter: PassageCounter) -> None:
        self.counter = counter
        self.calls = 0
        self.prompt_tokens = 0
        self.output_tokens = 0
        self._asked: dict[str, Ask] = {}
        self._idle = asyncio.Event()

    def expect(self, ask: Ask) -> None:
        """Says what is right for a text from now on."""
        self._asked[ask.text] = ask
        self._idle.clear()

    async def idle(self) -> None:
        """Waits until an answer that was made after the last `expect` is whole."""
        await self._idle.wait()

    async def stream(self, prompt: Prompt, params: GenerationParams) -> AsyncGenerator[Delta | BackendEnd, None]:
        """Gives the answer in one piece."""
        try:
            text = answer_to(self._asked[prompt.question], prompt.context)
            usage = Usage(prompt.context.token_count + _INSTRUCTION_TOKENS, self.counter.count(text))
            self.calls += 1
            self.prompt_tokens += usage.prompt_tokens
            self.output_tokens += usage.output_tokens
            yield Delta(text)
            yield BackendEnd(FinishReason.STOP, usage, self.model)
        finally:
            self._idle.set()

    async def close(self) -> None:
        """Holds nothing."""


def answer_to(ask: Ask, context: Context) -> str:
    """Returns what is right for the request, as far as the context holds it."""
    if not ask.documents:
        return f"Of {ask.question_id} they say this [{context.citations[0].number}]"
    holding = sorted(_holding(ask, context), key=lambda one: (one.passage.document_id, one.passage.start))
    if not holding:
        return _UNKNOWN
    if ask.answers:
        return f"{ask.answers[0]} [{holding[0].number}]"
    return " ".join(f"{_plain(one.passage.text)} [{one.number}]" for one in holding)


def _holding(ask: Ask, context: Context) -> Iterator[Citation]:
    for one in context.citations:
        text = one.passage.text
        if one.passage.document_id in ask.documents and (not ask.answers or any(a in text for a in ask.answers)):
            yield one


def _plain(text: str) -> str:
    """Leaves no bracket that would read as a citation mark."""
    return text.replace("[", "(").replace("]", ")")
