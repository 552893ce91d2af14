"""What a database's source keeps between runs: how many there were, and the highest watermark that is indexed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from indexers.sources.sql_values import Value, kept, read_back

_FILE = "state.json"


@dataclass(frozen=True, slots=True)
class SqlState:
    """The state after so many whole runs; `query` is that of which it was the state."""

    runs: int = 0
    watermark: Value | None = None
    query: str = ""


def read_state(folder: Path, query: str) -> SqlState:
    """Returns the state of the runs before; an unreadable one, or of another query, counts as none."""
    try:
        stored = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        watermark = None if stored["watermark"] is None else read_back(stored["watermark"])
        state = SqlState(int(stored["runs"]), watermark, str(stored["query"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return SqlState(query=query)
    return state if state.query == query else SqlState(query=query)


def write_state(folder: Path, state: SqlState) -> None:
    """Keeps the state, at once or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    watermark = None if state.watermark is None else kept(state.watermark)
    fresh = folder / f".{_FILE}.new"
    fresh.write_text(json.dumps({"runs": state.runs, "watermark": watermark, "query": state.query}), encoding="utf-8")
    fresh.replace(folder / _FILE)
