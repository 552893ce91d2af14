"""GGUF weights of the Hugging Face hub, fetched by its real client from a hub on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.gguf_files import write_gguf
from tests.fakes.hub_server import HubServer, Repository

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from encoders.errors import ModelNotFound
from encoders.gguf_sources import GgufSource, locate_gguf
for file in sys.argv[1:]:
    try:
        print(locate_gguf(GgufSource("acme/small-GGUF", file)).name)
    except ModelNotFound as error:
        print(error)
"""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubServer]:
    """Serves a repository of one model in two sizes."""
    folder = tmp_path / "repository"
    for name in ("small-Q4.gguf", "small-Q8.gguf"):
        write_gguf(folder / name)
    with HubServer({"acme/small-GGUF": Repository(folder)}) as served:
        yield served


def located(hub: HubServer, cache: Path, *files: str, **environ: str) -> list[str]:
    """Locates the files, one after another, in a process whose client knows this hub; returns what it says."""
    shared = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    own = {"HF_ENDPOINT": hub.url, "HF_HOME": str(cache), "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *files],
        env={**shared, **own, **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return ended.stdout.splitlines()


def test_one_file_is_fetched_and_found_offline_afterwards(hub: HubServer, tmp_path: Path) -> None:
    """Of several sizes only the one that is named is downloaded; without a name they are listed, and nothing is."""
    choice, found = located(hub, tmp_path / "cache", "", "small-Q8.gguf")
    assert "small-Q4.gguf, small-Q8.gguf; choose one with `file`" in choice
    assert found == "small-Q8.gguf"
    assert [path.rpartition("/")[2] for path in hub.downloads()] == ["small-Q8.gguf"]
    assert located(hub, tmp_path / "cache", "small-Q8.gguf", HF_HUB_OFFLINE="1") == ["small-Q8.gguf"]


def test_only_file_needs_no_name(hub: HubServer, tmp_path: Path) -> None:
    """A repository of one GGUF file is unambiguous; one that it does not have is named."""
    (hub.repositories["acme/small-GGUF"].folder / "small-Q4.gguf").unlink()
    found, missing = located(hub, tmp_path / "cache", "", "small-Q5.gguf")
    assert found == "small-Q8.gguf"
    assert "it holds no small-Q5.gguf; correct `file`" in missing
