"""Counts of a run, changed with the rows that they count."""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Changes:
    """What one transaction changes of a run's counts."""

    items: Counter[str] = field(default_factory=Counter)
    documents: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    chunks: int = 0
    tokens: int = 0

    def apply(self, connection: sqlite3.Connection, run_id: str) -> None:
        """Writes the changes."""
        named = (("item", self.items), ("document", self.documents), ("failure", self.failures))
        rows = [(run_id, kind, name, count) for kind, counts in named for name, count in counts.items() if count]
        connection.executemany(
            "INSERT INTO counts VALUES (?, ?, ?, ?)"
            " ON CONFLICT (run_id, kind, name) DO UPDATE SET count = count + excluded.count",
            rows,
        )
        if self.chunks or self.tokens:
            connection.execute(
                "UPDATE runs SET chunks = chunks + ?, tokens = tokens + ? WHERE run_id = ?",
                (self.chunks, self.tokens, run_id),
            )
