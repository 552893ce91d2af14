"""Plan files: what a run is made of, every fault found at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from encoders.dense import OnnxDenseEncoder
from encoders.models import resolve
from encoders.sources import ModelSource
from indexers.chunking import Chunker
from indexers.types import Document, TextFormat
from rerank.training.examples import SourceText
from retrieval.errors import ConfigError
from retrieval.training.loading import data_lines, load_plan
from retrieval.training.plan_file import read_plan
from tests.fakes.tiny_models import make_tiny_bi_encoder

_SECTION = "The seal of the pump is pressed in by hand. " * 8


def _plan(folder: Path, text: str) -> Path:
    path = folder / "plan.toml"
    path.write_text(text, encoding="utf-8")
    return path


def _pairs(folder: Path) -> None:
    (folder / "own.jsonl").write_text('{"query": "pump", "passage": "seal"}\n', encoding="utf-8")


@pytest.fixture(scope="module")
def chunker(tmp_path_factory: pytest.TempPathFactory) -> Chunker:
    """Cuts by a tiny encoder's tokens."""
    folder = make_tiny_bi_encoder(tmp_path_factory.mktemp("bi"))
    return Chunker(OnnxDenseEncoder.open(resolve(ModelSource(str(folder)))).tokenization)


def test_plan_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    """A plan can be moved with its data; what it does not say has a default."""
    plan = read_plan(_plan(tmp_path, 'start = "model"\n[[labelled]]\npairs = "own.jsonl"\n'))
    assert plan.start == tmp_path / "model"
    assert plan.labelled[0].pairs == tmp_path / "own.jsonl"
    assert (plan.depth, plan.judged) == (3, ())


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("start = 3 4", "plan.toml"),
        ('start = "m"', "at least one"),
        ('start = "m"\ndepth = 5\n[[labelled]]\npairs = "p"', "depth"),
        ('start = "m"\ndepht = 3\n[[labelled]]\npairs = "p"', "depht"),
        ('start = "m"\n[[labelled]]\npairs = "p"\nfolder = "f"', "either folder or pairs"),
        ('start = "m"\n[[headings]]\ncorpus = "c"\ncollection = "d"', "either corpus or collection"),
        ('start = "m"\n[[headings]]\ncorpus = "c"', "judged"),
    ],
)
def test_plan_faults_are_named(tmp_path: Path, text: str, fault: str) -> None:
    """A misspelt key, a depth that cannot be, two places for one set, and a model that nothing would judge."""
    with pytest.raises(ConfigError, match=fault):
        read_plan(_plan(tmp_path, text))


def test_missing_plan_is_one_sentence(tmp_path: Path) -> None:
    """A file that is not there is a fault of the configuration."""
    with pytest.raises(ConfigError, match=r"absent\.toml"):
        read_plan(tmp_path / "absent.toml")


def test_loaded_plan_reads_sets_and_collections(tmp_path: Path, chunker: Chunker) -> None:
    """Labelled sets judge when no other does; a collection's headings teach."""
    _pairs(tmp_path)
    text = 'start = "m"\nlist_size = 4\n[[labelled]]\npairs = "own.jsonl"\nlicence = "MIT"\n'
    file = read_plan(_plan(tmp_path, text + '[[headings]]\ncollection = "manual"\n'))
    document = Document("d", "Manual", f"# Changing a worn seal\n\n{_SECTION}", TextFormat.MARKDOWN)
    plan = load_plan(file, chunker, lambda name: [document] if name == "manual" else [])
    assert plan.judged == plan.labelled
    assert plan.labelled[0].texts == (SourceText("t0", "", "seal"),)
    assert [example.query for example in plan.unlabelled[0].examples] == ["Changing a worn seal"]
    assert plan.mining.list_size == 4
    assert data_lines(file)[0] == "own.jsonl, queries of its train split; licence: MIT"


def test_headings_of_a_corpus_keep_what_the_plan_admits(tmp_path: Path, chunker: Chunker) -> None:
    """Documents under another licence teach nothing, and the model card says so."""
    _pairs(tmp_path)
    rows = [
        {"_id": name, "title": f"Changing the {name} seal", "text": _SECTION, "metadata": {"license": name}}
        for name in ("MIT", "GPL-2")
    ]
    (tmp_path / "docs.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    text = 'start = "m"\n[[judged]]\npairs = "own.jsonl"\n[[headings]]\ncorpus = "docs.jsonl"\n'
    file = read_plan(_plan(tmp_path, text + 'keep = {license = ["MIT"]}\nlicence = "MIT"\n'))
    plan = load_plan(file, chunker, lambda name: [])
    assert [example.query for example in plan.unlabelled[0].examples] == ["Changing the MIT seal"]
    assert data_lines(file) == ("headings and sections of docs.jsonl (license one of MIT); licence: MIT",)
