"""Whatever a file holds, it gives documents that can be stored, or reasons; never an exception."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from indexers.documents import check_document
from indexers.errors import InvalidInput
from indexers.parsing.dispatch import SUFFIXES, parse_file
from indexers.parsing.options import SourceFile
from indexers.parsing.parsed import ParsedDocument, SourceItem
from tests.fakes.pdf import pdf_bytes

HTML = [
    "<p>",
    "</p>",
    "<ul>",
    "<li>",
    "</ul>",
    "<table>",
    "<tr>",
    "<td>",
    "<h1>",
    "<pre>",
    "<a>",
    "<code>",
    "</",
    "&lt;",
]
RST = [
    ".. note::",
    "* ",
    "`",
    "====",
    "----",
    "::",
    ".. x::\n\n   ",
    "\n   :a: b",
    "[1]_",
    "+--+",
    "|",
    "#",
    "```",
    "   ",
]
ROWS = ['"', ",", ";", "{", "}", '{"text":"', "text"]
CHARACTERS = ["x", "   ", "&lt;", "word", "é", "漢", "\U0001f600", "\n", "\n\n", "\f", "\r", "\x00", "\u2028"]
PIECES = st.sampled_from([*HTML, *RST, *ROWS, *CHARACTERS])
CONTENTS = st.one_of(
    st.binary(max_size=200),
    st.lists(PIECES, max_size=60).map(lambda pieces: "".join(pieces).encode()),
    st.text(max_size=100).map(lambda text: text.encode("utf-16")),
)


def _items(suffix: str, content: bytes) -> list[SourceItem]:
    with TemporaryDirectory() as folder:
        path = Path(folder, f"a{suffix}")
        path.write_bytes(content)
        return list(parse_file(SourceFile(path, path.name, path.as_uri())))


@settings(max_examples=400, deadline=None)
@given(suffix=st.sampled_from(sorted(SUFFIXES)), content=CONTENTS)
def test_any_file_gives_documents_or_reasons(suffix: str, content: bytes) -> None:
    """There is always at least one item, and every document has text that UTF-8 can hold."""
    items = _items(suffix, content)
    assert items
    for item in items:
        if isinstance(item, ParsedDocument):
            assert item.document.text.strip()
            assert "\x00" not in item.document.text
            item.document.text.encode()


@settings(max_examples=60, deadline=None)
@given(start=st.integers(0, 900), length=st.integers(0, 60), noise=st.binary(max_size=20))
def test_any_damage_to_a_pdf_gives_a_document_or_a_reason(start: int, length: int, noise: bytes) -> None:
    """Bytes that are lost or changed anywhere are survived."""
    content = pdf_bytes(["first page", "second page"])
    assert _items(".pdf", content[:start] + noise + content[start + length :])


KEYS = ["id", "_id", "title", "text", "metadata", "x", "\ud800"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(
    row=st.dictionaries(st.sampled_from(["id", "_id", "title", "text", "metadata", "x", "\ud800"]), JSON, max_size=6)
)
def test_any_json_row_gives_a_document_or_a_reason(row: dict[str, object]) -> None:
    """What a row's fields hold is kept, left out with a warning, or refused by name."""
    (item,) = _items(".jsonl", json.dumps(row).encode())
    if isinstance(item, ParsedDocument):
        try:
            check_document(item.document, {})
        except InvalidInput as error:
            assert error.field  # noqa: PT017 - either way is fine
