"""`headrace models pull`, in a process of its own, with the real hub client against a hub on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.hub_runs import Hub, sentence
from tests.fakes.hub_server import COMMIT, HubServer, Repository
from tests.fakes.tiny_folders import CARD, make_tiny_folder
from tests.fakes.tiny_models import make_tiny_static

TOKEN = "hf_of_this_test"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """Starts a hub with `acme/texts`, `acme/pairs` (private), `acme/torch` (no ONNX) and `acme/static`."""
    texts = make_tiny_folder(tmp_path / "texts")
    (texts / "model.safetensors").write_bytes(b"weights that nobody asked for")
    pairs = make_tiny_folder(tmp_path / "pairs", paired=True)
    torch = make_tiny_folder(tmp_path / "torch")
    (torch / "onnx" / "model.onnx").rename(torch / "model.safetensors")
    static = make_tiny_static(tmp_path / "static", dim=8)
    repositories = {
        "acme/texts": Repository(texts),
        "acme/pairs": Repository(pairs, token=TOKEN),
        "acme/torch": Repository(torch),
        "acme/static": Repository(static),
    }
    with HubServer(repositories) as server:
        yield Hub(server, tmp_path)


def test_pull_takes_the_needed_files_from_a_mirror_and_offline_the_cached_ones(hub: Hub) -> None:
    """HF_ENDPOINT names the hub; weights for torch stay there; HF_HUB_OFFLINE fetches nothing."""
    ended = hub.run("pull", "acme/texts", "--json")
    assert ended.returncode == 0, ended.stderr
    record = json.loads(ended.stdout)
    assert (record["revision"], record["licence"], record["dim"]) == (COMMIT, "mit", 16)
    assert record["checks"]["fp32"]["passed"] is True
    assert "model.safetensors" not in hub.server.downloads()
    assert "acme/texts/onnx/model.onnx" in hub.pulled
    assert "acme/texts/headrace-model.json" in hub.pulled
    asked = len(hub.server.requests)
    assert hub.run("pull", "acme/texts", HF_HUB_OFFLINE="1").returncode == 0
    assert "did not give it" in sentence(hub.run("pull", "acme/pairs", HF_HUB_OFFLINE="1"))
    assert len(hub.server.requests) == asked


def test_private_model_opens_with_its_token(hub: Hub) -> None:
    """HF_TOKEN is sent with every request; without it the model is not there."""
    assert "check name, network and rights" in sentence(hub.run("pull", "acme/pairs"))
    assert hub.pulled == []
    ended = hub.run("pull", "acme/pairs", HF_TOKEN=TOKEN)
    assert ended.returncode == 0, ended.stderr
    assert "cross-encoder" in ended.stdout
    assert {token for _, _, token in hub.server.requests} == {"", TOKEN}


def test_model_without_onnx_is_sent_to_export(hub: Hub) -> None:
    """Torch weights are not fetched for nothing, and nothing is left behind."""
    assert "headrace models export acme/torch" in sentence(hub.run("pull", "acme/torch"))
    assert "model.safetensors" not in hub.server.downloads()
    assert hub.pulled == []


def test_static_embeddings_are_pulled_with_their_table(hub: Hub) -> None:
    """Their safetensors file is what serves, so it is fetched, opened and recorded."""
    ended = hub.run("pull", "acme/static", "--json")
    assert ended.returncode == 0, ended.stderr
    record = json.loads(ended.stdout)
    assert (record["kind"], record["dim"]) == ("static", 8)
    assert "model.safetensors" in record["files"]


def test_download_that_breaks_off_leaves_nothing(hub: Hub) -> None:
    """The client tries again for some seconds; then one sentence ends it."""
    hub.server.repositories["acme/texts"].halved.add("onnx/model.onnx")
    assert "did not give it" in sentence(hub.run("pull", "acme/texts"))
    assert hub.pulled == []


def test_file_with_other_bytes_is_thrown_away_and_the_next_pull_is_good(hub: Hub) -> None:
    """The length is right and the hash is not: the file is refused, and fetched anew the next time."""
    garbled = hub.server.repositories["acme/texts"].garbled
    garbled.add("onnx/model.onnx")
    assert "onnx/model.onnx arrived damaged" in sentence(hub.run("pull", "acme/texts"))
    assert hub.pulled == []
    garbled.clear()
    assert hub.run("pull", "acme/texts").returncode == 0
    assert "acme/texts/onnx/model.onnx" in hub.pulled


def test_file_that_is_no_model_is_refused_and_the_former_one_stays(hub: Hub) -> None:
    """What the hub holds may itself be broken; what was pulled before keeps working."""
    assert hub.run("pull", "acme/texts").returncode == 0
    before = hub.pulled
    repository = hub.server.repositories["acme/texts"]
    (repository.folder / "onnx" / "model.onnx").write_bytes(b"\x08\x08" * 100)
    (repository.folder / "README.md").write_text(CARD + "\nA later version.\n", encoding="utf-8")
    assert "ONNX Runtime cannot open model.onnx" in sentence(
        hub.run("pull", "acme/texts", HF_HOME=str(hub.folder / "other"))
    )
    assert hub.pulled == before
