"""A folder of small documents that changes at random, the same way for the same seed."""

from __future__ import annotations

import json
import random
from pathlib import Path

_WORDS = (
    *("pump", "valve", "pipe", "tank", "water", "oil", "gauge", "seal"),
    *("pressure", "flow", "motor", "shaft", "bearing", "filter", "hose", "nozzle"),
)
_ROWS = "rows.jsonl"


class ChangingFolder:
    """Files of text, Markdown and rows, to which things are added, changed and deleted."""

    def __init__(self, folder: Path, rng: random.Random, count: int) -> None:
        """Fills the folder with so many files, and one of rows."""
        self.folder = folder
        self._rng = rng
        self._next = 0
        self._rows: dict[str, str] = {}
        folder.mkdir(parents=True)
        for _ in range(count):
            self._add()
        for _ in range(count):
            self._add_row()
        self._write_rows()

    def change(self) -> int:
        """Adds, changes and deletes some documents; returns about how many."""
        rng = self._rng
        added, changed, deleted = rng.randint(2, 8), rng.randint(2, 8), rng.randint(1, 5)
        for _ in range(added):
            self._add()
            self._add_row()
        files = self._files()
        for path in rng.sample(files, min(changed, len(files))):
            path.write_text(self._text(), encoding="utf-8")
        for path in rng.sample(files, min(deleted, len(files) - 1)):
            path.unlink()
        for name in rng.sample(sorted(self._rows), min(deleted, len(self._rows) - 1)):
            del self._rows[name]
        for name in rng.sample(sorted(self._rows), min(changed, len(self._rows))):
            self._rows[name] = self._text()
        self._write_rows()
        return 2 * (added + changed)

    def _files(self) -> list[Path]:
        return sorted(path for path in self.folder.iterdir() if path.name != _ROWS)

    def _add(self) -> None:
        self._next += 1
        suffix = self._rng.choice([".txt", ".md"])
        (self.folder / f"doc{self._next:05}{suffix}").write_text(self._text(), encoding="utf-8")

    def _add_row(self) -> None:
        self._next += 1
        self._rows[f"row{self._next:05}"] = self._text()

    def _write_rows(self) -> None:
        lines = [json.dumps({"id": name, "text": text}) for name, text in sorted(self._rows.items())]
        (self.folder / _ROWS).write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _text(self) -> str:
        """Returns a text of one to some chunks."""
        paragraphs = [" ".join(self._rng.choices(_WORDS, k=60)) for _ in range(self._rng.choice([1, 1, 2, 8]))]
        return f"# {self._rng.choice(_WORDS)}\n\n" + "\n\n".join(paragraphs)
