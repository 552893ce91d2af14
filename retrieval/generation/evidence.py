"""The sentences of a context, and how well each answers the question.

A sentence's words are weighed by BM25 within the context alone (Robertson and Zaragoza, 2009): a word that stands in
every sentence of the context tells none of them apart, however rare it is elsewhere. What the words miss, the cosine of
sentence and question adds; the passage's rank adds what retrieval has seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from encoders.bm25 import collect_statistics, query_vector, upper_bound
from encoders.term_statistics import document_vector
from encoders.terms import count_terms
from encoders.types import SparseVector, TermCounts
from indexers.sentences import sentence_spans
from retrieval.generation.reading import is_whole, sentence_text
from retrieval.types import Citation

WORD_WEIGHT = 0.5
MEANING_WEIGHT = 0.5
RANK_WEIGHT = 0.05
HEADING_WEIGHT = 0.15
FRAGMENT_WEIGHT = 0.75

_LEAST_WORDS = 3


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence that could be quoted."""

    number: int  # of its citation
    position: int  # in the whole context, in reading order
    text: str  # without markup, on one line
    terms: TermCounts
    heading: str  # title and headings of its passage


def collect_sentences(citations: Sequence[Citation]) -> Iterator[list[Sentence]]:
    """Yields the quotable sentences of one passage after the other, each in reading order."""
    position = 0
    for citation in citations:
        passage = citation.passage
        heading = " ".join((passage.title, *passage.heading_path))
        texts = [sentence_text(passage.text[start:end]) for start, end in sentence_spans(passage.text)]
        found: list[Sentence] = []
        for text in texts:
            if not text:
                continue
            terms = count_terms(text)
            if terms.length < (_LEAST_WORDS if is_whole(text) else 2 * _LEAST_WORDS):
                continue
            found.append(Sentence(citation.number, position, text, terms, heading))
            position += 1
        yield found


def word_scores(question: str, sentences: Sequence[Sentence]) -> NDArray[np.float32]:
    """Returns float32 [n], 0 to 1: how much of the question's words each sentence holds, its headings' words less."""
    statistics = collect_statistics(sentence.terms for sentence in sentences)
    query = query_vector(count_terms(question), statistics)
    bound = upper_bound(query) or 1.0
    headings = {sentence.heading for sentence in sentences}
    held = {heading: _held(query, count_terms(heading).terms) for heading in headings}
    scores = np.zeros(len(sentences), dtype=np.float32)
    for place, sentence in enumerate(sentences):
        words = _dot(query, document_vector(sentence.terms, statistics)) / bound
        scores[place] = words + HEADING_WEIGHT * held[sentence.heading]
    return scores


def combined_scores(
    sentences: Sequence[Sentence], words: NDArray[np.float32], cosines: NDArray[np.float32] | None
) -> NDArray[np.float32]:
    """Returns float32 [n]: the final scores. `cosines` is NaN where a sentence was not encoded, None when none was."""
    ranks = np.array([sentence.number - 1 for sentence in sentences], dtype=np.float32)
    whole = np.array([is_whole(sentence.text) for sentence in sentences])
    scores = WORD_WEIGHT * words + RANK_WEIGHT / (1.0 + ranks)
    if cosines is not None:
        # What was not worth encoding is no better than the worst of what was.
        known = cosines[~np.isnan(cosines)]
        scores = scores + MEANING_WEIGHT * np.nan_to_num(cosines, nan=float(known.min()) if len(known) else 0.0)
    return np.where(whole, scores, FRAGMENT_WEIGHT * scores).astype(np.float32)


def share_of_terms(inner: TermCounts, outers: Iterable[TermCounts]) -> float:
    """Returns the largest share of the terms of `inner` that stand in one of the others."""
    shares = (len(np.intersect1d(inner.terms, outer.terms, assume_unique=True)) for outer in outers)
    return max(shares, default=0) / max(1, len(inner.terms))


def _held(query: SparseVector, terms: NDArray[np.uint32]) -> float:
    weight = float(query.values.sum())
    return float(query.values[np.isin(query.indices, terms)].sum()) / weight if weight else 0.0


def _dot(query: SparseVector, document: SparseVector) -> float:
    _, first, second = np.intersect1d(query.indices, document.indices, assume_unique=True, return_indices=True)
    return float(query.values[first] @ document.values[second])
