"""Chat completions over HTTP, with OpenAI's own client and a scripted request path."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import openai
import pytest
from structlog.testing import capture_logs

from indexers.types import Epoch, Passage
from retrieval.clock import Ledger, Stage, StageCost
from retrieval.errors import BackendCut, BackendUnavailable, Overloaded
from retrieval.route import ConversationReport, Priority
from retrieval.speech import Delta, FinishReason, Speaker, ToolCall, Turn, Usage
from retrieval.types import AnswerCitation, CacheControl, Citation, Completed, Context, Retrieved
from tests.fakes.http_rig import AnsweringPath, HttpRig, http_rig

CHAT = "/v1/chat/completions"
ASKED: Any = [{"role": "user", "content": "How thick?"}]
LEDGER = Ledger((StageCost(Stage.EMBED, 1_500_000, 0, 0), StageCost(Stage.OTHER, 500_000, 0, 0)), 2_000_000)

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"n": 2}, "n"),
    ({"top_p": 0.5}, "top_p"),
    ({"seed": 7}, "seed"),
    ({"stop": ["x"]}, "stop"),
    ({"response_format": {"type": "json_object"}}, "response_format"),
    ({"unheard_of": 1}, "unheard_of"),
    ({"model": "No Name"}, "model"),
    ({"messages": [{"role": "user", "content": " "}]}, "messages"),
    ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
    ({"messages": [{"role": "user", "content": "x"}] * 300}, "messages"),
    ({"messages": [*ASKED, *[{"role": "tool", "content": "x"}] * 10_000]}, "messages"),
    ({"tools": [{"a": 1}] * 10_000}, "tools"),
    ({"tool_choice": "auto"}, "tool_choice"),
    ({"tool_choice": "required", "tools": []}, "tool_choice"),
    ({"messages": [{"role": "user", "content": "x"}, *[{"role": "tool", "content": "x" * 6000}] * 180]}, "messages"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"max_tokens": 2**40}, "max_tokens"),
    ({"max_tokens": 3, "max_completion_tokens": 4}, "max_tokens"),
    ({"temperature": 3}, "temperature"),
    ({"temperature": "1"}, "temperature"),
    ({"user": "u" * 300}, "session"),
    ({"headrace": {"top_k": 0}}, "headrace.top_k"),
    ({"headrace": {"top_k": -1}}, "headrace.top_k"),
    ({"headrace": {"candidates": 1, "top_k": 5}}, "headrace.candidates"),
    ({"headrace": {"filter": "year >"}}, "headrace.filter"),
    ({"headrace": {"cache_control": {"max_age_s": -1}}}, "headrace.cache_control.max_age_s"),
    ({"headrace": {"misspelt": 1}}, "headrace.misspelt"),
]


def _completed(reason: FinishReason = FinishReason.STOP, *citations: AnswerCitation) -> Completed:
    return Completed(reason, Usage(70, 3, 64), citations, 0, LEDGER, "llm", "served")


def _retrieved() -> Retrieved:
    passage = Passage(
        chunk_id="d#0",
        document_id="d",
        title="Pipes",
        heading_path=(),
        text="The pipe is thick.",
        start=5,
        end=23,
        ordinal=0,
        page=2,
        metadata={},
        source_uri="file:///d.txt",
    )
    context = Context("[1] The pipe is thick.", 7, 100, "none", (Citation(1, passage, ("d#0",)),))
    return Retrieved("r", (), context, LEDGER, Epoch(1, 2), ConversationReport(turns=3, kept=2, dropped=1))


async def _body(rig: HttpRig, **body: Any) -> httpx.Response:
    async with rig.http() as http:
        return await http.post(CHAT, json={"model": "docs", "messages": ASKED} | body)


async def _until_broken_off(rig: HttpRig) -> bytes:
    """Returns what a stream sends until it breaks off without an end."""
    body = {"model": "docs", "messages": ASKED, "stream": True}
    received: list[bytes] = []
    async with rig.http() as http, http.stream("POST", CHAT, json=body) as reply:
        pieces = reply.aiter_bytes()
        with contextlib.suppress(httpx.RemoteProtocolError):
            while True:  # a body that ends raises StopAsyncIteration
                received.append(await anext(pieces))
    return b"".join(received)


async def _until_cut(lines: AsyncIterator[str]) -> AsyncIterator[str]:
    """Gives the lines of a stream until it ends or is broken off."""
    with contextlib.suppress(httpx.RemoteProtocolError):
        async for line in lines:
            yield line


async def test_chat_answers_whole() -> None:
    """A completion in OpenAI's shape: text, thoughts apart, usage with cached tokens; ours beside it."""
    cited = _completed(FinishReason.STOP, AnswerCitation(1, 6, 9, "d"))
    path = AnsweringPath(Delta("Thick "), Delta("", "hm"), Delta("[1]."), cited, retrieved=_retrieved())
    async with http_rig(path=path) as rig, rig.client() as client:
        raw = await client.chat.completions.with_raw_response.create(model="docs@llm", messages=ASKED)
    completion: Any = raw.parse()
    [choice] = completion.choices
    assert (choice.message.content, choice.message.reasoning_content) == ("Thick [1].", "hm")
    assert (choice.finish_reason, completion.model) == ("stop", "docs@llm")
    assert completion.usage.prompt_tokens_details.cached_tokens == 64
    assert completion.usage.total_tokens == 73
    assert completion.headrace["citations"] == [
        {
            "number": 1,
            "document_id": "d",
            "title": "Pipes",
            "source_uri": "file:///d.txt",
            "start": 5,
            "end": 23,
            "page": 2,
            "answer_start": 6,
            "answer_end": 9,
        }
    ]
    conversation = completion.headrace["conversation"]
    assert (conversation["turns"], conversation["kept"], conversation["dropped"]) == (3, 2, 1)
    assert completion.headrace["ledger"]["total_ns"] == 2_000_000
    assert completion.headrace["request_id"] == raw.headers["x-request-id"]
    assert raw.headers["server-timing"] == "embed;dur=1.500, other;dur=0.500, total;dur=2.000"


