"""Questions and documents on the wire become checked values; errors name the field and the bound."""

from __future__ import annotations

import math

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from headrace.v1 import common_pb2, index_pb2, retrieval_pb2
from indexers.errors import InvalidName
from indexers.filters import Exists, Filter, MatchAny, Range
from indexers.types import TextFormat
from retrieval.errors import InvalidRequest
from retrieval.scope import Identity
from retrieval.server.convert.collections import checked_description, fields_from_pb
from retrieval.server.convert.documents import UpsertTally, document_from_pb
from retrieval.server.convert.filters import filter_from_pb
from retrieval.server.convert.metadata import scalar_to_pb
from retrieval.server.convert.requests import generate_request_from_pb, retrieve_request_from_pb
from retrieval.server.convert.texts import checked_texts
from retrieval.settings import Settings
from retrieval.types import Fusion, Mode, RetrieveRequest

CALLER = Identity("a", frozenset({"read"}), "n")


def _converted(message: retrieval_pb2.RetrieveRequest) -> RetrieveRequest:
    return retrieve_request_from_pb(message, CALLER, "r", Settings())


def test_retrieve_request_takes_the_tenant_from_the_credential() -> None:
    """Nothing of the message says whose data is read."""
    request = _converted(retrieval_pb2.RetrieveRequest(collection="docs", query="q"))
    assert (request.tenant, request.collection, request.request_id) == ("a", "docs", "r")
    assert request.filter is None


def test_retrieve_request_keeps_defaults_and_takes_overrides() -> None:
    """An absent option keeps the configured value, a given one replaces it, zero included."""
    options = retrieval_pb2.RetrievalOptions(
        mode=retrieval_pb2.SEARCH_MODE_SPARSE, fusion=retrieval_pb2.FUSION_METHOD_RRF, min_score=0.0, cache=False
    )
    plain = _converted(retrieval_pb2.RetrieveRequest(collection="docs", query="q")).thresholds
    asked = _converted(retrieval_pb2.RetrieveRequest(collection="docs", query="q", top_k=3, options=options)).thresholds
    assert (plain.top_k, plain.mode, plain.min_score, plain.use_cache) == (10, Mode.HYBRID, -1.0, True)
    assert (asked.top_k, asked.mode, asked.fusion, asked.min_score) == (3, Mode.SPARSE, Fusion.RRF, 0.0)
    assert not asked.use_cache


@pytest.mark.parametrize(
    ("query", "bound"),
    [
        ("", "visible"),
        (" \t\n\u2003", "visible"),
        ("\u200b\u2060", "visible"),
        ("a\x00b", "NUL"),
        ("x" * 32_769, "32768 bytes"),
        ("é" * 20_000, "32768 bytes"),
    ],
)
def test_retrieve_request_refuses_bad_queries(query: str, bound: str) -> None:
    """A question that shows nothing, holds NUL or is too long is refused with the field and the bound."""
    with pytest.raises(InvalidRequest) as refused:
        _converted(retrieval_pb2.RetrieveRequest(collection="docs", query=query))
    assert refused.value.field == "query"
    assert bound in refused.value.bound


@pytest.mark.parametrize("top_k", [0, 201, 10**9, 2**32 - 1])
def test_retrieve_request_bounds_top_k(top_k: int) -> None:
    """top_k outside the configured bounds is refused; -1 arrives as 2^32 - 1."""
    with pytest.raises(InvalidRequest) as refused:
        _converted(retrieval_pb2.RetrieveRequest(collection="docs", query="q", top_k=top_k))
    assert (refused.value.field, refused.value.bound) == ("top_k", "1..200")


@pytest.mark.parametrize("name", ["", "Docs", "a/b", "../a", "a" * 64, "é"])
def test_retrieve_request_refuses_bad_names(name: str) -> None:
    """A name that cannot be a collection's is refused before it becomes a path."""
    with pytest.raises(InvalidName) as refused:
        _converted(retrieval_pb2.RetrieveRequest(collection=name, query="q"))
    assert refused.value.field == "collection"


def test_retrieve_request_refuses_unknown_enum_numbers() -> None:
    """A number that a newer client may know is refused, not taken for the default."""
    message = retrieval_pb2.RetrieveRequest(collection="docs", query="q")
    message.options.MergeFromString(b"\x08\x63")  # mode = 99
    with pytest.raises(InvalidRequest) as refused:
        _converted(message)
    assert refused.value.field == "options.mode"


def test_generate_request_resolves_defaults_and_names_nested_fields() -> None:
    """What a request leaves out comes from the settings; errors of the inner message carry its path."""
    inner = retrieval_pb2.RetrieveRequest(collection="docs", query="q")
    request = generate_request_from_pb(retrieval_pb2.GenerateRequest(retrieve=inner), CALLER, "r", Settings())
    assert (request.backend, request.max_output_tokens, request.temperature) == ("extractive", 512, 0.0)
    inner.query = ""
    with pytest.raises(InvalidRequest) as refused:
        generate_request_from_pb(retrieval_pb2.GenerateRequest(retrieve=inner), CALLER, "r", Settings())
    assert refused.value.field == "retrieve.query"


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (retrieval_pb2.GenerateRequest(max_output_tokens=0), "max_output_tokens"),
        (retrieval_pb2.GenerateRequest(temperature=2.5), "temperature"),
        (retrieval_pb2.GenerateRequest(temperature=math.nan), "temperature"),
    ],
)
def test_generate_request_bounds_output(message: retrieval_pb2.GenerateRequest, field: str) -> None:
    """Output tokens and temperature have bounds."""
    message.retrieve.CopyFrom(retrieval_pb2.RetrieveRequest(collection="docs", query="q"))
    with pytest.raises(InvalidRequest) as refused:
        generate_request_from_pb(message, CALLER, "r", Settings())
    assert refused.value.field == field


