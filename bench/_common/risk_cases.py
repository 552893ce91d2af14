"""Pairs of questions as the risk control sees them: features, cosine, whether the guard refuses, the label."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from bench._common.cached_encoder import CachedEncoder
from bench._common.risk_sets import CachedQuestions, Pair
from encoders.types import EncodedQuery
from retrieval.answers.guard import Facts, compare, read_facts
from retrieval.answers.similarity import features_of

_BLOCK = 256


@dataclass(frozen=True, slots=True)
class Cases:
    """Pairs of one half of a set, in a fixed order."""

    entries: Sequence[bytes]
    features: NDArray[np.float64]  # [n, features]
    cosines: NDArray[np.float64]  # [n]
    correct: NDArray[np.bool_]  # [n]
    refused: NDArray[np.bool_]  # [n], by the guard

    def passed(self) -> Cases:
        """Returns the pairs that the guard lets pass."""
        kept = np.flatnonzero(~self.refused)
        entries = [self.entries[place] for place in kept.tolist()]
        return Cases(entries, self.features[kept], self.cosines[kept], self.correct[kept], self.refused[kept])


async def encode_questions(encoder: CachedEncoder, texts: Iterable[str]) -> dict[str, EncodedQuery]:
    """Encodes questions one at a time, as the service does.

    Raises:
        EncoderError: a question could not be encoded.
    """
    encoded = {}
    for text in dict.fromkeys(texts):
        outcome = await encoder.encode_query(text, None)
        if outcome.value is None:
            assert outcome.error is not None
            raise outcome.error
        encoded[text] = outcome.value
    return encoded


def nearest_pairs(questions: CachedQuestions, encoded: Mapping[str, EncodedQuery]) -> list[Pair]:
    """Returns each asked question with the nearest stored one by cosine that is not the same text."""
    vectors = np.array([encoded[text].vector for text in questions.stored])
    asked = list(questions.asked)
    pairs = []
    for start in range(0, len(asked), _BLOCK):
        block = asked[start : start + _BLOCK]
        cosines = np.array([encoded[text].vector for text in block]) @ vectors.T
        for text, row in zip(block, cosines, strict=True):
            best = np.argsort(-row)[:4]
            stored = next(one for one in (questions.stored[place] for place in best) if one != text)
            pairs.append(Pair(text, stored, stored in questions.asked[text]))
    return pairs


def cases_of(pairs: Sequence[Pair], encoded: Mapping[str, EncodedQuery]) -> Cases:
    """Computes what is known of the pairs."""
    facts = {text: read_facts(text) for pair in pairs for text in (pair.asked, pair.stored)}
    rows = [_row(pair, encoded, facts) for pair in pairs]
    return Cases(
        entries=[blake2b(pair.stored.encode(), digest_size=16).digest() for pair in pairs],
        features=np.array([features for features, _ in rows]),
        cosines=np.array([float(encoded[pair.asked].vector @ encoded[pair.stored].vector) for pair in pairs]),
        correct=np.array([pair.correct for pair in pairs]),
        refused=np.array([refused for _, refused in rows]),
    )


def _row(
    pair: Pair, encoded: Mapping[str, EncodedQuery], facts: Mapping[str, Facts]
) -> tuple[NDArray[np.float64], bool]:
    comparison = compare(facts[pair.asked], facts[pair.stored])
    features = features_of(encoded[pair.asked], encoded[pair.stored], comparison)
    return features, bool(comparison.refused)
