"""What an encoder made of texts, kept between runs, so that trying another weight takes seconds.

Encoding the sets is most of the time of a quality run and never changes while the model does not. A store is one SQLite
file for a model revision and holds vectors and token vectors by the hash of the text and of what the text was to the
model. Several processes may write to it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from encoders.types import TextKind

DEFAULT_FOLDER = Path(".cache/bench")
_KEY_BYTES = 16
_WAIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Stored:
    """A text's encoding as bytes."""

    vector: bytes  # float32 [dim]
    tokens: bytes  # codes of a passage's tokens or vectors of a question's; empty without


class EncodingStore:
    """The encodings of one model revision."""

    def __init__(self, folder: Path, revision: str) -> None:
        place = folder / revision[:16]
        place.mkdir(parents=True, exist_ok=True)
        self._file = place / "encodings.sqlite"
        with self._opened() as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("CREATE TABLE IF NOT EXISTS encodings (key BLOB PRIMARY KEY, vector BLOB, tokens BLOB)")

    def __len__(self) -> int:
        with self._opened() as connection:
            return int(connection.execute("SELECT count(*) FROM encodings").fetchone()[0])

    def get(self, texts: Iterable[str], kind: TextKind) -> dict[str, Stored]:
        """Returns what is stored of the texts; those that never were are missing."""
        found = {}
        with self._opened() as connection:
            for text in texts:
                row = connection.execute(
                    "SELECT vector, tokens FROM encodings WHERE key = ?", (_key(text, kind),)
                ).fetchone()
                if row is not None:
                    found[text] = Stored(*row)
        return found

    def put(self, encodings: Iterable[tuple[str, Stored]], kind: TextKind) -> None:
        """Stores the encodings of texts, on disk before it returns."""
        rows = [(_key(text, kind), stored.vector, stored.tokens) for text, stored in encodings]
        with self._opened() as connection, connection:
            connection.executemany("INSERT OR REPLACE INTO encodings VALUES (?, ?, ?)", rows)

    def _opened(self) -> closing[sqlite3.Connection]:
        return closing(sqlite3.connect(self._file, timeout=_WAIT_S))


def _key(text: str, kind: TextKind) -> bytes:
    return blake2b(f"{kind.value}\0{text}".encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES).digest()
