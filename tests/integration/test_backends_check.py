"""What is found when a backend is tried: by the check itself, and as the command shows it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import structlog

from retrieval.cli.backends import commands
from retrieval.cli.session import Surroundings
from retrieval.generation.checking import BackendCheck, check_backend
from retrieval.generation.extractive import ExtractiveBackend
from retrieval.token_counters import open_counter
from tests.fakes.counters import WordCounter
from tests.fakes.openai_calls import SECRET, backend
from tests.fakes.openai_server import Pause, Script, Send, Status, answer, serving, sse, token

CHAT_TEMPLATE_TOKENS = 11  # what a server puts around messages


async def check(scripts: Sequence[Script], **changes: Any) -> BackendCheck:
    """Checks a backend that plays the scripts."""
    async with serving(*scripts) as server, backend(server.base_url, **changes) as opened:
        return await check_backend(opened)


async def counted(scale: float = 1.0) -> list[int]:
    """Returns the prompt tokens of the check's three questions, as a server counts whose tokens are so much smaller."""
    async with serving(answer("a")) as server, backend(server.base_url) as opened:
        await check_backend(opened)
        bodies = [exchange.body for exchange in server.exchanges]
    texts = [[message["content"] for message in body["messages"]] for body in bodies]
    counts = [sum(WordCounter().count(text) for text in each) for each in texts]
    return [round(scale * count) + CHAT_TEMPLATE_TOKENS for count in counts]


def replies(prompt_tokens: Sequence[int], cached: int = 0, *, together: bool = False) -> list[Script]:
    """Returns scripts that answer in two pieces, and tell these prompt tokens."""
    scripts: list[Script] = []
    for count in prompt_tokens:
        details = {"cached_tokens": cached if len(scripts) == 2 else 0}
        usage = {"prompt_tokens": count, "completion_tokens": 2, "prompt_tokens_details": details}
        first, last = sse(token("The ")), sse(token("mill.", "stop"), {"choices": [], "usage": usage}, "[DONE]")
        scripts.append([Send(first + last)] if together else [Send(first), Pause(), Send(last)])
    return scripts


async def test_good_server_passes() -> None:
    """What streams, tells usage and counts as we do passes, and its cached tokens and first token are told."""
    found = await check(replies(await counted(), cached=40))
    assert (found.passed, found.reachable, found.streams, found.reports_usage, found.fault) == (True,) * 4 + ("",)
    assert (found.token_ratio, found.reports_cached, found.usage.cached_prompt_tokens) == (1.0, True, 40)
    assert found.first_token_ms > 0.0


async def test_silence_about_the_cache_is_no_fault() -> None:
    """It is told, and the check passes."""
    found = await check(replies(await counted()))
    assert (found.passed, found.reports_cached) == (True, False)


async def test_server_that_counts_otherwise_fails() -> None:
    """A server whose tokens are a tenth smaller has another tokenizer than the one that is configured."""
    found = await check(replies(await counted(1.1)))
    assert (found.passed, found.counts_alike) == (False, False)
    assert found.token_ratio == pytest.approx(1.1, abs=0.02)


async def test_server_that_tells_no_usage_fails() -> None:
    """Without usage there is no ratio either."""
    found = await check(replies([0, 0, 0]))
    assert (found.passed, found.reports_usage, found.token_ratio) == (False, False, 0.0)


async def test_server_that_gathers_its_answer_fails() -> None:
    """An answer that comes in one piece is not streamed."""
    found = await check(replies(await counted(), together=True))
    assert (found.passed, found.streams, found.counts_alike) == (False, False, True)


async def test_server_that_refuses_is_not_reachable() -> None:
    """The fault says why, in our words."""
    found = await check([[Status(401)]])
    assert (found.passed, found.reachable) == (False, False)
    assert "it refused the credentials (status 401)" in found.fault


async def test_server_that_fails_later_was_reachable() -> None:
    """What was found before the fault is told."""
    found = await check([*replies((await counted())[:1]), [Status(500)]])
    assert (found.passed, found.reachable, found.streams) == (False, True, True)
    assert "status 500" in found.fault


async def test_extractive_answers_pass() -> None:
    """The check holds for what is no server too."""
    quoting = ExtractiveBackend("quotes", 8192, open_counter("bundled"), None, lambda: 3)
    found = await check_backend(quoting)
    assert found.passed
    assert found.token_ratio == pytest.approx(1.0, abs=0.02)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Runs `headrace backends check`; returns its exit code and what it printed."""
    with pytest.raises(SystemExit) as ended:
        commands(args=["check", *arguments], obj=Surroundings.of({}))
    said = capsys.readouterr()
    code = ended.value.code
    return code if isinstance(code, int) else int(code is not None), said.out, said.err


@pytest.fixture
def log() -> Iterator[None]:
    """Puts back what the command sets for the log of its process."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: None) -> tuple[str, ...]:
    """Names a good backend, and one of two servers where nobody listens, with secrets in key and address."""
    monkeypatch.chdir(tmp_path)
    gone = [f"http://ann:{SECRET}@127.0.0.1:1/v{number}" for number in (1, 2)]
    backends = [
        {"name": "extractive", "kind": "extractive"},
        {"name": "gone", "kind": "openai", "base_url": gone[0], "replicas": gone[1:], "model": "m", "api_key": SECRET},
    ]
    return ("--set", f"generation.backends={json.dumps(backends)}")


def test_command_tries_every_server_and_fails_when_one_does(
    configured: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each server has its line, the exit code is 1, and no key or address is printed."""
    code, out, err = run(capsys, *configured)
    assert code == 1
    lines = [line.split() for line in out.splitlines() if "extractive" in line or "gone" in line]
    assert [(line[0], line[1], line[-1]) for line in lines] == [
        ("extractive", "0", "good"),
        ("gone", "0", "FAILED"),
        ("gone", "1", "FAILED"),
    ]
    assert "'gone' failed the check" in err
    assert "the connection to it failed" in err
    assert SECRET not in out + err
    assert "127.0.0.1" not in out + err


def test_command_prints_one_object_and_takes_names(
    configured: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Only what is named is tried."""
    code, out, err = run(capsys, "extractive", "--json", *configured)
    (found,) = json.loads(out)["backends"]
    assert (code, err) == (0, "")
    assert (found["backend"], found["server"], found["passed"], found["streams"]) == ("extractive", 0, True, True)


def test_command_refuses_names_that_it_does_not_know(
    configured: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """It is a wrong use, and the known ones are named."""
    code, _, err = run(capsys, "gine", *configured)
    assert (code, "extractive, gone" in err) == (2, True)
