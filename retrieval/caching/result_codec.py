"""Results as bytes, for the tier that processes share.

JSON says by itself what most values are; times and lists of metadata are told apart from texts by how they are written.
What belongs to the process and the request that made a result is left out: vectors, deadline, what reranking did, and
the numbers that an index gives its chunks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from indexers.types import Epoch, Metadata, Passage, Scalar
from retrieval.caching.json_bytes import DAMAGED, read_json, text_of, write_json
from retrieval.types import Citation, Context, Dropped, DropReason, Found, Hit, ScoreParts

_FORMAT = 1
_TIME = "time"


def encode(found: Found) -> bytes:
    """Writes a result as bytes."""
    passages = _Passages()
    hits = [[passages.place(hit.passage), float(hit.score), _parts(hit.parts)] for hit in found.hits]
    context = found.context
    citations = [[one.number, passages.place(one.passage), one.chunk_ids] for one in context.citations]
    written = {
        "format": _FORMAT,
        "hits": hits,
        "context": [context.text, context.token_count, context.budget_tokens, context.tokenizer],
        "citations": citations,
        "dropped": [[one.chunk_id, one.reason.value] for one in context.dropped],
        "passages": passages.written,
        "epoch": [found.epoch.generation, found.epoch.write_sequence],
        "query": [found.query_tokens, found.query_truncated, found.candidates],
        "degraded": found.degraded,
        "made_at_s": float(found.made_at_s),
    }
    return write_json(written)


def decode(stored: bytes) -> Found | None:
    """Reads what `encode` wrote; None for anything that is not exactly that."""
    try:
        read: Any = read_json(stored)
        return _found(read) if read["format"] == _FORMAT else None
    except DAMAGED:
        return None


class _Passages:
    """The passages of a result, each written once: most citations are of a hit's very passage."""

    def __init__(self) -> None:
        self.written: list[list[object]] = []
        self._places: dict[int, int] = {}  # by identity, since metadata has no hash

    def place(self, passage: Passage) -> int:
        """Returns where the passage stands."""
        place = self._places.get(id(passage))
        if place is None:
            place = self._places[id(passage)] = len(self.written)
            self.written.append(_written(passage))
        return place


def _written(one: Passage) -> list[object]:
    texts = [one.chunk_id, one.document_id, one.title, one.header, one.text, one.source_uri]
    numbers = [one.start, one.end, one.ordinal, one.page, one.token_count, one.header_token_count]
    return [texts, numbers, one.heading_path, {name: _value(value) for name, value in one.metadata.items()}]


def _value(value: Scalar | tuple[Scalar, ...]) -> object:
    if isinstance(value, tuple):
        return [_value(one) for one in value]
    return {_TIME: value.isoformat()} if isinstance(value, datetime) else value


def _parts(parts: ScoreParts) -> list[float | None]:
    scores = (parts.dense, parts.sparse, parts.fused, parts.late, parts.rerank)
    return [None if score is None else float(score) for score in scores]


def _found(read: Mapping[str, Any]) -> Found:
    passages = [_passage(*one) for one in read["passages"]]
    text, token_count, budget_tokens, tokenizer = read["context"]
    query_tokens, query_truncated, candidates = read["query"]
    generation, write_sequence = read["epoch"]
    return Found(
        hits=tuple(
            Hit(_at(passages, place), _float(score), ScoreParts(*map(_score, _exactly(5, parts))))
            for place, score, parts in read["hits"]
        ),
        context=Context(
            text=text_of(text),
            token_count=_int(token_count),
            budget_tokens=_int(budget_tokens),
            tokenizer=text_of(tokenizer),
            citations=tuple(
                Citation(_int(number), _at(passages, place), _texts(ids)) for number, place, ids in read["citations"]
            ),
            dropped=tuple(Dropped(text_of(chunk_id), DropReason(reason)) for chunk_id, reason in read["dropped"]),
        ),
        epoch=Epoch(_int(generation), _int(write_sequence)),
        query_tokens=_int(query_tokens),
        query_truncated=_bool(query_truncated),
        candidates=_int(candidates),
        degraded=_texts(read["degraded"]),
        made_at_s=_float(read["made_at_s"]),
    )


def _passage(texts: object, numbers: object, heading_path: object, metadata: Mapping[str, object]) -> Passage:
    chunk_id, document_id, title, header, text, source_uri = map(text_of, _exactly(6, texts))
    start, end, ordinal, page, token_count, header_token_count = map(_int, _exactly(6, numbers))
    return Passage(
        chunk_id=chunk_id,
        document_id=document_id,
        title=title,
        heading_path=_texts(heading_path),
        text=text,
        start=start,
        end=end,
        ordinal=ordinal,
        page=page,
        metadata=_metadata(metadata),
        source_uri=source_uri,
        token_count=token_count,
        header=header,
        header_token_count=header_token_count,
    )


def _metadata(read: object) -> Metadata:
    if not isinstance(read, dict):
        raise TypeError("not metadata")
    return {name: tuple(map(_scalar, one)) if isinstance(one, list) else _scalar(one) for name, one in read.items()}


def _scalar(read: object) -> Scalar:
    if isinstance(read, dict):
        [(name, time)] = read.items()
        if name == _TIME:
            return datetime.fromisoformat(time)
    if not isinstance(read, str | int | float):
        raise TypeError("not a scalar")
    return read


def _at(passages: Sequence[Passage], place: object) -> Passage:
    number = _int(place)
    if number < 0:
        raise IndexError("no place")
    return passages[number]


def _exactly(count: int, read: object) -> list[object]:
    if not isinstance(read, list) or len(read) != count:
        raise ValueError("another number of values")
    return read


def _texts(read: object) -> tuple[str, ...]:
    if not isinstance(read, list):
        raise TypeError("no list")
    return tuple(map(text_of, read))


def _int(read: object) -> int:
    if not isinstance(read, int) or isinstance(read, bool):
        raise TypeError("no whole number")
    return read


def _bool(read: object) -> bool:
    if not isinstance(read, bool):
        raise TypeError("no truth value")
    return read


def _float(read: object) -> float:
    if not isinstance(read, float) or not math.isfinite(read):
        raise TypeError("no finite number")
    return read


def _score(read: object) -> float | None:
    return None if read is None else _float(read)
