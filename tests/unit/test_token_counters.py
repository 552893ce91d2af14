"""Opening what counts tokens, and the backends that count with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from encoders.errors import ModelNotFound, ModelUnsupported
from retrieval.generation.open import open_backends
from retrieval.settings.generation import BackendSettings, GenerationSettings
from retrieval.token_counters import RememberingCounter, open_counter
from tests.fakes.counters import WordCounter


def test_bundled_counter_counts_without_special_tokens() -> None:
    """The bundled tokenizer counts the text alone, however long."""
    counter = open_counter("bundled")
    assert counter.name == "bundled"
    assert [counter.count(text) for text in ("", "hello", "hello world", "hello " * 2000)] == [0, 1, 2, 2000]
    assert counter.offsets("hello world") == [(0, 5), (6, 11)]


def test_missing_and_broken_tokenizers_are_refused(tmp_path: Path) -> None:
    """A path without a tokenizer is an error when it is opened, not when it is used."""
    with pytest.raises(ModelNotFound):
        open_counter(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelUnsupported):
        open_counter(str(tmp_path / "tokenizer.json"))


def test_counts_of_passages_are_remembered() -> None:
    """The same passage is counted once; whole prompts are not kept."""
    counted = WordCounter()
    counter = RememberingCounter(counted)
    passage, prompt = "word " * 100, "word " * 1000
    assert [counter.count(passage), counter.count(passage)] == [100, 100]
    assert counted.counted_chars == len(passage)
    assert [counter.count(prompt), counter.count(prompt)] == [1000, 1000]
    assert counted.counted_chars == len(passage) + 2 * len(prompt)


async def test_backends_are_opened_by_name() -> None:
    """Each configured backend is there under its name, with its own or the default counter, a server an address."""
    settings = GenerationSettings(
        default_backend="llm",
        backends=(
            BackendSettings(name="extractive", kind="extractive"),
            BackendSettings(
                name="llm",
                kind="openai",
                base_url="http://127.0.0.1:9/v1",
                model="m",
                tokenizer="bundled",
                replicas=("http://127.0.0.1:10/v1",),
            ),
        ),
    )
    default = WordCounter()
    backends = open_backends(settings, default, None)
    assert {name: [(each.name, each.model) for each in servers] for name, servers in backends.items()} == {
        "extractive": [("extractive", "extractive")],
        "llm": [("llm", "m"), ("llm", "m")],
    }
    [own], [first, _] = backends["extractive"], backends["llm"]
    assert own.counter is default
    assert first.counter.name == "bundled"
    assert first.context_window_tokens == 8192
    for server in (own, *backends["llm"]):
        await server.close()


def test_client_of_models_is_loaded_only_when_needed() -> None:
    """Opening extractive answers loads no HTTP client."""
    code = (
        "import sys\n"
        "from retrieval.generation.open import open_backends\n"
        "from retrieval.settings.generation import GenerationSettings\n"
        "from retrieval.token_counters import open_counter\n"
        "open_backends(GenerationSettings(), open_counter('bundled'), None)\n"
        "assert 'httpcore2' not in sys.modules\n"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root, env={"PYTHONPATH": f"{root}:{root / 'proto'}"})
