"""The labels that speak for or against serving: a window of them, with all it takes to score them anew.

Labels are kept in strata by the log odds at which they were judged, the last so many of each: of answers that are
served only a sample is ever labelled, and would drown among those that are not.

How a stratum errs is estimated from its labels alike, sampled or not; how much of the traffic it is, from their
inverse sampling shares. A label so weighs its stratum's traffic over its stratum's labels (post-stratification), which
has the mean of weighting each label by its own inverse share and a far lower variance: beside a thousand labels of
weight 1, fifty of weight 20 would leave an effective number of 190.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval.answers.risk.entries import Offset

STRATA = 20
# A bound of 0.5 % takes 740 labels without an error, which may all lie in one stratum.
STRATUM_LABELS = 768
_LOWEST_LOGIT, _LOGIT_STEP = -1.0, 0.6
_TRAFFIC_FADE = 1.0 / 20_000.0
_REPORTS = 256
_REPORT_LABELS = 8_192  # labels after which a complaint has faded
_FIRST_ROWS = 64

# The columns of a row after its inputs.
_OFFSET, _SHARPNESS, _FOLD, _ERROR, _STRATUM, _NUMBER, _COLUMNS = 0, 1, 2, 3, 4, 5, 6


@dataclass(frozen=True, slots=True)
class Judged:
    """A pair as it was judged, before its label was known."""

    inputs: NDArray[np.float64]  # [inputs]
    fold: int
    offset: Offset
    score: float  # log odds


@dataclass(frozen=True, slots=True)
class Ranked:
    """Labelled evidence, best score first."""

    scores: NDArray[np.float64]  # [n], log odds
    weights: NDArray[np.float64]  # [n]
    errors: NDArray[np.float64]  # [n], 0 or 1
    trials: NDArray[np.float64]  # [n], 0 for a complaint, which counts as an error and not as a trial


class EvidenceWindow:
    """The last labels of each stratum, and complaints; at most `STRATA * STRATUM_LABELS` labels and 256 complaints."""

    def __init__(self, inputs: int) -> None:
        self._inputs = inputs
        self._labels = _Rows(columns(inputs))
        self._reports = _Rows(columns(inputs))
        self._places: list[list[int]] = []  # rows of each stratum
        self._counts: NDArray[np.int64] = np.zeros(STRATA, dtype=np.int64)  # labels of each stratum so far
        self._traffic: NDArray[np.float64] = np.zeros(STRATA)
        self.clear()

    def __len__(self) -> int:
        return self._labels.count

    def clear(self) -> None:
        """Drops all evidence, so that it has to be gathered anew."""
        self._labels = _Rows(columns(self._inputs))
        self._reports = _Rows(columns(self._inputs))
        self._places = [[] for _ in range(STRATA)]
        self._counts = np.zeros(STRATA, dtype=np.int64)
        self._traffic = np.zeros(STRATA)

    def add(self, judged: Judged, sampled_share: float, *, correct: bool) -> None:
        """Adds a label that was seen with the chance `sampled_share`; the stratum's oldest makes room for it."""
        stratum = _stratum(judged.score)
        self._traffic *= 1.0 - min(0.5, _TRAFFIC_FADE / sampled_share)
        self._traffic[stratum] += 1.0 / sampled_share
        places = self._places[stratum]
        row = self._row(judged, stratum, correct=correct)
        if len(places) < STRATUM_LABELS:
            places.append(self._labels.append(row))
        else:
            self._labels.rows[places[int(self._counts[stratum]) % STRATUM_LABELS]] = row
        self._counts[stratum] += 1

    def report(self, judged: Judged) -> bool:
        """Adds a complaint: an error beside the labels. Returns False when there are too many, and nothing is added."""
        self._reports.keep(self._alive())
        if self._reports.count >= _REPORTS:
            return False
        self._reports.append(self._row(judged, _stratum(judged.score), correct=False))
        return True

    def ranked(self, weights: NDArray[np.float64]) -> Ranked:
        """Returns the evidence by its log odds under the pooled weights [FOLDS, inputs] of now."""
        reports = self._reports.filled[self._alive()]
        rows = np.concatenate((self._labels.filled, reports)).astype(np.float64)
        inputs, figures = rows[:, : self._inputs], rows[:, self._inputs :]
        logits = np.einsum("ij,ij->i", inputs, weights[figures[:, _FOLD].astype(np.int64)])
        scores = (logits + figures[:, _OFFSET]) * figures[:, _SHARPNESS]
        labels = np.array([len(places) for places in self._places])
        each = np.maximum(self._traffic, 1.0) / np.maximum(labels, 1)
        trials = np.ones(len(rows))
        trials[len(rows) - len(reports) :] = 0.0
        shares = each[figures[:, _STRATUM].astype(np.int64)]
        order = np.argsort(-scores, kind="stable")
        return Ranked(scores[order], shares[order], figures[order, _ERROR], trials[order])

    def content(self) -> dict[str, NDArray[np.generic]]:
        """Returns all that is known, by name."""
        labels, reports = self._labels.filled, self._reports.filled
        return {"labels": labels, "reports": reports, "counts": self._counts, "traffic": self._traffic}

    def restore(self, arrays: Mapping[str, NDArray[np.float64]]) -> None:
        """Takes over what `content` returned."""
        self.clear()
        for row in arrays["labels"]:
            self._places[int(row[self._inputs + _STRATUM])].append(self._labels.append(row))
        for row in arrays["reports"]:
            self._reports.append(row)
        self._counts, self._traffic = arrays["counts"].astype(np.int64), arrays["traffic"].astype(np.float64)

    def _alive(self) -> NDArray[np.bool_]:
        alive: NDArray[np.bool_] = self._counts.sum() - self._reports.filled[:, self._inputs + _NUMBER] < _REPORT_LABELS
        return alive

    def _row(self, judged: Judged, stratum: int, *, correct: bool) -> NDArray[np.float64]:
        offset = judged.offset
        number = float(self._counts.sum())
        figures = [offset.mean, offset.sharpness, judged.fold, 0.0 if correct else 1.0, stratum, number]
        return np.concatenate((judged.inputs, figures))


class _Rows:
    """Rows of numbers that grow by doubling."""

    def __init__(self, columns: int) -> None:
        self.rows = np.zeros((_FIRST_ROWS, columns), dtype=np.float32)
        self.count = 0

    @property
    def filled(self) -> NDArray[np.float32]:
        """The rows there are."""
        return self.rows[: self.count]

    def append(self, row: NDArray[np.floating]) -> int:
        """Adds a row and returns its place."""
        if self.count == len(self.rows):
            self.rows = np.concatenate((self.rows, np.zeros_like(self.rows)))
        self.rows[self.count] = row
        self.count += 1
        return self.count - 1

    def keep(self, chosen: NDArray[np.bool_]) -> None:
        """Drops the rows that are not chosen."""
        kept = self.filled[chosen]
        self.count = len(kept)
        self.rows[: self.count] = kept


def columns(inputs: int) -> int:
    """Returns the columns of a row with so many inputs."""
    return inputs + _COLUMNS


def _stratum(score: float) -> int:
    return int(np.clip((score - _LOWEST_LOGIT) / _LOGIT_STEP, 0, STRATA - 1))
