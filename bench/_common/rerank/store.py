"""Logits kept between runs: scoring pairs is all of the time of a run, and sweeping a tolerance over them is seconds.

One file a model revision, one line a pair, only ever appended to; a line that a killed run cut short is passed over.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ScoredPair:
    """What one pair came out with, and what it cost."""

    logit: float
    tokens: int
    compute_ns: float


class PairStore:
    """The scored pairs of one cross-encoder."""

    def __init__(self, folder: Path, revision: str) -> None:
        self._file = folder / f"pairs-{revision[:16]}.jsonl"
        self._pairs: dict[str, ScoredPair] = {}
        if self._file.exists():
            for line in self._file.read_text(encoding="utf-8").splitlines():
                self._take(line)

    def get(self, query: str, passage: str) -> ScoredPair | None:
        """Returns what is known of a pair; None when it was never scored."""
        return self._pairs.get(_key(query, passage))

    def put(self, query: str, passages: Sequence[str], pairs: Sequence[ScoredPair]) -> None:
        """Stores scored pairs, on disk before it returns."""
        rows = {_key(query, passage): pair for passage, pair in zip(passages, pairs, strict=True)}
        self._pairs |= rows
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a", encoding="utf-8") as file:
            # The line feed first: it also ends a line that was cut short.
            file.writelines("\n" + json.dumps({"key": key, **asdict(pair)}) for key, pair in rows.items())

    def _take(self, line: str) -> None:
        try:
            row = json.loads(line)
            key = row.pop("key")
            self._pairs[key] = ScoredPair(**row)
        except (ValueError, TypeError, KeyError):
            return


def _key(query: str, passage: str) -> str:
    content = f"{len(query)}\0{query}\0{passage}".encode("utf-8", "surrogatepass")
    return blake2b(content, digest_size=16).hexdigest()
