"""What the product retrieves for a query, with the first stage's scores: what is mined from, and what is judged on.

Pools are written to the run's folder, since making them costs more than reading them, and a resumed run must learn from
the same ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rerank.calibrate import Mixture
from rerank.training.errors import TrainingDataInvalid


@dataclass(frozen=True, slots=True)
class Pool:
    """A query's candidates; arrays are [n]. What retrieval found comes first, best first by the base score."""

    query_id: str
    query: str
    relevant: Mapping[str, int]  # text id -> grade
    passage_ids: tuple[str, ...]
    text_ids: tuple[str, ...]  # the document of each passage
    hybrid: NDArray[np.float64]  # the fused score of dense and BM25
    late: NDArray[np.float64] | None  # late interaction; None when it takes no part
    found_count: int  # the rest are relevant passages that retrieval did not find

    def base(self, mixture: Mixture) -> NDArray[np.float64]:
        """Returns the score before the cross-encoder, float64 [n]."""
        return mixture.before(self.hybrid, self.late)

    def labels(self) -> NDArray[np.float64]:
        """Returns 1 for a passage of a relevant document and 0 for any other, float64 [n]."""
        return np.array([float(self.relevant.get(text_id, 0) > 0) for text_id in self.text_ids])


@dataclass(frozen=True, slots=True)
class PoolSet:
    """The pools of a set, and the passages that they name."""

    name: str
    passages: Mapping[str, str]  # passage id -> text
    pools: tuple[Pool, ...]

    def save(self, path: Path) -> None:
        """Writes the set as JSON lines, whole or not at all."""
        whole = path.with_suffix(".part")
        with whole.open("w", encoding="utf-8") as file:
            for line in ({"name": self.name, "passages": dict(self.passages)}, *map(_written, self.pools)):
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        whole.replace(path)


def load_pools(path: Path) -> PoolSet:
    """Reads what `PoolSet.save` wrote.

    Raises:
        TrainingDataInvalid: it is something else.
    """
    with path.open(encoding="utf-8") as file:
        try:
            head = json.loads(file.readline())
            return PoolSet(head["name"], head["passages"], tuple(_read(json.loads(line)) for line in file))
        except (ValueError, KeyError, TypeError) as cause:
            raise TrainingDataInvalid(path, "it holds no pools") from cause


def _written(pool: Pool) -> dict[str, Any]:
    return {
        "query_id": pool.query_id,
        "query": pool.query,
        "relevant": dict(pool.relevant),
        "passage_ids": pool.passage_ids,
        "text_ids": pool.text_ids,
        "hybrid": _rounded(pool.hybrid),
        "late": None if pool.late is None else _rounded(pool.late),
        "found_count": pool.found_count,
    }


def _rounded(scores: NDArray[np.float64]) -> list[float]:
    return [round(float(score), 6) for score in scores]


def _read(row: dict[str, Any]) -> Pool:
    return Pool(
        query_id=row["query_id"],
        query=row["query"],
        relevant=row["relevant"],
        passage_ids=tuple(row["passage_ids"]),
        text_ids=tuple(row["text_ids"]),
        hybrid=np.array(row["hybrid"], dtype=np.float64),
        late=None if row["late"] is None else np.array(row["late"], dtype=np.float64),
        found_count=row["found_count"],
    )
