"""The embedded model for real: SmolLM2 and llama.cpp, where both are there.

The weights lie where `headrace models pull smollm2` puts them, or in the folder that HEADRACE_TEST_MODELS names.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from retrieval.errors import BackendUnavailable
from retrieval.generation.llama_backend import LlamaBackend, open_llama
from retrieval.settings.generation import BackendSettings
from retrieval.speech import BackendEnd, FinishReason, GenerationParams
from retrieval.types import Arrangement, Context, Prompt
from tests.fakes.counters import WordCounter

MODELS = Path(os.environ.get("HEADRACE_TEST_MODELS", Path(__file__).parents[2] / "data" / "models"))
CONTEXT = Context("", 0, 100, "smollm2")
PUMPS = "\n\n".join(f"[{n}]\nPump {n} lifts {n * 7} litres a minute." for n in range(1, 9))
VALVES = "\n\n".join(f"[{n}]\nValve {n} opens at {n * 3} bar." for n in range(1, 9))


@pytest.fixture
async def backend() -> AsyncIterator[LlamaBackend]:
    """Opens the real backend; it answers one at a time."""
    pytest.importorskip("xllamacpp", reason="needs the extra `llama`")
    if not (MODELS / "smollm2").is_dir():
        pytest.skip(f"needs the weights: headrace models pull smollm2 --folder {MODELS}")
    settings = BackendSettings(
        name="small", kind="llama", model="smollm2", context_window_tokens=1024, max_concurrent=1
    )
    opened = open_llama(settings, MODELS, WordCounter())
    try:
        yield opened
    finally:
        await opened.close()


async def ask(opened: LlamaBackend, sources: str, question: str, tokens: int = 4) -> tuple[str, BackendEnd]:
    """Streams one answer; returns text and end."""
    prompt = Prompt("Answer from the sources.", CONTEXT, question, Arrangement(sources, ()))
    params = GenerationParams(tokens, 0.0, time.monotonic_ns() + 60 * 10**9)
    text = ""
    async with aclosing(opened.stream(prompt, params)) as pieces:
        async for piece in pieces:
            if isinstance(piece, BackendEnd):
                return text, piece
            text += piece.text
    raise AssertionError("the stream has no end")


async def test_model_answers_and_counts(backend: LlamaBackend) -> None:
    """Text comes, it ends for the reason that it has, and the counter knows the model's tokens."""
    text, end = await ask(backend, PUMPS, "What does pump 3 lift?")
    assert text
    assert (end.finish_reason, end.model, end.usage.output_tokens) == (FinishReason.LENGTH, "smollm2", 4)
    longer = await ask(backend, PUMPS, "What does pump 3 lift at 250 °C?")
    added = backend.counter.count(" at 250 °C?") - backend.counter.count("?")
    assert longer[1].usage.prompt_tokens - end.usage.prompt_tokens == added


async def test_prompts_of_one_beginning_share_it_and_others_do_not_drive_it_out(backend: LlamaBackend) -> None:
    """The same sources are computed once, also when other sources were asked about in between."""
    assert (await ask(backend, PUMPS, "How much?"))[1].usage.cached_prompt_tokens < 32
    await ask(backend, VALVES, "Which valve?")
    end = (await ask(backend, PUMPS, "Which pump?"))[1]
    assert end.usage.cached_prompt_tokens > backend.counter.count(PUMPS)


async def test_prompt_that_is_too_long_is_refused_for_good(backend: LlamaBackend) -> None:
    """Asking again would not help, and the next one is served."""
    with pytest.raises(BackendUnavailable) as caught:
        await ask(backend, PUMPS * 10, "How much?")
    assert not caught.value.transient
    assert (await ask(backend, "", "How much?"))[0]
