"""A job over a local Ray cluster of several processes: the same index as of one machine, also when one is killed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from indexers.record_read import RecordReader
from tests.integration.conftest import environment

_WORDS = ("pump", "valve", "pipe", "tank", "water", "oil", "gauge", "seal", "pressure", "flow", "motor", "shaft")
_JOB = """
name = "handbook"
collection = "docs"
engine = "{engine}"

[source]
kind = "folder"
path = "source"
"""
_PATIENCE_S = 120.0


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Is a folder with a source of some files and rows."""
    rng = random.Random(5)
    source = tmp_path / "source"
    source.mkdir()
    for number in range(40):
        paragraphs = [" ".join(rng.choices(_WORDS, k=60)) for _ in range(3)]
        (source / f"f{number:02}.md").write_text(f"# Part {number}\n\n" + "\n\n".join(paragraphs), encoding="utf-8")
    rows = [{"id": f"r{number}", "text": " ".join(rng.choices(_WORDS, k=80))} for number in range(120)]
    (source / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (source / "broken.pdf").write_bytes(b"%PDF-1.7 cut off")
    return tmp_path


def start(place: Path, engine: str) -> subprocess.Popen[str]:
    """Starts a run with this engine, into a data folder of its own."""
    (place / f"{engine}.toml").write_text(_JOB.format(engine=engine), encoding="utf-8")
    command = [sys.executable, "-m", "retrieval.cli.main", "jobs", "run", f"{engine}.toml", "--data", engine, "--json"]
    kept = environment() | {"RAY_DEDUP_LOGS": "0", "HOME": str(place)}
    return subprocess.Popen(command, cwd=place, env=kept, stdout=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> dict[str, object]:
    """Waits for the end of a run and returns it."""
    out, _ = process.communicate(timeout=_PATIENCE_S)
    run: dict[str, object] = json.loads(out)
    return run


def encoders(process: subprocess.Popen[str]) -> Iterator[psutil.Process]:
    """Yields the cluster's processes that are encoding."""
    for child in psutil.Process(process.pid).children(recursive=True):
        try:
            if "EncodeStage" in " ".join(child.cmdline()):
                yield child
        except psutil.Error:
            continue


def indexed(folder: Path) -> dict[str, tuple[str, list[str]]]:
    """Returns the fingerprint and the chunks of each document of a data folder."""
    reader = RecordReader(folder / "default" / "docs" / "record.sqlite")
    try:
        sequence = reader.head().sequence
        ids = [name for name, _ in reader.owned("handbook", "", 10_000)]
        stored = reader.stored(ids, sequence)
        return {name: (stored[name].fingerprint, reader.chunk_ids(name, sequence)) for name in ids}
    finally:
        reader.close()


def test_run_over_a_cluster_survives_a_killed_worker_and_gives_the_same_index(place: Path) -> None:
    """A process that encodes is killed midway; documents, chunks and failures are those of a run on one machine."""
    local = ended(start(place, "local"))
    process = start(place, "ray")
    while process.poll() is None:
        if (victim := next(encoders(process), None)) is not None:
            os.kill(victim.pid, 9)
            break
    assert process.poll() is None, "the run was over before anybody could be killed"
    clustered = ended(process)
    assert clustered["state"] == local["state"] == "partial"
    assert clustered["documents"] == local["documents"]
    assert clustered["failures"] == local["failures"]
    assert indexed(place / "ray") == indexed(place / "local")
    assert len(indexed(place / "ray")) == 160
