"""The tokenizer inside a GGUF file as one of the `tokenizers` library, which counts in microseconds and in process.

Byte-level BPE only, and only for ways of splitting that were compared with llama.cpp's, token by token; for any other
there is none, and the caller counts by something else.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

from encoders.errors import ModelUnsupported
from encoders.gguf import GgufMetadata
from encoders.tokenizing import Tokenization

TOKENIZER_FILE = "tokenizer.json"

_UNLIMITED_TOKENS = 1 << 30
_SPECIAL = 3  # llama.cpp's type of tokens that stand for no text
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def _gpt2() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


def _smollm() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), _gpt2()])


def _by_pattern(pattern: str) -> Callable[[], pre_tokenizers.PreTokenizer]:
    return lambda: pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


_SPLITTERS: dict[str, Callable[[], pre_tokenizers.PreTokenizer]] = {
    "gpt-2": _gpt2,
    "smollm": _smollm,
    "llama-bpe": _by_pattern(_LLAMA3),
    "qwen2": _by_pattern(_QWEN2),
}

_WHOLE_WORDS = frozenset({"llama-bpe"})  # a word that is a token is that token, whatever the merges make of it


def tokenizer_of(metadata: GgufMetadata) -> Tokenizer | None:
    """Builds the tokenizer; None for a kind or a way of splitting that is not known here."""
    splitter = _SPLITTERS.get(metadata.text("tokenizer.ggml.pre"))
    if metadata.text("tokenizer.ggml.model") != "gpt2" or splitter is None:
        return None
    tokens = metadata.texts("tokenizer.ggml.tokens")
    merges = [tuple(merge.split(" ", 1)) for merge in metadata.texts("tokenizer.ggml.merges")]
    vocabulary = {token: place for place, token in enumerate(tokens)}
    whole_words = metadata.text("tokenizer.ggml.pre") in _WHOLE_WORDS
    built = Tokenizer(BPE(vocabulary, [(pair[0], pair[-1]) for pair in merges], ignore_merges=whole_words))
    built.pre_tokenizer = splitter()
    built.decoder = decoders.ByteLevel()
    types = metadata.wholes("tokenizer.ggml.token_type")
    special = [token for token, kind in zip(tokens, types, strict=False) if kind == _SPECIAL]
    built.add_special_tokens([AddedToken(token, normalized=False) for token in special])
    return built


def open_tokenization(weights: Path, metadata: GgufMetadata, name: str) -> Tokenization | None:
    """Opens the tokenizer file beside the weights, or builds the one inside; None when neither can be.

    Raises:
        ModelUnsupported: a tokenizer file is there, and it is none.
    """
    beside = weights.parent / TOKENIZER_FILE
    if beside.is_file():
        return Tokenization.open(beside, name, _UNLIMITED_TOKENS)
    try:
        built = tokenizer_of(metadata)
    except Exception as cause:
        # The library has no error class of its own: a merge of unknown tokens is a bare `Exception`.
        if type(cause) is not Exception:
            raise
        raise ModelUnsupported(name, f"the tokenizer in {weights.name} is broken; get the file again") from cause
    return None if built is None else Tokenization(built, name, _UNLIMITED_TOKENS)
