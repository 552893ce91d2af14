"""`headrace collections transfer` with the bundled model: to a server and back, without embedding anything."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from retrieval.cli.main import execute
from tests.fakes.qdrant_servicer import FakeQdrant, serving

_TEXT = "# Pumps\n\nPumps move water uphill.\n\n# Valves\n\nValves stop water in a pipe.\n"
_STORED = (
    "SELECT text, dense, terms, codes FROM chunks JOIN vectors USING (chunk_row) JOIN token_codes USING (chunk_row)"
)


async def test_transfer_carries_real_vectors_both_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the model computed once is, after both ways, what it was; the command says what it moved."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pumps.md").write_text(_TEXT)
    async with serving(FakeQdrant()) as port:
        sets = ["--set", f"index.qdrant.url=http://127.0.0.1:{port}", "--set", "index.kind=exact"]

        async def run(*command: str) -> str:
            code = await asyncio.to_thread(execute, [*command, *sets], {})
            said = capsys.readouterr()
            assert code == 0, said.err
            return said.out

        await run("index", "pumps.md", "--collection", "docs", "--data", "one")
        carried = json.loads(await run("collections", "transfer", "docs", "--to", "qdrant", "--data", "one", "--json"))
        assert (carried["documents"], carried["written"]) == (1, 1)
        out = await run("collections", "transfer", "docs", "--to", "edge", "--as", "copy", "--data", "two")
        assert "compared" in out
    stored = [_rows(tmp_path / one / "record.sqlite") for one in ("one/default/docs", "two/default/copy")]
    assert stored[0] == stored[1]
    assert len(stored[0]) > 0


def _rows(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"{_STORED} ORDER BY ordinal").fetchall()
