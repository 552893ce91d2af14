"""The component for Haystack; needs the extra `haystack`.

Haystack itself sends usage figures to its makers unless HAYSTACK_TELEMETRY_ENABLED is False in the environment before
it is imported; this module adds nothing to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.utils import Secret

from headrace.v1 import common_pb2 as common
from headrace.v1 import retrieval_pb2 as retrieval
from retrieval.adapters.asking import SearchOptions, search_request
from retrieval.adapters.connection import Connection
from retrieval.adapters.errors import invalid
from retrieval.adapters.filters import all_of, any_of, as_filter, comparison, members, none_of
from retrieval.adapters.hits import hit_metadata
from retrieval.client import DEFAULT_TARGET

_FIELDS_OF_DOCUMENT = {"id", "content", "blob", "meta", "score", "embedding", "sparse_embedding"}


@component
class HeadraceRetriever:
    """Finds passages in a collection of a Headrace server, as documents with the chunk's id.

    `filters` are Haystack's, on `meta.NAME`; those of a run narrow the component's own. `api_key` names the tenant,
    `top_k` None leaves the number to the server, and `timeout_s` bounds each call.

    Raises:
        HeadraceError: a filter that the server cannot be asked.
    """

    def __init__(
        self,
        collection: str,
        *,
        target: str = DEFAULT_TARGET,
        api_key: Secret | None = None,
        top_k: int | None = None,
        filters: dict[str, Any] | None = None,
        options: SearchOptions | None = None,
        timeout_s: float | None = 60.0,
    ) -> None:
        metadata_filter(filters)
        self.collection = collection
        self.target = target
        self.api_key = api_key
        self.top_k = top_k
        self.filters = filters
        self.options = options
        self.timeout_s = timeout_s
        self._connection: Connection | None = None

    def warm_up(self) -> None:
        """Prepares the connection, which the first run opens.

        Raises:
            ValueError: the key's variable is not set.
        """
        self._connected()

    def close(self) -> None:
        """Closes the connection; a later run opens another."""
        if self._connection is not None:
            self._connection.close()

    def to_dict(self) -> dict[str, Any]:
        """Returns the component as Haystack writes it down; a key that is not the name of a variable is refused."""
        return default_to_dict(
            self,
            collection=self.collection,
            target=self.target,
            api_key=self.api_key.to_dict() if self.api_key else None,
            top_k=self.top_k,
            filters=self.filters,
            options=asdict(self.options) if self.options else None,
            timeout_s=self.timeout_s,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> HeadraceRetriever:
        """Returns the component that was written down."""
        given = dict(data.get("init_parameters", {}))
        if given.get("options"):
            given["options"] = SearchOptions(**given["options"])
        return default_from_dict(cls, {**data, "init_parameters": given})

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, top_k: int | None = None, filters: dict[str, Any] | None = None
    ) -> dict[str, list[Document]]:
        """Returns the documents, best first, as `documents`.

        Raises:
            HeadraceError: the server refused, failed, or was not reached in time; or the filter cannot be asked.
        """
        return _documents(self._connected().retrieve(self._request(query, top_k, filters)))

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, top_k: int | None = None, filters: dict[str, Any] | None = None
    ) -> dict[str, list[Document]]:
        """Returns the documents, best first, as `documents`.

        Raises:
            HeadraceError: the server refused, failed, or was not reached in time; or the filter cannot be asked.
        """
        return _documents(await self._connected().aretrieve(self._request(query, top_k, filters)))

    def _connected(self) -> Connection:
        if self._connection is None:
            key = self.api_key.resolve_value() if self.api_key else None
            self._connection = Connection(self.target, key, self.timeout_s)
        return self._connection

    def _request(self, query: str, top_k: int | None, filters: dict[str, Any] | None) -> retrieval.RetrieveRequest:
        return search_request(
            self.collection,
            query,
            top_k=self.top_k if top_k is None else top_k,
            filters=(metadata_filter(self.filters), metadata_filter(filters)),
            options=self.options,
        )


def metadata_filter(filters: Mapping[str, Any] | None) -> common.Filter | None:
    """Returns Haystack's filters as ours; None for none and for an empty dictionary.

    Raises:
        HeadraceError: a key is missing, or an operator, a field or a value that we do not have; `facts` name its place.
    """
    return as_filter(_condition(filters, "filters", 1)) if filters else None


def _condition(filters: Mapping[str, Any], at: str, depth: int) -> common.Condition:
    if not isinstance(filters, Mapping):
        raise invalid(at, "a dictionary", f"{at} is no dictionary; give one with field, operator and value")
    if "field" in filters:
        operator = _part(filters, "operator", at)
        return comparison(_field(filters["field"], f"{at}.field"), operator, _part(filters, "value", at), at)
    operator, given = _part(filters, "operator", at), _part(filters, "conditions", at)
    if operator not in {"AND", "OR", "NOT"}:
        bound = "AND, OR or NOT"
        raise invalid(f"{at}.operator", bound, f"{at}.operator is {operator!r}; give {bound}")
    inner = f"{at}.conditions"
    given = members(given, inner, depth)
    conditions = [_condition(each, f"{inner}[{place}]", depth + 1) for place, each in enumerate(given)]
    if operator == "NOT":
        return none_of([_all(conditions)])  # in Haystack, NOT denies that all hold
    return any_of(conditions) if operator == "OR" else all_of(conditions)


def _all(conditions: Sequence[common.Condition]) -> common.Condition:
    return conditions[0] if len(conditions) == 1 else all_of(conditions)


def _field(name: object, at: str) -> str:
    if not isinstance(name, str) or name in _FIELDS_OF_DOCUMENT:
        bound = "a metadata field, as meta.NAME"
        raise invalid(at, bound, f"{at} is {name!r}; give {bound}")
    return name.removeprefix("meta.")


def _part(filters: Mapping[str, Any], name: str, at: str) -> Any:
    if name not in filters:
        raise invalid(at, f"with a key {name!r}", f"{at} has no key {name!r}; add it")
    return filters[name]


def _documents(hits: Sequence[retrieval.Hit]) -> dict[str, list[Document]]:
    return {
        "documents": [
            Document(id=hit.chunk_id, content=hit.text, meta=hit_metadata(hit), score=hit.score) for hit in hits
        ]
    }
