"""Plan files: what a run is made of, every fault found at once."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from encoders.dense import OnnxDenseEncoder
from encoders.models import resolve
from encoders.sources import ModelSource
from indexers.chunking import Chunker
from indexers.types import Document, TextFormat
from rerank.calibrate import Mixture
from rerank.training.examples import SourceText
from retrieval.errors import ConfigError
from retrieval.training.loading import data_lines, load_plan
from retrieval.training.mining import FirstStage
from retrieval.training.plan_file import HeadingsPlan, PlanFile, SetPlan, read_plan
from tests.fakes.tiny_models import make_tiny_bi_encoder

_DOCUMENT = Path(__file__).parents[2] / "docs" / "training.md"
_STAGE = FirstStage(dense_weight=0.65, branch=100, mixture=Mixture(0.6, 0.4, 0.0))
_SECTION = "The seal of the pump is pressed in by hand. " * 8


def _plan(folder: Path, text: str) -> Path:
    path = folder / "plan.toml"
    path.write_text(text, encoding="utf-8")
    return path


def _pairs(folder: Path, name: str = "own.jsonl") -> None:
    (folder / name).write_text('{"query": "pump", "passage": "seal"}\n', encoding="utf-8")


def _model(folder: Path, name: str = "m") -> None:
    (folder / name).mkdir()
    (folder / name / "config.json").write_text("{}", encoding="utf-8")


def _beir(folder: Path, qrels: str = "test") -> None:
    (folder / "qrels").mkdir(parents=True)
    for name in ("corpus.jsonl", "queries.jsonl", f"qrels/{qrels}.tsv"):
        (folder / name).touch()


@pytest.fixture(scope="module")
def chunker(tmp_path_factory: pytest.TempPathFactory) -> Chunker:
    """Cuts by a tiny encoder's tokens."""
    folder = make_tiny_bi_encoder(tmp_path_factory.mktemp("bi"))
    return Chunker(OnnxDenseEncoder.open(resolve(ModelSource(str(folder)))).tokenization)


def test_plan_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    """A plan can be moved with its data; what it does not say has a default."""
    _model(tmp_path, "model")
    _pairs(tmp_path)
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
    with pytest.raises(ConfigError, match=fault) as raised:
        read_plan(_plan(tmp_path, text))
    assert "Value error" not in str(raised.value)


def test_plan_faults_are_reported_at_once(tmp_path: Path) -> None:
    """Two misspelt keys, a value out of bounds and a set without a place are four faults of one report."""
    text = 'start = "m"\ndepht = 3\nlist_sise = 4\nepochs = 0\n[[labelled]]\nlicence = "MIT"\n'
    with pytest.raises(ConfigError) as raised:
        read_plan(_plan(tmp_path, text))
    found = sorted(fault.removeprefix(f"{tmp_path / 'plan.toml'}: ") for fault in raised.value.faults)
    assert found == [
        "depht: there is no such key",
        "epochs: Input should be greater than 0",
        "labelled.0: give either folder or pairs",
        "list_sise: there is no such key",
    ]


def test_what_a_plan_names_must_be_there(tmp_path: Path) -> None:
    """The model, the teacher, each set's files and each corpus are looked for before anything else is done."""
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "corpus.jsonl").touch()
    text = """
        start = "m"
        teacher = "./large"
        labelled = [{ pairs = "own.jsonl" }, { folder = "half", qrels = "dev" }]
        headings = [{ corpus = "docs.jsonl" }, { collection = "manual" }]
        judged = [{ folder = "held" }]
    """
    with pytest.raises(ConfigError) as raised:
        read_plan(_plan(tmp_path, text))
    found = [fault.removeprefix(f"{tmp_path / 'plan.toml'}: ") for fault in raised.value.faults]
    assert found == [
        f"start: {tmp_path / 'm'} is no folder of a model; give one that sentence-transformers saved",
        "teacher: ./large is no folder; give one, bundled:NAME or a Hugging Face id",
        f"labelled.0.pairs: there is no file {tmp_path / 'own.jsonl'}",
        f"labelled.1.folder: there is no file {tmp_path / 'half' / 'queries.jsonl'}",
        f"labelled.1.folder: there is no file {tmp_path / 'half' / 'qrels' / 'dev.tsv'}",
        f"judged.0.folder: there is no folder {tmp_path / 'held'}",
        f"headings.0.corpus: there is no file {tmp_path / 'docs.jsonl'}",
    ]


