"""What the client does for a chunk on a Qdrant server: points are laid down, turned into messages, and read back.

No server is asked, so this is the least that one writer's turn, or one process that copies, takes for a chunk.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from qdrant_client import grpc, models
from qdrant_client.conversions.conversion import GrpcToRest, RestToGrpc

from bench._common.engines import Encoders
from bench._common.pipelines import KEY
from bench._common.scale.costs import Wire
from encoders.bm25 import collect_statistics
from indexers.definition import new_definition
from indexers.options import DenseModel
from indexers.preparation import Encoded
from indexers.qdrant.generations import pieces
from indexers.qdrant.points import CollectionState, chunk_point, document_point, reweighed
from indexers.types import EncodedDocument


def measure_wire(encoded: Sequence[Encoded], encoders: Encoders) -> Wire:
    """Makes the messages of a write, and reads them as a copy of the collection would."""
    documents = [one.document for one in encoded if one.document is not None]
    statistics = collect_statistics([chunk.terms for one in documents for chunk in one.chunks])
    dense = encoders.dense
    model = DenseModel(dense.model_id, dense.revision, dense.dim, dense.codec)
    definition = new_definition(KEY, {}, "", model, token_vectors=True)
    state = CollectionState(definition, 1, datetime.now(UTC).microsecond)
    started = time.perf_counter()
    bare = [_message(piece) for piece in pieces(_points(documents, state, statistics, None))]
    bare_s = time.perf_counter() - started
    started = time.perf_counter()
    messages = [_message(piece) for piece in pieces(_points(documents, state, statistics, dense.codec))]
    write_s = time.perf_counter() - started
    assert sum(map(len, bare)) < sum(map(len, messages))
    started = time.perf_counter()
    read = [record for message in messages for record in _records(message)]
    for record in read:
        reweighed(record, statistics, {})
    read_s = time.perf_counter() - started
    return Wire(
        write_ms=write_s * 1e3 / len(read),
        bare_write_ms=bare_s * 1e3 / len(read),
        read_ms=read_s * 1e3 / len(read),
        message_bytes=sum(map(len, messages)) / len(read),
        payload_bytes=sum(len(json.dumps(one.payload).encode()) for one in read) / len(read),
        document_bytes=sum(len(json.dumps(document_point(one, state).payload).encode()) for one in documents)
        / len(documents),
    )


def _points(
    documents: Sequence[EncodedDocument], state: CollectionState, statistics: Any, codec: Any
) -> list[models.PointStruct]:
    return [chunk_point(one, chunk, state, statistics, codec) for one in documents for chunk in one.chunks]


def _message(piece: Sequence[models.PointStruct]) -> bytes:
    points = [RestToGrpc.convert_point_struct(one) for one in piece]
    made: bytes = grpc.UpsertPoints(collection_name="chunks", wait=True, points=points).SerializeToString()
    return made


def _records(message: bytes) -> list[models.Record]:
    """Reads points as the client does."""
    points = [GrpcToRest.convert_point_struct(one) for one in grpc.UpsertPoints.FromString(message).points]
    return [models.Record(id=one.id, payload=one.payload, vector=one.vector) for one in points]  # type: ignore[arg-type]
