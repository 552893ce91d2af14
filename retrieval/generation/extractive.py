"""Answers with the best sentences of the cited passages, without a language model.

Every word of the answer stands in a source, and every sentence is cited. Useful by itself, and the baseline that a
model has to beat.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from encoders.errors import EncoderError
from encoders.types import AsyncDenseEncoder, TextKind, WorkClass
from retrieval.assembly import PassageCounter
from retrieval.generation.evidence import (
    Sentence,
    collect_sentences,
    combined_scores,
    share_of_terms,
    word_scores,
)
from retrieval.speech import BackendEnd, Delta, FinishReason, GenerationParams, Usage
from retrieval.types import Prompt

# Measured on 400 questions to Wikipedia paragraphs: the answer stood in the chosen sentences as often with 16 as with
# 40, and a share of 0.7 gave a sixth fewer words than 0.6 for half a point fewer answers.
_ENCODED_SENTENCES = 16
_SAME_SHARE = 0.7  # a sentence with this share of its words in one that is chosen says nothing new
_LEAST_OF_BEST = 0.7  # a sentence that scores less than this share of the best one is filler


class ExtractiveBackend:
    """A `Backend` that quotes."""

    def __init__(
        self,
        name: str,
        context_window_tokens: int,
        counter: PassageCounter,
        encoder: AsyncDenseEncoder | None,
        sentence_limit: Callable[[], int],
    ) -> None:
        self._name = name
        self._window = context_window_tokens
        self._counter = counter
        self._encoder = encoder
        self._sentence_limit = sentence_limit

    @property
    def name(self) -> str:
        """What requests call it."""
        return self._name

    @property
    def model(self) -> str:
        """The encoder that compares meanings, if there is one."""
        return f"extractive+{self._encoder.model_id}" if self._encoder else "extractive"

    @property
    def context_window_tokens(self) -> int:
        """Tokens of context that are read."""
        return self._window

    @property
    def counter(self) -> PassageCounter:
        """Counts context and answer."""
        return self._counter

    async def close(self) -> None:
        """Does nothing: the encoder belongs to someone else."""

    async def stream(self, prompt: Prompt, params: GenerationParams) -> AsyncGenerator[Delta | BackendEnd, None]:
        """Gives the answer sentence by sentence; see `Backend.stream`. Never fails: it falls back to words alone."""
        chosen = await self._choose(prompt, params.deadline_ns)
        reason = FinishReason.STOP if chosen else FinishReason.NO_EVIDENCE
        output_tokens = 0
        for place, sentence in enumerate(chosen):
            piece = f"{' ' if place else ''}{sentence.text} [{sentence.number}]"
            piece_tokens = self._counter.count(piece)
            if output_tokens + piece_tokens > params.max_output_tokens:
                reason = FinishReason.LENGTH
                break
            output_tokens += piece_tokens
            yield Delta(piece)
        yield BackendEnd(reason, Usage(prompt.context.token_count, output_tokens), self.model)

    async def _choose(self, prompt: Prompt, deadline_ns: int) -> list[Sentence]:
        sentences: list[Sentence] = []
        for found in collect_sentences(prompt.context.citations):
            sentences += found
            await asyncio.sleep(0)  # a long context must not hold up other requests
        if not sentences:
            return []
        words = word_scores(prompt.question, sentences)
        cosines = await self._cosines(prompt.question, sentences, words, deadline_ns)
        scores = combined_scores(sentences, words, cosines)
        return _in_reading_order(_best(sentences, scores, self._sentence_limit()))

    async def _cosines(
        self, question: str, sentences: Sequence[Sentence], words: NDArray[np.float32], deadline_ns: int
    ) -> NDArray[np.float32] | None:
        """Returns float32 [n], NaN where nothing was encoded; None when the encoder cannot help in time."""
        if self._encoder is None:
            return None
        # Without the cosine only rank tells sentences apart that share no word with the question.
        places = np.argsort(-combined_scores(sentences, words, None), kind="stable")[:_ENCODED_SENTENCES]
        texts = [sentences[place].text for place in places]
        try:
            (query,) = await self._encoder.encode([question], TextKind.QUERY, WorkClass.ONLINE, deadline_ns)
            passages = await self._encoder.encode(texts, TextKind.PASSAGE, WorkClass.ONLINE, deadline_ns)
        except EncoderError:
            return None
        if query.value is None:
            return None
        cosines = np.full(len(sentences), np.nan, dtype=np.float32)
        for place, passage in zip(places, passages, strict=True):
            if passage.value is not None:
                cosines[place] = passage.value @ query.value
        return cosines


def _best(sentences: Sequence[Sentence], scores: NDArray[np.float32], limit: int) -> list[Sentence]:
    """Returns the best sentences that differ from each other, best first."""
    chosen: list[Sentence] = []
    order = np.argsort(-scores, kind="stable")
    least = _LEAST_OF_BEST * float(scores[order[0]])
    for place in order:
        if len(chosen) == limit or scores[place] < least:
            break
        if share_of_terms(sentences[place].terms, (other.terms for other in chosen)) < _SAME_SHARE:
            chosen.append(sentences[place])
    return chosen


def _in_reading_order(best: Sequence[Sentence]) -> list[Sentence]:
    """Keeps the sentences of a passage together and in their order, the passage with the best sentence first."""
    passages = list(dict.fromkeys(sentence.number for sentence in best))
    return sorted(best, key=lambda sentence: (passages.index(sentence.number), sentence.position))
