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
from retrieval.answers.risk.entries import PRIOR_VARIANCES, EntryOffsets
from retrieval.answers.risk.evidence import STRATA, EvidenceWindow, Judged, columns
from retrieval.answers.risk.model import FOLDS, PooledModels, Prior, fold_of
from retrieval.answers.risk.prior import PRIOR
from retrieval.answers.risk.stored import Arrays, pack_names, read_arrays, unpack_names, write_arrays
from retrieval.answers.risk.watch import Watch

_ENTRIES = 20_000
_BOUNDS = 64  # bounds that are in use at a time
_RENEW_LEAST, _RENEW_SHARE = 8, 32  # certificates are renewed after so many labels, or one part in so many of them


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is held of one stored answer for one question."""

    score: float  # log odds that it serves
    error_estimate: float  # the model's chance that it does not
    error_bound: float  # of the error rate among all that is served, or would be if this were; 1 without evidence
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
        threshold = self._threshold(max_error_rate)
        # What is served shares the bound of all that is; what is not has that of all that scores no less.
        bound, labels = self._certificate.bound(min(judged.score, threshold))
        serve = judged.score >= threshold
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
        if judgement.serve and self._watch.add(judgement.max_error_rate, correct=correct):
            self._start_anew()
        self._due -= 1
        if self._due <= 0:
            self._renew()

    def report(self, entry: bytes, judgement: Judgement, features: NDArray[np.float64]) -> None:
        """Learns that an answer which was served was bad. Such reports come of errors alone, so they only tighten."""
        judged = self._judged(entry, features)
        self._offsets.lower(entry, self._models.logit(judged.inputs, judged.fold))
        overrun = not self._evidence.report(judged)
        if self._watch.add(judgement.max_error_rate, correct=False) or overrun:
            self._start_anew()
            return
        before = dict(self._thresholds)
        self._renew()
        # The renewal takes in labels since the last one, too; what they loosen waits for the next.
        self._thresholds = {rate: max(old, self._certificate.threshold(rate)) for rate, old in before.items()}

    def forget(self, entry: bytes) -> None:
        """Drops what is known of an entry that is gone; what it taught about others stays."""
        self._offsets.forget(entry)

    def serves(self, max_error_rate: float) -> bool:
        """Tells whether the evidence lets anything be served under the bound now."""
        return math.isfinite(self._threshold(max_error_rate))

    def to_bytes(self) -> bytes:
        """Returns all that was learned, to be kept over a restart."""
        return write_arrays(self.content())

    def content(self) -> Arrays:
        """Returns copies of all that was learned, for `stored.write_arrays` to write while learning goes on."""
        names, states, surprise = self._offsets.content()
        joined, ends = pack_names(names)
        watch = self._watch
        arrays = {
            "weights": self._models.weights,
            "precisions": self._models.precisions,
            "entries": joined,
            "entry_ends": ends,
            "entry_states": states,
            "surprise": surprise,
            "watch": np.array([watch.level, watch.labels, watch.errors, self._alarms]),
            **self._evidence.content(),
        }
        return {name: np.array(array) for name, array in arrays.items()}

    @classmethod
    def from_bytes(cls, stored: bytes, prior: Prior = PRIOR, entry_limit: int = _ENTRIES) -> RiskControl:
        """Returns a control that goes on where the stored one was.

        Raises:
            ValueError: the bytes are damaged, of another format, or of other features.
        """
        control = cls(prior, entry_limit)
        arrays = read_arrays(stored, _shapes(len(prior.weights)))
        control._models.weights, control._models.precisions = arrays["weights"], arrays["precisions"]
        names = unpack_names(arrays["entries"], arrays["entry_ends"])
        control._offsets.restore(names, arrays["entry_states"], arrays["surprise"])
        control._watch.level, labels, errors, alarms = arrays["watch"].tolist()
        control._watch.labels, control._watch.errors, control._alarms = int(labels), int(errors), int(alarms)
        control._evidence.restore(arrays)
        control._renew()
        return control

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
        """Returns the score from which on is served under the bound."""
        threshold = self._thresholds.get(max_error_rate)
        if threshold is None:
            if len(self._thresholds) >= _BOUNDS:
                self._thresholds.clear()
            threshold = self._thresholds[max_error_rate] = self._certificate.threshold(max_error_rate)
        return threshold

    def _start_anew(self) -> None:
        """Drops the evidence after an alarm: nothing is served until it has been gathered again."""
        self._alarms += 1
        self._watch.reset()
        self._evidence.clear()
        self._renew()

    def _renew(self) -> None:
        self._certificate = Certificate.of(self._evidence.ranked(self._models.weights))
        self._thresholds.clear()
        self._due = max(_RENEW_LEAST, len(self._evidence) // _RENEW_SHARE)


def _shapes(inputs: int) -> dict[str, tuple[int, ...]]:
    return {
        "weights": (FOLDS, inputs),
        "precisions": (FOLDS, inputs, inputs),
        "entries": (-1,),
        "entry_ends": (-1,),
        "entry_states": (-1, 2, PRIOR_VARIANCES),
        "surprise": (PRIOR_VARIANCES,),
        "watch": (4,),
        "labels": (-1, columns(inputs)),
        "reports": (-1, columns(inputs)),
        "counts": (STRATA,),
        "traffic": (STRATA,),
    }
