"""Files of many documents: JSON, JSON lines, CSV, TSV and Parquet."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from indexers.parsing.dispatch import parse_file
from indexers.parsing.options import ParseOptions, SourceFile
from indexers.parsing.parsed import ParsedDocument, ParseFailure, SourceItem
from indexers.types import Document


def _items(folder: Path, name: str, content: bytes | str, options: ParseOptions | None = None) -> list[SourceItem]:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(parse_file(SourceFile(path, name, f"file:///{name}"), options))


def _documents(items: list[SourceItem]) -> list[Document]:
    return [item.document for item in items if isinstance(item, ParsedDocument)]


def _failures(items: list[SourceItem]) -> list[tuple[str, str]]:
    return [(item.path, item.reason) for item in items if isinstance(item, ParseFailure)]


def test_lone_surrogates_are_replaced(tmp_path: Path) -> None:
    """ING-02: the half is replaced, the whole emoji stays, and both lines are documents that UTF-8 can hold."""
    lines = (
        r'{"id":"1","text":"ok \ud83d half and \ud83d\ude00 whole KEEP-2"}' + "\n" + '{"id":"2","text":"second KEEP-3"}'
    )
    items = _items(tmp_path, "a.jsonl", lines)
    assert [document.text for document in _documents(items)] == [
        "ok \ufffd half and \U0001f600 whole KEEP-2",
        "second KEEP-3",
    ]
    assert isinstance(items[0], ParsedDocument)
    assert "lone surrogates" in items[0].warnings[0]


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    """ING-12: the documents have the ids 7 and 8."""
    rows = _items(tmp_path, "a.csv", b"\xef\xbb\xbfid,text\n7,alpha")
    lines = _items(tmp_path, "a.jsonl", b'\xef\xbb\xbf{"id":"8","text":"beta"}')
    assert [document.document_id for document in _documents(rows) + _documents(lines)] == ["7", "8"]


def test_json_fields_become_metadata(tmp_path: Path) -> None:
    """Scalars and lists of scalars are kept, from the row and from its `metadata`; others are named in a warning."""
    line = (
        '{"_id": 5, "title": "A\\nb", "text": "t", "lang": "en", "none": null, "tags": ["x", "y"], "deep": {"a": 1}, '
        '"metadata": {"year": 2021, "draft": false, "score": 1.5}}'
    )
    (item,) = _items(tmp_path, "a.jsonl", line)
    assert isinstance(item, ParsedDocument)
    assert (item.document.document_id, item.document.title) == ("5", "A b")
    metadata = {"lang": "en", "tags": ("x", "y"), "year": 2021, "draft": False, "score": 1.5}
    assert item.document.metadata == metadata
    assert item.warnings == ("fields that are no scalars or lists of them were left out: deep",)
    assert item.document.source_uri == "file:///a.jsonl#1"


def test_rows_without_an_id_are_named_after_their_place(tmp_path: Path) -> None:
    """File and line make the id."""
    items = _items(tmp_path, "a.jsonl", '\n{"text": "x"}\n\n{"text": "y"}\n')
    assert [document.document_id for document in _documents(items)] == ["a.jsonl#2", "a.jsonl#4"]
    rows = _items(tmp_path, "a.csv", 'text\n"one\ntwo"\n\nthree\n')
    assert [document.document_id for document in _documents(rows)] == ["a.csv#2", "a.csv#5"]


def test_a_bad_line_fails_by_itself(tmp_path: Path) -> None:
    """Each line that gives no document is named with its number and the reason."""
    lines = [
        "{",
        '["x"]',
        '{"id": "a"}',
        '{"text": " "}',
        "[" * 100_000,
        '{"text": 1' + "0" * 5000 + "}",
        '{"text": "x"}',
    ]
    items = _items(tmp_path, "a.jsonl", "\n".join(lines))
    assert [path for path, _ in _failures(items)] == [f"a.jsonl:{number}" for number in range(1, 7)]
    assert "is no JSON: " in _failures(items)[0][1]
    assert "no JSON object" in _failures(items)[1][1]
    assert "no text in its field 'text'" in _failures(items)[2][1]
    assert len(_documents(items)) == 1


def test_json_lines_in_utf16_are_a_failure(tmp_path: Path) -> None:
    """The reason says what to do."""
    assert "UTF-8" in _failures(_items(tmp_path, "a.jsonl", '{"text": "x"}'.encode("utf-16")))[0][1]


def test_csv_columns_become_fields(tmp_path: Path) -> None:
    """Known columns in any case, others as metadata, empty fields absent; quotes and line ends in fields."""
    content = 'ID;Title;Text;Year;Lang\r\n1;A;"x; ""y""\r\nz";2021;\r\n2;;t;;en\r\n'
    first, second = _documents(_items(tmp_path, "a.csv", content))
    assert (first.document_id, first.title, first.text, first.metadata) == ("1", "A", 'x; "y"\nz', {"Year": "2021"})
    assert (second.document_id, second.title, second.text, second.metadata) == ("2", "", "t", {"Lang": "en"})


def test_every_kind_of_line_end_ends_a_row(tmp_path: Path) -> None:
    """CR LF, LF and the old CR alone."""
    for end in ("\r\n", "\n", "\r"):
        items = _items(tmp_path, "a.csv", end.join(["id,text", "1,x", "2,y"]))
        assert [document.text for document in _documents(items)] == ["x", "y"]


def test_csv_without_a_text_column_is_a_failure(tmp_path: Path) -> None:
    """The reason lists the columns."""
    assert _failures(_items(tmp_path, "a.csv", "id,body\n1,x")) == [
        ("a.csv", "has no column 'text'; its columns are id, body")
    ]


def test_csv_rows_fail_by_themselves(tmp_path: Path) -> None:
    """Too many fields, no text, a misplaced quote: the row is named, the others are read."""
    items = _items(tmp_path, "a.csv", 'id,text\n1,a,b\n2,\n3,"x"y\n4,fine\n')
    assert [path for path, _ in _failures(items)] == ["a.csv:2", "a.csv:3", "a.csv:4"]
    assert [document.document_id for document in _documents(items)] == ["4"]


def test_an_unclosed_quote_does_not_swallow_the_file_in_silence(tmp_path: Path) -> None:
    """The row is a failure, whether the file ends in it or it outgrows a field."""
    content = 'id,text\n1,fine\n2,"never closed\n' + "3,more\n" * 50
    items = _items(tmp_path, "a.csv", content)
    assert [document.document_id for document in _documents(items)] == ["1"]
    assert _failures(items)[0][0] == "a.csv:3"


def test_a_csv_with_a_header_alone_is_a_failure(tmp_path: Path) -> None:
    """No rows are no documents."""
    assert _failures(_items(tmp_path, "a.csv", "id,text\n")) == [("a.csv", "holds no text")]


def test_a_long_csv_line_is_a_failure(tmp_path: Path) -> None:
    """A row is bounded, though the file is not; what came before is kept."""
    items = _items(tmp_path, "a.csv", "text\nfine\n" + "x" * 200_000, ParseOptions(max_row_bytes=1000))
    assert "longer than 1000" in _failures(items)[0][1]


def test_a_repeated_column_fails_the_file(tmp_path: Path) -> None:
    """No column is lost in silence: the reason names the one that is there twice; ours are alike in any case."""
    reason = "has more than one column 'text'; give each a name of its own"
    assert _failures(_items(tmp_path, "a.csv", "id,text,text\n1,x,y\n")) == [("a.csv", reason)]
    assert _failures(_items(tmp_path, "a.csv", "id,text,Text\n1,x,y\n")) == [("a.csv", reason)]


def test_columns_without_a_name_are_named_after_their_place(tmp_path: Path) -> None:
    """Separators at the end of the header, as spreadsheets leave them, fail nothing and lose nothing."""
    (document,) = _documents(_items(tmp_path, "a.csv", "id,text,,\n1,x,,z\n"))
    assert document.metadata == {"column 4": "z"}


def test_tsv_is_cut_at_tabs_only(tmp_path: Path) -> None:
    """Whatever else the header holds more of."""
    [document] = _documents(_items(tmp_path, "a.tsv", "id\ttext\tsize, in m, l, kg\n1\ta;b, c\t2\n"))
    assert (document.text, document.metadata) == ("a;b, c", {"size, in m, l, kg": "2"})


def test_json_without_a_text_field_fails_as_a_file(tmp_path: Path) -> None:
    """The reason names the fields that there are, once instead of for every object."""
    rows = '[{"name": "V7", "note": "x"}, {"size": 1}]'
    [(path, reason)] = _failures(_items(tmp_path, "a.json", rows))
    assert (path, reason) == ("a.json", "has no field 'text'; its fields are name, note, size")
    [document] = _documents(_items(tmp_path, "a.json", rows[:-14] + "]", ParseOptions(text_fields=("note",))))
    assert document.metadata == {"name": "V7"}


def test_a_guessed_encoding_of_json_is_told_once(tmp_path: Path) -> None:
    """The warning comes with the first object."""
    items = _items(tmp_path, "a.json", '[{"text": "caf\xe9"}, {"text": "b"}]'.encode("latin-1"))
    assert [len(item.warnings) for item in items if isinstance(item, ParsedDocument)] == [1, 0]
    assert _documents(items)[0].text == "caf\xe9"


def test_parquet_without_a_text_column_is_a_failure(tmp_path: Path) -> None:
    """The reason lists the columns, once."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"name": ["V7", "V8"]}), tmp_path / "made.parquet")
    items = _items(tmp_path, "a.parquet", (tmp_path / "made.parquet").read_bytes())
    assert _failures(items) == [("a.parquet", "has no column 'text'; its columns are name")]


def test_parquet_without_its_extra_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason names the extra."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    [(_, reason)] = _failures(_items(tmp_path, "a.parquet", b"PAR1"))
    assert reason == "needs the extra `parquet`: pip install 'headrace[parquet]'"
