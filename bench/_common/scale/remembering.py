"""What one process of a run keeps in memory for every document; each kind is measured in a process of its own.

Run as `python -m bench._common.scale.remembering KIND`.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Mapping

import numpy as np

from bench._common.memory import own_bytes
from bench._common.scale.costs import Remembered
from encoders.types import TermCounts
from indexers.duplicates import NearDuplicates
from indexers.jobs.running.preparing import SeenIds
from indexers.pruning import SeenSources
from indexers.term_blob import pack_terms, unpack_terms

_WORDS = 40  # of a document; a signature is as large whatever the text
_TERMS = 40  # of a chunk
_PATIENCE_S = 300.0


def measure_remembered() -> Remembered:
    """Runs the processes and returns what they found."""
    return Remembered(**{name: _in_a_process(name) for name in _KINDS})


def _in_a_process(kind: str) -> float:
    command = [sys.executable, "-m", "bench._common.scale.remembering", kind]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    if done.returncode:
        raise SystemExit(f"the process that remembers {kind} failed: {done.stderr[-500:]}")
    return float(done.stdout)


def _each(kind: str) -> float:
    make, count = _KINDS[kind]
    make(count // 100)  # what is loaded and made once
    gc.collect()
    before = own_bytes(os.getpid())
    kept = make(count)
    grown = own_bytes(os.getpid()) - before
    del kept
    return grown / count


def _seen_ids(count: int) -> SeenIds:
    seen = SeenIds()
    for one in range(count):
        seen.other_item(_name(one), f"file:///{_name(one)}")
    return seen


def _seen_sources(count: int) -> SeenSources:
    seen = SeenSources()
    for one in range(count):
        seen.add(_name(one))
    return seen


def _fingerprints(count: int) -> dict[str, str]:
    return {_name(one): f"{one:032x}" for one in range(count)}


def _near_duplicates(count: int) -> NearDuplicates:
    near = NearDuplicates(0.9)
    random = np.random.default_rng(1)
    for one in range(count):
        near.find(_name(one), " ".join(f"w{word}" for word in random.integers(0, 50_000, _WORDS)))
    return near


def _term_counts(count: int) -> list[TermCounts]:
    """Blobs of their own, as they come out of payloads."""
    random = np.random.default_rng(1)
    terms, counts = random.integers(0, 2**32, _TERMS, dtype=np.uint32), np.ones(_TERMS, dtype=np.uint16)
    return [unpack_terms(pack_terms(TermCounts(terms, counts, _TERMS))) for _ in range(count)]


def _name(number: int) -> str:
    return f"guides/section-{number % 997}/page-{number}.md"


_KINDS: Mapping[str, tuple[Callable[[int], object], int]] = {
    "seen_ids": (_seen_ids, 200_000),
    "fingerprints": (_fingerprints, 200_000),
    "seen_sources": (_seen_sources, 200_000),
    "signatures": (_near_duplicates, 20_000),
    "term_counts": (_term_counts, 200_000),
}


if __name__ == "__main__":
    print(_each(sys.argv[1]))
