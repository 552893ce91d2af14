"""The retriever for LangChain; needs the extra `langchain`."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field, PrivateAttr, SecretStr

from headrace.v1 import retrieval_pb2 as retrieval
from retrieval.adapters.asking import SearchOptions, search_request
from retrieval.adapters.connection import Connection
from retrieval.adapters.hits import hit_metadata
from retrieval.client import DEFAULT_TARGET


class HeadraceRetriever(BaseRetriever):
    """Finds passages in a collection of a Headrace server, as documents with the chunk's id.

    A call may give `top_k`, and a `filter` that narrows the retriever's own:
    `retriever.invoke("How?", filter='product = "git"')`.
    """

    collection: str
    """The collection that is asked."""

    target: str = Field(default=DEFAULT_TARGET, frozen=True)
    """The server, as `host:port` or `unix:PATH`."""

    api_key: SecretStr | None = Field(default=None, frozen=True)
    """The key that names the tenant; None for a server without keys."""

    top_k: int | None = None
    """How many documents to return; the server's default when None."""

    filter: str | None = None
    """A restriction on metadata, in the language of filters: `product = "git" AND year >= 2020`."""

    options: SearchOptions | None = None
    """Overrides of the server's thresholds."""

    timeout_s: float | None = Field(default=60.0, frozen=True)
    """How long a call may take; None for no bound."""

    _connection: Connection = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Prepares the connection, which the first call opens."""
        key = self.api_key.get_secret_value() if self.api_key else None
        self._connection = Connection(self.target, key, self.timeout_s)

    def close(self) -> None:
        """Closes the connection; a later call opens another."""
        self._connection.close()

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        top_k: int | None = None,
        filter: str | None = None,
    ) -> list[Document]:
        return _documents(self._connection.retrieve(self._request(query, top_k, filter)))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        top_k: int | None = None,
        filter: str | None = None,
    ) -> list[Document]:
        return _documents(await self._connection.aretrieve(self._request(query, top_k, filter)))

    def _request(self, query: str, top_k: int | None, filter: str | None) -> retrieval.RetrieveRequest:
        return search_request(
            self.collection,
            query,
            top_k=self.top_k if top_k is None else top_k,
            filters=(self.filter, filter),
            options=self.options,
        )


def _documents(hits: list[retrieval.Hit]) -> list[Document]:
    return [Document(id=hit.chunk_id, page_content=hit.text, metadata=hit_metadata(hit)) for hit in hits]