async def test_chat_streams() -> None:
    """Who speaks, the pieces, the end with what is ours, the usage when it is asked for, `[DONE]`."""
    path = AnsweringPath(Delta("Thi"), None, Delta("ck é\u2028\n\ndata: x"), _completed(), retrieved=_retrieved())
    async with http_rig(path=path) as rig, rig.client() as client:
        stream = await client.chat.completions.create(
            model="docs", messages=ASKED, stream=True, stream_options={"include_usage": True}
        )
        assert stream.response.headers["server-timing"].startswith("embed;dur=1.5")
        chunks: list[Any] = []
        async for chunk in stream:
            chunks.append(chunk)
            path.go.set()
    said = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(text or "" for text in said) == "Thick é\u2028\n\ndata: x"
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]] == [None, None, None, "stop"]
    assert chunks[-2].headrace["backend"] == "llm"
    assert (chunks[-1].choices, chunks[-1].usage.completion_tokens) == ([], 3)
    assert len({chunk.id for chunk in chunks}) == 1


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        (FinishReason.LENGTH, "length"),
        (FinishReason.CONTENT_FILTER, "content_filter"),
        (FinishReason.NO_EVIDENCE, "stop"),
    ],
)
async def test_chat_says_why_an_answer_ended(reason: FinishReason, finish: str) -> None:
    """What OpenAI's API has no word for is told beside; an answer without text is whole, and says who speaks."""
    async with http_rig(path=AnsweringPath(_completed(reason))) as rig, rig.client() as client:
        whole: Any = await client.chat.completions.create(model="docs", messages=ASKED)
        stream = await client.chat.completions.create(model="docs", messages=ASKED, stream=True)
        [chunk] = [chunk async for chunk in stream]
    for end in (whole.choices[0], chunk.choices[0]):
        assert end.finish_reason == finish
    assert (whole.choices[0].message.content, whole.headrace["finish_reason"]) == ("", reason.value)
    assert chunk.choices[0].delta.role == "assistant"


async def test_chat_passes_calls_of_functions() -> None:
    """Pieces of calls go through as they come, and are put together where the answer is whole."""
    pieces = (
        Delta("", "", (ToolCall(0, "c1", "gate", '{"n"'),)),
        Delta("", "", (ToolCall(0, "", "", ":7}"), ToolCall(1, "c2", "log", "{}"))),
    )
    path = AnsweringPath(*pieces, _completed(FinishReason.TOOL_CALLS))
    tools: Any = [{"type": "function", "function": {"name": "gate", "parameters": {"type": "object"}}}]
    async with http_rig(path=path) as rig, rig.client() as client:
        whole = await client.chat.completions.create(model="docs", messages=ASKED, tools=tools, tool_choice="auto")
        async with client.chat.completions.stream(model="docs", messages=ASKED, tools=tools) as stream:
            streamed = await stream.get_final_completion()
    for message in (whole.choices[0].message, streamed.choices[0].message):
        calls: Any = message.tool_calls
        assert [(call.id, call.function.name, call.function.arguments) for call in calls] == [
            ("c1", "gate", '{"n":7}'),
            ("c2", "log", "{}"),
        ]
    assert whole.choices[0].finish_reason == "tool_calls"
    assert path.asked[0].tools is not None
    assert json.loads(path.asked[0].tools.definitions) == tools
    assert path.asked[0].tools.choice == '"auto"'


