"""The plan of a training run as a TOML file: what a model is made of, so that the file can be kept beside it.

Paths are relative to the file. Unknown keys are errors.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from retrieval.errors import ConfigError


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SetPlan(_Part):
    """A set in BEIR's layout, or a file of {"query", "passage"} lines."""

    folder: Path | None = None
    """A folder with `corpus.jsonl`, `queries.jsonl` and `qrels`."""

    qrels: str = "test"
    """Which of the folder's qrels."""

    pairs: Path | None = None
    """A file of JSON lines instead."""

    licence: str = "not stated"
    """What the model card says of it."""

    @model_validator(mode="after")
    def _one_place(self) -> SetPlan:
        if (self.folder is None) == (self.pairs is None):
            raise ValueError("give either folder or pairs")
        return self


class HeadingsPlan(_Part):
    """Documents without labels: their sections answer their own headings."""

    corpus: Path | None = None
    """A `corpus.jsonl`, gzip or not."""

    collection: str = ""
    """A collection of the data folder instead."""

    keep: dict[str, list[str]] = {}
    """Metadata that a document must have: for each field one of the values."""

    drop: dict[str, list[str]] = {}
    """Metadata that a document must not have."""

    licence: str = "not stated"
    """What the model card says of it."""

    @model_validator(mode="after")
    def _one_place(self) -> HeadingsPlan:
        if (self.corpus is None) == (not self.collection):
            raise ValueError("give either corpus or collection")
        return self


class PlanFile(_Part):
    """The whole plan."""

    start: Path
    """The bi-encoder to start from, as sentence-transformers saves it."""

    teacher: str = ""
    """A cross-encoder to distil from on the headings; empty takes the score of the other stages."""

    depth: Literal[2, 3, 4, 6] = 3
    """Layers."""

    max_tokens: int = Field(default=160, ge=32, le=512)
    """Of a pair."""

    loss: Literal["listnet", "lambda"] = "listnet"
    """The listwise loss."""

    epochs: float = Field(default=1.0, gt=0, le=100)
    """How often each stage sees its data."""

    learning_rate: float = Field(default=8e-5, gt=0, le=0.1)
    """The highest one, after warming up."""

    base_trust: float = Field(default=0.5, gt=0, le=1)
    """How far training trusts the other stages' score; at 1 only what they get wrong is learnt from."""

    lists_per_step: int = Field(default=8, ge=1, le=1024)
    """Queries of a step."""

    list_size: int = Field(default=8, ge=2, le=100)
    """Passages of a query."""

    heading_queries: int = Field(default=2_500, ge=1)
    """Of each corpus or collection at most."""

    judged_queries: int = Field(default=150, ge=1)
    """Of each split of a judged set at most."""

    labelled: tuple[SetPlan, ...] = ()
    """Their train split teaches."""

    headings: tuple[HeadingsPlan, ...] = ()
    """What teaches without labels."""

    judged: tuple[SetPlan, ...] = ()
    """Their dev split chooses, their test split judges; empty takes the labelled sets."""

    @model_validator(mode="after")
    def _enough(self) -> PlanFile:
        if not (self.labelled or self.headings):
            raise ValueError("give at least one [[labelled]] or [[headings]]")
        if not (self.labelled or self.judged):
            raise ValueError("give at least one [[judged]] set: a model that nothing judges is never installed")
        return self


def read_plan(path: Path) -> PlanFile:
    """Reads a plan; its paths come back relative to where the file lies.

    Raises:
        ConfigError: lists every fault.
    """
    try:
        plan = PlanFile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        faults = [
            f"{path}: {'.'.join(map(str, fault['loc'])) or 'plan'}: {fault['msg']}"
            for fault in error.errors(include_url=False)
        ]
        raise ConfigError(tuple(faults)) from None
    except (OSError, ValueError) as error:
        raise ConfigError((f"{path}: {error}",)) from error
    root = path.parent
    return plan.model_copy(
        update={
            "start": root / plan.start,
            "labelled": tuple(_placed(one, root) for one in plan.labelled),
            "headings": tuple(_placed(one, root) for one in plan.headings),
            "judged": tuple(_placed(one, root) for one in plan.judged),
        }
    )


def _placed(part: _Part, root: Path) -> _Part:
    paths = {name: root / value for name, value in part if isinstance(value, Path)}
    return part.model_copy(update=paths)
