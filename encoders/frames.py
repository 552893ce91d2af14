"""Where a model wants its special tokens: before, between and after the parts of its input."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

_SAMPLE = "a"


@dataclass(frozen=True, slots=True)
class Frame:
    """The special tokens around one text or a pair, read off an encoded sample, and the type ids of the parts."""

    specials: tuple[NDArray[np.int64], ...]  # one more than there are parts; each may be empty
    special_types: tuple[NDArray[np.int64], ...]
    part_types: tuple[int, ...]

    @classmethod
    def of_single(cls, tokenizer: Tokenizer) -> Frame:
        """Reads the frame of a single text."""
        return _frame(tokenizer.encode(_SAMPLE), parts=1)

    @classmethod
    def of_pair(cls, tokenizer: Tokenizer) -> Frame:
        """Reads the frame of a pair."""
        return _frame(tokenizer.encode(_SAMPLE, _SAMPLE), parts=2)

    @classmethod
    def bare(cls, parts: int) -> Frame:
        """Makes the frame of a model that takes no special tokens."""
        nothing = tuple(_array([]) for _ in range(parts + 1))
        return cls(nothing, nothing, (0,) * parts)

    @property
    def special_count(self) -> int:
        """Tokens that the frame itself takes."""
        return sum(map(len, self.specials))

    def around(self, *parts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Puts the parts into the frame; returns ids and type ids."""
        ids, types = [self.specials[0]], [self.special_types[0]]
        for position, part in enumerate(parts):
            ids += [part, self.specials[position + 1]]
            types += [np.full(len(part), self.part_types[position], dtype=np.int64), self.special_types[position + 1]]
        return np.concatenate(ids), np.concatenate(types)


def _frame(sample: Encoding, parts: int) -> Frame:
    # A token that no part gave is special; where two parts meet without one between them, the gap is empty.
    specials: list[list[int]] = [[] for _ in range(parts + 1)]
    types: list[list[int]] = [[] for _ in range(parts + 1)]
    part_types = [0] * parts
    gap = 0
    for part, positions in groupby(range(len(sample.ids)), key=lambda position: sample.sequence_ids[position]):
        for position in positions:
            if part is None:
                specials[gap].append(sample.ids[position])
                types[gap].append(sample.type_ids[position])
            else:
                gap = part + 1
                part_types[part] = sample.type_ids[position]
    return Frame(tuple(map(_array, specials)), tuple(map(_array, types)), tuple(part_types))


def _array(values: list[int]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)
