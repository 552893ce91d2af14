"""Reading GGUF metadata, and the tokenizer and the sizes that follow from it."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from encoders.errors import ModelNotFound, ModelUnsupported
from encoders.gguf import read_gguf
from encoders.gguf_tokenizer import TOKENIZER_FILE, open_tokenization, tokenizer_of
from retrieval.generation.llama_launch import Launch, Report
from retrieval.generation.llama_sizing import launch_of
from retrieval.settings.generation import BackendSettings
from tests.fakes.gguf_files import Item, gguf_bytes, model_values, write_gguf
from tests.fakes.tiny_tokenizers import tiny_tokenizer


def test_metadata_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Numbers, texts and lists come back, with the licence, the context and the size of a token."""
    found = read_gguf(write_gguf(tmp_path / "m.gguf"), "m")
    assert found.values == model_values()
    assert (found.licence, found.context_tokens, found.cache_bytes_per_token) == ("apache-2.0", 2048, 192)


def test_cache_size_follows_layers_and_lengths_that_are_given(tmp_path: Path) -> None:
    """Heads may be given by layer, and keys and values may have lengths of their own."""
    path = tmp_path / "m.gguf"
    own: dict[str, Item] = {
        "llama.attention.head_count_kv": [1, 3],
        "llama.attention.key_length": 10,
        "llama.attention.value_length": 6,
    }
    path.write_bytes(gguf_bytes(model_values() | own))
    assert read_gguf(path, "m").cache_bytes_per_token == (1 + 3) * (10 + 6) * 2


def test_missing_values_are_empty(tmp_path: Path) -> None:
    """A file that says nothing has no context, no size, no tokenizer."""
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf_bytes({}))
    found = read_gguf(path, "m")
    assert (found.licence, found.context_tokens, found.cache_bytes_per_token, tokenizer_of(found)) == ("", 0, 0, None)


def test_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    """However short the copy is, it is our error."""
    whole = gguf_bytes({"a": 1, "b": "text", "c": [1, 2], "d": ["x", "y"], "e": 0.5})
    path = tmp_path / "m.gguf"
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(ModelUnsupported):
            read_gguf(path, "m")


@given(st.binary(max_size=60))
def test_any_bytes_after_the_magic_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, tail: bytes) -> None:
    """Nothing in a file makes another error than ours."""
    path = tmp_path_factory.getbasetemp() / "any.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQ", 3, 0) + tail)
    try:
        read_gguf(path, "m")
    except ModelUnsupported:
        return


@pytest.mark.parametrize(
    "content",
    [
        b"PK\x03\x04" * 10,
        b"GGUF" + struct.pack("<IQQ", 9, 0, 0),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 40),
        b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 62),
        gguf_bytes({})[:-8] + struct.pack("<QQcI", 1, 1, b"a", 77),
    ],
)
def test_other_files_are_refused_before_anything_large_is_read(tmp_path: Path, content: bytes) -> None:
    """Wrong beginnings, versions, lengths and types."""
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelUnsupported):
        read_gguf(path, "m")


def test_file_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    """The error names the file."""
    with pytest.raises(ModelNotFound, match=r"m\.gguf"):
        read_gguf(tmp_path / "m.gguf", "m")


@pytest.mark.parametrize(
    ("splitting", "text", "count"),
    [
        ("gpt-2", "pumpseal 12", 4),  # pump, seal, the space, 12
        ("smollm", "pumpseal 12", 5),  # every digit alone
        ("qwen2", "pumpseal 12", 5),
        ("llama-bpe", "pumpseal 12", 4),
        ("smollm", "<|end|>", 7),  # spelt by somebody, it is text
        ("smollm", "é", 2),
        ("smollm", "", 0),
    ],
)
def test_tokenizer_in_the_file_counts_as_its_kind_does(tmp_path: Path, splitting: str, text: str, count: int) -> None:
    """Merges, digits, bytes and special tokens count as llama.cpp counts them."""
    weights = write_gguf(tmp_path / "m.gguf", splitting)
    found = open_tokenization(weights, read_gguf(weights, "m"), "m")
    assert found is not None
    assert (found.count(text), found.name) == (count, "m")


def test_unknown_splitting_has_no_tokenizer(tmp_path: Path) -> None:
    """What was never compared is not guessed."""
    weights = write_gguf(tmp_path / "m.gguf", "of-tomorrow")
    assert open_tokenization(weights, read_gguf(weights, "m"), "m") is None


def test_tokenizer_beside_the_weights_is_preferred(tmp_path: Path) -> None:
    """Who knows better puts a file there."""
    weights = write_gguf(tmp_path / "m.gguf", "of-tomorrow")
    tiny_tokenizer().save(str(tmp_path / TOKENIZER_FILE))
    found = open_tokenization(weights, read_gguf(weights, "m"), "m")
    assert found is not None
    assert found.count("pump seal") == 2


def test_tokenizer_that_is_broken_is_refused(tmp_path: Path) -> None:
    """A merge of tokens that do not exist is our error, not the library's."""
    weights = tmp_path / "m.gguf"
    weights.write_bytes(gguf_bytes(model_values() | {"tokenizer.ggml.merges": ["no such"]}))
    with pytest.raises(ModelUnsupported, match="broken"):
        open_tokenization(weights, read_gguf(weights, "m"), "m")


def sized(tmp_path: Path, **changes: object) -> Launch:
    """Sizes the process of a small model."""
    settings = BackendSettings.model_validate({"name": "small", "kind": "llama", "model": "m"} | changes)
    path = write_gguf(tmp_path / "m.gguf")
    return launch_of(settings, "m", path, read_gguf(path, "m"))


def test_context_is_the_smaller_of_setting_and_model(tmp_path: Path) -> None:
    """Nobody gets more context than the model was trained for, nor than was asked."""
    assert sized(tmp_path).slot_tokens == 2048
    assert sized(tmp_path, context_window_tokens=512).slot_tokens == 512


def test_slots_and_cache_follow_settings(tmp_path: Path) -> None:
    """Four answers at once, fewer when fewer are sent; the cache holds as many tokens as configured."""
    assert sized(tmp_path).slots == 4
    assert sized(tmp_path, max_concurrent=2).slots == 2
    assert sized(tmp_path, prefix_cache_tokens=65_536).cache_mib == 65_536 * 192 // (1 << 20)
    assert sized(tmp_path, prefix_cache_tokens=256).cache_mib == 1


def test_large_context_leaves_one_slot(tmp_path: Path) -> None:
    """A model whose context fills the memory for it answers one at a time; its cache leaves most memory alone."""
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf_bytes(model_values() | {"llama.block_count": 5000, "llama.context_length": 1 << 20}))
    settings = BackendSettings(
        name="small", kind="llama", model="m", context_window_tokens=1 << 20, prefix_cache_tokens=10**9
    )
    found = launch_of(settings, "m", path, read_gguf(path, "m"))
    assert found.slots == 1
    assert found.cache_mib << 20 < 10**9 * 480_000


def test_lines_between_parent_and_child_survive() -> None:
    """What is launched is read as it was written, with the key; what is no report is a fault."""
    written = Launch("/w", "m", "", 1, 2, 3, 4, 5)
    assert Launch.read(written.line("key")) == Launch("/w", "m", "key", 1, 2, 3, 4, 5)
    assert Report.read(Report(port=5).line()) == Report(port=5)
    for line in (b"", b"a warning\n", b"[]\n", b'{"port": "x", "fault": ""}\n', b'{"port": 5}\n'):
        assert Report.read(line).fault
