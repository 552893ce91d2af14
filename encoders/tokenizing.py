"""Text to the ids that a model takes, and counting and placing tokens, without any state that calls could share.

A `tokenizers.Tokenizer` keeps truncation and padding as settings of the object, so asking for another limit changes it
under the feet of every other thread. Here both are switched off once, when the file is read; cutting to the limit and
adding the special tokens are done on our side, from a frame that was read off one sample.

Characters that are not seen but glue words together (zero-width and no-break spaces, byte order marks, control
characters) become spaces before encoding, one for one, so that offsets still point into the text as it was given.
Text that spells a special token is encoded as text. Text beyond 65,536 code points is encoded in segments: the same
tokens for tokenizers that split at white space, at most one more a segment for those that mark the start of a text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from encoders.errors import ModelNotFound, ModelUnsupported
from encoders.frames import Frame
from encoders.types import TokenizedText

_INVISIBLE = re.compile("[\x00-\x08\x0e-\x1f\x7f\u00a0\u2007\u200b\u202f\u2060\ufeff\ud800-\udfff]")
# Longer texts are encoded in segments of this many code points, cut at white space: a token costs some hundred bytes in
# the tokenizer, so a book in one piece would take a gigabyte.
_SEGMENT = 1 << 16
_SEGMENT_END = re.compile(r"(?<=\S)(?=\s)")
# Encoding one text holds the interpreter lock, encoding a list releases it; below this length the list costs more.
_SHORT = 2_000
_QUERY_SHARE = 0.5


class Tokenization:
    """A model's tokenizer with its limit. Safe to use from several threads at once; also a `TokenCounter`."""

    def __init__(self, tokenizer: Tokenizer, name: str, max_tokens: int, *, bare: bool = False) -> None:
        """A `bare` one adds no special tokens and leaves out those that stand for an unknown word."""
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer
        self._single = Frame.bare(1) if bare else Frame.of_single(tokenizer)
        self._pair = Frame.bare(2) if bare else Frame.of_pair(tokenizer)
        self._unknown = _unknown_id(tokenizer) if bare else None
        self.name = name
        self.max_tokens = max_tokens
        self.adds_up = _splits_at_spaces(tokenizer)
        if self.pair_query_limit < 1:
            raise ModelUnsupported(name, f"a limit of {max_tokens} tokens leaves no room for text; raise it")

    @classmethod
    def open(cls, path: Path, name: str, max_tokens: int, *, bare: bool = False) -> Tokenization:
        """Reads a `tokenizer.json`; `name` is what errors and counts are labelled with.

        Raises:
            ModelNotFound: there is no such file.
            ModelUnsupported: it is no tokenizer, or the limit leaves no room for text.
        """
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as cause:
            raise ModelNotFound(
                name, f"{path.name} cannot be read; save the model's fast tokenizer beside it"
            ) from cause
        try:
            tokenizer = Tokenizer.from_str(text)
        except Exception as cause:
            # The library has no error class of its own: every fault of the file is a bare `Exception`.
            if type(cause) is not Exception:
                raise
            raise ModelUnsupported(name, f"{path.name} is no tokenizer file; save the fast tokenizer again") from cause
        return cls(tokenizer, name, max_tokens, bare=bare)

    @property
    def vocabulary_size(self) -> int:
        """One more than the highest token id."""
        return max(self._tokenizer.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    def token_texts(self) -> list[str]:
        """Returns what each token stands for, by id; empty for special tokens and ids without one."""
        special = {place for place, token in self._tokenizer.get_added_tokens_decoder().items() if token.special}
        known = set(self._tokenizer.get_vocab(with_added_tokens=True).values()) - special
        texts = self._tokenizer.decode_batch([[place] for place in sorted(known)], skip_special_tokens=False)
        found = dict(zip(sorted(known), texts, strict=True))
        return [found.get(place, "") for place in range(self.vocabulary_size)]

    @property
    def pair_query_limit(self) -> int:
        """Tokens that the first part of a pair may fill: half of what the special tokens leave."""
        return int((self.max_tokens - self._pair.special_count) * _QUERY_SHARE)

    def texts(self, texts: Sequence[str], prompt: str = "") -> list[TokenizedText]:
        """Encodes single texts, each with the prompt before it, cut at the limit."""
        room = self.max_tokens - self._single.special_count
        return [self._framed(self._single, (ids, room)) for ids in self._encode([prompt + text for text in texts])]

    def pairs(self, query: str, passages: Sequence[str]) -> list[TokenizedText]:
        """Encodes the query with each passage; the query is cut at `pair_query_limit`, the passage at what is left."""
        first = self._encode([query])[0]
        query_room = self.pair_query_limit
        room = self.max_tokens - self._pair.special_count - min(len(first), query_room)
        return [self._framed(self._pair, (first, query_room), (second, room)) for second in self._encode(passages)]

    def count(self, text: str) -> int:
        """Counts the tokens of the text alone, without special tokens."""
        return sum(len(self._encoding(segment)) for _, segment in _segments(text))

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Returns the code-point span of each token in the given text, in order, without special tokens."""
        spans: list[tuple[int, int]] = []
        for start, segment in _segments(text):
            # The fast variant leaves offsets out.
            found = self._tokenizer.encode_batch([_visible(segment)], add_special_tokens=False)[0].offsets
            spans.extend((start + first, start + last) for first, last in found)
        return spans

    def _framed(self, frame: Frame, *parts: tuple[NDArray[np.int64], int]) -> TokenizedText:
        full = frame.special_count + sum(len(ids) for ids, _ in parts)
        ids, type_ids = frame.around(*(ids[:room] for ids, room in parts))
        return TokenizedText(ids, type_ids, full)

    def _encode(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        found = self._whole(texts)
        return found if self._unknown is None else [ids[ids != self._unknown] for ids in found]

    def _whole(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        if sum(map(len, texts)) <= _SHORT:
            return [_ids(self._encoding(text)) for text in texts]
        if max(map(len, texts)) <= _SEGMENT:
            return [_ids(found) for found in self._batch(texts)]
        return [np.concatenate([_ids(self._encoding(part)) for _, part in _segments(text)]) for text in texts]

    def _encoding(self, text: str) -> Encoding:
        if len(text) > _SHORT:
            return self._batch([text])[0]
        return self._tokenizer.encode(_visible(text), add_special_tokens=False)

    def _batch(self, texts: Sequence[str]) -> list[Encoding]:
        found: list[Encoding] = self._tokenizer.encode_batch_fast(
            [_visible(text) for text in texts], add_special_tokens=False
        )
        return found


def _splits_at_spaces(tokenizer: Tokenizer) -> bool:
    """Whether no token holds white space, so that none can reach over it; others mark or merge it."""
    splitter = json.loads(tokenizer.to_str()).get("pre_tokenizer") or {}
    return splitter.get("type") in {"BertPreTokenizer", "Whitespace", "WhitespaceSplit"}


def _unknown_id(tokenizer: Tokenizer) -> int | None:
    model = json.loads(tokenizer.to_str())["model"]
    if model.get("unk_id") is not None:
        return int(model["unk_id"])
    token = model.get("unk_token")
    return None if token is None else tokenizer.token_to_id(token)


def _visible(text: str) -> str:
    return _INVISIBLE.sub(" ", text)


def _ids(encoding: Encoding) -> NDArray[np.int64]:
    return np.array(encoding.ids, dtype=np.int64)


def _segments(text: str) -> Iterator[tuple[int, str]]:
    if len(text) <= _SEGMENT:
        yield 0, text
        return
    for start, end in pairwise(_cuts(text)):
        yield start, text[start:end]


def _cuts(text: str) -> list[int]:
    cuts = [0]
    while len(text) - cuts[-1] > _SEGMENT:
        # Looking back half a segment finds white space in any prose; a run without any is cut where it is.
        earliest = cuts[-1] + _SEGMENT // 2
        found = _SEGMENT_END.search(text, earliest, cuts[-1] + _SEGMENT)
        cuts.append(found.start() if found else cuts[-1] + _SEGMENT)
    return [*cuts, len(text)]
