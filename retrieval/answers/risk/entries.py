"""What an entry's own labels say beyond its features: an offset to the log odds, which gives it its own threshold.

An answer may be right for every wording of its question ("what are your opening hours") or for just one. The offset has
a normal prior around zero (empirical Bayes): its variance is, of a few, the one under which the labels so far were
least surprising, each judged before it was learned. Offsets and precisions are kept under all of them, a handful of
numbers an entry; of the entries, those learned from last.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_VARIANCES = np.array([0.05, 0.5, 2.0, 6.0])
PRIOR_VARIANCES = len(_VARIANCES)
_LEAST_VARIANCE = 0.02
_FADE = 1.0 / 4_096.0
_FIRST = 1  # the prior variance that is believed before any label
_HEAD_START = 2.0  # nats


@dataclass(frozen=True, slots=True)
class Offset:
    """An entry's own part of the log odds, and how uncertain it is."""

    mean: float
    variance: float

    @property
    def sharpness(self) -> float:
        """What log odds shrink by for the offset's uncertainty (MacKay, The evidence framework, 1992)."""
        return 1.0 / math.sqrt(1.0 + math.pi * self.variance / 8.0)


class EntryOffsets:
    """The offsets of `limit` entries at most."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: OrderedDict[bytes, NDArray[np.float64]] = OrderedDict()  # [2, variances]: means, precisions
        self._surprise = np.full(len(_VARIANCES), _HEAD_START)
        self._surprise[_FIRST] = 0.0

    def __len__(self) -> int:
        return len(self._entries)

    def of(self, entry: bytes) -> Offset:
        """Returns the entry's offset; the prior's for one never learned from."""
        best = int(np.argmin(self._surprise))
        known = self._entries.get(entry)
        if known is None:
            return Offset(0.0, float(_VARIANCES[best]))
        return Offset(float(known[0, best]), max(_LEAST_VARIANCE, 1.0 / float(known[1, best])))

    def learn(self, entry: bytes, logit: float, *, correct: bool) -> None:
        """Learns a label of the entry; `logit` is what the features alone said."""
        state = self._state(entry)
        means, precisions = state
        sharpness = 1.0 / np.sqrt(1.0 + math.pi / (8.0 * precisions))
        sign = 1.0 if correct else -1.0
        self._surprise *= 1.0 - _FADE
        self._surprise += np.logaddexp(0.0, -sign * (logit + means) * sharpness)
        chances = _chance(logit + means)
        steepness = chances * (1.0 - chances)
        precisions += steepness
        means += (float(correct) - chances) / precisions
        self._keep(entry, state)

    def lower(self, entry: bytes, logit: float) -> None:
        """Learns from a complaint, which comes of errors alone: the mean goes down and nothing becomes more certain."""
        state = self._state(entry)
        means, precisions = state
        means -= _chance(logit + means) / precisions
        self._keep(entry, state)

    def forget(self, entry: bytes) -> None:
        """Drops what is known of the entry."""
        self._entries.pop(entry, None)

    def _state(self, entry: bytes) -> NDArray[np.float64]:
        known = self._entries.get(entry)
        return np.stack((np.zeros(len(_VARIANCES)), 1.0 / _VARIANCES)) if known is None else known

    def _keep(self, entry: bytes, state: NDArray[np.float64]) -> None:
        self._entries[entry] = state
        self._entries.move_to_end(entry)
        while len(self._entries) > self._limit:
            self._entries.popitem(last=False)

    def content(self) -> tuple[list[bytes], NDArray[np.float64], NDArray[np.float64]]:
        """Returns entries, least recent first, their states [entries, 2, variances], and the surprise [variances]."""
        states = np.array(list(self._entries.values())).reshape(-1, 2, len(_VARIANCES))
        return list(self._entries), states, self._surprise

    def restore(self, entries: Iterable[bytes], states: NDArray[np.float64], surprise: NDArray[np.float64]) -> None:
        """Takes over what `content` returned."""
        self._surprise = surprise.reshape(len(_VARIANCES)).copy()
        for entry, state in zip(entries, states.reshape(-1, 2, len(_VARIANCES)), strict=True):
            self._keep(entry, state.copy())


def _chance(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    chances: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-np.clip(logits, -30.0, 30.0)))
    return chances
