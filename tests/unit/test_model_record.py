"""The record beside a model's weights, and what a model's card says."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from encoders.catalog.cards import licence_of
from encoders.catalog.folders import fresh_record
from encoders.catalog.record import (
    CARD_FILE,
    RECORD_FILE,
    CheckFigures,
    ExportFacts,
    QuantizationFacts,
    changed_files,
    read_record,
    require_unchanged,
    write_record,
)
from encoders.errors import ModelCheckFailed, ModelUnsupported
from encoders.kinds import ModelKind
from tests.fakes.tiny_folders import make_tiny_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Makes a tiny model."""
    return make_tiny_folder(tmp_path / "model")


def test_record_comes_back_as_it_was_written(folder: Path) -> None:
    """All facts survive the file, and it is written in one piece."""
    record = replace(
        fresh_record(folder, "acme/tiny", "abc", 16),
        export=ExportFacts(17, True, 1e-6, "2.13.0", "5.0"),
        quantization=QuantizationFacts("int8", True, True, "1.32"),
        checks={"fp32": CheckFigures(True, 16, 1.0, lowest_cosine=0.99, mean_cosine=1.0)},
    )
    write_record(folder, record)
    assert read_record(folder, "acme/tiny") == record
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_fresh_record_says_what_the_files_say(folder: Path) -> None:
    """Kind, licence, limit, pooling and the hash of every file that shapes a result."""
    write_record(folder, fresh_record(folder, "acme/tiny", "", 16))
    record = fresh_record(folder, "acme/tiny", "", 16)
    assert (record.kind, record.licence, record.dim) == (ModelKind.BI_ENCODER, "mit", 16)
    assert (record.max_tokens, record.pooling, record.query_prompt) == (256, "mean", "")
    assert {"onnx/model.onnx", "tokenizer.json"} <= record.files.keys()
    assert not {RECORD_FILE, CARD_FILE} & record.files.keys()


def test_cross_encoder_has_neither_dim_nor_pooling(tmp_path: Path) -> None:
    """What its kind of model has not is null in the record."""
    record = fresh_record(make_tiny_folder(tmp_path / "model", paired=True), "m", "", 16)
    assert (record.kind, record.dim, record.pooling) == (ModelKind.CROSS_ENCODER, None, None)


def test_changed_and_missing_files_are_named(folder: Path) -> None:
    """A file of the same length with other content is found, and one that is gone."""
    record = fresh_record(folder, "m", "", None)
    assert changed_files(folder, record) == []
    weights = folder / "onnx" / "model.onnx"
    content = weights.read_bytes()
    weights.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    (folder / "tokenizer.json").unlink()
    assert changed_files(folder, record) == ["onnx/model.onnx", "tokenizer.json"]
    with pytest.raises(ModelCheckFailed, match=r"onnx/model\.onnx, tokenizer\.json changed"):
        require_unchanged(folder, record, "m")


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"model": 3}'])
def test_record_that_cannot_be_read_is_one_sentence(folder: Path, content: str) -> None:
    """A damaged record is no crash and no missing record."""
    (folder / RECORD_FILE).write_text(content, encoding="utf-8")
    with pytest.raises(ModelUnsupported, match="cannot be read"):
        read_record(folder, "m")


def test_record_of_a_later_format_is_not_guessed_at(folder: Path) -> None:
    """A number that this version does not know is refused."""
    write_record(folder, replace(fresh_record(folder, "m", "", None), format=2))
    with pytest.raises(ModelUnsupported, match="format 2"):
        read_record(folder, "m")


@pytest.mark.parametrize(
    ("header", "licence"),
    [
        ("license: apache-2.0", "apache-2.0"),
        ('license: "MIT"  # as its authors say', "mit"),
        ("license:\n- mit\n- cc-by-4.0\ntags: x", "mit, cc-by-4.0"),
        ("license: [mit, apache-2.0]", "mit, apache-2.0"),
        ("license: other\nlicense_name: house-licence\nlicense_link: https://example.org", "house-licence"),
        ("license: other", "other"),
        ("tags: [license]", ""),
    ],
)
def test_licence_is_read_from_the_card(tmp_path: Path, header: str, licence: str) -> None:
    """The header of the card names it in several spellings."""
    (tmp_path / "README.md").write_text(f"---\n{header}\n---\nlicense: none\n", encoding="utf-8")
    assert licence_of(tmp_path) == licence


@pytest.mark.parametrize("card", [None, "", "# Title\nlicense: mit", "---\nlicense: mit", os.linesep])
def test_card_without_a_header_names_no_licence(tmp_path: Path, card: str | None) -> None:
    """Text below the header, or a header that never ends, says nothing."""
    if card is not None:
        (tmp_path / "README.md").write_text(card, encoding="utf-8")
    assert licence_of(tmp_path) == ""
