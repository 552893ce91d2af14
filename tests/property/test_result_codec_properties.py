"""Results as bytes: what is written comes back, and what was not written by us is no result."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from encoders.types import EncodedQuery
from indexers.types import Epoch, Passage
from retrieval.caching.result_codec import decode, encode
from retrieval.types import Citation, Context, Dropped, DropReason, Found, Hit, ScoreParts

texts = st.text(max_size=20)  # lone surrogates are among them
numbers = st.integers(0, 2**40)
floats = st.floats(allow_nan=False, allow_infinity=False)
zones = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45)), timezone(-timedelta(hours=3))])
times = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=zones)  # noqa: DTZ001 - zones are added
scalars = st.one_of(texts, st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.booleans(), times)
metadata = st.dictionaries(texts, st.one_of(scalars, st.lists(scalars, max_size=4).map(tuple)), max_size=4)
passages = st.builds(
    Passage,
    texts, texts, texts, st.lists(texts, max_size=3).map(tuple), texts, numbers, numbers, numbers, numbers, metadata,
    source_uri=texts, token_count=numbers, header=texts, header_token_count=numbers,
)  # fmt: skip
scores = st.none() | floats
hits = st.builds(Hit, passages, floats, st.builds(ScoreParts, scores, scores, scores, scores, scores))


@st.composite
def results(draw: st.DrawFn) -> Found:
    """Results whose citations are hits' passages and merged ones."""
    found = draw(st.lists(hits, max_size=4))
    own = [hit.passage for hit in found]
    sources = st.one_of(st.sampled_from(own), passages) if own else passages
    citations = st.lists(st.builds(Citation, numbers, sources, st.lists(texts, max_size=3).map(tuple)), max_size=3)
    dropped = st.lists(st.builds(Dropped, texts, st.sampled_from(DropReason)), max_size=3)
    context = st.builds(Context, texts, numbers, numbers, texts, citations.map(tuple), dropped.map(tuple))
    epochs = st.builds(Epoch, numbers, numbers)
    degraded = st.lists(texts, max_size=2).map(tuple)
    return Found(
        tuple(found), draw(context), draw(epochs), query_tokens=draw(numbers), query_truncated=draw(st.booleans()),
        candidates=draw(numbers), degraded=draw(degraded), made_at_s=draw(floats),
    )  # fmt: skip


def _types(value: object) -> object:
    return [_types(one) for one in value] if isinstance(value, tuple) else type(value)


@given(results())
def test_codec_round_trip(found: Found) -> None:
    """A result comes back equal, its metadata with the very types: True is not 1, nor 1 the same as 1.0."""
    read = decode(encode(found))
    assert read == found
    for mine, its in zip(found.hits, read.hits, strict=True):
        types = {name: _types(value) for name, value in mine.passage.metadata.items()}
        assert {name: _types(value) for name, value in its.passage.metadata.items()} == types


@given(results())
def test_codec_shares_passages(found: Found) -> None:
    """A citation of a hit's passage is that passage again, and takes no room of its own."""
    read = decode(encode(found))
    assert read is not None
    own = {id(hit.passage): place for place, hit in enumerate(found.hits)}
    for mine, its in zip(found.context.citations, read.context.citations, strict=True):
        if (place := own.get(id(mine.passage))) is not None:
            assert its.passage is read.hits[place].passage


def test_codec_leaves_out_what_is_of_one_process() -> None:
    """Vectors, the deadline and the index's own numbers stay behind; scores of NumPy become plain ones."""
    passage = Passage("c", "d", "", (), "text", 0, 4, 0, 0, {}, row=7)
    vector = np.ones(2, dtype=np.float32)
    hit = Hit(passage, np.float32(0.5), ScoreParts(dense=np.float32(0.25)))  # type: ignore[arg-type]
    found = Found((hit,), Context("", 0, 0, "t"), Epoch(1, 1), EncodedQuery(vector, None), deadline_ns=5)
    plain = Hit(replace(passage, row=0), 0.5, ScoreParts(dense=0.25))
    assert decode(encode(found)) == Found((plain,), found.context, found.epoch)


@given(st.binary(max_size=200))
def test_codec_takes_no_garbage(stored: bytes) -> None:
    """Bytes that are no result give None, whatever they are."""
    assert decode(stored) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def _spoilt(draw: st.DrawFn) -> bytes:
    """A written result with one value replaced, anywhere in it."""
    spoilt = json.loads(encode(draw(results())).decode("utf-8", "surrogatepass"))
    inner: Any = spoilt
    while True:
        places = list(inner) if isinstance(inner, dict) else range(len(inner))
        place = draw(st.sampled_from(places))
        if not (isinstance(inner[place], dict | list) and inner[place] and draw(st.booleans())):
            inner[place] = draw(JSON)
            return json.dumps(spoilt, ensure_ascii=False).encode("utf-8", "surrogatepass")
        inner = inner[place]


@given(_spoilt())
def test_codec_takes_no_other_values(stored: bytes) -> None:
    """With a value replaced by another, what is read is nothing or a whole result that can be written again."""
    read = decode(stored)
    assert read is None or isinstance(decode(encode(read)), Found)


@pytest.mark.parametrize("stored", [b"", b"null", b"[]", b"{}", b'{"format":1}', b'{"format":2}', b"[" * 100_000])
def test_codec_takes_no_other_json(stored: bytes) -> None:
    """Well-formed JSON that is no result, of another format, or too deep to be read gives None."""
    assert decode(stored) is None
