"""The scripted server of the tools, against the official client over a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import openai
import pytest
from openai.types.chat import ChatCompletionChunk, ChatCompletionUserMessageParam

from bench._common.generation.prefix_blocks import BLOCK_TOKENS, PrefixBlocks
from bench._common.generation.script import Script
from bench._common.generation.scripted_server import ScriptedServer

QUICK = Script(prompt_ms_per_1k=0.0, token_ms=0.0, tokens=5)


@asynccontextmanager
async def _served(script: Script) -> AsyncIterator[tuple[ScriptedServer, openai.AsyncOpenAI]]:
    scripted = ScriptedServer(script)
    async with await asyncio.start_server(scripted.serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0) as client:
            yield scripted, client
        async with asyncio.timeout(5):
            while scripted.counts.connections:
                await asyncio.sleep(0)


def _asked(text: str) -> list[ChatCompletionUserMessageParam]:
    return [{"role": "user", "content": text}]


async def _stream(client: openai.AsyncOpenAI, text: str, most: int = 100) -> list[ChatCompletionChunk]:
    chunks = await client.chat.completions.create(
        model="scripted",
        messages=_asked(text),
        stream=True,
        max_tokens=most,
        stream_options={"include_usage": True},
    )
    return [chunk async for chunk in chunks]


async def test_scripted_server_streams_answers_with_usage() -> None:
    """The official client reads pieces, the reason for the end, and the counts; one connection serves many requests."""
    async with _served(QUICK) as (scripted, client):
        for most, length in ((100, 5), (3, 3)):
            chunks = await _stream(client, "one two three", most)
            texts = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
            assert len([text for text in texts if text]) == length
            assert chunks[-2].choices[0].finish_reason == "stop"
            usage = chunks[-1].usage
            assert usage is not None
            assert (usage.prompt_tokens, usage.completion_tokens) == (3, length)
        whole = await client.chat.completions.create(model="scripted", messages=_asked("one"))
        assert (whole.choices[0].message.content or "").endswith("[1].")
        assert [model.id async for model in client.models.list()] == ["scripted"]
        assert scripted.counts.answered == 3


async def test_scripted_server_works_on_so_many_at_once() -> None:
    """Requests beyond the slots wait inside; beyond its bound it refuses."""
    script = Script(slots=1, prompt_ms_per_1k=0.0, token_ms=1.0, tokens=5, refuse_beyond=3)
    async with _served(script) as (scripted, client):
        ends = await asyncio.gather(*(_stream(client, "one") for _ in range(6)), return_exceptions=True)
        assert sum(isinstance(end, openai.RateLimitError) for end in ends) == scripted.counts.refused == 3
        assert (scripted.counts.most_inside, scripted.counts.answered, scripted.counts.inside) == (3, 3, 0)


async def test_scripted_server_fails_as_told() -> None:
    """A share of requests gets an error before anything is sent."""
    async with _served(Script(fail_share=1.0)) as (scripted, client):
        with pytest.raises(openai.InternalServerError):
            await _stream(client, "one")
        assert scripted.counts.failed == 1


async def test_scripted_server_notices_that_its_client_left() -> None:
    """What is not wanted any more is not made."""
    async with _served(Script(token_ms=3_600_000.0)) as (scripted, client):
        async with client.with_options(timeout=10) as short:
            chunks = await short.chat.completions.create(model="scripted", messages=_asked("one"), stream=True)
            await anext(aiter(chunks))
            await chunks.close()
        async with asyncio.timeout(5):
            while scripted.counts.inside:
                await asyncio.sleep(0)
        assert scripted.counts.left == 1


def test_prefix_blocks_reuse_whole_blocks_from_the_beginning_only() -> None:
    """A prompt shares what it has in common from its first word on, and the least used is forgotten."""
    blocks, words = PrefixBlocks(4 * BLOCK_TOKENS), [str(number) for number in range(3 * BLOCK_TOKENS)]
    assert blocks.read(words) == 0
    assert blocks.read(words) == 3 * BLOCK_TOKENS
    assert blocks.read([*words[: BLOCK_TOKENS + 3], "other"] * 2) == BLOCK_TOKENS
    assert blocks.read(["new", *words]) == 0
    assert blocks.read([str(-number) for number in range(4 * BLOCK_TOKENS)]) == 0
    assert blocks.read(words) == 0


def test_script_is_made_again_from_its_command_line() -> None:
    """Every field has an option."""
    import argparse

    script = Script(slots=3, spread=0.5, cached=100)
    parser = argparse.ArgumentParser()
    Script.add_options(parser)
    assert Script.of(parser.parse_args(script.arguments())) == script
