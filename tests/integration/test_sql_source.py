"""Rows of a database as a source: in blocks that stay what they are, by a watermark, and never more than is allowed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexers.errors import ItemGone, ItemUnreadable, SourceUnavailable
from indexers.jobs.running.share import parse_options
from indexers.jobs.spec import JobSpec
from indexers.parsing.dispatch import parse_file
from indexers.parsing.parsed import ParsedDocument, ParseFailure, SkippedFile
from indexers.sources.access import SourceAccess
from indexers.sources.source import Deletes, ItemRef, Scanned
from indexers.sources.spec import SqlSource as SqlSpec
from indexers.sources.sql import SqlSource
from indexers.sources.sql_values import is_true, kept, plain, read_back
from indexers.types import TextFormat

OPEN: list[SqlSource] = []


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    """Closes the sources that a test has opened."""
    yield
    while OPEN:
        OPEN.pop().close()


class Table:
    """A table `pages` of a file of SQLite's."""

    def __init__(self, path: Path, columns: str = "id INTEGER, text TEXT, at TEXT, gone INTEGER DEFAULT 0") -> None:
        self.path = path
        self.run(f"CREATE TABLE pages ({columns})")

    def run(self, statement: str, *rows: tuple[object, ...]) -> None:
        """Runs a statement, for each row if there are some."""
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.executemany(statement, rows) if rows else connection.execute(statement)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Has 40 rows of one moment."""
    made = Table(tmp_path / "pages #1.sqlite")
    made.run("INSERT INTO pages (id, text, at) VALUES (?, ?, '2026-01-01')", *[(n, f"text {n}") for n in range(40)])
    return made


def sql(folder: Path, access: SourceAccess | None = None, scratch: str = "scratch", **changed: object) -> SqlSource:
    """Opens the database as a source."""
    spec = {"kind": "sql", "url": "sqlite:///pages #1.sqlite", "query": "SELECT * FROM pages", "rows_per_read": 8}
    OPEN.append(
        SqlSource(SqlSpec.model_validate({**spec, **changed}), folder, access or SourceAccess(), folder / scratch)
    )
    return OPEN[-1]


def watched(folder: Path, scratch: str = "scratch", **changed: object) -> SqlSource:
    """Opens it with a watermark."""
    return sql(folder, None, scratch, watermark_column="at", deleted_column="gone", **changed)


def refs(found: list[Scanned]) -> list[ItemRef]:
    """Returns the items."""
    return [one for one in found if isinstance(one, ItemRef)]


def rows_of(source: SqlSource, found: list[ItemRef]) -> list[dict[str, object]]:
    """Reads all rows of the items."""
    rows = []
    for ref in found:
        with source.open(ref) as file:
            rows += [json.loads(line) for line in file.path.read_text(encoding="utf-8").splitlines()]
    return rows


def test_all_rows_come_once_in_blocks(tmp_path: Path, table: Table) -> None:
    """Each in one block; a second scan gives equal refs."""
    source = sql(tmp_path)
    found = refs(list(source.scan()))
    assert len(found) > 1
    rows = rows_of(source, found)
    assert [row["id"] for row in rows] == [str(n) for n in range(40)]
    assert rows[7] == {"id": "7", "title": "", "text": "text 7", "metadata": {"at": "2026-01-01"}} | rows[7]
    assert refs(list(source.scan())) == found
    assert source.complete


@pytest.mark.parametrize(
    "statement", ["DELETE FROM pages WHERE id = 20", "INSERT INTO pages (id, text) VALUES (-1, 'n')"]
)
def test_row_that_comes_or_goes_changes_few_blocks(tmp_path: Path, table: Table, statement: str) -> None:
    """Blocks end where ids say so, not after so many rows, so that a change does not run through all of them."""
    source = sql(tmp_path)
    before = set(refs(list(source.scan())))
    table.run(statement)
    after = set(refs(list(source.scan())))
    assert 1 <= len(after - before) <= 2
    assert len(before & after) >= len(before) - 2


def test_rows_at_and_above_the_watermark_are_read(tmp_path: Path, table: Table) -> None:
    """After the first whole run only those; rows with just the last value come again, since more may have come."""
    source = watched(tmp_path)
    assert source.complete
    assert len(rows_of(source, refs(list(source.scan())))) == 40
    source.commit()
    table.run("UPDATE pages SET at = '2026-01-02' WHERE id IN (3, 30)")
    table.run("DELETE FROM pages WHERE id BETWEEN 10 AND 20")
    source = watched(tmp_path)
    assert not source.complete
    assert len(rows_of(source, refs(list(source.scan())))) == 29
    source.commit()
    source = watched(tmp_path)
    assert [row["id"] for row in rows_of(source, refs(list(source.scan())))] == ["3", "30"]
    table.run("INSERT INTO pages (id, text, at) VALUES (41, 'at the same moment', '2026-01-02')")
    assert [row["id"] for row in rows_of(source, refs(list(source.scan())))] == ["3", "30", "41"]


def test_watermark_moves_only_with_the_commit(tmp_path: Path, table: Table) -> None:
    """A run that failed reads the same rows again; all rows are read every so many runs, and for another query."""
    for expected in (True, True):
        source = watched(tmp_path, full_every=2)
        assert source.complete is expected
        list(source.scan())
    source.commit()
    assert not watched(tmp_path, full_every=2).complete
    source = watched(tmp_path, full_every=2)
    list(source.scan())
    source.commit()
    assert watched(tmp_path, full_every=2).complete
    source.commit()
    assert watched(tmp_path, full_every=2, query="SELECT * FROM pages WHERE id > 3").complete


def test_state_that_is_damaged_reads_all_rows(tmp_path: Path, table: Table) -> None:
    """Nothing is lost by it."""
    source = watched(tmp_path)
    list(source.scan())
    source.commit()
    for damaged in ("{", "[]", '{"runs": 1, "watermark": "nonsense", "query": ""}'):
        (tmp_path / "scratch" / "state.json").write_text(damaged, encoding="utf-8")
        assert watched(tmp_path).complete


def test_rows_that_are_marked_as_deleted_are_named(tmp_path: Path, table: Table) -> None:
    """They are no documents, and the runner hears of them also when only changes are read."""
    source = watched(tmp_path)
    list(source.scan())
    source.commit()
    table.run("UPDATE pages SET gone = 1, at = '2026-01-02' WHERE id = 5")
    source = watched(tmp_path)
    assert isinstance(source, Deletes)
    rows = rows_of(source, refs(list(source.scan())))
    assert "5" not in [row["id"] for row in rows]
    assert list(source.deleted_ids()) == ["5"]


def test_another_machine_reads_the_same_rows(tmp_path: Path, table: Table) -> None:
    """Workers that help have no blocks of the scan; they ask the database, for whole blocks and for changes."""
    leads = watched(tmp_path)
    found = refs(list(leads.scan()))
    helps = watched(tmp_path, "elsewhere")
    assert rows_of(helps, found) == rows_of(leads, found)
    leads.commit()
    table.run("UPDATE pages SET at = '2026-01-02' WHERE id % 5 = 0")
    table.run("UPDATE pages SET at = '2025-01-02' WHERE id % 5 = 1")
    leads = watched(tmp_path)
    found = refs(list(leads.scan()))
    assert rows_of(helps, found) == rows_of(leads, found)
    table.run("DELETE FROM pages")
    with pytest.raises(ItemGone):
        rows_of(helps, found)


def test_rows_beside_a_deleted_first_one_are_still_read_elsewhere(tmp_path: Path, table: Table) -> None:
    """The block is named after a row that is gone by now; the others of it are not taken for deleted."""
    leads, helps = sql(tmp_path), sql(tmp_path, scratch="elsewhere")
    ref = next(ref for ref in refs(list(leads.scan())) if len(rows_of(leads, [ref])) > 1)
    first, *others = rows_of(leads, [ref])
    table.run(f"DELETE FROM pages WHERE id = {first['id']}")
    assert rows_of(helps, [ref]) == others


def test_closing_leaves_the_blocks_of_others(tmp_path: Path, table: Table) -> None:
    """A worker that helped on the same machine and is through does not end the run of the one that leads."""
    leads, helps = sql(tmp_path), sql(tmp_path)
    found = refs(list(leads.scan()))
    rows_of(helps, found[:1])
    helps.close()
    assert list((tmp_path / "scratch" / "blocks").iterdir())
    assert len(rows_of(leads, found)) == 40


def test_rows_without_id_or_text_have_their_reasons(tmp_path: Path) -> None:
    """And so has an id that comes twice."""
    table = Table(tmp_path / "pages #1.sqlite")
    table.run("INSERT INTO pages (id, text) VALUES (?, ?)", (None, "x"), (1, None), (2, " "), (3, "a"), (3, "b"))
    found = list(sql(tmp_path).scan())
    assert [one.path for one in found if isinstance(one, SkippedFile)] == ["row 1", "row 2"]
    reasons = [one.reason for one in found if isinstance(one, ParseFailure)]
    assert sorted(reasons) == ["a row has no id", "two rows have the id 3"]


@pytest.mark.parametrize(
    ("query", "changed", "reason"),
    [
        ("SELECT id FROM pages", {}, "gives no column 'text'"),
        ("SELECT id, x'00ff' AS text FROM pages", {}, "gives bytes in column 'text'"),
        ("SELECT id, text, x'00ff' AS image FROM pages", {}, "gives bytes in column 'image'"),
        ("SELECT id, text FROM pages", {"title_column": "title"}, "gives no column 'title'"),
    ],
)
def test_query_that_cannot_give_documents_fails_as_a_whole(
    tmp_path: Path, table: Table, query: str, changed: dict[str, object], reason: str
) -> None:
    """It says which column is wrong, and nothing is taken for deleted."""
    with pytest.raises(ItemUnreadable, match=reason):
        list(sql(tmp_path, None, "scratch", query=query, **changed).scan())


def test_query_with_colons_percent_signs_and_semicolon_runs_as_it_is(tmp_path: Path, table: Table) -> None:
    """It is a subquery of ours, but nothing in it is taken for a parameter."""
    query = "SELECT id, '10:30 \\:x 5%' AS text FROM pages WHERE text LIKE '%9' ;"
    source = sql(tmp_path, None, query=query)
    rows = rows_of(source, refs(list(source.scan())))
    assert [row["text"] for row in rows] == ["10:30 \\:x 5%"] * 4


def test_database_is_only_read(tmp_path: Path, table: Table) -> None:
    """A query that writes fails, as does one that never ends."""
    for query in ("DELETE FROM pages RETURNING *", "SELECT 1) ; DROP TABLE pages; --"):
        with pytest.raises(SourceUnavailable):
            list(sql(tmp_path, None, query=query).scan())
    endless = (
        "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT max(id) AS id, 'x' AS text FROM n"
    )
    with pytest.raises(SourceUnavailable):
        list(sql(tmp_path, None, query=endless, timeout_s=0.05).scan())
    assert len(rows_of(sql(tmp_path), refs(list(sql(tmp_path).scan())))) == 40


def test_statement_is_portable() -> None:
    """For PostgreSQL the query is a subquery with bound values, and `::` stays a cast."""
    from sqlalchemy.dialects import postgresql

    spec = {
        "kind": "sql",
        "url": "sqlite://",
        "query": "SELECT id, body::text AS text, at FROM p",
        "watermark_column": "at",
    }
    source = SqlSource(SqlSpec.model_validate(spec), Path(), SourceAccess(), Path("nowhere"))
    compiled = source.statement(watermark=datetime(2026, 1, 1, tzinfo=UTC), first=7).compile(
        dialect=postgresql.dialect()  # type: ignore[no-untyped-call]
    )
    source.close()
    assert " ".join(str(compiled).split()) == (
        "SELECT * FROM (SELECT id, body::text AS text, at FROM p) AS rows_of_job "
        "WHERE at >= %(watermark)s::TIMESTAMP WITH TIME ZONE AND id >= %(first_id)s::INTEGER ORDER BY id"
    )


@pytest.mark.parametrize(
    ("url", "password", "reason"),
    [
        ("postgresql://reader:hush@db.example/app", "", "holds a password"),
        ("postgresql://reader@127.0.0.1/app", "env:DB", "private"),
        ("postgresql://reader@8.8.8.8/app", "", "own credentials"),
        ("postgresql://reader@8.8.8.8/app?host=/var/run/postgresql", "env:DB", "options"),
        ("postgresql:///app", "env:DB", "host"),
        ("sqlite:////etc/passwd", "", "outside"),
    ],
)
def test_submitted_job_reaches_only_what_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, password: str, reason: str
) -> None:
    """Neither the server's sockets and files nor its credentials, and no password is repeated."""
    monkeypatch.setenv("DB", "hush")
    access = SourceAccess((tmp_path,), frozenset({"env:DB"}), private_addresses=False)
    with pytest.raises(ItemUnreadable, match=reason) as refused:
        sql(tmp_path, access, url=url, password_ref=password)
    assert "hush" not in str(refused.value)


