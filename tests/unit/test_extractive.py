"""Extractive answers: which sentences, in which order, cited how, and what happens when something is missing."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from encoders.types import Outcome, TextKind, WorkClass
from indexers.types import Passage
from retrieval.assembly import assemble
from retrieval.citations import CitationParser
from retrieval.generation.extractive import ExtractiveBackend
from retrieval.speech import BackendEnd, Delta, FinishReason, GenerationParams
from retrieval.types import Arrangement, Context, Hit, Prompt, ScoreParts
from tests.fakes.counters import WordCounter
from tests.fakes.encoders import HashEncoder

PUMP = (
    "# The pump\n\nThe pump moves water from the lake to the tank. To start the pump, turn the key to the right. "
    "The key is kept in the office. It makes a noise like `engine[1]` for ten seconds.\n\n```\npump.start(key)\n```\n"
)
TANK = "The tank holds nine hundred litres. To start the pump, turn the key to the right! Paint the tank every year."


def context(*texts: str) -> Context:
    """Assembles texts, each a document of its own."""
    hits = [
        Hit(Passage(f"c{rank}", f"d{rank}", "", (), text, 0, len(text), 0, 0, {}), 1.0, ScoreParts())
        for rank, text in enumerate(texts)
    ]
    return assemble(hits, 10_000, WordCounter(), 1.0, 0.0)


class ScriptedEncoder(HashEncoder):
    """Knows one text that means the same as the question; the others are at right angles to it."""

    def __init__(self, alike: str) -> None:
        super().__init__(dim=2)
        self._alike = alike

    async def encode(
        self, texts: Sequence[str], kind: TextKind, work_class: WorkClass, deadline_ns: int | None
    ) -> list[Outcome[NDArray[np.float32]]]:
        assert work_class is WorkClass.ONLINE
        near, far = np.array([1, 0], dtype=np.float32), np.array([0, 1], dtype=np.float32)
        return [
            Outcome(near if kind is TextKind.QUERY or self._alike in text else far, None, 1, False, 0, 0)
            for text in texts
        ]


async def answer(
    question: str,
    source: Context,
    encoder: HashEncoder | None = None,
    sentences: int = 3,
    max_output_tokens: int = 512,
) -> tuple[list[str], BackendEnd]:
    """Returns the pieces of the answer and how it ended."""
    backend = ExtractiveBackend("extractive", 8192, WordCounter(), encoder, lambda: sentences)
    params = GenerationParams(max_output_tokens, 0.0, time.monotonic_ns() + 10**10)
    pieces: list[str] = []
    async for piece in backend.stream(Prompt("", source, question, Arrangement.by_relevance(source)), params):
        if isinstance(piece, BackendEnd):
            return pieces, piece
        assert isinstance(piece, Delta)
        pieces.append(piece.text)
    raise AssertionError("the stream has no end")


async def test_best_sentence_is_quoted_and_cited() -> None:
    """The sentence that holds the question's rare words is the answer, with the number of its source."""
    pieces, end = await answer("How do I start the pump?", context(TANK[:36], PUMP), sentences=1)
    assert pieces == ["To start the pump, turn the key to the right. [2]"]
    assert (end.finish_reason, end.model) == (FinishReason.STOP, "extractive")
    assert (end.usage.prompt_tokens > 0, end.usage.output_tokens) == (True, 15)


async def test_no_sentence_is_said_twice() -> None:
    """Two sources that say the same are quoted once."""
    pieces, _ = await answer("How do I start the pump?", context(PUMP, TANK))
    assert sum("turn the key" in piece for piece in pieces) == 1


async def test_sentences_of_a_source_keep_their_order() -> None:
    """Sentences of one passage come in the order in which they stand there, and every piece is cited."""
    pieces, _ = await answer("Where is the key of the pump kept, and which water does the pump move?", context(PUMP))
    positions = [PUMP.find(piece.strip().removesuffix(" [1]")) for piece in pieces]
    assert len(pieces) >= 2
    assert positions == sorted(positions)
    assert -1 not in positions


async def test_meaning_finds_what_words_miss() -> None:
    """With an encoder a sentence without any word of the question can be the answer."""
    encoder = ScriptedEncoder("litres")
    pieces, end = await answer("What is its capacity?", context(PUMP, TANK), encoder, sentences=1)
    assert pieces == ["The tank holds nine hundred litres. [2]"]
    assert end.model == "extractive+hash"


@pytest.mark.parametrize("encoder", [HashEncoder(refusals=1), HashEncoder(poison="start"), HashEncoder(poison="tank")])
async def test_failing_encoder_leaves_words(encoder: HashEncoder) -> None:
    """A full queue, a query or a sentence that fails to encode costs quality, never the answer."""
    pieces, end = await answer("How do I start the pump?", context(PUMP, TANK), encoder)
    assert pieces
    assert end.finish_reason is FinishReason.STOP


async def test_output_limit_cuts_at_a_sentence() -> None:
    """An answer that would be longer than allowed ends after the last sentence that fits, and says so."""
    pieces, end = await answer("Where is the key of the pump kept? start", context(PUMP), max_output_tokens=16)
    assert len(pieces) == 1
    assert (end.finish_reason, end.usage.output_tokens <= 16) == (FinishReason.LENGTH, True)


async def test_context_without_sentences_is_no_evidence() -> None:
    """Headings and code alone answer nothing; there is no made-up text."""
    pieces, end = await answer("How do I start the pump?", context("# The pump\n\n```\npump.start(key)\n```\n"))
    assert (pieces, end.finish_reason) == ([], FinishReason.NO_EVIDENCE)


async def test_every_word_stands_in_a_source() -> None:
    """Nothing is invented: each sentence is found in the passage that it cites."""
    source = context(PUMP, TANK)
    pieces, _ = await answer("What about the pump, the key, the tank and the noise?", source, sentences=8)
    for piece in pieces:
        text, _, number = piece.strip().removesuffix("]").rpartition(" [")
        assert text in source.citations[int(number) - 1].passage.text


async def test_parser_finds_a_citation_for_every_sentence() -> None:
    """What is quoted never hides or fakes a citation mark."""
    source = context(
        "Take rows[7] of the table. The table has a ` sign. The table was built in 1901.[3] Use it [4] now."
    )
    pieces, _ = await answer("Which rows and sign has the table built in 1901, and use?", source, sentences=4)
    parser = CitationParser(source.citations)
    emitted = "".join(map(parser.feed, pieces))
    rest, citations, unknown = parser.finish()
    assert [(citation.number, (emitted + rest)[citation.start : citation.end]) for citation in citations] == [
        (1, "[1]")
    ] * len(pieces)
    assert unknown == 0
