"""Cuts a document into chunks that an encoder can take whole.

Small neighbouring blocks under one heading and on one page are put together up to a target; a block above the target
stays whole as long as the model takes it, and is split otherwise. Token arithmetic over one pass proposes the spans;
each proposal is then counted as it will be encoded, header included, and halved until it fits, because a tokenizer may
count a part for more than its share of the whole.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest

from encoders.types import TokenCounter
from indexers.chunking.blocks import Block, find_blocks
from indexers.chunking.headers import HEADER_SHARE, header_text
from indexers.chunking.notes import NOTE_SHARE, fitted, notes_of
from indexers.chunking.spans import Span, trimmed
from indexers.chunking.splitting import split_block
from indexers.chunking.token_positions import TokenPositions, good_cut
from indexers.types import Chunk, Document, headed

_ALGORITHM = 1  # raised whenever the same document would be cut or headed differently


@dataclass(frozen=True, slots=True)
class ChunkLimits:
    """The sizes of chunks, in the encoder's tokens.

    Raises:
        ValueError: limits that leave no room for text.
    """

    limit_tokens: int = 256  # the most that the model takes; header, text and what the encoder adds together
    target_tokens: int = 200  # text of a chunk that is put together from blocks
    overlap_tokens: int = 32  # text that the parts of a split block share
    added_tokens: int = 2  # what the encoder adds to every text: special tokens, the prompt of its passages

    def __post_init__(self) -> None:
        if self.limit_tokens // 2 < self.added_tokens + 8:
            raise ValueError(f"limit_tokens {self.limit_tokens} leaves no room for text; raise it to 32 or more")
        if self.target_tokens < 8 or not 0 <= self.overlap_tokens < self.target_tokens:
            raise ValueError("target_tokens must be 8 or more, and overlap_tokens smaller than target_tokens")


class Chunker:
    """Cuts documents for one encoder. Safe to call from several threads; keeps nothing between documents."""

    def __init__(self, counter: TokenCounter, limits: ChunkLimits | None = None) -> None:
        self._counter = counter
        self.limits = limits or ChunkLimits()

    @property
    def fingerprint(self) -> str:
        """Names everything that shapes a chunk besides its document."""
        sizes = self.limits
        return (
            f"{_ALGORITHM}:{sizes.limit_tokens}:{sizes.target_tokens}:{sizes.overlap_tokens}:{sizes.added_tokens}:"
            f"{self._counter.name}"
        )

    def chunk(self, document: Document) -> tuple[Chunk, ...]:
        """Returns the chunks in order: starts strictly increase, and every visible character is in at least one.

        A text without visible characters gives none.
        """
        text = document.text
        positions = TokenPositions(text, self._counter)

        @cache
        def header(path: tuple[str, ...]) -> tuple[str, int]:
            line = header_text(document.title, path, self._counter, self.limits.limit_tokens)
            return line, self._counter.count(line) if line else 0

        room = self._room(document)
        cuts: list[tuple[Block, Span]] = []
        for blocks in _sections(find_blocks(text, document.format)):
            line, _ = header(blocks[0].heading_path)
            cuts += [(blocks[0], span) for span in self._spans(text, blocks, positions, line, room)]
        notes = notes_of(document.notes, [span for _, span in cuts])
        chunks: list[Chunk] = []
        occurrences: dict[str, int] = {}
        for (block, (start, end)), noted in zip(cuts, notes, strict=True):
            line, line_count = header(block.heading_path)
            part = text[start:end]
            searched = self._noted(headed(line, part), noted)
            content = f"{headed(line, part)}\n{searched}" if searched else headed(line, part)
            occurrence = occurrences.get(content, 0)
            occurrences[content] = occurrence + 1
            identity = chunk_id(document.document_id, content, occurrence)
            count, path, page = self._counter.count(part), block.heading_path, block.page
            chunks.append(Chunk(identity, len(chunks), start, end, path, page, part, count, line, line_count, searched))
        return tuple(chunks)

    def warnings(self, document: Document) -> tuple[str, ...]:
        """Says what of a document does not reach the encoder."""
        budget = self.limits.limit_tokens // HEADER_SHARE
        title = " ".join(document.title.split())
        if header_text(title, (), self._counter, self.limits.limit_tokens) == title:
            return ()
        return (f"the title has {len(title)} characters; what is embedded of it is cut to {budget} tokens",)

    def _room(self, document: Document) -> int:
        """Returns the tokens of a chunk's header and text at most."""
        room = self.limits.limit_tokens - self.limits.added_tokens
        return room - self.limits.limit_tokens // NOTE_SHARE if document.notes else room

    def _noted(self, content: str, notes: str) -> str:
        """Returns as much of the notes as the encoder takes along with the content."""
        if not notes:
            return ""
        room = self.limits.limit_tokens - self.limits.added_tokens
        return fitted(notes, self._counter, room - self._counter.count(f"{content}\n"))

    def _spans(
        self, text: str, blocks: list[Block], positions: TokenPositions, header: str, room: int
    ) -> Iterator[Span]:
        available = room - (self._counter.count(header + "\n") if header else 0)
        target = min(self.limits.target_tokens, available)
        spans = list(_pack_blocks(text, blocks, positions, (target, available), self.limits.overlap_tokens))
        for (start, end), (next_start, _) in zip_longest(spans, spans[1:], fillvalue=(len(text), len(text))):
            # A part that starts after the next span does is inside it, thanks to their overlap.
            yield from (part for part in self._halved(text, start, end, header, room) if part[0] < next_start)

    def _halved(self, text: str, start: int, end: int, header: str, room: int) -> Iterator[Span]:
        """Yields the span, or parts of it that fit when it is encoded by itself."""
        if end - start == 1 or self._counter.count(headed(header, text[start:end])) <= room:
            yield start, end
            return
        middle = (start + end) // 2
        cut = min(good_cut(text, middle - (end - start) // 4, middle + 1), end - 1)
        for low, high in ((start, cut), (cut, end)):
            for span in trimmed(text, low, high):
                yield from self._halved(text, *span, header, room)


def chunk_id(document_id: str, content: str, occurrence: int) -> str:
    """Returns a canonical lower-case UUID of the document, what is embedded, and how often that occurred before."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (document_id, content, str(occurrence)):
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return str(uuid.UUID(bytes=digest.digest()))


def _sections(blocks: list[Block]) -> Iterator[list[Block]]:
    """Yields runs of blocks under the same headings and on the same page."""
    section: list[Block] = []
    for block in blocks:
        if section and (block.heading_path, block.page) != (section[0].heading_path, section[0].page):
            yield section
            section = []
        section.append(block)
    if section:
        yield section


def _pack_blocks(
    text: str, blocks: list[Block], positions: TokenPositions, sizes: tuple[int, int], overlap_tokens: int
) -> Iterator[Span]:
    """Yields spans of whole blocks up to the target, and parts of the blocks that are above what is available."""
    target, available = sizes
    current: Span | None = None
    for block in blocks:
        if current and positions.cost(current[0], block.end) <= target:
            current = (current[0], block.end)
            continue
        if current:
            yield current
        current = (block.start, block.end)
        if positions.cost(*current) > available:
            yield from split_block(text, block, positions, target, overlap_tokens)
            current = None
    if current:
        yield current
