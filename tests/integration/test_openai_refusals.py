"""Statuses other than 200 from an OpenAI-compatible server: what they mean, and when to come back."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from retrieval.errors import BackendUnavailable
from retrieval.generation.openai_backend import OpenAIBackend
from retrieval.settings.generation import BackendSettings
from tests.fakes.counters import WordCounter
from tests.fakes.openai_calls import backend, collect, unavailable
from tests.fakes.openai_server import Raw, Status, Wait, answer, serving


@pytest.mark.parametrize(
    ("status", "reason", "transient"),
    [
        (307, "it sends requests elsewhere (status 307)", False),
        (400, "it refused the request (status 400)", False),
        (401, "it refused the credentials (status 401)", False),
        (403, "it refused the credentials (status 403)", False),
        (404, "it knows no such model or address (status 404)", False),
        (408, "it gave up waiting for the request (status 408)", True),
        (409, "it refused the request (status 409)", True),
        (422, "it refused the request (status 422)", False),
        (425, "it refused the request (status 425)", True),
        (429, "it has too many requests (status 429)", True),
        (500, "it refused the request (status 500)", True),
        (503, "it refused the request (status 503)", True),
    ],
)
async def test_refusals_say_what_to_mend_without_the_servers_words(status: int, reason: str, transient: bool) -> None:
    """A refusal names its status and nothing that the server said; one that lasts is a line in the log."""
    with capture_logs() as lines:
        script = [Status(status, b"upstream words", (("Location", "http://127.0.0.1:1/"),))]
        error = await unavailable(script)
    assert (error.reason, error.transient, error.status) == (reason, transient, status)
    refused = {"event": "backend_refused", "log_level": "warning", "backend": "llm", "status": status}
    assert lines == ([] if transient else [refused])


@pytest.mark.parametrize("status", [429, 503])
async def test_pause_that_the_server_asks_for_is_told(status: int) -> None:
    """Retry-After is read in seconds and as a date."""
    date = (("Date", "Tue, 01 Dec 2026 10:00:00 GMT"), ("Retry-After", "Tue, 01 Dec 2026 10:01:30 GMT"))
    assert (await unavailable([Status(status, headers=date)])).retry_after_s == 90.0
    assert (await unavailable([Status(status, headers=(("Retry-After", "7"),))])).retry_after_s == 7.0
    assert (await unavailable([Status(status)])).retry_after_s == 0.0


async def test_refusal_gives_its_connection_back() -> None:
    """A server that has too much to do need not make a new connection for the next request too."""
    async with serving([Status(429)], answer("Hi")) as server, backend(server.base_url) as opened:
        with pytest.raises(BackendUnavailable):
            await collect(opened, [])
        assert await collect(opened, []) is not None
        assert server.connections == 1


async def test_refusal_whose_body_never_comes_is_one_at_once() -> None:
    """The status says it all; nobody waits for the rest."""
    head = b"HTTP/1.1 503 Busy\r\ncontent-length: 10\r\n\r\n"
    assert (await unavailable([Raw(head), Wait(asyncio.Event())])).status == 503


async def test_key_that_fits_into_no_header_is_told_apart_from_an_outage() -> None:
    """Nothing is sent, nothing of the key is told, and trying again is of no use; settings refuse such a key before."""
    async with serving(answer("Hi")) as server:
        settings = BackendSettings(name="llm", kind="openai", base_url=server.base_url, model="asked")
        opened = OpenAIBackend(settings.model_copy(update={"api_key": SecretStr("sk\r\nx: y")}), WordCounter())
        with pytest.raises(BackendUnavailable) as caught:
            await collect(opened, [])
        await opened.close()
    assert (caught.value.reason, caught.value.transient) == (
        "no request can be made of what is configured for it",
        False,
    )
    assert not server.exchanges