def test_teacher_is_a_folder_beside_the_plan_or_a_name(tmp_path: Path) -> None:
    """A folder is relative to the plan like every path; a name of the hub stays a name."""
    for name in ("m", "large"):
        _model(tmp_path, name)
    _pairs(tmp_path)
    text = 'start = "m"\nteacher = "{}"\n[[labelled]]\npairs = "own.jsonl"\n'
    assert read_plan(_plan(tmp_path, text.format("large"))).teacher == str(tmp_path / "large")
    assert read_plan(_plan(tmp_path, text.format("acme/large"))).teacher == "acme/large"


def test_documented_plan_is_valid(tmp_path: Path) -> None:
    """The example of the documentation can be copied; every key that it shows is read."""
    [example] = re.findall(r"```toml\n(.*?)```", _DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    _model(tmp_path, "all-MiniLM-L6-v2")
    _beir(tmp_path / "support-faq")
    _beir(tmp_path / "search-log", "clicked")
    for name in ("answered.jsonl", "handbook.jsonl.gz"):
        _pairs(tmp_path, name)
    plan = read_plan(_plan(tmp_path, example))
    assert (len(plan.labelled), len(plan.headings), len(plan.judged)) == (2, 1, 1)
    assert plan.headings[0].keep == {"license": ["MIT", "Apache-2.0"]}


@pytest.mark.parametrize("part", [PlanFile, SetPlan, HeadingsPlan])
def test_every_key_is_documented_with_its_default(part: type[PlanFile | SetPlan | HeadingsPlan]) -> None:
    """Whoever writes a plan needs no source code."""
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", _DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE))
    for name, field in part.model_fields.items():
        if field.is_required():
            assert rows[name] == "*required*"
        elif field.default in (None, ()):
            assert not rows[name].startswith("`")
        else:
            assert rows[name] == f"`{json.dumps(field.default)}`"


def test_missing_plan_is_one_sentence(tmp_path: Path) -> None:
    """A file that is not there is a fault of the configuration."""
    with pytest.raises(ConfigError, match=r"absent\.toml"):
        read_plan(tmp_path / "absent.toml")


def test_loaded_plan_reads_sets_and_collections(tmp_path: Path, chunker: Chunker) -> None:
    """Labelled sets judge when no other does; a collection's headings teach."""
    _model(tmp_path)
    _pairs(tmp_path)
    text = 'start = "m"\nlist_size = 4\n[[labelled]]\npairs = "own.jsonl"\nlicence = "MIT"\n'
    file = read_plan(_plan(tmp_path, text + '[[headings]]\ncollection = "manual"\n'))
    document = Document("d", "Manual", f"# Changing a worn seal\n\n{_SECTION}", TextFormat.MARKDOWN)
    plan = load_plan(file, chunker, lambda name: [document] if name == "manual" else [], _STAGE)
    assert plan.judged == plan.labelled
    assert plan.labelled[0].texts == (SourceText("t0", "", "seal"),)
    assert [example.query for example in plan.unlabelled[0].examples] == ["Changing a worn seal"]
    assert plan.mining.list_size == 4
    assert data_lines(file)[0] == "own.jsonl, queries of its train split; licence: MIT"


def test_headings_of_a_corpus_keep_what_the_plan_admits(tmp_path: Path, chunker: Chunker) -> None:
    """Documents under another licence teach nothing, and the model card says so."""
    _model(tmp_path)
    _pairs(tmp_path)
    rows = [
        {"_id": name, "title": f"Changing the {name} seal", "text": _SECTION, "metadata": {"license": name}}
        for name in ("MIT", "GPL-2")
    ]
    (tmp_path / "docs.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    text = 'start = "m"\n[[judged]]\npairs = "own.jsonl"\n[[headings]]\ncorpus = "docs.jsonl"\n'
    file = read_plan(_plan(tmp_path, text + 'keep = {license = ["MIT"]}\nlicence = "MIT"\n'))
    plan = load_plan(file, chunker, lambda name: [], _STAGE)
    assert [example.query for example in plan.unlabelled[0].examples] == ["Changing the MIT seal"]
    assert data_lines(file) == ("headings and sections of docs.jsonl (license one of MIT); licence: MIT",)
