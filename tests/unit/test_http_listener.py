"""The HTTP listener: who may come in, how much, and how it stops."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import openai
import pytest

from retrieval.errors import ConfigError
from retrieval.identity import check_bind, hash_of
from retrieval.server.http import listener
from retrieval.settings import Settings
from retrieval.settings.http import HttpSettings
from retrieval.settings.service import ApiKey, AuthSettings
from tests.fakes.http_rig import AnsweringPath, HttpRig, http_rig

CHAT = "/v1/chat/completions"
READER = ApiKey(name="reader", sha256=hash_of("r"), tenant="a", roles=("read",))
WRITER = ApiKey(name="writer", sha256=hash_of("w"), tenant="b", roles=("write",))
BODY = {"model": "docs", "messages": [{"role": "user", "content": "q"}]}


async def _post(rig: HttpRig, **options: Any) -> httpx.Response:
    async with rig.http() as http:
        return await http.post(CHAT, **({"json": BODY} | options))


async def test_listener_knows_callers_by_their_keys() -> None:
    """The credential is OpenAI's own header: no key is 401, a role that lacks 403, and the tenant is the key's."""
    async with http_rig(READER, WRITER) as rig:
        assert (await _post(rig)).status_code == 401
        async with rig.client("x") as stranger:
            with pytest.raises(openai.AuthenticationError):
                await stranger.models.list()
        async with rig.client("w") as writer:
            with pytest.raises(openai.PermissionDeniedError):
                await writer.models.list()
        async with rig.client("r") as reader:
            await reader.chat.completions.create(**BODY)  # type: ignore[call-overload]
        async with rig.http() as http:
            assert (await http.get("/health")).status_code == 200
    assert [request.tenant for request in rig.path.requests] == ["a"]


async def test_listener_refuses_strangers_before_it_reads_their_body() -> None:
    """Who has no key cannot make the server hold a body."""
    async with http_rig(READER, max_body_bytes=1024) as rig:
        refused = await _post(rig, content=b"x" * 2048, json=None, headers={"content-type": "application/json"})
    assert refused.status_code == 401


async def test_listener_without_keys_answers_to_this_machine_only() -> None:
    """A page that was led here by a name of its own carries that name, and is refused."""
    async with http_rig() as rig:
        for host in ("localhost:1", "127.0.0.1", "[::1]:80"):
            assert (await _post(rig, headers={"host": host})).status_code == 200
        refused = await _post(rig, headers={"host": "attacker.example"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "HOST_FORBIDDEN")
    async with http_rig(READER) as rig:
        served = await _post(rig, headers={"host": "rag.example", "authorization": "Bearer r"})
    assert served.status_code == 200


async def test_listener_bounds_bodies() -> None:
    """A body above the bound is refused, whether its length is said or not."""

    async def pieces() -> Any:
        yield b" " * 2000

    headers = {"content-type": "application/json"}
    async with http_rig(max_body_bytes=1024) as rig:
        for content in (b" " * 2000, pieces()):
            refused = await _post(rig, content=content, json=None, headers=headers)
            assert (refused.status_code, refused.json()["error"]["code"]) == (413, "BODY_TOO_LARGE")


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (json.dumps(BODY).encode().replace(b'"q"', b'"\\ud800"'), "application/json", 400),
        (json.dumps(BODY).encode(), "application/json; charset=utf-8", 200),
        (json.dumps(BODY).encode(), "text/plain", 415),
    ],
)
async def test_listener_takes_json_only(content: bytes, kind: str, status: int) -> None:
    """What is no JSON, or does not say so, is refused; a page in a browser cannot say so without being asked."""
    async with http_rig() as rig:
        reply = await _post(rig, content=content, json=None, headers={"content-type": kind})
    assert reply.status_code == status


async def test_listener_takes_the_callers_deadline_and_name() -> None:
    """Both come in headers; the deadline is capped by ours, and one that is no number is refused."""
    async with http_rig() as rig:
        named = await _post(rig, headers={"x-request-id": "abc", "x-request-timeout-ms": "1500"})
        capped = await _post(rig, headers={"x-request-timeout-ms": "999999999"})
        refused = [(await _post(rig, headers={"x-request-timeout-ms": text})).status_code for text in ("0", "x", "-1")]
    assert (named.headers["x-request-id"], capped.status_code, refused) == ("abc", 200, [400, 400, 400])
    assert [deadline.budget_ms for deadline in rig.path.deadlines] == [1500.0, 120_000.0]


async def test_listener_bounds_connections() -> None:
    """One connection too many is told when to come back, and there is room again when another has gone."""
    async with http_rig(max_connections=1) as rig:
        async with rig.http() as first:
            await first.get("/health")
            refused = await _post(rig)
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "TOO_MANY_CONNECTIONS")
            assert refused.headers["retry-after"] == "1"
        while (await _post(rig)).status_code == 503:
            await asyncio.sleep(0)


async def test_listener_closes_connections_without_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever connects and asks for nothing, or never ends his first head, does not stay."""
    monkeypatch.setattr(listener, "REQUEST_HEAD_S", 0.05)
    async with http_rig() as rig:
        port = int(rig.base_url.rpartition(":")[2])
        for sent in (b"", b"GET /health HTTP/1.1\r\nhost: lo"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()


async def test_listener_closes_connections_that_bring_no_further_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second head that is never ended, or a body that goes on after its reply, keeps no connection open."""
    monkeypatch.setattr(listener, "REQUEST_HEAD_S", 0.1)
    whole = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
    bodiless = b"POST /v1/nothing HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n"
    async with http_rig() as rig:
        port = int(rig.base_url.rpartition(":")[2])
        for first, then in ((whole, b"GET /health HTTP/1.1\r\nhost: lo"), (whole + whole, b"G"), (bodiless, b"x")):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(first)
            assert (await reader.readline()).startswith(b"HTTP/1.1 ")
            writer.write(then)
            async with asyncio.timeout(10.0):
                await reader.read()
            writer.close()
            await writer.wait_closed()


async def test_listener_lets_requests_take_longer_than_their_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a first request nor one that came before the last reply ended is cut short by the wait for a head."""
    monkeypatch.setattr(listener, "REQUEST_HEAD_S", 0.2)
    path, body = AnsweringPath(None), json.dumps(BODY)
    head = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    asked = f"{head}content-length: {len(body)}\r\n\r\n{body}".encode()
    async with http_rig(path=path) as rig:
        port = int(rig.base_url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n" + asked)
        await path.entered.wait()
        later, unused = await asyncio.open_connection("127.0.0.1", port)
        assert await later.read() == b""  # so the time for a head is over for the first one too
        unused.close()
        await unused.wait_closed()
        path.go.set()
        replies = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert replies.count(b"HTTP/1.1 ") == 2


async def test_listener_waits_for_a_body_until_the_deadline() -> None:
    """A body that does not come holds its call no longer than the caller's own time."""
    head = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n"
    async with http_rig() as rig:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(rig.base_url.rpartition(":")[2]))
        writer.write(f"{head}x-request-timeout-ms: 50\r\n\r\n".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 504 ")
        writer.close()
        await writer.wait_closed()


async def test_listener_tells_unknown_paths_apart() -> None:
    """A path or verb that is not served is an error like others."""
    async with http_rig() as rig, rig.http() as http:
        unknown, verb = await http.get("/v1/nothing"), await http.get(CHAT)
        slash = await http.post(f"{CHAT}/", json=BODY)
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "UNKNOWN_ENDPOINT")
    assert (verb.status_code, verb.headers["allow"]) == (405, "POST")
    assert (slash.status_code, slash.json()["error"]["code"]) == (404, "UNKNOWN_ENDPOINT")


async def test_listener_drains() -> None:
    """After a stop is asked for, what runs may end, health says so, and new calls come back elsewhere (GRP-05)."""
    path = AnsweringPath(None)
    async with http_rig(path=path) as rig, rig.http() as http:
        running = asyncio.create_task(_post(rig))
        await path.entered.wait()
        draining = asyncio.create_task(rig.drain.finish(10.0))
        await asyncio.sleep(0)
        refused, health = await http.post(CHAT, json=BODY), await http.get("/health")
        path.go.set()
        await running
        await draining
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert (health.status_code, health.json()) == (503, {"status": "not_serving"})


async def test_listener_ends_what_does_not_end_by_itself() -> None:
    """When the listener goes, whole replies are told of it, and streams break off with an error."""
    path = AnsweringPath(None)
    async with http_rig(path=path) as rig:
        running = [asyncio.create_task(_post(rig, json=BODY | {"stream": stream})) for stream in (False, True)]
        while len(path.asked) < len(running):
            await asyncio.sleep(0)
    for reply in await asyncio.gather(*running):
        assert (reply.status_code, reply.json()["error"]["code"]) == (503, "SHUTTING_DOWN")
    assert path.closed == len(running)


async def test_listener_refuses_a_taken_port() -> None:
    """A port that another server has is not shared with it, and named."""
    async with http_rig() as rig:
        taken = int(rig.base_url.rpartition(":")[2])
        with pytest.raises(ConfigError, match=r"http\.port"):
            async with http_rig(port=taken):
                pass


def test_listener_needs_keys_beyond_loopback() -> None:
    """An open service is for this machine only; a listener that is off opens nothing."""
    check_bind(Settings(http=HttpSettings(port=8080)))
    check_bind(Settings(http=HttpSettings(port=0, host="0.0.0.0")))
    check_bind(Settings(http=HttpSettings(port=8080, host="0.0.0.0"), auth=AuthSettings(keys=(READER,))))
    with pytest.raises(ConfigError, match=r"http\.host"):
        check_bind(Settings(http=HttpSettings(port=8080, host="0.0.0.0")))
