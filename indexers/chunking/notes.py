"""Puts the notes of a document with its chunks: each with the one in which its span begins, cut to what fits."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from encoders.types import TokenCounter
from indexers.chunking.spans import Span
from indexers.types import Note

NOTE_SHARE = 4  # a document with notes leaves a quarter of each chunk's limit to them


def notes_of(notes: Sequence[Note], spans: Sequence[Span]) -> list[str]:
    """Returns the notes of each span, as one text each; spans have rising starts. No note goes with two spans."""
    texts: list[list[str]] = [[] for _ in spans]
    starts = [start for start, _ in spans]
    for note in notes if spans else ():
        if note.text.strip():
            texts[max(bisect_right(starts, note.start) - 1, 0)].append(" ".join(note.text.split()))
    return ["\n".join(lines) for lines in texts]


def fitted(text: str, counter: TokenCounter, room: int) -> str:
    """Returns the beginning of the text, whole words, that counts at most so many tokens."""
    if counter.count(text) <= room:
        return text
    words = text.split(" ")
    low, high = 0, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        if counter.count(" ".join(words[:middle])) <= room:
            low = middle
        else:
            high = middle - 1
    return " ".join(words[:low])
