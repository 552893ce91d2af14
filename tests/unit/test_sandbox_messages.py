"""What goes between the pool and its children, and what is believed of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexers.parsing.options import ParseOptions, SourceFile
from indexers.parsing.parsed import ParsedDocument, ParseFailure, SkippedFile, SourceItem
from indexers.sandbox.frames import HEAD, Json, pack, unpack
from indexers.sandbox.messages import pack_item, pack_request, unpack_item, unpack_request
from indexers.types import Document, TextFormat

FILE = SourceFile(Path("/x/a.jsonl"), "a.jsonl", "file:///x/a.jsonl")
_SCALARS = (
    st.text()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False)
    | st.booleans()
    | st.datetimes(timezones=st.just(UTC))
)
_METADATA = st.dictionaries(st.text(), _SCALARS | st.lists(_SCALARS, max_size=3).map(tuple), max_size=4)
_DOCUMENTS = st.builds(
    Document,
    st.text(),
    st.text(),
    st.text(),
    st.sampled_from(TextFormat),
    _METADATA,
    st.just(f"{FILE.uri}#7"),
)
_ITEMS = (
    st.builds(ParsedDocument, _DOCUMENTS, st.lists(st.text(), max_size=2).map(tuple))
    | st.builds(ParseFailure, st.just("a.jsonl:3"), st.just(FILE.uri), st.text(), st.sampled_from(["bomb", "no_text"]))
    | st.builds(SkippedFile, st.just(FILE.name), st.text())
)


def _sent(message: Json) -> Json:
    frame = pack(message)
    assert HEAD.unpack_from(frame)[0] == len(frame) - HEAD.size
    return unpack(frame[HEAD.size :])


@given(_ITEMS)
def test_item_comes_out_as_it_went_in(item: SourceItem) -> None:
    """Whatever its texts, types of values and times."""
    message = _sent(pack_item(item))
    assert isinstance(message, dict)
    assert unpack_item(message, FILE) == item


def test_request_keeps_names_that_are_no_utf_8() -> None:
    """Lone surrogates, which stand for bytes of a file's name, go through."""
    file = SourceFile(Path("/x/\udcff.md"), "\ufffd.md", "file:///x/%FF.md")
    options = ParseOptions(max_row_bytes=5)
    message = _sent(pack_request(file, options))
    assert isinstance(message, dict)
    assert unpack_request(message) == (file, options)


_GOOD = pack_item(ParsedDocument(Document("1", "t", "text", source_uri=FILE.uri, metadata={"at": datetime.now(UTC)})))


@pytest.mark.parametrize(
    "forged",
    [
        {"id": 1},
        {"text": "\ud800"},
        {"text": None},
        {"format": "pickle"},
        {"uri": "file:///etc/passwd"},
        {"metadata": []},
        {"metadata": {"a": None}},
        {"metadata": {"a": [["b"]]}},
        {"metadata": {"a": {"at": "yesterday"}}},
        {"metadata": {"a": {"at": "2020-01-01T00:00:00"}}},
        {"metadata": {"a": "\udfff"}},
        {"warnings": "x"},
        {"warnings": [1]},
        {"failed": "b.jsonl", "reason": "x", "kind": "x"},
        {"failed": "a.jsonl", "reason": "x", "kind": "x" * 99},
        {"failed": "a.jsonl", "reason": 7, "kind": "x"},
    ],
)
def test_answer_that_no_honest_child_gives_is_refused(forged: dict[str, Json]) -> None:
    """Wrong types, strings that cannot be encoded, and what is about another file."""
    assert isinstance(unpack_item(_GOOD, FILE), ParsedDocument)
    with pytest.raises(ValueError, match=r".+"):
        unpack_item({**_GOOD, **forged}, FILE)


def test_answer_cannot_claim_an_owner_or_notes() -> None:
    """Only what parsers give is taken over."""
    item = unpack_item({**_GOOD, "owner": "another-job", "notes": [{}]}, FILE)
    assert isinstance(item, ParsedDocument)
    assert item.document == replace(item.document, owner="", notes=())


@pytest.mark.parametrize("body", [b"", b"\xff", b"{", b"[" * 100_000, b"9" * 5_000])
def test_frame_that_is_no_json_is_a_value_error(body: bytes) -> None:
    """Too deep and too long a number among them."""
    with pytest.raises(ValueError, match=r".+"):
        unpack(body)
