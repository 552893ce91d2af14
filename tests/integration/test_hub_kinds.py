"""Models opened by their id on the hub, with the real hub client in a process of its own against a hub on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from tests.fakes.hub_server import HubServer, Repository
from tests.fakes.tiny_models import make_tiny_bi_encoder, make_tiny_static

ROOT = Path(__file__).parents[2]
_OPEN = """
import sys
from encoders.dense import OnnxDenseEncoder
from encoders.models import resolve
from encoders.sources import ModelSource
encoder = OnnxDenseEncoder.open(resolve(ModelSource(sys.argv[1])))
print(encoder.encode_queries(["pump seal"])[0].tolist())
"""


def _open_by_id(model: str, cache: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    shared = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    return subprocess.run(
        [sys.executable, "-c", _OPEN, model],
        env={**shared, "HF_HOME": str(cache), "PYTHONPATH": str(ROOT), **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def _with_external_weights(folder: Path) -> Path:
    make_tiny_bi_encoder(folder)
    path = folder / "onnx" / "model.onnx"
    model = onnx.load(str(path))
    onnx.save(model, str(path), save_as_external_data=True, location="model.onnx_data", size_threshold=0)
    return folder


@pytest.mark.parametrize("make", [make_tiny_bi_encoder, make_tiny_static, _with_external_weights])
def test_model_is_opened_by_its_id_and_again_without_a_network(tmp_path: Path, make: object) -> None:
    """Only what its kind needs is fetched; with HF_HUB_OFFLINE the cached files serve."""
    assert callable(make)
    folder = make(tmp_path / "model")
    (folder / "pytorch_model.bin").write_bytes(b"weights that nobody asked for")
    with HubServer({"acme/tiny": Repository(folder)}) as server:
        first = _open_by_id("acme/tiny", tmp_path / "cache", HF_ENDPOINT=server.url)
        fetched = set(server.downloads())
    assert first.returncode == 0, first.stderr
    assert "pytorch_model.bin" not in fetched
    again = _open_by_id("acme/tiny", tmp_path / "cache", HF_HUB_OFFLINE="1")
    assert again.returncode == 0, again.stderr
    assert again.stdout == first.stdout