async def test_chat_hands_on_all_that_shapes_an_answer() -> None:
    """Model, instructions, turns, limits, session and our own parameters reach the request path."""
    path = AnsweringPath(_completed())
    ours = {"top_k": 3, "filter": "year >= 2020", "cache_control": {"no_store": True}, "priority": "batch"}
    messages = [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "What is a penstock?"},
        {"role": "assistant", "content": "A pipe."},
        *ASKED,
    ]
    async with http_rig(path=path) as rig:
        answered = await _body(
            rig, model="docs@llm", messages=messages, max_tokens=9, temperature=1, user="u", headrace=ours
        )
        named = await _body(rig, metadata={"session": "s"}, prompt_cache_key="k", user="u", store=False, n=1, top_p=1)
    assert (answered.status_code, named.status_code) == (200, 200)
    [asked, second] = path.asked
    assert (asked.retrieve.collection, asked.backend, asked.retrieve.query) == ("docs", "llm", "How thick?")
    assert (asked.instructions, asked.max_output_tokens, asked.temperature) == ("Be short.", 9, 1.0)
    assert asked.retrieve.turns == (Turn(Speaker.USER, "What is a penstock?"), Turn(Speaker.ASSISTANT, "A pipe."))
    assert asked.retrieve.thresholds.top_k == 3
    assert asked.retrieve.filter is not None
    assert asked.retrieve.cache_control == CacheControl(no_store=True)
    assert (asked.session, asked.priority) == ("u", Priority.BATCH)
    assert second.session == "s"


async def test_chat_names_what_it_does_not_honour() -> None:
    """A parameter that would be ignored, or is out of bounds, is refused by the name that the caller gave it."""
    async with http_rig() as rig:
        for body, param in REFUSED:
            refused = await _body(rig, **body)
            error = refused.json()["error"]
            assert (refused.status_code, error["param"]) == (400, param), error
            assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize("stream", [False, True])
async def test_chat_failure_before_the_first_piece_has_a_status(stream: bool) -> None:
    """Overload in a queue is 429 with the time to come back, a backend that is away 503, nothing of its words."""
    full = AnsweringPath(Overloaded("requests", 4, 1_250.0), retrieved=_retrieved())
    away = AnsweringPath(BackendUnavailable("llm", "http://u:SECRET1@h"), retrieved=_retrieved())
    async with http_rig(path=full) as rig:
        busy = await _body(rig, stream=stream)
        assert rig.count(CHAT, "RESOURCE_EXHAUSTED") == 1
    async with http_rig(path=away) as rig:
        gone = await _body(rig, stream=stream)
    assert (busy.status_code, busy.headers["retry-after"], busy.headers["retry-after-ms"]) == (429, "2", "1250")
    assert busy.json()["error"]["type"] == "rate_limit_error"
    assert (gone.status_code, gone.json()["error"]["code"]) == (503, "BACKEND_UNAVAILABLE")
    assert "SECRET1" not in gone.text


async def test_chat_failure_in_the_middle_breaks_the_stream_off() -> None:
    """What came is marked as a part: an event with the error, no `[DONE]`, a body that does not end (GEN-10)."""
    path = AnsweringPath(Delta("Thi"), BackendCut("llm", 3), retrieved=_retrieved())
    async with http_rig(path=path) as rig:
        async with rig.client() as client:
            stream = await client.chat.completions.create(model="docs", messages=ASKED, stream=True)
            with pytest.raises(openai.APIError, match="failed after 3 characters"):
                async for _ in stream:
                    pass
        received = await _until_broken_off(rig)
        assert rig.count(CHAT, "UNAVAILABLE") == 2
    *_, last = received.decode().strip().split("\n\n")
    error = json.loads(last.removeprefix("data: "))["error"]
    assert (error["code"], error["partial"]) == ("BACKEND_CUT", True)
    assert b"[DONE]" not in received


async def test_chat_hides_unexpected_errors() -> None:
    """An unexpected error is 500 with the request's id and nothing of its text; our log has it all (GRP-02)."""
    with capture_logs() as lines:
        async with http_rig() as rig:
            failed = await _body(rig, messages=[{"role": "user", "content": "please raise"}])
    assert failed.status_code == 500
    assert "SECRET1" not in failed.text
    [line] = [line for line in lines if line["event"] == "request"]
    assert line["request_id"] in failed.json()["error"]["message"]
    assert (line["log_level"], line["method"]) == ("error", CHAT)


