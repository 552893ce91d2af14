"""Rows of a database as a source: the query is streamed, rows become JSON lines, a block of them an item.

A block's fingerprint is a hash of its rows, so an unchanged one is not parsed again. With a watermark column only rows
at or above the highest value seen are read; every so many runs all of them, since deleted rows show in no other way.
Rows that have just the last value come again each time: more of them may have been written since.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from indexers.errors import ItemGone, ItemUnreadable, JobError, SourceUnavailable
from indexers.parsing.options import SourceFile
from indexers.parsing.parsed import ParseFailure, SkippedFile
from indexers.sources.access import SourceAccess
from indexers.sources.source import ItemRef, Scanned
from indexers.sources.spec import SqlSource as SqlSpec

_STATE = "state.json"
_BLOCKS = "blocks"
_READ_ONLY = {"postgresql": "SET TRANSACTION READ ONLY", "mysql": "SET TRANSACTION READ ONLY"}


class SqlSource:
    """The rows of one query."""

    def __init__(self, spec: SqlSpec, base_folder: Path, access: SourceAccess, scratch: Path) -> None:
        """Checks what may be read; nothing is connected to yet.

        Raises:
            ItemUnreadable: the database may not be read, or its password is not there.
            JobError: the extra `sql` is not installed, or the URL is none.
        """
        self._spec = spec
        self._scratch = scratch
        self._state = _read_state(scratch / _STATE)
        self._highest: str | int | float | None = None
        self._deleted: list[str] = []
        self._engine = _engine(spec, base_folder, access)
        self._name = self._engine.url.render_as_string(hide_password=True).partition("?")[0]

    @property
    def complete(self) -> bool:
        """Whether the scan comes by all rows: without a watermark always, with one every so many runs."""
        return not self._spec.watermark_column or self._state["runs"] % self._spec.full_every == 0

    def scan(self) -> Iterator[Scanned]:
        """Yields blocks of rows, in the order of their ids.

        Raises:
            SourceUnavailable: the database cannot be reached, or refuses the query.
        """
        folder = self._scratch / _BLOCKS
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._deleted, self._highest = [], None
        with self._errors():
            yield from self._blocks(folder)

    @contextmanager
    def open(self, ref: ItemRef) -> Iterator[SourceFile]:
        """Gives the file that the scan has written.

        Raises:
            ItemGone: it is of an earlier scan.
        """
        path = self._scratch / _BLOCKS / ref.name
        if not path.is_file():
            raise ItemGone(ref.name, "is of an earlier scan; its rows come with this one")
        yield SourceFile(path, ref.name, ref.uri)

    def deleted_ids(self) -> Sequence[str]:
        """Returns the ids of rows that say that they are deleted."""
        return self._deleted

    def commit(self) -> None:
        """Keeps the highest watermark of the last scan."""
        state = {"runs": self._state["runs"] + 1, "watermark": self._state["watermark"]}
        if self._highest is not None:
            state["watermark"] = self._highest
        self._scratch.mkdir(parents=True, exist_ok=True)
        fresh = self._scratch / f".{_STATE}.new"
        fresh.write_text(json.dumps(state), encoding="utf-8")
        fresh.replace(self._scratch / _STATE)
        self._state = state

    def close(self) -> None:
        """Closes the connections and forgets the blocks."""
        self._engine.dispose()
        shutil.rmtree(self._scratch / _BLOCKS, ignore_errors=True)

    def _blocks(self, folder: Path) -> Iterator[Scanned]:
        rows: list[str] = []
        first = ""
        for number, row in enumerate(self._rows(), 1):
            made = self._row(row, number)
            if isinstance(made, str):
                first = first or str(row[self._spec.id_column])
                rows.append(made)
            elif made is not None:
                yield made
            if len(rows) == self._spec.rows_per_read:
                yield self._block(folder, first, rows)
                rows, first = [], ""
        if rows:
            yield self._block(folder, first, rows)

    def _block(self, folder: Path, first: str, rows: Sequence[str]) -> ItemRef:
        content = "".join(rows).encode()
        name = f"rows-{hashlib.blake2b(first.encode(), digest_size=8).hexdigest()}.jsonl"
        (folder / name).write_bytes(content)
        fingerprint = hashlib.blake2b(content, digest_size=16).hexdigest()
        return ItemRef(f"{self._name}/{name}", name, fingerprint, len(content))

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        from sqlalchemy import text  # noqa: PLC0415 - of the extra `sql`

        statement, values = self._statement()
        with self._engine.connect() as connection:
            if (read_only := _READ_ONLY.get(self._engine.dialect.name)) is not None:
                connection.execute(text(read_only))
            streamed = connection.execution_options(stream_results=True, max_row_buffer=self._spec.rows_per_read)
            yield from streamed.execute(statement, values).mappings()

    def _statement(self) -> tuple[Any, dict[str, Any]]:
        """Returns the query as a subquery, ordered by id, above the watermark where there is one."""
        from sqlalchemy import column, literal_column, select, text  # noqa: PLC0415

        inner = text(self._spec.query.strip().rstrip(";")).columns(column(self._spec.id_column)).subquery("rows")
        statement: Any = select(literal_column("*")).select_from(inner).order_by(column(self._spec.id_column))
        if self.complete or self._state["watermark"] is None:
            return statement, {}
        above = column(self._spec.watermark_column) >= text(":watermark")
        return statement.where(above), {"watermark": self._state["watermark"]}

    def _row(self, row: Mapping[str, Any], number: int) -> str | Scanned | None:
        """Returns a row as a JSON line; a deleted one gives nothing, one that cannot be read a failure."""
        spec, place = self._spec, f"row {number}"
        missing = [name for name in (spec.id_column, *spec.text_columns) if name not in row]
        if missing:
            raise ItemUnreadable(self._name, f"the query gives no column {missing[0]!r}", "wrong_query")
        identity = row[spec.id_column]
        if identity is None:
            return ParseFailure(place, f"{self._name}/{place}", "has no id", "invalid")
        if spec.watermark_column and (mark := _plain(row.get(spec.watermark_column))) is not None:
            self._highest = mark if self._highest is None else max(self._highest, mark)
        if spec.deleted_column and row.get(spec.deleted_column):
            self._deleted.append(str(identity))
            return None
        text = "\n\n".join(str(row[name]) for name in spec.text_columns if row[name] not in (None, ""))
        if not text.strip():
            return SkippedFile(f"row {identity}", "has no text")
        own = {spec.id_column, spec.title_column, spec.deleted_column, *spec.text_columns}
        metadata = {
            str(name): plain for name, value in row.items() if name not in own if (plain := _plain(value)) is not None
        }
        title = str(row.get(spec.title_column) or "") if spec.title_column else ""
        line = {"id": str(identity), "title": title, "text": text, "metadata": metadata}
        return json.dumps(line, ensure_ascii=False) + "\n"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

        try:
            yield
        except SQLAlchemyError as error:
            reason = str(getattr(error, "orig", None) or error).splitlines()[0][:300]
            raise SourceUnavailable(self._name, f"the query failed: {reason}") from None


def _engine(spec: SqlSpec, base_folder: Path, access: SourceAccess) -> Any:
    try:
        from sqlalchemy import create_engine  # noqa: PLC0415 - of the extra `sql`
        from sqlalchemy.engine import make_url  # noqa: PLC0415
        from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415
    except ImportError as error:
        raise JobError("a source of kind `sql` needs the extra `sql`: pip install 'headrace[sql]'") from error
    try:
        url = make_url(spec.url)
        if url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:"):
            path = access.path(base_folder / str(url.database))
            url = url.set(database=f"file:{path}", query={"mode": "ro", "uri": "true"})
        if password := access.secret(spec.password_ref):
            url = url.set(password=password)
        return create_engine(url)
    except (SQLAlchemyError, ImportError) as error:
        raise JobError(f"the database cannot be opened: {str(error).splitlines()[0][:200]}") from None


def _read_state(path: Path) -> dict[str, Any]:
    """Returns the state of earlier runs; one that cannot be read counts as none, so all rows are read."""
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        return {"runs": int(state["runs"]), "watermark": state["watermark"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {"runs": 0, "watermark": None}


def _plain(value: object) -> Any:
    """Returns a value as JSON holds it; what it cannot hold is left out."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=value.tzinfo or UTC).isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value) if value.is_finite() else None
    if isinstance(value, UUID):
        return str(value)
    return value if isinstance(value, str | int | float | bool) else None
