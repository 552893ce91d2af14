"""A model's measured cost and what follows from it: read when the model is opened, measured later when nothing is known.

Until it was measured a model computes one text a run, which is right for every model and never far from the best. So
measuring keeps no start waiting.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Protocol

from pydantic import TypeAdapter, ValidationError

from encoders.curve import Batching, CostCurve, Sample, measure
from encoders.measured import Measurements
from encoders.onnx import is_quantized_dynamically
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
        self, engine: Tunable, sample: Sample, max_tokens: int, scheduler: TokenScheduler, memory: Measurements
    ) -> None:
        self._engine = engine
        self._sample = sample
        self._max_tokens = max_tokens
        self._scheduler = scheduler
        self._memory = memory
        self.curve: CostCurve | None = None
        """None until it is known."""

    def recall(self, revision: str) -> bool:
        """Takes over what was measured for this revision before; returns whether there was something."""
        try:
            self._adopt(_CURVE.validate_python(self._memory.get(_WHAT, revision)))
        except ValidationError:
            return False
        return True

    def measure(self, revision: str, weights: Path) -> None:
        """Measures on the calling thread for a second or less, keeps the figures, and sets the policy.

        Gives up without a word when the scheduler is stopped meanwhile.
        """
        curve = measure(
            self._engine,
            self._sample,
            self._max_tokens,
            may_batch=not is_quantized_dynamically(weights),
            ended=lambda: self._scheduler.ending,
        )
        if curve is not None:
            self._memory.put(_WHAT, revision, asdict(curve))
            self._adopt(curve)

    def _adopt(self, curve: CostCurve) -> None:
        # The engine first: it takes any piece then, while the scheduler still cuts the old ones.
        self._engine.policy = curve.policy
        self._scheduler.set_policy(self._engine.model_id, curve.policy)
        self.curve = curve
