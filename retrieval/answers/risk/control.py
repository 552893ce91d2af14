"""Whether a similar question may be served: gate 4 of the answer cache, one control a tenant and collection.

A model ranks: pooled logistic regression over the features of two questions, plus an offset of the entry's own, which
gives each entry its own threshold (after the idea of vCache, Schroeder et al., arXiv 2502.03771). A certificate
decides: it serves only above the score from which on the labels seen so far bound the error rate. The model may be
poor, and then little is served; it is the certificate that holds the bound.

Labels come free from answers that were not served, since a new one was made and both could be compared, and from a
sample of those that were. Nothing here waits, locks or does I/O: callers are on one thread.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval.answers.risk.certificate import Certificate
from retrieval.answers.risk.entries import EntryOffsets
from retrieval.answers.risk.evidence import EvidenceWindow, Judged
from retrieval.answers.risk.model import PooledModels, Prior, fold_of
from retrieval.answers.risk.prior import PRIOR
from retrieval.answers.risk.watch import Watch

_ENTRIES = 20_000
_RENEW_SHARE = 64  # a certificate is renewed when the labels have grown by one part in so many


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is held of one stored answer for one question."""

    score: float  # log odds that it serves
    error_estimate: float  # the model's chance that it does not
    error_bound: float  # of the error rate among answers that score no less, with confidence; 1 without evidence
    labels: int  # the effective number of labels behind the bound
    serve: bool
    max_error_rate: float  # that it was judged under


@dataclass(frozen=True, slots=True)
class RiskFigures:
    """What a control holds and has seen."""

    labels: int  # in the window
    entries: int
    served_labels: int  # labels of served answers, complaints included
    served_errors: int
    alarms: int  # times that the bound was seen broken, and the evidence dropped


class RiskControl:
    """Judges and learns."""

    def __init__(self, prior: Prior = PRIOR, entry_limit: int = _ENTRIES) -> None:
        self._prior = prior
        self._models = PooledModels(prior)
        self._offsets = EntryOffsets(entry_limit)
        self._evidence = EvidenceWindow(len(prior.weights))
        self._watch = Watch()
        self._alarms = 0
        self._due = 0
        self._certificate = Certificate.of(self._evidence.ranked(self._models.weights))
        self._thresholds: dict[float, float] = {}

    def judge(self, entry: bytes, features: NDArray[np.float64], max_error_rate: float) -> Judgement:
        """Judges a stored answer for a question; `features` are those of `features_of`."""
        judged = self._judged(entry, features)
        bound, labels = self._certificate.bound(judged.score)
        serve = judged.score >= self._threshold(max_error_rate)
        estimate = 1.0 / (1.0 + math.exp(min(judged.score, 700.0)))
        return Judgement(judged.score, estimate, bound, labels, serve, max_error_rate)

    def learn(
        self,
        entry: bytes,
        judgement: Judgement,
        features: NDArray[np.float64],
        correct: bool,
        sampled_share: float = 1.0,
    ) -> None:
        """Learns whether the stored answer was right for the question it was judged for.

        `sampled_share` is the chance that this label had to be seen: 1 for answers that were not served.

        Raises:
            ValueError: the share is not in (0, 1].
        """
        if not 0.0 < sampled_share <= 1.0:
            raise ValueError(f"sampled_share must be above 0 and at most 1, not {sampled_share}")
        judged = self._judged(entry, features)
        self._evidence.add(judged, sampled_share, correct=correct)
        logit = self._models.logit(judged.inputs, judged.fold)
        self._models.learn(judged.inputs, judged.offset.mean, judged.fold, correct=correct)
        self._offsets.learn(entry, logit, correct=correct)
        broken = judgement.serve and self._watch.add(judgement.max_error_rate, correct=correct)
        self._after(broken=broken)

    def report(self, entry: bytes, judgement: Judgement, features: NDArray[np.float64]) -> None:
        """Learns that an answer which was served was bad. Such reports come of errors alone, so they only tighten."""
        judged = self._judged(entry, features)
        self._offsets.lower(entry, self._models.logit(judged.inputs, judged.fold))
        overrun = not self._evidence.report(judged)
        self._due = 0
        self._after(broken=self._watch.complain(judgement.max_error_rate) or overrun)

    def forget(self, entry: bytes) -> None:
        """Drops what is known of an entry that is gone; what it taught about others stays."""
        self._offsets.forget(entry)

    @property
    def figures(self) -> RiskFigures:
        """What the control holds and has seen."""
        watch = self._watch
        return RiskFigures(len(self._evidence), len(self._offsets), watch.labels, watch.errors, self._alarms)

    def _judged(self, entry: bytes, features: NDArray[np.float64]) -> Judged:
        inputs, fold, offset = self._prior.inputs(features), fold_of(entry), self._offsets.of(entry)
        score = (self._models.logit(inputs, fold) + offset.mean) * offset.sharpness
        return Judged(inputs, fold, offset, score)

    def _threshold(self, max_error_rate: float) -> float:
        if max_error_rate not in self._thresholds:
            self._thresholds[max_error_rate] = self._certificate.threshold(max_error_rate)
        return self._thresholds[max_error_rate]

    def _after(self, *, broken: bool) -> None:
        if broken:
            self._alarms += 1
            self._watch.reset()
            self._evidence.clear()
            self._due = 0
        self._due -= 1
        if self._due <= 0:
            self._certificate = Certificate.of(self._evidence.ranked(self._models.weights))
            self._thresholds.clear()
            self._due = len(self._evidence) // _RENEW_SHARE
