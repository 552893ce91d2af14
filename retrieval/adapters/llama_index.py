"""The retriever for LlamaIndex; needs the extra `llama-index`."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core import Settings
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from headrace.v1 import common_pb2 as common
from headrace.v1 import retrieval_pb2 as retrieval
from retrieval.adapters.asking import SearchOptions, search_request
from retrieval.adapters.connection import Connection
from retrieval.adapters.errors import invalid
from retrieval.adapters.filters import all_of, any_of, as_filter, comparison, members, none_of
from retrieval.adapters.hits import hit_metadata
from retrieval.client import DEFAULT_TARGET

# What a model does not need to read, and what would change a vector made of a node.
_SILENT = ["document_id", "chunk_id", "source_uri", "score", "start", "end", "page"]


class HeadraceRetriever(BaseRetriever):
    """Finds passages in a collection of a Headrace server, as text nodes with the chunk's id.

    `filters` is a restriction on metadata: LlamaIndex's `MetadataFilters`, or a text in the language of filters.
    `api_key` names the tenant, `top_k` None leaves the number to the server, and `timeout_s` bounds each call.

    Raises:
        HeadraceError: a filter that the server cannot be asked.
    """

    def __init__(
        self,
        collection: str,
        *,
        target: str = DEFAULT_TARGET,
        api_key: str | None = None,
        top_k: int | None = None,
        filters: str | MetadataFilters | None = None,
        options: SearchOptions | None = None,
        timeout_s: float | None = 60.0,
    ) -> None:
        super().__init__(callback_manager=Settings.callback_manager)
        self._collection = collection
        self._top_k = top_k
        self._filter = filters if isinstance(filters, str) else metadata_filter(filters)
        self._options = options
        self._connection = Connection(target, api_key, timeout_s)

    def close(self) -> None:
        """Closes the connection; a later call opens another."""
        self._connection.close()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(self._connection.retrieve(self._request(query_bundle)))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(await self._connection.aretrieve(self._request(query_bundle)))

    def _request(self, query: QueryBundle) -> retrieval.RetrieveRequest:
        return search_request(
            self._collection, query.query_str, top_k=self._top_k, filters=(self._filter,), options=self._options
        )


def metadata_filter(filters: MetadataFilters | None) -> common.Filter | None:
    """Returns LlamaIndex's filters as ours; None for none, and for an empty list, which restricts nothing there.

    Raises:
        HeadraceError: an operator or a value that we do not have; `facts` name its place.
    """
    if filters is None or not filters.filters:
        return None
    return as_filter(_joined(filters, "filters", 1))


def _joined(filters: MetadataFilters, at: str, depth: int) -> common.Condition:
    conditions = [
        _joined(each, f"{at}[{place}]", depth + 1)
        if isinstance(each, MetadataFilters)
        else _compared(each, f"{at}[{place}]")
        for place, each in enumerate(members(filters.filters, at, depth))
    ]
    join = {FilterCondition.OR: any_of, FilterCondition.NOT: none_of}.get(filters.condition or FilterCondition.AND)
    return (join or all_of)(conditions)


def _compared(filter: MetadataFilter, at: str) -> common.Condition:
    operator, value = filter.operator, filter.value
    if operator is FilterOperator.IS_EMPTY:
        return comparison(filter.key, "==", None, at)
    if operator is FilterOperator.CONTAINS:
        return comparison(filter.key, "==", value, at)
    if operator is FilterOperator.ALL:
        wanted = members(value, f"{at}.value", 1)
        return all_of([comparison(filter.key, "==", each, at) for each in wanted])
    if value is None:
        bound = "a value, or the operator is_empty"
        raise invalid(f"{at}.value", bound, f"{at}.value is None; give {bound}")
    names = {FilterOperator.ANY: "in", FilterOperator.NIN: "not in"}
    return comparison(filter.key, names.get(operator, operator.value), value, at)


def _nodes(hits: Sequence[retrieval.Hit]) -> list[NodeWithScore]:
    return [NodeWithScore(node=_node(hit), score=hit.score) for hit in hits]


def _node(hit: retrieval.Hit) -> TextNode:
    return TextNode(
        id_=hit.chunk_id,
        text=hit.text,
        metadata=hit_metadata(hit),
        excluded_llm_metadata_keys=_SILENT,
        excluded_embed_metadata_keys=_SILENT,
        start_char_idx=hit.start,
        end_char_idx=hit.end,
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=hit.document_id)},
    )
