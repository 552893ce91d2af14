"""Traces of keys alone, for what should leave a full cache: Zipf's law with and without scans, and the asked questions.

Sizes are those of cached answers: log-normal around 4 KiB, the bookkeeping of an entry included, fixed for a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random

from bench._common.traces.events import Trace

_MEDIAN_BYTES = 4096
_SIGMA = 0.6  # of the logarithm: nine of ten sizes are between 1.5 and 11 KiB
_LEAST_BYTES = 800


@dataclass(frozen=True, slots=True)
class KeyLaw:
    """How keys are drawn."""

    requests: int = 100_000
    keys: int = 20_000
    exponent: float = 1.0
    scan_every: int = 0  # requests between scans; 0 for none
    scan_length: int = 0  # fresh keys that are asked for once each, one after the other


@dataclass(frozen=True, slots=True)
class KeyTrace:
    """Keys in the order in which they are asked for, and the bytes of each."""

    name: str
    keys: Sequence[int]
    sizes: Sequence[int]  # by key

    @property
    def distinct_bytes(self) -> int:
        """Bytes of all keys that are asked for, each once."""
        return sum(self.sizes[key] for key in set(self.keys))


def zipf_trace(law: KeyLaw, seed: int) -> KeyTrace:
    """Draws keys by Zipf's law, each for itself, with scans of fresh keys between."""
    random = Random(f"keys {seed}")
    weights = list(accumulate(1.0 / rank**law.exponent for rank in range(1, law.keys + 1)))
    drawn = random.choices(range(law.keys), cum_weights=weights, k=law.requests)
    keys, fresh = list[int](), law.keys
    for start in range(0, len(drawn), law.scan_every or len(drawn)):
        keys += drawn[start : start + (law.scan_every or len(drawn))]
        keys += range(fresh, fresh + law.scan_length)
        fresh += law.scan_length
    scans = f", scans of {law.scan_length:,} each {law.scan_every:,}" if law.scan_every else ""
    return KeyTrace(f"Zipf {law.exponent:g}{scans}", keys, _sizes(fresh, random))


def question_trace(trace: Trace) -> KeyTrace:
    """Returns the texts that a trace asks for, with the version of their answers, as keys."""
    numbers: dict[tuple[str, int], int] = {}
    keys = [numbers.setdefault((ask.text, ask.answer_version), len(numbers)) for ask in trace.asks()]
    return KeyTrace(f"questions of {trace.set_name}", keys, _sizes(len(numbers), Random(f"sizes {trace.seed}")))


def _sizes(count: int, random: Random) -> list[int]:
    return [max(_LEAST_BYTES, round(_MEDIAN_BYTES * random.lognormvariate(0.0, _SIGMA))) for _ in range(count)]