def test_filter_from_pb_keeps_the_three_kinds_apart() -> None:
    """A filter without conditions arrives as one, so that it can be refused; bounds that are zero are kept."""
    assert filter_from_pb(common_pb2.Filter()) == Filter()
    number = common_pb2.Condition(number_range=common_pb2.NumberRange(field="year", gte=0.0))
    exists = common_pb2.Condition(exists=common_pb2.Exists(field="x"))
    match = common_pb2.Condition(match_any=common_pb2.MatchAny(field="f", values=[scalar_to_pb(True)]))
    nested = common_pb2.Condition(filter=common_pb2.Filter(must_not=[match]))
    assert filter_from_pb(common_pb2.Filter(must=[number], should=[exists, nested])) == Filter(
        must=(Range("year", gte=0.0),), should=(Exists("x"), Filter(must_not=(MatchAny("f", (True,)),)))
    )


@pytest.mark.parametrize(
    ("condition", "field"),
    [
        (common_pb2.Condition(), "filter.must[0]"),
        (
            common_pb2.Condition(match_any=common_pb2.MatchAny(field="f", values=[common_pb2.MetadataValue()])),
            "filter.must[0].match_any.values[0]",
        ),
        (
            common_pb2.Condition(datetime_range=common_pb2.DatetimeRange(field="f", gt=Timestamp(seconds=10**15))),
            "filter.must[0].datetime_range.gt",
        ),
    ],
)
def test_filter_from_pb_names_the_bad_condition(condition: common_pb2.Condition, field: str) -> None:
    """A condition that says nothing usable is named by its path."""
    with pytest.raises(InvalidRequest) as refused:
        filter_from_pb(common_pb2.Filter(must=[condition]))
    assert refused.value.field == field


def test_document_from_pb_names_metadata_by_path() -> None:
    """A bad metadata value is named with the document's position."""
    lists = common_pb2.MetadataValue(
        list_value=common_pb2.MetadataList(
            values=[scalar_to_pb(1), common_pb2.MetadataValue(list_value=common_pb2.MetadataList())]
        )
    )
    for value, field in (
        (common_pb2.MetadataValue(float_value=math.inf), "documents[3].metadata.year"),
        (common_pb2.MetadataValue(), "documents[3].metadata.year"),
        (lists, "documents[3].metadata.year[1]"),
    ):
        with pytest.raises(InvalidRequest) as refused:
            document_from_pb(index_pb2.Document(id="a", text="t", metadata={"year": value}), "documents[3]")
        assert refused.value.field == field


def test_document_from_pb_takes_plain_as_default_and_refuses_unknown_formats() -> None:
    """A format that is not given is plain; a number that is not declared is refused."""
    assert document_from_pb(index_pb2.Document(id="a", text="t"), "d").format is TextFormat.PLAIN
    unknown = index_pb2.Document.FromString(b"\x20\x63")
    with pytest.raises(InvalidRequest, match="format"):
        document_from_pb(unknown, "d")


def test_fields_from_pb_refuses_unspecified_types() -> None:
    """A declared field has a type."""
    with pytest.raises(InvalidRequest) as refused:
        fields_from_pb({"year": common_pb2.FIELD_TYPE_UNSPECIFIED})
    assert refused.value.field == "fields.year"
    with pytest.raises(InvalidRequest, match="description"):
        checked_description("d" * 1025)


@pytest.mark.parametrize(("texts", "field"), [([], "texts"), (["a"] * 257, "texts"), (["a", " "], "texts[1]")])
def test_checked_texts_bounds_number_and_content(texts: list[str], field: str) -> None:
    """None, too many, or one that shows nothing is refused by its position."""
    with pytest.raises(InvalidRequest) as refused:
        checked_texts(texts, "texts", 1024)
    assert refused.value.field == field


def test_checked_texts_bounds_bytes_in_all() -> None:
    """The bound is on bytes, not on characters."""
    assert checked_texts(["é" * 500], "texts", 1000) == ["é" * 500]
    with pytest.raises(InvalidRequest, match="1002"):
        checked_texts(["é" * 501], "texts", 1000)


def test_upsert_tally_names_a_hundred_and_counts_all() -> None:
    """Lists in replies are bounded, counts are not."""
    from indexers.reports import DocumentOutcome, DocumentStatus
    from indexers.types import Epoch

    tally = UpsertTally()
    tally.add(DocumentOutcome(str(number), DocumentStatus.FAILED, reason="r") for number in range(150))
    tally.add([DocumentOutcome("a", DocumentStatus.WRITTEN, chunk_count=3, warnings=("w",))])
    result = tally.result(Epoch(1, 2))
    assert (result.failed, len(result.failures), result.indexed, result.chunks) == (150, 100, 1, 3)
    assert result.warnings[0].reason == "w"
    assert result.epoch.write_sequence == 2
