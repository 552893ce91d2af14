"""Puts a model that passed the gate where it is served from, with a card that says what it is made of."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rerank.calibrate import Mixture
from rerank.ndcg import NDCG_CUT
from rerank.training.errors import NotBetter
from rerank.training.gate import Gate, SetFigures, mean_gain

CARD = "MODEL_CARD.md"


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a model was made of and how."""

    start: str
    depth: int
    max_tokens: int
    weights: Mixture  # in the served score; the cross-encoder's was chosen on dev queries
    data: tuple[str, ...]  # a line a source, licence included
    command: str
    agreement: str  # int8 against full precision, in words


def install(
    candidate: Path, target: Path, figures: Sequence[SetFigures], provenance: Provenance, gate: Gate | None = None
) -> None:
    """Copies a model folder, with its card, to `target`, which is replaced.

    Raises:
        NotBetter: the gate refuses the model; `target` stays as it is.
    """
    objection = (gate or Gate()).objection(figures)
    if objection is not None:
        raise NotBetter(objection)
    part = target.with_name(target.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(candidate, part)
    (part / CARD).write_text(card(target.name, figures, provenance), encoding="utf-8")
    shutil.rmtree(target, ignore_errors=True)
    part.rename(target)


def card(name: str, figures: Sequence[SetFigures], provenance: Provenance) -> str:
    """Returns the model card as Markdown."""
    data = "\n".join(f"- {line}" for line in provenance.data)
    weights = provenance.weights
    return f"""# {name}

A cross-encoder for the `rerank` stage of Headrace: one logit a (query, passage) pair, int8 ONNX.

- started from: {provenance.start}, its first {provenance.depth} layers
- pairs are cut to {provenance.max_tokens} tokens
- served score: the mean of fusion (weight {weights.first_stage}), late interaction ({weights.late}) and sigmoid(logit)
  ({weights.cross_encoder}, for `rerank.cross_encoder_weight`, chosen on dev queries)
- int8: {provenance.agreement}

## Trained on

{data}

## Command

```
{provenance.command}
```

## nDCG@{NDCG_CUT} on test queries

{figures_table(figures)}
"""


def figures_table(figures: Sequence[SetFigures]) -> str:
    """Returns the figures as a Markdown table, the mean over the sets last."""
    rows = [(one.name, len(one.before), np.mean(one.before), np.mean(one.after), one.gain) for one in figures]
    mean = (
        "mean of the sets",
        sum(row[1] for row in rows),
        np.mean([r[2] for r in rows]),
        np.mean([r[3] for r in rows]),
    )
    lines = ["| set | queries | before | after | change |", "|---|---|---|---|---|"]
    lines += [
        f"| {name} | {count} | {before:.4f} | {after:.4f} | {gain:+.4f} |"
        for name, count, before, after, gain in [*rows, (*mean, mean_gain(figures))]
    ]
    return "\n".join(lines)
