"""Engines of the simulation that need no model: an encoder of words, and a backend that says what a passage says."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncGenerator, Sequence
from functools import cache
from itertools import count

import numpy as np
from numpy.typing import NDArray

from bench._common.consistency.facts import statement, topic_of
from encoders.types import EncodedPassage, EncodedQuery, Outcome, TextKind, TokenCodec, TokenizedText, WorkClass
from retrieval.assembly import PassageCounter
from retrieval.speech import BackendEnd, Delta, FinishReason, GenerationParams, Usage
from retrieval.token_counters import RememberingCounter
from retrieval.types import Prompt

DIM = 128
_SLOW_EVERY = 16
UNKNOWN = "The sources do not say."
_WORD = re.compile(r"\w+|[^\w\s]")
_STOP_WORDS = frozenset(
    {"at", "could", "is", "it", "me", "of", "on", "please", "s", "tell", "the", "was", "what", "you"}
)
_ZERO, _ONE = "\u200b", "\ufeff"  # invisible: two answers that differ in their mark alone say the same
_MARK = re.compile(f"[{_ZERO}{_ONE}]+")


class WordCounter:
    """Counts words and marks."""

    name = "words"
    adds_up = True

    def count(self, text: str) -> int:
        """Counts the words and marks of a text."""
        return len(self.offsets(text))

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Returns where each begins and ends."""
        return [found.span() for found in _WORD.finditer(text)]


def passage_counter() -> PassageCounter:
    """Returns a counter for contexts."""
    return RememberingCounter(WordCounter())


class WordEncoder:
    """Gives a text the sum of one fixed vector a word, stop words left out: other wordings come near, no further."""

    model_id = "words"
    revision = "1"
    dim = DIM
    max_tokens = 256
    codec: TokenCodec | None = None

    def tokenize(self, texts: Sequence[str], kind: TextKind) -> list[TokenizedText]:
        """Numbers the words of each text."""
        return [_tokenized(text) for text in texts]

    async def encode(
        self, texts: Sequence[str], kind: TextKind, work_class: WorkClass, deadline_ns: int | None
    ) -> list[Outcome[NDArray[np.float32]]]:
        """Returns a vector a text, after others had their turn."""
        await asyncio.sleep(0)
        return [Outcome(_vector(text), None, _tokenized(text).token_count, False, 1, 1) for text in texts]

    async def encode_query(self, text: str, deadline_ns: int | None) -> Outcome[EncodedQuery]:
        """Encodes a question."""
        [outcome] = await self.encode([text], TextKind.QUERY, WorkClass.ONLINE, deadline_ns)
        return outcome.map(lambda vector: EncodedQuery(vector, None))

    async def encode_passages(
        self, texts: Sequence[str], work_class: WorkClass, deadline_ns: int | None
    ) -> list[Outcome[EncodedPassage]]:
        """Encodes passages."""
        outcomes = await self.encode(texts, TextKind.PASSAGE, work_class, deadline_ns)
        return [outcome.map(lambda vector: EncodedPassage(vector, None)) for outcome in outcomes]


class FactBackend:
    """Repeats what the first source on the topic says, in several pieces, and marks each answer invisibly."""

    name = "facts"
    model = "facts"
    context_window_tokens = 4096

    def __init__(self, slow_s: float = 0.0) -> None:
        """Takes `slow_s` for every sixteenth answer."""
        self.counter = passage_counter()
        self.answers = 0
        self._slow_s = slow_s
        self._marks = count(1)

    async def stream(self, prompt: Prompt, params: GenerationParams) -> AsyncGenerator[Delta | BackendEnd, None]:
        """Streams an answer; others have a turn before each piece."""
        phrase = topic_of(prompt.question).phrase
        sources = prompt.context.citations
        source = next((one for one in sources if phrase in one.passage.text), None)
        said, number = UNKNOWN, 1
        if source is not None:
            said, number = statement(source.passage.title, source.passage.text), source.number
        mark = next(self._marks)
        if self._slow_s and not mark % _SLOW_EVERY:
            await asyncio.sleep(self._slow_s)
        for piece in (said[:9], said[9:], f"{_marked(mark)} [{number}", "]"):
            await asyncio.sleep(0)
            yield Delta(piece)
        self.answers += 1
        yield BackendEnd(FinishReason.STOP, Usage(1, 1), self.model)

    async def close(self) -> None:
        """Has nothing to close."""


def mark_of(answer: str) -> int | None:
    """Returns the number that an answer is marked with; None when there is not exactly one."""
    found = _MARK.findall(answer)
    if len(found) != 1:
        return None
    return int("".join("1" if char == _ONE else "0" for char in found[0]), 2)


def said_in(answer: str) -> str:
    """Returns what an answer says, without its mark and its citation."""
    return _MARK.sub("", answer).partition(" [")[0]


def _marked(number: int) -> str:
    return "".join(_ONE if digit == "1" else _ZERO for digit in f"{number:b}")


def _tokenized(text: str) -> TokenizedText:
    ids = np.arange(len(_WORD.findall(text)) + 2, dtype=np.int64)
    return TokenizedText(ids, np.zeros_like(ids), len(ids))


def _vector(text: str) -> NDArray[np.float32]:
    words = [word for word in _WORD.findall(text.lower()) if word not in _STOP_WORDS and word.isalnum()]
    total = np.full(DIM, 1e-3)
    for word in words:
        total = total + _word_vector(word)
    unit: NDArray[np.float32] = (total / np.linalg.norm(total)).astype(np.float32)
    return unit


@cache
def _word_vector(word: str) -> NDArray[np.float64]:
    return np.random.default_rng(zlib.crc32(word.encode())).normal(size=DIM)
