"""The examples of docs/adapters.md, run as they stand against a real server process."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.frameworks import fill
from tests.integration.http_process import HttpProcess, http_running

_TEXT = (Path(__file__).parents[2] / "docs" / "adapters.md").read_text(encoding="utf-8")
_EXAMPLES = re.findall(r"^```python\n(.*?)^```", _TEXT, re.MULTILINE | re.DOTALL)
_NEEDS = ("langchain_core", "llama_index.core", "haystack", "openai")


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpProcess]:
    """A server that listens for gRPC and HTTP, with the collection `docs` of alice."""

    async def _fill() -> None:
        async with found.server.client("alice") as client:
            await fill(client, "docs")

    with http_running(tmp_path_factory.mktemp("adapters")) as found:
        asyncio.run(_fill())
        yield found
        assert found.server.stop() == 0


@pytest.mark.parametrize(("example", "needed"), list(zip(_EXAMPLES, _NEEDS, strict=True)), ids=_NEEDS)
def test_adapters_example_runs(
    http: HttpProcess,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    example: str,
    needed: str,
) -> None:
    """Each example finds the passage that answers its question."""
    pytest.importorskip(needed)
    monkeypatch.setenv("HEADRACE_API_KEY", "alice")
    here = {"127.0.0.1:50051": http.server.address, "http://127.0.0.1:8080/v1": http.base_url, '"KEY"': '"alice"'}
    for written, meant in here.items():
        example = example.replace(written, meant)
    exec(compile(example, f"docs/adapters.md ({needed})", "exec"), {"__name__": "example"})
    assert "24 millimetres" in capsys.readouterr().out
