"""Finds documents that say nearly the same, by MinHash signatures of word 5-grams (Broder, 1997) in an LSH index.

rensa computes both in Rust: 0.04 ms a document here, where datasketch takes more than one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rensa import RMinHash, RMinHashLSH

_PERMUTATIONS = 128
_SEED = 42
_SHINGLE_WORDS = 5
_LEAST_WORDS = 20  # shorter texts are alike too easily
# Documents. Measured with as many, each takes 2.2 KB at a threshold of 0.9 and 3.5 KB at 0.8, which has more bands.
MOST = 200_000


@dataclass(frozen=True, slots=True)
class Similar:
    """A document that came before, and how alike it is."""

    document_id: str
    similarity: float  # estimated Jaccard similarity of the sets of 5-grams


class NearDuplicates:
    """The documents so far. Used by one thread at a time."""

    def __init__(self, threshold: float, signatures: Iterable[tuple[str, bytes]] = ()) -> None:
        """`threshold` is the least similarity that counts, above 0; `signatures` are those of earlier runs.

        No more than `MOST` documents are remembered; those that come later are compared with these alone.
        """
        self._threshold = threshold
        self._index = RMinHashLSH(threshold=threshold, num_perm=_PERMUTATIONS, num_bands=_bands(threshold))
        self._names: list[str] = []
        self._signatures: list[RMinHash] = []
        self._numbers: dict[str, int] = {}
        for name, state in signatures:
            if (signature := _restored(state)) is not None:
                self._add(name, signature)

    def find(self, document_id: str, text: str) -> tuple[Similar | None, bytes]:
        """Returns the most similar of the other documents, if it is similar enough, and the text's signature.

        A text of few words has none, and is similar to nothing.
        """
        words = text.lower().split()
        if len(words) < _LEAST_WORDS:
            return None, b""
        signature = RMinHash(num_perm=_PERMUTATIONS, seed=_SEED)
        signature.update([" ".join(words[at : at + _SHINGLE_WORDS]) for at in range(len(words) - _SHINGLE_WORDS + 1)])
        found = [
            Similar(self._names[number], signature.jaccard(self._signatures[number]))
            for number in self._index.query(signature)
            if self._names[number] != document_id
        ]
        best = max(found, key=lambda one: (one.similarity, one.document_id), default=None)
        self._add(document_id, signature)
        return (best if best and best.similarity >= self._threshold else None), signature.__getstate__()

    def _add(self, name: str, signature: RMinHash) -> None:
        number = self._numbers.get(name)
        if number is not None:
            self._index.remove(number)
            self._signatures[number] = signature
        elif len(self._names) < MOST:
            number = self._numbers[name] = len(self._names)
            self._names.append(name)
            self._signatures.append(signature)
        else:
            return
        self._index.insert(number, signature)


def _bands(threshold: float) -> int:
    """Returns how many bands find nearly all pairs of the threshold: r rows a band miss (1 - t^r)^b of them."""
    for rows in (32, 16, 8, 4, 2):
        bands = _PERMUTATIONS // rows
        if (1 - threshold**rows) ** bands < 0.05:
            return bands
    return _PERMUTATIONS


def _restored(state: bytes) -> RMinHash | None:
    """Returns a stored signature; None when it was made by another version."""
    signature = RMinHash(num_perm=_PERMUTATIONS, seed=_SEED)
    try:
        signature.__setstate__(state)
    except (ValueError, TypeError):
        return None
    return signature
