"""A backend's stream as the pieces of an answer with settled citation marks, and what is known when it has ended.

Shared by all who ask the same meanwhile, so that the marks are read once.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from functools import cached_property

from retrieval.citations import CitationParser
from retrieval.dispatch.types import AnswerEvent, Began, Finished
from retrieval.errors import BackendCut
from retrieval.route import GenerationReport
from retrieval.speech import BackendEnd, Delta
from retrieval.types import AnswerCitation, Context


@dataclass(frozen=True)
class Ended:
    """The end of a whole answer."""

    end: BackendEnd
    report: GenerationReport
    stand_in: bool  # whether another backend answered than was wanted, or one that had less context than was found
    streamed: str  # the text up to here
    parser: CitationParser

    @cached_property
    def verified(self) -> Verified:
        """The rest of the text, and the citations; checked once, whoever asks."""
        rest, citations, unknown = self.parser.finish()
        return Verified(self.streamed + rest, rest, citations, unknown)


@dataclass(frozen=True, slots=True)
class Verified:
    """A whole answer with checked citations."""

    text: str
    rest: str  # its last part, which was held back as long as it could have become a mark
    citations: tuple[AnswerCitation, ...]
    unknown_count: int  # marks that stand for nothing


async def answer_pieces(
    events: AsyncGenerator[AnswerEvent, None], wanted: str, context: Context
) -> AsyncGenerator[Delta | Ended, None]:
    """Yields pieces, none of them empty, then one `Ended`; closes the events.

    `wanted` is the backend that should answer, `context` what it should read.

    Raises:
        BackendError: what the events raise; BackendCut when they have no end.
    """
    backend, parser, settled, stand_in = wanted, CitationParser(()), list[str](), False
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Delta):
                text = parser.feed(event.text)
                if text:
                    settled.append(text)
                if text or event.reasoning or event.tool_calls:
                    yield Delta(text, event.reasoning, event.tool_calls)
            elif isinstance(event, Began):
                backend = event.backend
                read = event.prompt.context.citations
                stand_in = backend != wanted or len(read) < len(context.citations)
                parser = CitationParser(event.prompt.context.citations, event.prompt.sources.numbers)
            elif isinstance(event, Finished):
                yield Ended(event.end, event.report, stand_in, "".join(settled), parser)
                return
    raise BackendCut(backend, parser.emitted_chars, "its stream has no end")


def size_of(piece: Delta | Ended) -> int:
    """Returns the bytes of a piece, about."""
    return 64 + (4 * piece.chars if isinstance(piece, Delta) else 0)
