"""`LookUpDocuments`: what jobs ask of a collection before they write and after."""

from __future__ import annotations

from headrace.v1 import index_pb2
from indexers.index import Index
from indexers.ingest import Indexer
from retrieval.errors import InvalidRequest
from retrieval.server.convert.ledgers import epoch_to_pb

_BOUNDS = {"ids": 1_000, "chunks_of": 100, "chunk_ids": 10_000}
_MAX_OWNED = 10_000
_DEFAULT_OWNED = 1_000


async def look_up(
    index: Index, indexer: Indexer, request: index_pb2.LookUpDocumentsRequest
) -> index_pb2.LookUpDocumentsResponse:
    """Answers one request. The epoch is read first: nothing that is reported is older than it says.

    Raises:
        InvalidRequest: more is asked for than is allowed.
        IndexUnavailable: the store cannot be reached.
    """
    _check(request)
    epoch = await index.current_epoch()
    stored = await index.look_up(request.ids) if request.ids else {}
    chunks = [chunk for one in request.chunks_of for chunk in await index.chunk_ids(one)]
    present = await index.fetch(request.chunk_ids) if request.chunk_ids else []
    owned: list[tuple[str, str]] = []
    if request.owner:
        owned = await index.owned(request.owner, request.after, request.limit or _DEFAULT_OWNED)
    return index_pb2.LookUpDocumentsResponse(
        epoch=epoch_to_pb(epoch),
        documents=[
            index_pb2.StoredDocument(
                id=name,
                fingerprint=one.fingerprint,
                owner=one.owner,
                chunk_count=one.chunk_count,
                write_sequence=one.write_sequence,
            )
            for name, one in stored.items()
        ],
        chunks=chunks,
        present_chunk_ids=[passage.chunk_id for passage in present],
        owned=[index_pb2.OwnedDocument(id=name, source_uri=uri) for name, uri in owned],
        shaping=indexer.shaping,
    )


def _check(request: index_pb2.LookUpDocumentsRequest) -> None:
    asked = {"ids": len(request.ids), "chunks_of": len(request.chunks_of), "chunk_ids": len(request.chunk_ids)}
    for field, count in asked.items():
        if count > _BOUNDS[field]:
            bound = f"at most {_BOUNDS[field]}"
            raise InvalidRequest(field, bound, f"{field} has {count} entries; send {bound}")
    if request.limit > _MAX_OWNED:
        raise InvalidRequest("limit", f"1..{_MAX_OWNED}", f"limit is {request.limit}; it must be at most {_MAX_OWNED}")
