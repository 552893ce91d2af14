"""The losses: the library's, over the score that is served.

What is served is base + weight * sigmoid(logit). The residual loss ranks lists by just that, times the scale that makes
it a logit: where the first stage is right already the gradient vanishes, and what is learnt is what it gets wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from sentence_transformers.cross_encoder import CrossEncoder
from sentence_transformers.cross_encoder.losses import LambdaLoss, ListNetLoss, MSELoss

# ListNet takes the labels through a softmax; with this factor nothing is left for passages labelled 0.
_LABEL_SCALE = 30.0


class ServedScore(torch.nn.Module):  # type: ignore[misc]  # torch is not there to be checked
    """Turns the logits of a batch into scale * (base + weight * sigmoid(logit)); `base` is set for each batch."""

    def __init__(self, scale: float, weight: float) -> None:
        super().__init__()
        self.scale = scale
        self.weight = weight
        self.base = torch.zeros(0)

    def forward(self, logits: torch.Tensor) -> torch.Tensor:
        """Takes and returns [pairs], in the order of `base`."""
        return self.scale * (self.base.to(logits) + self.weight * torch.sigmoid(logits))


class ResidualLoss(torch.nn.Module):  # type: ignore[misc]
    """A listwise loss of the library over the served score.

    Inputs are queries, a list of passages each, and a list of base scores each; labels are 0 or 1 a passage.
    """

    def __init__(self, model: CrossEncoder, kind: str, scale: float, weight: float) -> None:
        super().__init__()
        self.served = ServedScore(scale, weight)
        self.model = model
        self.kind = kind
        # All pairs of a step in one pass: they are padded to the longest, and most passages are about as long.
        self.listwise = _KINDS[kind](model, activation_fn=self.served, mini_batch_size=-1)

    def forward(self, inputs: list[Any], labels: Sequence[torch.Tensor], **extra: Any) -> torch.Tensor:
        """Returns the mean loss of a batch."""
        queries, passages, base = inputs
        self.served.base = torch.tensor([score for scores in base for score in scores])
        grades = [label * _LABEL_SCALE for label in labels] if self.kind == "listnet" else list(labels)
        return self.listwise([queries, passages], grades, **extra)

    def get_config_dict(self) -> dict[str, float | str]:
        """Returns what the library writes beside a checkpoint."""
        return {"kind": self.kind, "scale": self.served.scale, "weight": self.served.weight}


def distillation_loss(model: CrossEncoder) -> MSELoss:
    """Returns the squared error against a teacher's logit."""
    return MSELoss(model)


_KINDS = {"listnet": ListNetLoss, "lambda": LambdaLoss}
