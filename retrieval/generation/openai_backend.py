"""Answers by an OpenAI-compatible server: vLLM, SGLang, llama.cpp, Ollama, TGI, or OpenAI itself.

One attempt, and a stream that ends before the model says so is an error. All pieces that arrive together go out as one,
so that a reader who falls behind is given more at a time instead of more to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from itertools import count

import structlog

from retrieval.assembly import PassageCounter
from retrieval.errors import BackendCut, BackendError, BackendTimeout, BackendUnavailable
from retrieval.generation.openai_failures import Failure
from retrieval.generation.openai_http import DRAIN_S, ChatServer
from retrieval.generation.openai_reading import CompletionReader
from retrieval.generation.openai_request import request_body
from retrieval.generation.pacing import Pacer, Silence
from retrieval.settings.generation import BackendSettings
from retrieval.speech import BackendEnd, Delta, GenerationParams
from retrieval.types import Prompt

_log = structlog.get_logger("headrace")

_USAGE_S = 2.0  # how long usage may come after the last token; the answer is whole without it
_CHUNKS_IN_A_ROW = 16
_SLICE_CHARS = 8192  # of text at a time: who reads a long piece has the event loop to himself meanwhile
# No answer takes so many characters a token; what is over is for thoughts, which some servers do not count.
_CHARS_PER_TOKEN = 64
_UNCOUNTED_CHARS = 1 << 18
_WINDOWS = 10  # a server that counts more tokens than fill its window so often has not counted
_BROKE_OFF = "its stream ended before the answer did"


class OpenAIBackend:
    """A `Backend` on an OpenAI-compatible server."""

    def __init__(self, settings: BackendSettings, counter: PassageCounter, base_url: str = "") -> None:
        """Takes the server at `base_url`, or the settings' own. Opens no connection yet.

        Raises:
            ConfigError: `tls_ca_file` cannot be read.
        """
        self._settings = settings
        self._counter = counter
        self._server = ChatServer(settings, base_url or settings.base_url)

    @property
    def name(self) -> str:
        """What requests call it."""
        return self._settings.name

    @property
    def model(self) -> str:
        """The model's name on the server."""
        return self._settings.model

    @property
    def context_window_tokens(self) -> int:
        """Tokens of prompt and answer together."""
        return self._settings.context_window_tokens

    @property
    def counter(self) -> PassageCounter:
        """Counts as the model does."""
        return self._counter

    async def close(self) -> None:
        """Closes the connections."""
        await self._server.close()

    async def stream(self, prompt: Prompt, params: GenerationParams) -> AsyncGenerator[Delta | BackendEnd, None]:
        """Gives the answer as it comes; see `Backend.stream`."""
        limits = self._settings
        pacer = Pacer(limits.first_token_timeout_s, limits.token_timeout_s, params.deadline_ns)
        reader = self._reader(params)
        begun = False
        try:
            async with aclosing(self._deltas(prompt, params, pacer, reader)) as deltas:
                async for delta in deltas:
                    begun = True
                    yield delta
        except (Failure, Silence) as fault:
            # What breaks after the model's last word takes nothing from the answer.
            if not reader.finished:
                raise self._error(fault, begun, reader.received_chars) from fault
        finally:
            pacer.close()
        yield reader.end

    async def _deltas(
        self, prompt: Prompt, params: GenerationParams, pacer: Pacer, reader: CompletionReader
    ) -> AsyncGenerator[Delta, None]:
        """Gives what is not empty; raises Failure or Silence unless the answer was whole when the stream ended."""
        body = request_body(self.model, prompt, params, openai=self._server.is_openai)
        async with self._server.ask(body, pacer) as events:
            for number in count(1):
                chunk = await events.read()
                delta = reader.finish() if chunk is None else reader.feed(chunk)
                if delta is not None:
                    pacer.token()
                    for place, piece in enumerate(_slices(delta)):
                        if place:
                            await asyncio.sleep(0)
                        yield piece
                if reader.failure is not None:
                    raise reader.failure
                _pace(pacer, reader, got_something=delta is not None)
                if chunk is None:
                    break
                if number % _CHUNKS_IN_A_ROW == 0:
                    await asyncio.sleep(0)  # what has arrived already is read without a wait, and others want a turn
        if not reader.finished:
            raise Failure(_BROKE_OFF, transient=True)

    def _reader(self, params: GenerationParams) -> CompletionReader:
        """Returns what reads one answer, in bounds that hold memory and figures against a server that is broken."""
        most_chars = _CHARS_PER_TOKEN * params.max_output_tokens + _UNCOUNTED_CHARS
        return CompletionReader(self.model, most_chars, _WINDOWS * self._settings.context_window_tokens)

    def _error(self, fault: Failure | Silence, begun: bool, received_chars: int) -> BackendError:
        if begun:
            return BackendCut(self.name, received_chars, str(fault))
        if isinstance(fault, Silence):
            return BackendTimeout(self.name, fault.waited_ms)
        if fault.status and not fault.transient:
            _log.warning("backend_refused", backend=self.name, status=fault.status)
        return BackendUnavailable(
            self.name,
            fault.reason,
            transient=fault.transient,
            retry_after_s=fault.retry_after_s,
            status=fault.status,
        )


def _pace(pacer: Pacer, reader: CompletionReader, *, got_something: bool) -> None:
    """Bounds what is to come; raises Silence when it is too late for it."""
    if not got_something:
        pacer.nothing()
    if reader.finished:
        pacer.hurry(DRAIN_S if reader.closed else _USAGE_S)


def _slices(delta: Delta) -> Iterable[Delta]:
    """Returns a piece as it is, or in parts when its text is very long."""
    if len(delta.text) <= _SLICE_CHARS:
        return (delta,)
    texts = [delta.text[start : start + _SLICE_CHARS] for start in range(0, len(delta.text), _SLICE_CHARS)]
    return (Delta(texts[0], delta.reasoning, delta.tool_calls), *map(Delta, texts[1:]))
