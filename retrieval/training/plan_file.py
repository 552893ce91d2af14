"""The plan of a training run as a TOML file: what a model is made of, so that the file can be kept beside it.

Paths are relative to the file. Unknown keys are errors, and so is a file or a folder that is not there: a run takes an
hour, and must not find that out at its end. `docs/training.md` explains every key.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from encoders.sources import BUNDLED_PREFIX, is_hub_id
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


def read_plan(path: Path) -> PlanFile:
    """Reads a plan; its paths come back relative to where the file lies.

    Raises:
        ConfigError: lists every fault, files that are not there among them.
    """
    try:
        plan = PlanFile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        raise ConfigError(tuple(f"{path}: {fault}" for fault in _faults(error))) from None
    except OSError as error:
        raise ConfigError((f"{path}: {error.strerror or error}",)) from error
    except ValueError as error:
        raise ConfigError((f"{path}: {error}",)) from error
    plan = _placed(plan, path.parent)
    faults = (*_shortages(plan), *_absences(plan))
    if faults:
        raise ConfigError(tuple(f"{path}: {fault}" for fault in faults))
    return plan


def _placed(plan: PlanFile, root: Path) -> PlanFile:
    teacher = root / plan.teacher
    return plan.model_copy(
        update={
            "start": root / plan.start,
            "teacher": str(teacher) if plan.teacher and teacher.is_dir() else plan.teacher,
            "labelled": tuple(_placed_part(one, root) for one in plan.labelled),
            "headings": tuple(_placed_part(one, root) for one in plan.headings),
            "judged": tuple(_placed_part(one, root) for one in plan.judged),
        }
    )


def _placed_part(part: _Part, root: Path) -> _Part:
    paths = {name: root / value for name, value in part if isinstance(value, Path)}
    return part.model_copy(update=paths)


def _faults(error: ValidationError) -> Iterator[str]:
    for fault in error.errors(include_url=False, include_input=False):
        # The library puts its own words before those of a validator of ours.
        message = str(fault["ctx"]["error"]) if fault["type"] == "value_error" else fault["msg"]
        if fault["type"] == "extra_forbidden":
            message = "there is no such key"
        yield f"{'.'.join(map(str, fault['loc'])) or 'plan'}: {message}"


def _shortages(plan: PlanFile) -> Iterator[str]:
    if not (plan.labelled or plan.headings):
        yield "plan: give at least one [[labelled]] or [[headings]]"
    if not (plan.labelled or plan.judged):
        yield "plan: give at least one [[judged]] set: a model that nothing judges is never installed"


def _absences(plan: PlanFile) -> Iterator[str]:
    if not (plan.start / "config.json").is_file():
        yield f"start: {plan.start} is no folder of a model; give one that sentence-transformers saved"
    if plan.teacher and not _may_be_model(plan.teacher):
        yield f"teacher: {plan.teacher} is no folder; give one, bundled:NAME or a Hugging Face id"
    for name, sets in (("labelled", plan.labelled), ("judged", plan.judged)):
        for number, one in enumerate(sets):
            yield from _missing_files(f"{name}.{number}", one)
    for number, headings in enumerate(plan.headings):
        if headings.corpus is not None and not headings.corpus.is_file():
            yield f"headings.{number}.corpus: there is no file {headings.corpus}"


def _missing_files(where: str, one: SetPlan) -> Iterator[str]:
    if one.pairs is not None and not one.pairs.is_file():
        yield f"{where}.pairs: there is no file {one.pairs}"
    if one.folder is None:
        return
    if not one.folder.is_dir():
        yield f"{where}.folder: there is no folder {one.folder}"
        return
    needed = (one.folder / name for name in ("corpus.jsonl", "queries.jsonl", f"qrels/{one.qrels}.tsv"))
    yield from (f"{where}.folder: there is no file {path}" for path in needed if not path.is_file())


def _may_be_model(name: str) -> bool:
    return Path(name).is_dir() or name.startswith(BUNDLED_PREFIX) or is_hub_id(name)