def test_columns_and_format_are_those_of_the_source(tmp_path: Path, table: Table) -> None:
    """What a job says of fields in files of rows is not of its query, whose texts may be Markdown."""
    source = sql(
        tmp_path, None, query="SELECT id, '# Head' || char(10) || text AS body, at FROM pages", text_columns=["body"]
    )
    job = JobSpec.model_validate(
        {
            "name": "pages",
            "collection": "pages",
            "source": {"kind": "sql", "url": "sqlite://", "query": "SELECT 1", "format": "markdown"},
            "parsing": {"id_field": "key", "text_fields": ["other"]},
        }
    )
    [ref, *_] = refs(list(source.scan()))
    with source.open(ref) as file:
        parsed = next(iter(parse_file(file, parse_options(job))))
    assert isinstance(parsed, ParsedDocument)
    document = parsed.document
    assert (document.document_id, document.text, document.format) == ("0", "# Head\ntext 0", TextFormat.MARKDOWN)
    assert document.metadata == {"at": "2026-01-01"}


_VALUES = st.one_of(
    st.text(),
    st.integers(),
    st.floats(allow_nan=False),
    st.datetimes(),
    st.datetimes(timezones=st.just(timezone(timedelta(hours=2)))),
    st.dates(),
    st.decimals(allow_nan=False),
    st.uuids(),
    st.binary(),
)


@given(_VALUES)
def test_kept_value_is_read_back_with_its_type(value: object) -> None:
    """Whatever a watermark or an id is, comparing with it again means the same."""
    again = read_back(kept(value))
    assert (again, type(again)) == (value, type(value))


def test_values_become_what_json_holds() -> None:
    """Times as ISO 8601, numbers as numbers, and nothing for what is none."""
    moment = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    assert plain(moment) == plain(moment.replace(tzinfo=None)) == "2026-01-02T03:04:00+00:00"
    assert [plain(Decimal("2.50")), plain(Decimal("1E+2")), plain(Decimal("NaN")), plain(float("inf"))] == [
        2.5,
        100,
        None,
        None,
    ]
    assert plain(UUID(int=1)) == "00000000-0000-0000-0000-000000000001"
    assert plain(["a", None, 2]) == ["a", 2]


@pytest.mark.parametrize("false", [None, False, 0, 0.0, "0", "f", "False", " no ", "", b"\0", b""])
def test_column_of_truth_is_read_however_it_is_stored(false: object) -> None:
    """Text and bytes that mean no are not taken for yes, or all rows would be deleted."""
    assert not is_true(false)
    assert all(is_true(value) for value in (True, 1, "1", "t", "yes", b"\1"))
