"""The adapters without a server: what they load, and which filters they refuse."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from typing import Any

import pytest

from headrace.v1 import common_pb2 as common
from headrace.v1 import retrieval_pb2 as retrieval
from retrieval.adapters import HeadraceError, SearchOptions
from retrieval.adapters.asking import search_request
from retrieval.adapters.filters import MAX_DEPTH
from tests.fakes.frameworks import QUESTION

_HEAVY = ("langchain_core", "llama_index", "haystack", "pydantic", "numpy", "onnxruntime", "qdrant_client", "openai")


def test_adapters_import_loads_no_framework() -> None:
    """`import retrieval.adapters` loads no framework, no model, no store."""
    program = f"import sys, retrieval.adapters; print([name for name in {_HEAVY!r} if name in sys.modules])"
    paths = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=paths)
    assert found.stdout.strip() == "[]"


def test_search_request_leaves_out_what_is_not_given() -> None:
    """The server's settings hold for what is None; a false option is sent."""
    plain = search_request("docs", QUESTION, top_k=None, filters=(None, None), options=None)
    assert plain == retrieval.RetrieveRequest(collection="docs", query=QUESTION)
    options = SearchOptions(mode="dense", fusion="rrf", rerank=False)
    asked = search_request("docs", "q", top_k=3, filters=(None, "year > 1"), options=options)
    assert asked.options.mode == retrieval.SEARCH_MODE_DENSE
    assert asked.options.fusion == retrieval.FUSION_METHOD_RRF
    assert asked.options.HasField("rerank")
    assert not asked.options.HasField("candidates")
    assert len(asked.filter.must) == 1


def test_search_request_joins_filters() -> None:
    """Of two filters both must hold, whatever each of them joins by."""
    asked = search_request("docs", "q", top_k=None, filters=("a = 1 OR b = 2", "c = 3"), options=None)
    first, second = asked.filter.must
    assert len(first.filter.should) == 2
    assert second.filter.must[0].match_any.field == "c"


def _where(operator: object, value: object, field: object = "meta.year") -> dict[str, Any]:
    return {"field": field, "operator": operator, "value": value}


def _nested(levels: int) -> dict[str, Any]:
    filters = _where("==", 1)
    for _ in range(levels):
        filters = {"operator": "AND", "conditions": [filters]}
    return filters


_REFUSED: list[tuple[dict[str, Any], str]] = [
    (_where("like", "a%"), "filters.operator"),
    (_where("IN", ["a"]), "filters.operator"),
    (_where(">", None), "filters.value"),
    (_where(">", True), "filters.value"),
    (_where(">", "soon"), "filters.value"),
    (_where(">", [1]), "filters.value"),
    (_where(">", float("nan")), "filters.value"),
    (_where(">", 2**53 + 1), "filters.value"),
    (_where("in", None), "filters.value"),
    (_where("in", "abc"), "filters.value"),
    (_where("in", [None]), "filters.value"),
    (_where("==", [1, 2]), "filters.value"),
    (_where("==", {"a": 1}), "filters.value"),
    (_where("==", float("inf")), "filters.value"),
    (_where("==", 2**63), "filters.value"),
    (_where("==", date(2024, 1, 1)), "filters.value"),
    (_where("==", "x", field="content"), "filters.field"),
    (_where("==", "x", field=7), "filters.field"),
    ({"field": "meta.year", "value": 1}, "filters"),
    ({"field": "meta.year", "operator": "=="}, "filters"),
    ({"conditions": [_where("==", 1)]}, "filters"),
    ({"operator": "AND"}, "filters"),
    ({"operator": "XOR", "conditions": [_where("==", 1)]}, "filters.operator"),
    ({"operator": "AND", "conditions": []}, "filters.conditions"),
    ({"operator": "AND", "conditions": "all"}, "filters.conditions"),
    ({"operator": "AND", "conditions": [_where("==", 1), "x"]}, "filters.conditions[1]"),
    ({"operator": "OR", "conditions": [_where("==", 1), _where("~", 1)]}, "filters.conditions[1].operator"),
    (_nested(MAX_DEPTH + 1), "filters" + ".conditions[0]" * MAX_DEPTH + ".conditions"),
    (_nested(5_000), "filters" + ".conditions[0]" * MAX_DEPTH + ".conditions"),
]


@pytest.mark.parametrize(("filters", "place"), _REFUSED)
def test_haystack_filter_that_cannot_be_asked_is_refused(filters: dict[str, Any], place: str) -> None:
    """The place is named, and so is what may stand there."""
    pytest.importorskip("haystack")
    from retrieval.adapters.haystack import HeadraceRetriever

    with pytest.raises(HeadraceError) as refused:
        HeadraceRetriever("docs", filters=filters)
    assert (refused.value.code, refused.value.reason) == ("INVALID_ARGUMENT", "INVALID_INPUT")
    assert refused.value.facts["field"] == place
    assert refused.value.facts["bound"]
    assert len(str(refused.value)) < 500


def test_haystack_filter_becomes_a_message() -> None:
    """Kinds of values stay apart on the wire."""
    pytest.importorskip("haystack")
    from retrieval.adapters.haystack import metadata_filter

    found = metadata_filter({"operator": "AND", "conditions": [_where("==", True), _where("in", [1, 2.5, "x"])]})
    assert found is not None
    [flag] = found.must[0].match_any.values
    assert flag.WhichOneof("kind") == "bool_value"
    kinds = [value.WhichOneof("kind") for value in found.must[1].match_any.values]
    assert kinds == ["integer_value", "float_value", "string_value"]
    alone = metadata_filter(_where("==", 1, field="meta.person.name"))
    assert alone is not None
    assert alone.must[0].match_any.field == "person.name"
    assert metadata_filter({}) is None


@pytest.mark.parametrize(
    ("operator", "value", "place"),
    [
        ("text_match", "a", "filters[0].operator"),
        ("text_match_insensitive", "a", "filters[0].operator"),
        ("==", None, "filters[0].value"),
        ("all", [], "filters[0].value"),
        ("all", "steel", "filters[0].value"),
        ("any", "steel", "filters[0].value"),
        (">", "soon", "filters[0].value"),
    ],
)
def test_llama_index_filter_that_cannot_be_asked_is_refused(operator: str, value: object, place: str) -> None:
    """A search inside texts, for one, is not what our text fields do, so it is not taken for it."""
    pytest.importorskip("llama_index.core")
    from llama_index.core.vector_stores import MetadataFilters

    from retrieval.adapters.llama_index import metadata_filter

    filters = MetadataFilters.from_dicts([{"key": "tags", "operator": operator, "value": value}])
    with pytest.raises(HeadraceError) as refused:
        metadata_filter(filters)
    assert refused.value.facts["field"] == place


def test_llama_index_filter_that_is_one_condition_is_a_whole_filter() -> None:
    """A filter message is made of any condition."""
    pytest.importorskip("llama_index.core")
    from llama_index.core.vector_stores import FilterCondition, MetadataFilter, MetadataFilters

    from retrieval.adapters.llama_index import metadata_filter

    found = metadata_filter(
        MetadataFilters(filters=[MetadataFilter(key="a", value="b")], condition=FilterCondition.NOT)
    )
    assert found is not None
    values = [common.MetadataValue(string_value="b")]
    assert found == common.Filter(must_not=[common.Condition(match_any=common.MatchAny(field="a", values=values))])
