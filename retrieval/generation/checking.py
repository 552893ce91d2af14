"""Tries a backend as the service will use it: whether it answers, streams, reports usage, and counts tokens as we do.

Three questions are asked: a short one, a longer one, and that again. What a server puts around messages is the same in
all of them, so the difference between the first two is text alone, and our count of it must be the server's.
"""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import dataclass

from indexers.types import Passage
from retrieval.assembly import PassageCounter
from retrieval.assembly.template import source_block
from retrieval.errors import BackendCut, BackendError
from retrieval.generation.backend import Backend
from retrieval.generation.messages import chat_messages
from retrieval.speech import BackendEnd, GenerationParams, Usage
from retrieval.types import Arrangement, Citation, Context, Prompt

NO_USAGE = Usage()

COUNT_TOLERANCE = 0.02
"""How far our count may be from the server's, as a share of ours."""

_PATIENCE_S = 300.0  # a model that has to be loaded first takes long; each backend has its own limits besides
_OUTPUT_TOKENS = 48
_INSTRUCTIONS = "Say in full sentences what the sources tell about the mill. Cite them like [1]."
_QUESTION = "What do the sources tell about the water of the mill?"
# Names, figures, signs and other scripts: what tokenizers disagree about.
_SENTENCES = (
    "The water of the mill comes through a headrace of 312 metres.",
    "The water of the mill drives a wheel of oak, 4.75 m wide.",
    "Zoë Müller-Łukasz leased it in 1842 for £1,960 a year.",
    "Its sluice_gate(open=True) is the oldest code on the river.",
    "Unfathomably, the weir withstood the floods of '97 and 2013.",
    "水車 is what a visitor from Kyōto called it in the guest book.",
    "Grinding rye took 38 % longer than grinding wheat, it says there.",
    "Antidisestablishmentarianism was discussed over its flour sacks.",
)
_SHORT_SENTENCES = 2


@dataclass(frozen=True, slots=True)
class BackendCheck:
    """What was found."""

    backend: str
    model: str
    reachable: bool
    pieces: int = 0  # in which an answer arrived, the most of the three
    usage: Usage = NO_USAGE  # of the last answer
    token_ratio: float = 0.0  # the server's count of a text by ours; 0 when it reports none
    first_token_ms: float = 0.0  # of the last answer, whose prompt the server has just read
    fault: str = ""  # the first error

    @property
    def streams(self) -> bool:
        """Whether an answer arrived in more than one piece."""
        return self.pieces > 1

    @property
    def reports_usage(self) -> bool:
        """Whether it says how many tokens it read and wrote."""
        return bool(self.usage.prompt_tokens and self.usage.output_tokens)

    @property
    def counts_alike(self) -> bool:
        """Whether its count of a text is ours."""
        return abs(self.token_ratio - 1.0) <= COUNT_TOLERANCE

    @property
    def reports_cached(self) -> bool:
        """Whether it said that it had read a prompt before; the order of passages can follow its cache then."""
        return self.usage.cached_prompt_tokens > 0

    @property
    def complaint(self) -> str:
        """What is not as it should be, in words; empty when all is well."""
        if self.fault:
            return self.fault
        if not self.streams:
            return "the whole answer came in one piece; does something between buffer streams?"
        if not self.reports_usage:
            return "it reports no usage, so prices and prefix order have no figures"
        if not self.token_ratio:
            return "the prompt tokens that it reports do not grow with the prompt"
        if not self.counts_alike:
            return f"it counts {self.token_ratio:.2f} tokens where we count one; set the backend's tokenizer"
        return ""

    @property
    def passed(self) -> bool:
        """Whether all is well; a server that says nothing of its cache does for everything else."""
        return not self.complaint


@dataclass(frozen=True, slots=True)
class _Asked:
    pieces: int
    usage: Usage
    first_token_ms: float


async def check_backend(backend: Backend) -> BackendCheck:
    """Asks the backend three times, and says what was found; its errors are a part of that."""
    short, long = (_prompt(backend.counter, count) for count in (_SHORT_SENTENCES, len(_SENTENCES)))
    asked: list[_Asked] = []
    fault, reachable = "", True
    try:
        for prompt in (short, long, long):
            answered = await _ask(backend, prompt)
            asked.append(answered)
    except BackendError as error:
        fault, reachable = str(error), bool(asked) or isinstance(error, BackendCut)
    last = asked[-1] if asked else _Asked(0, NO_USAGE, 0.0)
    return BackendCheck(
        backend.name,
        backend.model,
        reachable,
        pieces=max((each.pieces for each in asked), default=0),
        usage=last.usage,
        token_ratio=_ratio(backend.counter, short, long, [each.usage.prompt_tokens for each in asked]),
        first_token_ms=last.first_token_ms,
        fault=fault,
    )


async def _ask(backend: Backend, prompt: Prompt) -> _Asked:
    began_ns = time.monotonic_ns()
    params = GenerationParams(_OUTPUT_TOKENS, 0.0, began_ns + int(_PATIENCE_S * 1e9))
    pieces, first_ns = 0, 0
    async with aclosing(backend.stream(prompt, params)) as stream:
        async for piece in stream:
            if isinstance(piece, BackendEnd):
                return _Asked(pieces, piece.usage, max(0, first_ns - began_ns) / 1e6)
            first_ns = first_ns or time.monotonic_ns()
            pieces += 1
    raise BackendCut(backend.name, 0)


def _ratio(counter: PassageCounter, short: Prompt, long: Prompt, prompt_tokens: list[int]) -> float:
    """Returns the server's count of what the long prompt has more, by ours; 0 when it is not known."""
    if len(prompt_tokens) < 2 or not all(prompt_tokens[:2]):
        return 0.0
    return (prompt_tokens[1] - prompt_tokens[0]) / (_count(counter, long) - _count(counter, short))


def _count(counter: PassageCounter, prompt: Prompt) -> int:
    return sum(counter.count(message.content) for message in chat_messages(prompt))


def _prompt(counter: PassageCounter, sentence_count: int) -> Prompt:
    """Returns a question with one source of so many sentences."""
    text = " ".join(_SENTENCES[:sentence_count])
    passage = _passage(text)
    block = source_block(1, passage)
    tokens = counter.count(block)
    context = Context(block, tokens, tokens, counter.name, (Citation(1, passage, (passage.chunk_id,)),))
    return Prompt(_INSTRUCTIONS, context, _QUESTION, Arrangement.by_relevance(context))


def _passage(text: str) -> Passage:
    return Passage(
        chunk_id="mill",
        document_id="mill",
        title="The mill",
        heading_path=(),
        text=text,
        start=0,
        end=len(text),
        ordinal=0,
        page=0,
        metadata={},
    )
