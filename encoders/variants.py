"""Which of a model's files serves: the faster one that computes what full precision does, on this machine.

A folder may hold a model in full precision and in int8. When the settings name neither, both are checked and timed at
the first start, in turn (ABBA), and the choice is kept: vectors of two files are never mixed, so a collection would
have to be embedded again if the choice changed with the noise of each start. On a fleet of unlike machines, name the
file.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from pydantic import TypeAdapter, ValidationError

from encoders.catalog.folders import onnx_files
from encoders.catalog.record import CheckFigures, Precision
from encoders.curve import sample_of
from encoders.measured import Measurements
from encoders.models import ModelFiles, resolve
from encoders.operators import is_quantized
from encoders.selfcheck import Check, require_passed
from encoders.sources import BUNDLED_PREFIX, ModelSource, locate
from encoders.tokenizing import Tokenization
from encoders.types import Engine, TokenizedText

# Below this int8 is not worth its last digits.
_WORTH = 1.1
_ROUNDS = 5
_TOKENS = 64


class OpenModel(Protocol):
    """A model that can be timed."""

    @property
    def engine(self) -> Engine[Any]:
        """What computes."""
        ...

    @property
    def tokenization(self) -> Tokenization:
        """What makes tokens."""
        ...


E = TypeVar("E", bound=OpenModel)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Choice:
    """The file that serves and why."""

    file: str  # inside the model's folder
    precision: Precision
    figures: CheckFigures | None  # None when there is nothing to compare with
    int8_speed: float | None = None  # how many times as fast as full precision; None when only one file is there


@dataclass(frozen=True, slots=True)
class Chosen(Generic[E]):
    """A model that is open, checked, and chosen."""

    encoder: E
    files: ModelFiles
    choice: Choice


_FIGURES = TypeAdapter(CheckFigures)
_CHOICE = TypeAdapter(Choice)


def open_checked(source: ModelSource, check: Check[E, R], memory: Measurements) -> Chosen[E]:
    """Opens the file of a model that serves, after it was compared with references, or with full precision.

    Raises:
        ModelNotFound, ModelUnsupported: there is no such model, or not of this kind.
        ModelCheckFailed: it computes something else than its references.
    """
    files = {precision: resolve(one) for precision, one in _candidates(source).items()}
    if len(files) == 2:
        return _open_faster(files, check, memory)
    [only] = files.values()
    encoder = check.open(only)
    precision: Precision = "int8" if is_quantized(only.weights) else "fp32"
    return Chosen(encoder, only, Choice(_name(only), precision, _checked(encoder, only, precision, check, memory)))


def _candidates(source: ModelSource) -> dict[str, ModelSource]:
    if source.file or source.model.startswith(BUNDLED_PREFIX):
        return {"": source}
    named = onnx_files(locate(source))
    return {precision: replace(source, file=name) for precision, name in named.items()} or {"": source}


def _checked(
    encoder: E, files: ModelFiles, precision: Precision, check: Check[E, R], memory: Measurements
) -> CheckFigures | None:
    references = check.read(files.folder, files.model_id)
    if references is None:
        return None
    quick = check.compare(encoder, references, precision, quick=True)
    require_passed(files.model_id, precision, quick)
    if files.model_id.startswith(BUNDLED_PREFIX):
        # Every text was compared where the package was made; what remains to be seen is this CPU.
        return quick
    try:
        return _FIGURES.validate_python(memory.get("check", files.revision))
    except ValidationError:
        figures = check.compare(encoder, references, precision)
    require_passed(files.model_id, precision, figures)
    memory.put("check", files.revision, asdict(figures))
    return figures


def _open_faster(files: Mapping[str, ModelFiles], check: Check[E, R], memory: Measurements) -> Chosen[E]:
    key = f"{files['fp32'].revision}+{files['int8'].revision}"
    try:
        choice = _CHOICE.validate_python(memory.get("choice", key))
    except ValidationError:
        choice = _compared(files, check)
        memory.put("choice", key, asdict(choice))
    served = files[choice.precision]
    encoder = check.open(served)
    references = check.read(served.folder, served.model_id)
    if references is not None:
        quick = check.compare(encoder, references, choice.precision, quick=True)
        require_passed(served.model_id, choice.precision, quick)
    return Chosen(encoder, served, choice)


def _compared(files: Mapping[str, ModelFiles], check: Check[E, R]) -> Choice:
    full, int8 = check.open(files["fp32"]), check.open(files["int8"])
    model = files["fp32"].model_id
    references = check.read(files["fp32"].folder, model) or check.make(full)
    of_full, of_int8 = check.compare(full, references, "fp32"), check.compare(int8, references, "int8")
    speed = _speed(full, int8)
    if of_int8.passed and (speed >= _WORTH or not of_full.passed):
        return Choice(_name(files["int8"]), "int8", of_int8, speed)
    require_passed(model, "fp32", of_full)
    return Choice(_name(files["fp32"]), "fp32", of_full, speed)


def _name(files: ModelFiles) -> str:
    return files.weights.relative_to(files.folder).as_posix()


def _speed(full: OpenModel, int8: OpenModel) -> float:
    """Returns how many times as fast the second one is: the median of the rounds, each with the arms in turn (ABBA)."""
    item = sample_of(full.tokenization, paired=False)(min(_TOKENS, full.tokenization.max_tokens))
    ratios = []
    for engine in (full.engine, int8.engine):
        engine.run([item])
    for _ in range(_ROUNDS):
        times = [_run_ns(engine, item) for engine in (full.engine, int8.engine, int8.engine, full.engine)]
        ratios.append((times[0] + times[3]) / (times[1] + times[2]))
    return statistics.median(ratios)


def _run_ns(engine: Engine[Any], item: TokenizedText) -> int:
    begun = time.perf_counter_ns()
    engine.run([item])
    return time.perf_counter_ns() - begun
