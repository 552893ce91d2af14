"""Small GGUF files: metadata, and no weights."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TypeAlias

from tokenizers import pre_tokenizers

Item: TypeAlias = "int | float | str | list[int] | list[str]"

WORDS = ("pump", "seal", "12")
SPECIALS = ("<|end|>",)
_WHOLE, _REAL, _TEXT, _LIST = 10, 12, 8, 9


def gguf_bytes(values: dict[str, Item]) -> bytes:
    """Returns a file of version 3 with these values and no tensors."""
    written = b"".join(_text(key) + _typed(value) for key, value in values.items())
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(values)) + written


def model_values(splitting: str = "smollm") -> dict[str, Item]:
    """Returns what a small model with a byte-level tokenizer says; a token takes 2 * 3 * (8 + 8) * 2 bytes cached."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = list(dict.fromkeys((word[:end], word[end]) for word in WORDS for end in range(1, len(word))))
    tokens = [*SPECIALS, *alphabet, *("".join(pair) for pair in merges)]
    return {
        "general.architecture": "llama",
        "general.license": "apache-2.0",
        "llama.context_length": 2048,
        "llama.block_count": 2,
        "llama.embedding_length": 48,
        "llama.attention.head_count": 6,
        "llama.attention.head_count_kv": 3,
        "llama.rope.freq_base": 10000.0,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": splitting,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3] * len(SPECIALS) + [1] * (len(tokens) - len(SPECIALS)),
        "tokenizer.ggml.merges": [" ".join(pair) for pair in merges],
    }


def write_gguf(path: Path, splitting: str = "smollm") -> Path:
    """Writes such a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gguf_bytes(model_values(splitting)))
    return path


def _typed(value: Item) -> bytes:
    if isinstance(value, list):
        kind = _TEXT if value and isinstance(value[0], str) else _WHOLE
        return struct.pack("<IIQ", _LIST, kind, len(value)) + b"".join(_bare(item) for item in value)
    kind = _TEXT if isinstance(value, str) else _REAL if isinstance(value, float) else _WHOLE
    return struct.pack("<I", kind) + _bare(value)


def _bare(value: float | str) -> bytes:
    if isinstance(value, str):
        return _text(value)
    return struct.pack("<Q", value) if isinstance(value, int) else struct.pack("<d", value)


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack("<Q", len(encoded)) + encoded
