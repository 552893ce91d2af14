"""Answers by a small model on this machine: llama.cpp in a process of its own, spoken to as any other server."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path

import structlog
from pydantic import SecretStr

from encoders.errors import ExtraMissing
from encoders.gguf import GgufMetadata, read_gguf
from encoders.gguf_sources import GgufSource, locate_gguf
from encoders.gguf_tokenizer import open_tokenization
from retrieval.assembly import PassageCounter
from retrieval.errors import BackendTimeout
from retrieval.generation.backend import Backend
from retrieval.generation.llama_child import Child
from retrieval.generation.llama_keeper import ChildKeeper
from retrieval.generation.llama_launch import Launch
from retrieval.generation.llama_sizing import launch_of
from retrieval.generation.openai_backend import OpenAIBackend
from retrieval.settings.generation import BackendSettings
from retrieval.speech import BackendEnd, Delta, GenerationParams
from retrieval.token_counters import RememberingCounter, open_counter
from retrieval.types import Prompt

_log = structlog.get_logger("headrace")

COMMAND = (sys.executable, "-m", "retrieval.generation.llama_server")


def open_llama(settings: BackendSettings, models_folder: Path, default_counter: PassageCounter) -> LlamaBackend:
    """Opens the backend; nothing is loaded before the first request, or `LlamaBackend.start`.

    `default_counter` counts when the settings name no tokenizer and the weights hold none that is known here.

    Raises:
        ExtraMissing: the extra `llama` is not installed.
        ModelNotFound: the weights are not there, or the hub does not give them.
        ModelUnsupported: the file is no GGUF file, or a tokenizer is broken.
    """
    if importlib.util.find_spec("xllamacpp") is None:
        raise ExtraMissing("llama", "xllamacpp")
    source = GgufSource(settings.model, settings.file, models_folder)
    weights = locate_gguf(source)
    metadata = read_gguf(weights, settings.model)
    counter = _counter(settings, source, weights, metadata) or default_counter
    return LlamaBackend(settings, launch_of(settings, source.label, weights, metadata), counter)


class LlamaBackend:
    """A `Backend` on a model that a child process runs. The first request starts it, if `start` did not."""

    def __init__(
        self, settings: BackendSettings, launch: Launch, counter: PassageCounter, command: Sequence[str] = COMMAND
    ) -> None:
        """`command` runs a program that speaks as `llama_server` does."""
        self._settings = settings
        self._launch = launch
        self._counter = counter
        self._keeper = ChildKeeper(settings.name, command, launch, self._client_of)

    @property
    def name(self) -> str:
        """What requests call it."""
        return self._settings.name

    @property
    def model(self) -> str:
        """The model's name, without the folder that it lies in."""
        return self._launch.label

    @property
    def context_window_tokens(self) -> int:
        """Tokens of prompt and answer together: what is configured, or the model's own limit when that is smaller."""
        return self._launch.slot_tokens

    @property
    def counter(self) -> PassageCounter:
        """Counts as the model does."""
        return self._counter

    def start(self) -> None:
        """Begins to load the model, so that the first request need not wait for it; needs a running event loop.

        Raises:
            BackendUnavailable: it was closed.
        """
        self._keeper.start()

    async def stream(self, prompt: Prompt, params: GenerationParams) -> AsyncGenerator[Delta | BackendEnd, None]:
        """Gives the answer as it comes; waits for the model to load as long as a first token may take."""
        client = await self._loaded(params)
        async with aclosing(client.stream(prompt, params)) as pieces:
            async for piece in pieces:
                yield piece
        self._keeper.worked()

    async def close(self) -> None:
        """Ends the child process."""
        await self._keeper.close()

    async def _loaded(self, params: GenerationParams) -> Backend:
        began_ns = time.monotonic_ns()
        left_s = (params.deadline_ns - began_ns) / 1e9
        try:
            async with asyncio.timeout(min(self._settings.first_token_timeout_s, left_s)):
                return await self._keeper.client()
        except TimeoutError:
            raise BackendTimeout(self.name, (time.monotonic_ns() - began_ns) / 1e6) from None

    def _client_of(self, child: Child) -> Backend:
        # llama.cpp ends the connection of each streamed reply a moment after it, though it offers to keep it, and the
        # next request would fail on it. The client keeps as many connections as there are requests at most: none.
        own = {"model": self._launch.label, "api_key": SecretStr(child.api_key), "max_concurrent": 0}
        return OpenAIBackend(self._settings.model_copy(update=own), self._counter, base_url=child.base_url)


def _counter(
    settings: BackendSettings, source: GgufSource, weights: Path, metadata: GgufMetadata
) -> PassageCounter | None:
    if settings.tokenizer:
        return open_counter(settings.tokenizer)
    tokenization = open_tokenization(weights, metadata, source.label)
    if tokenization is None:
        _log.warning("tokenizer_unknown", backend=settings.name, splitting=metadata.text("tokenizer.ggml.pre"))
        return None
    return RememberingCounter(tokenization)
