"""Rows of a database as a source: the query is streamed, rows become JSON lines, a block of them an item.

A block's fingerprint is a hash of its rows, so an unchanged one is not parsed again. With a watermark column only rows
at or above the highest value seen are read; every so many runs all of them, since deleted rows show in no other way.
Rows that have just the last value come again each time: more of them may have been written since.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from indexers.errors import ItemGone, ItemUnreadable
from indexers.parsing.options import SourceFile
from indexers.parsing.parsed import ParseFailure, SkippedFile
from indexers.sources.access import SourceAccess
from indexers.sources.snapshots import temporary
from indexers.sources.source import ItemRef, Scanned
from indexers.sources.spec import SqlSource as SqlSpec
from indexers.sources.sql_database import Database
from indexers.sources.sql_rows import Block, RowReader
from indexers.sources.sql_state import SqlState, read_state, write_state
from indexers.sources.sql_values import kept, read_back

# ruff: noqa: PLC0415  SQLAlchemy comes with the extra `sql`

_BLOCKS = "blocks"
_ROWS = "rows"
_CHANGES = "changes"
_SUFFIX = ".jsonl"
_SHORT_ID = re.compile(r"[A-Za-z0-9._-]{1,80}")


class SqlSource:
    """The rows of one query."""

    def __init__(self, spec: SqlSpec, base_folder: Path, access: SourceAccess, scratch: Path) -> None:
        """Checks what may be read; nothing is connected to yet.

        Raises:
            ItemUnreadable: the database may not be read, or its password is not there.
            JobError: the extra `sql` or the driver is not installed, or the URL is none.
        """
        self._spec = spec
        self._folder = scratch / _BLOCKS
        self._scratch = scratch
        self._database = Database(spec, base_folder, access)
        self._reader = RowReader(spec, self._database.name)
        about = f"{spec.url}\0{spec.query}\0{spec.watermark_column}\0{spec.id_column}"
        self._state = read_state(scratch, hashlib.blake2b(about.encode(), digest_size=16).hexdigest())
        self._highest: Any = None
        self._deleted: list[str] = []
        self._scanned = False

    @property
    def complete(self) -> bool:
        """Whether the scan comes by all rows: without a watermark always, with one every so many runs."""
        return not self._spec.watermark_column or self._state.runs % self._spec.full_every == 0

    def scan(self) -> Iterator[Scanned]:
        """Yields blocks of rows, in the order of their ids.

        Raises:
            SourceUnavailable: the database cannot be reached, or refuses the query.
            ItemUnreadable: the query does not give what the job file says.
        """
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        self._deleted, self._highest, self._scanned = [], None, True
        above = None if self.complete else self._state.watermark
        for block in self._reader.blocks(self._database.rows(self.statement(watermark=above))):
            yield from self._handed_on(block, above)

    @contextmanager
    def open(self, ref: ItemRef) -> Iterator[SourceFile]:
        """Gives what the scan has written; where another machine has scanned, the rows are read again.

        Raises:
            ItemGone: none of its rows is there any more.
            SourceUnavailable: the database cannot be reached.
        """
        path = self._folder / _file_name(ref.uri)
        if path.is_file():
            yield SourceFile(path, ref.name, ref.uri)
            return
        with temporary(ref.name, self._scratch) as again:
            again.write_text(self._read_again(ref), encoding="utf-8")
            yield SourceFile(again, ref.name, ref.uri)

    def deleted_ids(self) -> Sequence[str]:
        """Returns the ids of rows that say that they are deleted."""
        return self._deleted

    def commit(self) -> None:
        """Keeps the highest watermark of the last scan."""
        watermark = self._state.watermark if self._highest is None else self._highest
        self._state = SqlState(self._state.runs + 1, watermark, self._state.query)
        write_state(self._scratch, self._state)

    def close(self) -> None:
        """Closes the connections; the blocks go with whoever has made them, since others may still read."""
        self._database.close()
        if self._scanned:
            shutil.rmtree(self._folder, ignore_errors=True)

    def statement(self, *, watermark: object = None, first: object = None, last: object = None) -> Any:
        """Returns the query as a subquery, ordered by id; of rows at or above a watermark, or of a range of ids."""
        from sqlalchemy import bindparam, column, literal_column, select, text

        identity: Any = column(self._spec.id_column)
        # A colon would begin the name of a parameter, which queries of job files have none of.
        inner = text(self._spec.query.strip().rstrip(";").replace(":", "\\:")).columns(identity).subquery("rows_of_job")
        statement: Any = select(literal_column("*")).select_from(inner).order_by(identity)
        if watermark is not None:
            above = column(self._spec.watermark_column) >= bindparam("watermark", watermark)
            statement = statement.where(above)
        if first is not None:
            statement = statement.where(identity >= bindparam("first_id", first))
        if last is not None:
            statement = statement.where(identity <= bindparam("last_id", last))
        return statement

    def _handed_on(self, block: Block, above: object) -> Iterator[Scanned]:
        self._deleted += block.deleted
        if block.highest is not None:
            self._highest = block.highest if self._highest is None else max(self._highest, block.highest)
        for shown in block.without_text:
            yield SkippedFile(f"row {shown}", "has no text")
        uri = self._uri(block, above)
        for fault in block.faults:
            yield ParseFailure(f"rows from {block.first}", uri, fault, "invalid")
        if block.lines:
            content = "".join(block.lines).encode()
            (self._folder / _file_name(uri)).write_bytes(content)
            fingerprint = hashlib.blake2b(content, digest_size=16).hexdigest()
            yield ItemRef(uri, f"rows-{_short(str(block.first))}{_SUFFIX}", fingerprint, len(content))

    def _uri(self, block: Block, above: object) -> str:
        """Names a block by what it takes to read it again."""
        if above is None:
            return f"{self._database.name}/{_ROWS}/{_kept(block.first)}"
        return f"{self._database.name}/{_CHANGES}/{_kept(above)}/{_kept(block.first)}/{_kept(block.last)}"

    def _read_again(self, ref: ItemRef) -> str:
        kind, *named = ref.uri.removeprefix(f"{self._database.name}/").split("/")
        try:
            values = [read_back(unquote(one)) for one in named]
        except ValueError:
            raise ItemUnreadable(ref.name, "can only be read by the worker that leads the run", "elsewhere") from None
        if kind == _CHANGES:
            watermark, first, last = values
            statement = self.statement(watermark=watermark, first=first, last=last)
            found = list(self._reader.blocks(self._database.rows(statement)))
        else:
            [first] = values
            blocks = self._reader.blocks(self._database.rows(self.statement(first=first)))
            # What begins with another id that blocks begin with is the next block: nothing is left of this one.
            found = [one for one in islice(blocks, 1) if one.first == first or not self._reader.begins(one.first)]
        lines = "".join(line for block in found for line in block.lines)
        if not lines:
            raise ItemGone(ref.name, "has no rows any more")
        return lines


def _file_name(uri: str) -> str:
    return hashlib.blake2b(uri.encode(), digest_size=16).hexdigest() + _SUFFIX


def _kept(value: object) -> str:
    """Returns a value as a part of a URI; one of another type can only be shown."""
    try:
        text = kept(value)
    except TypeError:
        text = f"other:{value}"
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


def _short(shown: str) -> str:
    """Returns an id as part of a file's name."""
    if _SHORT_ID.fullmatch(shown):
        return shown
    return hashlib.blake2b(shown.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
