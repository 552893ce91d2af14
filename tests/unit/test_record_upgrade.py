"""Records of the format before are brought to this one when they are opened."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime

from indexers.record_read import RecordReader
from indexers.record_schema import FORMAT_VERSION, create_record, open_connection
from indexers.record_write import RecordWriter
from indexers.types import CollectionDefinition, CollectionKey
from tests.fakes.encoded import DIM, encoded

DEFINITION = CollectionDefinition(
    CollectionKey("t", "docs"), {}, "", "tests/words", "1", DIM, datetime(2026, 1, 1, tzinfo=UTC), code_bytes=4
)

_BACK = """
DROP INDEX owned_documents;
DROP TABLE notes;
DROP TABLE tombstones;
ALTER TABLE documents DROP COLUMN owner;
ALTER TABLE chunks DROP COLUMN notes;
PRAGMA user_version = 3;
"""


def test_record_of_the_format_before_is_upgraded(tmp_path) -> None:
    """What was indexed stays as it was, and new writes go on from there."""
    path = tmp_path / "record.sqlite"
    create_record(path, DEFINITION)
    writer = RecordWriter(path)
    writer.replace([encoded("a", ["some words"])])
    writer.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(_BACK)
    reader = RecordReader(path)
    assert reader.stored(["a"], 1)["a"].owner == ""
    assert open_connection(path, read_only=True).execute("PRAGMA user_version").fetchone()[0] == FORMAT_VERSION
    writer = RecordWriter(path)
    assert writer.replace([encoded("b", ["more words"])]).sequence == 2
    assert writer.replace([encoded("a", ["older"])], since=0).superseded == {"a"}
    writer.close()
    reader.close()
