"""Where a model's files are found, and what they say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from huggingface_hub import constants

from encoders.errors import ModelNotFound, ModelUnsupported
from encoders.kinds import ModelKind
from encoders.models import Pooling, resolve
from encoders.sources import INT8, ModelSource
from encoders.types import TextKind
from tests.fakes.tiny_models import make_tiny_bi_encoder, make_tiny_cross_encoder, write_json


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Makes a tiny bi-encoder."""
    return make_tiny_bi_encoder(tmp_path / "model")


def test_bundled_model_needs_nothing() -> None:
    """The default model is in the package, with all that its files say."""
    files = resolve(ModelSource("bundled:minilm-l6"))
    assert (files.max_tokens, files.pooling, files.normalized, files.kind) == (
        256,
        Pooling.MEAN,
        True,
        ModelKind.BI_ENCODER,
    )
    assert files.prompts == {TextKind.QUERY: "", TextKind.PASSAGE: ""}
    assert files.weights.is_file()


@pytest.mark.parametrize(
    "model", ["bundled:", "bundled:nothing", "bundled:..", "bundled:../bundled/minilm-l6", "bundled:a/b"]
)
def test_unknown_bundled_model_names_the_known_ones(model: str) -> None:
    """A bundled name is no path, and an unknown one is answered with the list."""
    with pytest.raises(ModelNotFound, match="minilm-l6"):
        resolve(ModelSource(model))


@pytest.mark.parametrize("model", ["", "no such folder", "/no/such/folder", "./a/b", "a/b/c"])
def test_name_that_is_neither_folder_nor_hub_id_is_not_looked_up(model: str) -> None:
    """Only owner/name goes to the hub."""
    with pytest.raises(ModelNotFound, match="no such folder"):
        resolve(ModelSource(model) if model else ModelSource("\t"))


@pytest.mark.parametrize("pooling", ["mean", "cls", "lasttoken"])
def test_pooling_is_read_in_both_spellings(tmp_path: Path, pooling: str) -> None:
    """Old files have one flag a mode, new ones name the mode."""
    folder = make_tiny_bi_encoder(tmp_path / "model", pooling=pooling)
    assert resolve(ModelSource(str(folder))).pooling is Pooling(pooling)
    write_json(folder / "1_Pooling" / "config.json", {"pooling_mode": pooling, "embedding_dimension": 16})
    assert resolve(ModelSource(str(folder))).pooling is Pooling(pooling)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}, "pools by"),
        ("1_Pooling/config.json", {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}, "pools by"),
        ("1_Pooling/config.json", {"pooling_mode": "mean", "include_prompt": False}, "prompt out of pooling"),
        ("modules.json", [{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}], "Dense step"),
        ("modules.json", [{"path": "x"}], "nameless step"),
        ("modules.json", ["x"], "no list of steps"),
        ("config.json", ["x"], "holds no object"),
    ],
)
def test_model_with_a_step_that_is_not_built_is_refused(folder: Path, name: str, content: object, reason: str) -> None:
    """A model whose vectors would look right and be wrong is refused with the reason."""
    write_json(folder / name, content)
    with pytest.raises(ModelUnsupported, match=reason):
        resolve(ModelSource(str(folder)))


