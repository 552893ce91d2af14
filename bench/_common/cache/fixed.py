"""The baseline: a semantic cache as it is commonly built, with one cosine threshold and nothing else.

Whatever was answered is kept with the vector of its question; a question whose nearest kept one reaches the threshold
is served that one's answer. There is no guard, no evidence and no learning, only a time to live that no replay
outlasts. The threshold is the lowest that kept the share of false hits within a target on other traces.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench._common.cache.verdicts import Requests
from bench._common.traces.events import Ask
from bench._common.traces.judging import Verdict
from retrieval.answers.question import normalise

THRESHOLDS = (*(round(0.70 + 0.01 * step, 3) for step in range(30)), 0.995, 0.999)


@dataclass(frozen=True, slots=True)
class FixedServed:
    """What a threshold did on one request."""

    equal: bool  # the normal forms of the two questions are equal
    made_for: int | None  # the place of the request whose answer served; None for a miss


class Cosines:
    """The cosines among all texts of some requests."""

    def __init__(self, texts: Iterable[str], vectors: NDArray[np.float32]) -> None:
        self.places = {text: place for place, text in enumerate(texts)}
        self.vectors = vectors  # float32 [texts, dim], unit length
        self._all = vectors @ vectors.T

    def nearest(self, text: str, kept: NDArray[np.int64]) -> tuple[int, float]:
        """Returns which of the kept places is nearest, and its cosine."""
        row = self._all[self.places[text], kept]
        best = int(row.argmax())
        return best, float(row[best])


def replay_fixed(asks: Sequence[Ask], cosines: Cosines, threshold: float) -> list[FixedServed]:
    """Returns what a cache with this threshold serves to the requests, in order."""
    kept, places = list[int](), np.empty(len(asks), dtype=np.int64)
    served = list[FixedServed]()
    for place, ask in enumerate(asks):
        best, cosine = cosines.nearest(ask.text, places[: len(kept)]) if kept else (0, -1.0)
        if cosine >= threshold:
            equal = normalise(asks[kept[best]].text) == normalise(ask.text)
            served.append(FixedServed(equal, kept[best]))
            continue
        served.append(FixedServed(equal=False, made_for=None))
        places[len(kept)] = cosines.places[ask.text]
        kept.append(place)
    return served


def verdicts_of(requests: Requests, served: Sequence[FixedServed]) -> list[Verdict | None]:
    """Returns what each served answer is worth; None for a miss."""
    return [None if one.made_for is None else requests.verdict(place, one.made_for) for place, one in enumerate(served)]


def false_share(verdicts: Sequence[Verdict | None]) -> float:
    """Returns the share of false hits among the hits; stale ones are counted apart."""
    hits = [one for one in verdicts if one is not None]
    return sum(one is Verdict.WRONG for one in hits) / max(1, len(hits))


def tuned_threshold(asks: Sequence[Ask], cosines: Cosines, target: float) -> float:
    """Returns the lowest threshold that stays within the target together with all above it."""
    best = THRESHOLDS[-1]
    for threshold in reversed(THRESHOLDS):
        served = replay_fixed(asks, cosines, threshold)
        if false_share(verdicts_of(Requests(asks), served)) > target:
            break
        best = threshold
    return best


def scan_ns(cosines: Cosines, entries: int, count: int = 200) -> list[int]:
    """Times a flat scan over so many entries."""
    kept = np.ascontiguousarray(cosines.vectors[:entries])
    times = list[int]()
    for vector in cosines.vectors[-count:]:
        started = time.perf_counter_ns()
        found = kept @ vector
        found.argmax()
        times.append(time.perf_counter_ns() - started)
    return times
