"""Reads what a GGUF file says of the model in it; the weights are left alone.

The format is llama.cpp's: a magic number, counts, then named values of thirteen types, then tensors. A file may come
from anywhere, so each length is held against a bound before anything of it is read.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias

from encoders.errors import ModelNotFound, ModelUnsupported

Value: TypeAlias = "int | float | str | list[Value]"

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_TEXT, _LIST = 8, 9
_MOST_VALUES = 100_000
_MOST_ITEMS = 10_000_000
_LONGEST_TEXT = 1 << 24  # bytes
_CACHE_NUMBER_BYTES = 2  # llama.cpp keeps keys and values in half precision


@dataclass(frozen=True, slots=True)
class GgufMetadata:
    """The named values of a GGUF file; what is missing, or of another type, is empty or 0."""

    values: dict[str, Value]

    def text(self, key: str) -> str:
        """Returns a text."""
        value = self.values.get(key)
        return value if isinstance(value, str) else ""

    def whole(self, key: str) -> int:
        """Returns a whole number."""
        value = self.values.get(key)
        return value if isinstance(value, int) else 0

    def texts(self, key: str) -> list[str]:
        """Returns a list of texts."""
        value = self.values.get(key)
        return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []

    def wholes(self, key: str) -> list[int]:
        """Returns a list of whole numbers; a single one is a list too."""
        value = self.values.get(key)
        items = value if isinstance(value, list) else [value]
        return [item for item in items if isinstance(item, int)]

    @property
    def licence(self) -> str:
        """The licence that the file names; empty when it names none."""
        return self.text("general.license")

    @property
    def context_tokens(self) -> int:
        """Tokens that the model was trained to take; 0 when the file does not say."""
        return self.whole(f"{self._architecture}.context_length")

    @property
    def cache_bytes_per_token(self) -> int:
        """About the bytes that the keys and values of a token take in memory; 0 when the file does not say."""
        part = f"{self._architecture}.attention"
        layers, heads = self.whole(f"{self._architecture}.block_count"), self.wholes(f"{part}.head_count_kv")
        width = self.whole(f"{self._architecture}.embedding_length") // max(self.wholes(f"{part}.head_count") or [1])
        numbers = (self.whole(f"{part}.key_length") or width) + (self.whole(f"{part}.value_length") or width)
        every_layer = sum(heads) if len(heads) > 1 else layers * sum(heads)
        return every_layer * numbers * _CACHE_NUMBER_BYTES

    @property
    def _architecture(self) -> str:
        return self.text("general.architecture")


def read_gguf(path: Path, model: str) -> GgufMetadata:
    """Reads the metadata of a file; `model` is the name that errors carry.

    Raises:
        ModelNotFound: it cannot be read.
        ModelUnsupported: it is no GGUF file of versions 2 or 3, or it is broken.
    """
    try:
        with path.open("rb") as opened:
            return GgufMetadata(_values(opened))
    except OSError as cause:
        raise ModelNotFound(model, f"{path.name} cannot be read ({cause.strerror}); check path and rights") from cause
    except _Broken as cause:
        raise ModelUnsupported(
            model, f"{path.name} is no GGUF file that can be read ({cause}); get it again"
        ) from cause


class _Broken(Exception):
    """The bytes are something else than GGUF."""


def _values(opened: BinaryIO) -> dict[str, Value]:
    if _take(opened, 4) != _MAGIC:
        raise _Broken("it begins otherwise")
    if _number(opened, "<I") not in _VERSIONS:
        raise _Broken("its version is another one")
    _number(opened, "<Q")  # tensors
    count = _bounded(opened, _MOST_VALUES)
    return {_text(opened): _value(opened, int(_number(opened, "<I"))) for _ in range(count)}


def _value(opened: BinaryIO, kind: int) -> Value:
    if kind == _TEXT:
        return _text(opened)
    if kind != _LIST:
        return _number(opened, _format(kind))
    kind = int(_number(opened, "<I"))
    count = _bounded(opened, _MOST_ITEMS)
    if kind == _TEXT:
        return [_text(opened) for _ in range(count)]
    single = struct.Struct(_format(kind))
    return [item for (item,) in single.iter_unpack(_take(opened, single.size * count))]


def _format(kind: int) -> str:
    if kind not in _NUMBERS:
        raise _Broken(f"a value has type {kind}")
    return _NUMBERS[kind]


def _text(opened: BinaryIO) -> str:
    # A vocabulary may hold halves of characters; nobody compares those.
    return _take(opened, _bounded(opened, _LONGEST_TEXT)).decode("utf-8", errors="replace")


def _bounded(opened: BinaryIO, most: int) -> int:
    count = int(_number(opened, "<Q"))
    if count > most:
        raise _Broken(f"a length of {count}")
    return count


def _number(opened: BinaryIO, form: str) -> int | float:
    number: int | float = struct.unpack(form, _take(opened, struct.calcsize(form)))[0]
    return number


def _take(opened: BinaryIO, size: int) -> bytes:
    taken = opened.read(size)
    if len(taken) != size:
        raise _Broken("it ends too early")
    return taken