def test_broken_settings_file_is_named(folder: Path) -> None:
    """A file that is no JSON is an error of the model, not a crash."""
    (folder / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(ModelUnsupported, match=r"config\.json cannot be read"):
        resolve(ModelSource(str(folder)))


@pytest.mark.parametrize("name", ["onnx/model.onnx", "tokenizer.json"])
def test_missing_file_is_named(folder: Path, name: str) -> None:
    """A folder without weights or tokenizer says which."""
    (folder / name).unlink()
    with pytest.raises(ModelNotFound, match=name.rpartition("/")[2].replace(".", r"\.")):
        resolve(ModelSource(str(folder)))


def test_file_can_be_chosen(folder: Path) -> None:
    """`file` names one of several exports; "int8" finds the usual names of quantized ones."""
    for name in ("onnx/model_quantized.onnx", "onnx/other.onnx"):
        (folder / name).write_bytes((folder / "onnx" / "model.onnx").read_bytes())
    assert resolve(ModelSource(str(folder))).weights.name == "model.onnx"
    assert resolve(ModelSource(str(folder), file=INT8)).weights.name == "model_quantized.onnx"
    assert resolve(ModelSource(str(folder), file="onnx/other.onnx")).weights.name == "other.onnx"


@pytest.mark.parametrize("file", ["../other/tokenizer.json", "/etc/passwd"])
def test_file_cannot_lead_out_of_the_model(folder: Path, file: str) -> None:
    """The chosen file belongs to the model."""
    make_tiny_bi_encoder(folder.parent / "other")
    with pytest.raises(ModelNotFound):
        resolve(ModelSource(str(folder), file=file))


@pytest.mark.parametrize(
    ("config", "query", "passage"),
    [
        ({"prompts": {"query": "q: ", "passage": "p: "}}, "q: ", "p: "),
        ({"prompts": {"query": "q: ", "document": "d: "}}, "q: ", "d: "),
        ({"prompts": {"query": "q: "}}, "q: ", ""),
        ({"prompts": {"both": "b: "}, "default_prompt_name": "both"}, "b: ", "b: "),
        ({"prompts": None}, "", ""),
        ({}, "", ""),
    ],
)
def test_prompts_are_read_from_the_model(folder: Path, config: object, query: str, passage: str) -> None:
    """Each kind has its own prompt; a default serves the kinds that have none."""
    write_json(folder / "config_sentence_transformers.json", config)
    files = resolve(ModelSource(str(folder)))
    assert files.prompts == {TextKind.QUERY: query, TextKind.PASSAGE: passage}


def test_prompts_can_be_set(folder: Path) -> None:
    """Settings win over the model's files, with an empty prompt too."""
    write_json(folder / "config_sentence_transformers.json", {"prompts": {"query": "q: ", "passage": "p: "}})
    files = resolve(ModelSource(str(folder), query_prompt="ask: ", passage_prompt=""))
    assert files.prompts == {TextKind.QUERY: "ask: ", TextKind.PASSAGE: ""}


def test_limit_is_the_smallest_that_anyone_names(folder: Path) -> None:
    """Settings, sentence-transformers, tokenizer and positions all have a say."""
    assert resolve(ModelSource(str(folder))).max_tokens == 64
    assert resolve(ModelSource(str(folder), max_tokens=32)).max_tokens == 32
    write_json(folder / "tokenizer_config.json", {"model_max_length": 48})
    assert resolve(ModelSource(str(folder))).max_tokens == 48
    write_json(folder / "tokenizer_config.json", {"model_max_length": 1e30})
    write_json(folder / "config.json", {"model_type": "xlm-roberta", "max_position_embeddings": 40, "pad_token_id": 1})
    assert resolve(ModelSource(str(folder))).max_tokens == 38


def test_cross_encoder_is_recognised(tmp_path: Path) -> None:
    """A head for scoring shows in the architecture's name."""
    assert resolve(ModelSource(str(make_tiny_cross_encoder(tmp_path)))).kind is ModelKind.CROSS_ENCODER


def test_revision_follows_everything_that_shapes_a_vector(folder: Path) -> None:
    """Weights, tokenizer, prompts, pooling and limit change it; nothing else does."""
    source = ModelSource(str(folder))
    first = resolve(source).revision
    seen = {first}
    write_json(folder / "README.json", {})
    assert resolve(source).revision == first
    seen.add(resolve(ModelSource(str(folder), max_tokens=32)).revision)
    seen.add(resolve(ModelSource(str(folder), query_prompt="q: ")).revision)
    write_json(folder / "1_Pooling" / "config.json", {"pooling_mode": "cls"})
    seen.add(resolve(source).revision)
    (folder / "onnx" / "model.onnx_data").write_bytes(b"weights")
    seen.add(resolve(source).revision)
    tokenizer = folder / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    seen.add(resolve(source).revision)
    assert len(seen) == 6


def test_same_model_elsewhere_has_the_same_revision(tmp_path: Path) -> None:
    """The revision is of contents, not of places."""
    one, other = make_tiny_bi_encoder(tmp_path / "one"), make_tiny_bi_encoder(tmp_path / "other")
    assert resolve(ModelSource(str(one))).revision == resolve(ModelSource(str(other))).revision


def test_hub_model_is_found_in_the_client_s_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Offline, a model that was fetched before is served from the hub client's own cache."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    cached = tmp_path / "models--owner--tiny"
    make_tiny_bi_encoder(cached / "snapshots" / commit)
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text(commit, encoding="ascii")
    _offline(monkeypatch, tmp_path)
    files = resolve(ModelSource("owner/tiny"))
    assert files.model_id == "owner/tiny"
    assert files.folder == cached / "snapshots" / commit


@pytest.mark.parametrize("model", ["owner/absent", "owner/bad..name"])
def test_hub_model_that_is_not_given_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    """Whatever the hub's client raises, the caller sees that the model is not there."""
    _offline(monkeypatch, tmp_path)
    with pytest.raises(ModelNotFound, match="hub did not give it"):
        resolve(ModelSource(model))


def _offline(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    # The client reads its variables when it is imported; these are where it keeps them.
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", os.fspath(cache))
