"""The parts of the servicers that are called from here. They know their caller by the call, so no context is needed."""

from __future__ import annotations

from typing import Any, Protocol

from headrace.v1 import encoding_pb2, index_pb2


class Encoders(Protocol):
    """The encoders by themselves."""

    async def Embed(  # noqa: N802 - the wire's name
        self, request: encoding_pb2.EmbedRequest, context: Any
    ) -> encoding_pb2.EmbedResponse:
        """Turns texts into vectors."""
        ...

    async def Rerank(  # noqa: N802
        self, request: encoding_pb2.RerankRequest, context: Any
    ) -> encoding_pb2.RerankResponse:
        """Scores passages against a query, best first."""
        ...


class Collections(Protocol):
    """The caller's collections."""

    async def GetCollection(  # noqa: N802
        self, request: index_pb2.GetCollectionRequest, context: Any
    ) -> index_pb2.GetCollectionResponse:
        """Returns a collection."""
        ...

    async def ListCollections(  # noqa: N802
        self, request: index_pb2.ListCollectionsRequest, context: Any
    ) -> index_pb2.ListCollectionsResponse:
        """Lists the caller's collections, by name."""
        ...
