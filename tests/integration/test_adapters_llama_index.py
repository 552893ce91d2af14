"""The adapter for LlamaIndex, driven by LlamaIndex itself, against a real server process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from retrieval.adapters import HeadraceError, SearchOptions
from tests.fakes.frameworks import QUESTION, fill
from tests.integration.conftest import ServerProcess

pytest.importorskip("llama_index.core")

from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode, NodeWithScore
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from retrieval.adapters.llama_index import HeadraceRetriever

COLLECTION = "for-llama-index"


@pytest.fixture(scope="module")
def address(server: ServerProcess) -> str:
    """Where the server listens, with the collection filled."""

    async def _fill() -> None:
        async with server.client("alice") as client:
            await fill(client, COLLECTION)

    asyncio.run(_fill())
    return server.address


@pytest.fixture
def retriever(address: str) -> Iterator[HeadraceRetriever]:
    """A retriever with alice's key, closed at the end."""
    found = HeadraceRetriever(COLLECTION, target=address, api_key="alice", top_k=3)
    yield found
    found.close()


def _found(address: str, filters: str | MetadataFilters) -> set[str]:
    retriever = HeadraceRetriever(COLLECTION, target=address, api_key="alice", top_k=3, filters=filters)
    nodes = retriever.retrieve(QUESTION)
    retriever.close()
    return set(_ids(nodes))


def _ids(nodes: list[NodeWithScore]) -> list[str]:
    return [str(node.node.ref_doc_id) for node in nodes]


def test_llama_index_nodes_say_where_they_are_from(retriever: HeadraceRetriever) -> None:
    """A node has the chunk's id, its place and its document; a model reads the title and not the bookkeeping."""
    [found, *_] = retriever.retrieve(QUESTION)
    node = found.node
    assert (node.node_id, node.ref_doc_id) == (node.metadata["chunk_id"], "penstock")
    assert (node.metadata["start"], node.metadata["end"]) == (0, len(node.get_content()))
    assert found.score == node.metadata["score"]
    shown = node.get_content(MetadataMode.LLM)
    assert "title: Penstock" in shown
    assert "kind: pipe" in shown
    assert "chunk_id" not in shown


async def test_llama_index_async_and_sync_agree(retriever: HeadraceRetriever) -> None:
    """`aretrieve` in a loop and `retrieve` in the thread of that loop give the same."""
    waited = await retriever.aretrieve(QUESTION)
    assert _ids(waited) == _ids(retriever.retrieve(QUESTION))
    assert _ids(waited)[0] == "penstock"


def test_llama_index_query_engine_reads_it(retriever: HeadraceRetriever) -> None:
    """A query engine puts the passages before its model, and gives them as sources."""
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
    response = engine.query(QUESTION)
    assert "walls of 24 millimetres" in str(response)  # this model repeats its prompt
    assert _ids(response.source_nodes)[0] == "penstock"


async def test_llama_index_options_reach_the_server(address: str) -> None:
    """BM25 alone finds no passage without a word of the question."""
    options = SearchOptions(mode="sparse", rerank=False)
    retriever = HeadraceRetriever(COLLECTION, target=address, api_key="alice", options=options)
    assert _ids(await retriever.aretrieve("penstock")) == ["penstock"]
    retriever.close()


_OPERATORS = [
    ("kind", FilterOperator.EQ, "pipe", {"penstock"}),
    ("kind", FilterOperator.NE, "pipe", {"gate", "fish"}),
    ("year", FilterOperator.GT, 1998, {"gate"}),
    ("year", FilterOperator.GTE, 1998, {"penstock", "gate"}),
    ("year", FilterOperator.LT, 2011.0, {"penstock"}),
    ("checked", FilterOperator.LTE, "2020-01-01T00:00:00Z", {"gate"}),
    ("kind", FilterOperator.IN, ["pipe", "ladder"], {"penstock", "fish"}),
    ("kind", FilterOperator.NIN, ["pipe", "ladder"], {"gate"}),
    ("tags", FilterOperator.ANY, ["pressure", "wood"], {"penstock"}),
    ("tags", FilterOperator.ALL, ["pressure", "steel"], {"penstock"}),
    ("tags", FilterOperator.CONTAINS, "steel", {"penstock", "gate"}),
    ("year", FilterOperator.IS_EMPTY, None, {"fish"}),
]


@pytest.mark.parametrize(("key", "operator", "value", "expected"), _OPERATORS)
def test_llama_index_operators_mean_the_same(
    address: str, key: str, operator: FilterOperator, value: object, expected: set[str]
) -> None:
    """Each operator finds the documents that LlamaIndex says it does."""
    filters = MetadataFilters(filters=[MetadataFilter.from_dict({"key": key, "operator": operator, "value": value})])
    assert _found(address, filters) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (FilterCondition.AND, {"gate"}),
        (FilterCondition.OR, {"penstock", "gate"}),
        (FilterCondition.NOT, {"fish"}),
    ],
)
def test_llama_index_conditions_mean_the_same(address: str, condition: FilterCondition, expected: set[str]) -> None:
    """All, at least one, or none of the filters hold; filters nest."""
    inner = MetadataFilters(filters=[MetadataFilter(key="kind", value="gate")])
    filters = MetadataFilters(filters=[MetadataFilter(key="tags", value="steel"), inner], condition=condition)
    assert _found(address, filters) == expected


def test_llama_index_takes_filters_as_text(address: str) -> None:
    """The language of filters serves too, and no filters are no restriction."""
    assert _found(address, 'kind = "gate" OR NOT EXISTS(year)') == {"gate", "fish"}
    assert _found(address, MetadataFilters(filters=[])) == {"penstock", "gate", "fish"}


def test_llama_index_refusal_is_one_error(address: str) -> None:
    """The server's reason comes through."""
    retriever = HeadraceRetriever("missing", target=address, api_key="alice")
    with pytest.raises(HeadraceError) as refused:
        retriever.retrieve(QUESTION)
    assert (refused.value.code, refused.value.reason) == ("NOT_FOUND", "COLLECTION_NOT_FOUND")
    retriever.close()
