"""A model's measured cost and what follows from it: read when it is opened, measured later when nothing is known.

Until it was measured a model computes one text a run, which is right for every model and never far from the best. So
measuring keeps no start waiting.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from typing import Protocol

from pydantic import TypeAdapter, ValidationError

from encoders.curve import Batching, CostCurve, Sample, measure
from encoders.measured import Measurements
from encoders.models import ModelFiles
from encoders.operators import is_quantized_dynamically
from encoders.pieces import PiecePolicy
from encoders.scheduler import TokenScheduler

_WHAT = "curve"
_CURVE = TypeAdapter(CostCurve)


class Tunable(Batching, Protocol):
    """An engine whose policy can be set."""

    policy: PiecePolicy

    @property
    def model_id(self) -> str:
        """The model's id or folder name."""
        ...


class Calibration:
    """Measures one open model and sets how its pieces are cut."""

    def __init__(
        self, engine: Tunable, sample: Sample, files: ModelFiles, scheduler: TokenScheduler, memory: Measurements
    ) -> None:
        """Takes over what was measured for this model before."""
        self._engine = engine
        self._sample = sample
        self._files = files
        self._scheduler = scheduler
        self._memory = memory
        self.curve: CostCurve | None = None
        """None until it is known."""
        with suppress(ValidationError):
            self._adopt(_CURVE.validate_python(memory.get(_WHAT, files.revision)))

    def measure(self) -> CostCurve | None:
        """Measures on the calling thread for a second or less, keeps the figures, and sets the policy.

        None when the scheduler is stopped meanwhile.
        """
        curve = measure(
            self._engine,
            self._sample,
            self._files.max_tokens,
            may_batch=not is_quantized_dynamically(self._files.weights),
            ended=lambda: self._scheduler.ending,
        )
        if curve is not None:
            self._memory.put(_WHAT, self._files.revision, asdict(curve))
            self._adopt(curve)
        return curve

    def _adopt(self, curve: CostCurve) -> None:
        # The engine first: it takes any piece then, while the scheduler still cuts the old ones.
        self._engine.policy = curve.policy
        self._scheduler.set_policy(self._engine.model_id, curve.policy)
        self.curve = curve