async def test_chat_answers_when_work_was_cancelled_inside() -> None:
    """A cancellation that is not the caller's becomes a status at once (GRP-01)."""
    with capture_logs():
        async with http_rig() as rig:
            failed = await _body(rig, messages=[{"role": "user", "content": "cancelled"}])
    assert (failed.status_code, failed.json()["error"]["code"]) == (503, "CANCELLED_INSIDE")


@pytest.mark.parametrize("stream", [False, True])
async def test_chat_ends_its_work_when_the_caller_leaves(stream: bool) -> None:
    """Whoever leaves, before the reply has begun or within it, ends what runs for him at once (GEN-11)."""
    path = AnsweringPath(Delta("Thi"), None)
    async with http_rig(path=path) as rig:
        for number in range(10):
            path.entered.clear()
            leaving = asyncio.create_task(_body(rig, stream=stream))
            await path.entered.wait()
            leaving.cancel()
            await asyncio.wait([leaving])
            while path.closed <= number or rig.count(CHAT, "CANCELLED") <= number:
                await asyncio.sleep(0)
        assert rig.metrics.registry.get_sample_value("headrace_in_flight", {"method": CHAT}) == 0


async def test_chat_failure_after_comments_alone_is_of_no_part() -> None:
    """A stream that was kept open before anything came breaks off with an error that speaks of no part."""
    path = AnsweringPath(None, BackendUnavailable("llm", "away"), retrieved=_retrieved())
    async with http_rig(path=path, keepalive_s=0.1) as rig, rig.http() as http:
        body = {"model": "docs", "messages": ASKED, "stream": True}
        async with http.stream("POST", CHAT, json=body) as reply:
            lines = reply.aiter_lines()
            assert await anext(lines) == ": keep-alive"
            path.go.set()
            told = [line async for line in _until_cut(lines) if line.startswith("data: ")]
    [error] = [json.loads(line.removeprefix("data: "))["error"] for line in told]
    assert error["code"] == "BACKEND_UNAVAILABLE"
    assert "partial" not in error


async def test_chat_takes_strict_json_for_tools() -> None:
    """What is no number in JSON cannot be handed on to a model server, which would refuse all of the request."""
    path = AnsweringPath(_completed())
    async with http_rig(path=path) as rig:
        for number in ("NaN", "-Infinity", "1e999"):
            content = f'{{"model":"docs","messages":{json.dumps(ASKED)},"tools":[{{"a":{number}}}]}}'
            async with rig.http() as http:
                refused = await http.post(CHAT, content=content, headers={"content-type": "application/json"})
            assert (refused.status_code, refused.json()["error"]["type"]) == (400, "invalid_request_error")
            assert refused.json()["error"]["param"].startswith("tools")
    assert not path.asked


async def test_chat_converts_long_bodies_as_short_ones() -> None:
    """A body that is converted beside the event loop asks the same and is refused in the same words."""
    path = AnsweringPath(_completed())
    long = [{"role": "user", "content": "x" * 100_000}, {"role": "assistant", "content": "y"}, *ASKED]
    async with http_rig(path=path) as rig:
        answered, refused = await _body(rig, messages=long), await _body(rig, messages=long, n=2)
    assert (answered.status_code, refused.status_code, refused.json()["error"]["param"]) == (200, 400, "n")
    assert [len(turn.text) for turn in path.asked[0].retrieve.turns] == [100_000, 1]


async def test_chat_keeps_a_silent_stream_open() -> None:
    """Comments come while there is nothing to say, before the first piece too."""
    path = AnsweringPath(None, Delta("x"), _completed())
    async with http_rig(path=path, keepalive_s=0.1) as rig, rig.http() as http:
        body = {"model": "docs", "messages": ASKED, "stream": True}
        async with http.stream("POST", CHAT, json=body) as reply:
            lines = reply.aiter_lines()
            assert await anext(lines) == ": keep-alive"
            path.go.set()
            rest = [line async for line in lines if line]
    assert rest[-1] == "data: [DONE]"


async def test_chat_holds_no_more_for_a_slow_reader() -> None:
    """A reader who does not read stops what is read for him instead of piling it up, and is given up in the end."""
    made = 0
    headers = {"x-request-timeout-ms": "200"}

    class Endless(AnsweringPath):
        async def generate(self, request: Any, clock: Any, deadline: Any) -> Any:
            nonlocal made
            yield await self.retrieve(request.retrieve, clock, deadline)
            try:
                while True:
                    made += 1
                    yield Delta("w" * 1000)
                    await asyncio.sleep(0)
            finally:
                self.closed += 1

    path = Endless()
    async with http_rig(path=path) as rig, rig.http() as http:
        body = {"model": "docs", "messages": ASKED, "stream": True}
        async with http.stream("POST", CHAT, json=body, headers=headers):
            while not path.closed:
                await asyncio.sleep(0)
    assert made < 20_000
