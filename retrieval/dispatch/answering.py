"""A backend's stream as the pieces of an answer with settled citation marks, and what is known when it has ended.

Shared by all who ask the same meanwhile, so that the marks are read once.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from functools import cached_property

from retrieval.citations import CitationParser
from retrieval.errors import BackendCut
from retrieval.generation.backend import Backend
from retrieval.types import AnswerCitation, BackendEnd, Delta, GenerationParams, Prompt


@dataclass(frozen=True)
class Ended:
    """The end of a whole answer."""

    end: BackendEnd
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
    backend: Backend, prompt: Prompt, params: GenerationParams
) -> AsyncGenerator[Delta | Ended, None]:
    """Yields pieces, none of them empty, then one `Ended`.

    Raises:
        BackendError: what the backend raises; BackendCut when its stream has no end.
    """
    parser, settled = CitationParser(prompt.context.citations), list[str]()
    async with aclosing(backend.stream(prompt, params)) as pieces:
        async for piece in pieces:
            if isinstance(piece, BackendEnd):
                yield Ended(piece, "".join(settled), parser)
                return
            if text := parser.feed(piece.text):
                settled.append(text)
                yield Delta(text)
    raise BackendCut(backend.name, parser.emitted_chars)


def size_of(piece: Delta | Ended) -> int:
    """Returns the bytes of a piece, about."""
    return 64 + (4 * len(piece.text) if isinstance(piece, Delta) else 0)
