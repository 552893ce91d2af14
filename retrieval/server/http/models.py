"""`GET /v1/models`: what may stand in `model`: the caller's collections, the dense encoder and the cross-encoder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence

from headrace.v1 import index_pb2
from indexers.errors import CollectionNotFound, InvalidName
from retrieval.errors import BackendUnknown
from retrieval.server.convert.models import ServedModel
from retrieval.server.http.endpoint import Asked
from retrieval.server.http.reply import Reply
from retrieval.server.http.servicers import Collections
from retrieval.settings.generation import AUTO

_PAGE = 1_000
_SERVED = ("dense", "cross_encoder")  # the kinds of models that an endpoint takes by name


class Models:
    """Lists what there is, and tells of one by its name."""

    def __init__(self, collections: Collections, served: Sequence[ServedModel], backends: Sequence[str]) -> None:
        self._collections = collections
        self._served = {model.model_id: model for model in served if model.role in _SERVED}
        self._backends = tuple(backends)

    async def list(self, asked: Asked, reply: Reply) -> None:
        """Lists all."""
        entries = [_collection(each, name) async for each in self._all() for name in self._names(each.name)]
        entries += [_model(model) for model in self._served.values()]
        await reply.json({"object": "list", "data": entries})

    async def get(self, asked: Asked, reply: Reply) -> None:
        """Tells of one."""
        name = asked.path["name"]
        if name in self._served:
            await reply.json(_model(self._served[name]))
            return
        collection, at, backend = name.partition("@")
        if at and backend not in (AUTO, *self._backends):
            raise BackendUnknown(backend, self._backends)
        try:
            found = await self._collections.GetCollection(index_pb2.GetCollectionRequest(name=collection), None)
        except InvalidName:
            raise CollectionNotFound(collection) from None
        await reply.json(_collection(found.collection, name))

    def _names(self, collection: str) -> Iterator[str]:
        """Gives the collection with the configured backend, and with each that may be asked for."""
        yield collection
        yield from (f"{collection}@{backend}" for backend in (AUTO, *self._backends))

    async def _all(self) -> AsyncIterator[index_pb2.Collection]:
        request = index_pb2.ListCollectionsRequest(page_size=_PAGE)
        while True:
            page = await self._collections.ListCollections(request, None)
            for collection in page.collections:
                yield collection
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token


def _collection(collection: index_pb2.Collection, name: str) -> dict[str, object]:
    ours = {
        "kind": "collection",
        "description": collection.description,
        "documents": collection.document_count,
        "chunks": collection.chunk_count,
        "dense_model": collection.dense_model,
    }
    return _entry(name, collection.create_time.seconds, ours)


def _model(model: ServedModel) -> dict[str, object]:
    return _entry(model.model_id, 0, {"kind": model.role, "dim": model.dim, "max_tokens": model.max_tokens})


def _entry(name: str, created_s: int, ours: dict[str, object]) -> dict[str, object]:
    return {"id": name, "object": "model", "created": created_s, "owned_by": "headrace", "headrace": ours}
