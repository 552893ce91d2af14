"""How fast a model's files are, by length, one beside the other, with how right they are.

The files run in turn, forth and back (ABBA), so that whatever else the machine does meets all of them alike; one text a
run, at an exact length, on one thread, as in service. Of each length the median of the rounds counts.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from encoders.catalog.checking import check_file
from encoders.catalog.folders import files_of, onnx_files, require_onnx_kind
from encoders.catalog.opening import OpenPairs, open_pairs_of, open_texts
from encoders.catalog.record import CheckFigures, Precision
from encoders.catalog.references import TEXTS
from encoders.errors import ModelNotFound
from encoders.kinds import ModelKind
from encoders.models import ModelFiles
from encoders.tokenizing import Tokenization
from encoders.types import Engine, TokenizedText

K = TypeVar("K")

_SHORTEST = 16
_ROUNDS = 3  # each runs every file twice
_S_PER_LENGTH = 0.25  # of one file, shared by all rounds


@dataclass(frozen=True, slots=True)
class Speed:
    """What one length costs."""

    tokens: int
    ms: float  # of one run, median

    @property
    def ms_per_token(self) -> float:
        """Milliseconds of one core for a token."""
        return self.ms / self.tokens

    @property
    def tokens_per_s(self) -> float:
        """Tokens in a second on one core."""
        return 1000.0 * self.tokens / self.ms


@dataclass(frozen=True, slots=True)
class Bench:
    """Speed and quality of each of a model's files, from one run."""

    speeds: Mapping[Precision, tuple[Speed, ...]]  # by rising length, the same lengths for all
    figures: Mapping[Precision, CheckFigures]


def bench_folder(
    folder: Path, model: str, open_pairs: OpenPairs, progress: Callable[[int], None] = lambda tokens: None
) -> Bench:
    """Measures every ONNX file of a folder; `progress` is told each length before it is measured.

    Raises:
        ModelNotFound, ModelUnsupported: there is no ONNX file, or one cannot be opened.
        ModelCheckFailed: the references cannot be used.
    """
    names = onnx_files(folder)
    paired = require_onnx_kind(folder, model) is ModelKind.CROSS_ENCODER
    if not names:
        raise ModelNotFound(model, "it has no ONNX file to run; run `headrace models export` on it")
    figures = {precision: check_file(folder, model, precision, open_pairs) for precision in names}
    engines = {precision: _engine(folder, model, name, open_pairs) for precision, name in names.items()}
    files = files_of(folder, model, next(iter(names.values())))
    speeds: dict[Precision, list[Speed]] = {precision: [] for precision in names}
    for length in lengths(files.max_tokens):
        progress(length)
        item = _item(files, length, paired=paired)
        arms = {precision: partial(engine.run, [item]) for precision, engine in engines.items()}
        for precision, ms in interleaved(arms).items():
            speeds[precision].append(Speed(item.token_count, ms))
    return Bench({precision: tuple(found) for precision, found in speeds.items()}, figures)


def lengths(longest: int) -> list[int]:
    """Returns 16, 32, 64 and so on, and the model's own limit."""
    doubled = [_SHORTEST << step for step in range(16) if _SHORTEST << step < longest]
    return [*doubled, longest]


def _engine(folder: Path, model: str, name: str, open_pairs: OpenPairs) -> Engine[object]:
    if require_onnx_kind(folder, model) is ModelKind.CROSS_ENCODER:
        return open_pairs_of(folder, model, name, open_pairs).engine
    return open_texts(folder, model, name).engine


def _item(files: ModelFiles, length: int, *, paired: bool) -> TokenizedText:
    # A tokenizer with that limit cuts long text to exactly that length.
    tokenization = Tokenization.open(files.tokenizer, files.model_id, length)
    text = " ".join(TEXTS) * (1 + length // 64)
    return tokenization.pairs(TEXTS[0], [text])[0] if paired else tokenization.texts([text])[0]


def interleaved(arms: Mapping[K, Callable[[], object]]) -> dict[K, float]:
    """Runs each arm in turn, forth and back, and returns the median milliseconds of one run."""
    once = {name: _ms(arm, 1) for name, arm in arms.items()}  # and warms up
    runs = {name: max(1, int(1000 * _S_PER_LENGTH / (2 * _ROUNDS * max(ms, 1e-3)))) for name, ms in once.items()}
    taken: dict[K, list[float]] = {name: [] for name in arms}
    for name in _order(list(arms)):
        taken[name].append(_ms(arms[name], runs[name]))
    return {name: statistics.median(found) for name, found in taken.items()}


def _order(names: list[K]) -> Iterator[K]:
    for _ in range(_ROUNDS):
        yield from names
        yield from reversed(names)


def _ms(arm: Callable[[], object], runs: int) -> float:
    begun = time.perf_counter_ns()
    for _ in range(runs):
        arm()
    return (time.perf_counter_ns() - begun) / runs / 1e6
