"""Answers by an OpenAI-compatible server: vLLM, SGLang, llama.cpp, Ollama, TGI, or OpenAI itself.

The only module that imports the client. Its own retries and timeouts are off: it retries what it has not read, bounds
each phase by itself, and cannot know what has been shown to a person already. Here a request is sent again only while
nothing of the answer has gone out, and a stream that ends before the model says so is an error.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, contextmanager
from typing import cast

import httpx2
import openai
import structlog
from openai import AsyncAPIResponse, AsyncOpenAI, AsyncStream
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam

from retrieval.assembly import PassageCounter
from retrieval.errors import BackendCut, BackendTimeout, BackendUnavailable
from retrieval.generation.messages import chat_messages
from retrieval.generation.openai_events import Completion, CompletionEvent
from retrieval.generation.pacing import Pacer
from retrieval.generation.sse import EventDecoder, ServerEvent
from retrieval.settings.generation import BackendSettings
from retrieval.types import BackendEnd, Delta, GenerationParams, Prompt

_log = structlog.get_logger("headrace")

_BACKOFF_S = 0.1
_USAGE_S = 2.0  # how long usage may come after the last token; the answer is whole without it
_DRAIN_S = 0.05  # how long the end of the body may come after `[DONE]`, for the connection to be used again
_TRANSIENT_STATUSES = frozenset({408, 409, 425, 429})
_REFUSALS = {
    401: "it refused the credentials",
    403: "it refused the credentials",
    404: "it knows no such model or address",
}


class OpenAIBackend:
    """A `Backend` on an OpenAI-compatible server."""

    def __init__(self, settings: BackendSettings, counter: PassageCounter) -> None:
        self._settings = settings
        self._counter = counter
        self._client = AsyncOpenAI(
            base_url=settings.base_url,
            api_key=settings.api_key.get_secret_value() or "none",
            max_retries=0,
            timeout=None,
        )
        # Taken from the environment otherwise, and sent to whatever server this is.
        self._client.organization = None
        self._client.project = None
        # The client imports most of itself when this is first asked for, which would hold up the first request.
        self._completions = self._client.chat.completions.with_streaming_response

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
        await self._client.close()

    async def stream(self, prompt: Prompt, params: GenerationParams) -> AsyncGenerator[Delta | BackendEnd, None]:
        """Gives the answer as it comes; see `Backend.stream`."""
        attempt = 0
        while True:
            sent_chars = 0
            try:
                async with aclosing(self._attempt(prompt, params)) as pieces:
                    async for piece in pieces:
                        sent_chars += len(piece.text) if isinstance(piece, Delta) else 0
                        yield piece
                return
            except _Failure as failure:
                if sent_chars:
                    raise BackendCut(self.name, sent_chars) from failure
                pause_s = _BACKOFF_S * 2**attempt
                in_time = time.monotonic_ns() + pause_s * 1e9 < params.deadline_ns
                if not (failure.transient and in_time and attempt < self._settings.retries):
                    if failure.status:
                        _log.warning("backend_refused", backend=self.name, status=failure.status)
                    raise BackendUnavailable(self.name, failure.reason) from failure
            await asyncio.sleep(pause_s)
            attempt += 1

    async def _attempt(self, prompt: Prompt, params: GenerationParams) -> AsyncGenerator[Delta | BackendEnd, None]:
        """Sends the request once; raises _Failure when the stream ends before the answer does."""
        limits = self._settings
        pacer = Pacer(self.name, limits.first_token_timeout_s, limits.token_timeout_s, params.deadline_ns)
        completion = Completion(self.model)
        try:
            async with aclosing(self._events(prompt, params, pacer)) as events:
                async for event in events:
                    if text := _follow(event, completion, pacer):
                        yield Delta(text)
        except (_Failure, BackendTimeout):
            if not completion.finished:
                raise
        if not completion.finished:
            raise _Failure("its stream ended before the answer did", transient=True)
        yield BackendEnd(completion.finish_reason, completion.usage, completion.model)

    async def _events(
        self, prompt: Prompt, params: GenerationParams, pacer: Pacer
    ) -> AsyncGenerator[ServerEvent, None]:
        """Gives the events of the reply up to the end of its body, and frees the connection however it is left."""
        decoder = EventDecoder()
        async with AsyncExitStack() as stack:
            with _translated():
                async with pacer.bound():
                    response = await stack.enter_async_context(self._request(prompt, params))
            body = await stack.enter_async_context(aclosing(_body(response)))
            chunk: bytes | None = b""
            while chunk is not None:
                with _translated():
                    async with pacer.bound():
                        chunk = await anext(body, None)
                    events = list(decoder.finish() if chunk is None else decoder.feed(chunk))
                for event in events:
                    yield event

    def _request(
        self, prompt: Prompt, params: GenerationParams
    ) -> AbstractAsyncContextManager[AsyncAPIResponse[AsyncStream[ChatCompletionChunk]]]:
        system, user = chat_messages(prompt)
        messages: list[ChatCompletionMessageParam] = [
            {"role": "system", "content": system.content},
            {"role": "user", "content": user.content},
        ]
        return self._completions.create(
            model=self.model,
            messages=messages,
            max_tokens=params.max_output_tokens,
            temperature=params.temperature,
            stream=True,
            stream_options={"include_usage": True},
        )


class _Failure(Exception):
    """An attempt failed; `transient` tells whether the same request may work in a moment.

    `status` is that of HTTP where the server refused, 0 otherwise.
    """

    def __init__(self, reason: str, *, transient: bool, status: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.transient = transient
        self.status = status


def _follow(event: ServerEvent, completion: Completion, pacer: Pacer) -> str:
    """Takes one event into account; returns the text that it adds to the answer."""
    if event.data.startswith("[DONE]"):
        completion.close()
        pacer.expect_within(_DRAIN_S)
        return ""
    with _translated():
        part = CompletionEvent.model_validate_json(event.data)
    if part.error or event.name == "error":
        raise _Failure("it reported an error in its stream", transient=True)
    completion.take(part)
    if completion.aborted:
        raise _Failure("it gave the answer up", transient=True)
    if completion.finished:
        pacer.expect_within(_USAGE_S)
    elif part.is_token:
        pacer.token()
    return part.text


def _body(response: AsyncAPIResponse[AsyncStream[ChatCompletionChunk]]) -> AsyncGenerator[bytes, None]:
    return cast("AsyncGenerator[bytes, None]", response.iter_bytes())


@contextmanager
def _translated() -> Iterator[None]:
    """Turns what the client, its transport and its formats raise into _Failure, without a word of the server's."""
    try:
        yield
    except openai.APIStatusError as error:
        status = error.status_code
        reason = f"{_REFUSALS.get(status, 'it refused the request')} (status {status})"
        transient = status >= 500 or status in _TRANSIENT_STATUSES
        raise _Failure(reason, transient=transient, status=status) from error
    except (openai.APIConnectionError, httpx2.TransportError) as error:
        raise _Failure("the connection to it failed", transient=True) from error
    except (openai.OpenAIError, httpx2.HTTPError, httpx2.StreamError) as error:
        raise _Failure("the client could not talk to it", transient=False) from error
    except ValueError as error:
        raise _Failure("it sent something else than a stream of chat completion events", transient=False) from error
