"""Which queries train, which choose settings, and which judge: fixed by a hash of the query's id."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from hashlib import blake2b

from rerank.training.examples import Example

_TRAIN_PERCENT = 60
_DEV_PERCENT = 20


class Split(enum.Enum):
    """A part of a set's queries: 60 % train, 20 % dev, 20 % test, the same on every machine and in every run."""

    TRAIN = "train"
    DEV = "dev"
    TEST = "test"


def split_of(query_id: str) -> Split:
    """Returns the split that a query belongs to."""
    share = int.from_bytes(blake2b(query_id.encode(), digest_size=8).digest(), "little") % 100
    if share < _TRAIN_PERCENT:
        return Split.TRAIN
    return Split.DEV if share < _TRAIN_PERCENT + _DEV_PERCENT else Split.TEST


def part(examples: Iterable[Example], split: Split, limit: int = 0) -> tuple[Example, ...]:
    """Returns the examples of a split, at most `limit` of them unless that is 0.

    Which ones are taken is decided by a hash too: the first queries of a file are often about the same few documents.
    """
    kept = sorted((one for one in examples if split_of(one.query_id) is split), key=_draw)
    return tuple(kept[:limit] if limit else kept)


def _draw(example: Example) -> bytes:
    return blake2b(b"draw\0" + example.query_id.encode(), digest_size=8).digest()
