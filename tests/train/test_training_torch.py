"""Training itself, with torch: losses, checkpoints, depth, export, and a whole run (`make test-train`)."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rerank.training.lists import TrainingList
from rerank.training.recipe import Recipe
from rerank.training.teaching import taught_by_base
from tests.fakes.tiny_models import make_tiny_bi_encoder

pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")
pytestmark = [pytest.mark.train, pytest.mark.filterwarnings("ignore")]  # of the libraries, about each other


def _lists(count: int = 12) -> list[TrainingList]:
    """Makes lists in which the first stage prefers the wrong passage, and the word `seal` tells the right one."""
    passages = ("valve torque soup", "seal of the pump", "cats")
    return [
        TrainingList(f"pump {number}", passages, np.array([0.0, 1.0, 0.0]), np.array([0.6, 0.5, 0.2]))
        for number in range(count)
    ]


@pytest.fixture
def recipe(tiny_start: Path) -> Recipe:
    """Trains two layers for a few short steps."""
    return Recipe(tiny_start, depth=2, max_tokens=32, lists_per_step=4, learning_rate=3e-3, checkpoint_steps=2)


def test_start_model_keeps_the_first_layers(recipe: Recipe) -> None:
    """The kept layers are those of the bi-encoder, and the head gives one logit."""
    from rerank.training.trainer import start_model

    shallow, whole = start_model(recipe), start_model(replace(recipe, depth=4))
    first, second = shallow[0].model.bert.encoder.layer, whole[0].model.bert.encoder.layer
    assert (len(first), len(second), shallow.num_labels) == (2, 4, 1)
    for ours, theirs in zip(first[1].state_dict().values(), second[1].state_dict().values(), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize("kind", ["listnet", "lambda"])
def test_residual_loss_is_the_library_s_over_the_served_score(recipe: Recipe, kind: str) -> None:
    """A list that the base orders right by far costs next to nothing; the same list the wrong way round costs much."""
    import torch

    from rerank.training.losses import ResidualLoss
    from rerank.training.trainer import start_model

    loss = ResidualLoss(start_model(recipe), kind, scale=50.0, weight=0.1)
    labels = [torch.tensor([1.0, 0.0])]
    texts = [["pump"], [["seal", "soup"]]]
    right = float(loss([*texts, [[0.9, 0.1]]], labels))
    wrong = float(loss([*texts, [[0.1, 0.9]]], labels))
    assert right < 1e-3
    assert wrong > 1.0


def test_training_learns_what_the_first_stage_gets_wrong(recipe: Recipe, tmp_path: Path) -> None:
    """After a few steps the served score puts the right passage first."""
    from rerank.training.trainer import fit_residual, start_model

    recipe = replace(recipe, epochs=20.0, learning_rate=1e-2, checkpoint_steps=1000)
    model = fit_residual(start_model(recipe), _lists(), 30.0, recipe, tmp_path)
    one = _lists(1)[0]
    chances = model.predict([(one.query, passage) for passage in one.passages])
    assert np.argmax(one.base + recipe.cross_weight * chances) == 1


def test_stage_goes_on_from_its_checkpoint_and_is_done_once(recipe: Recipe, tmp_path: Path) -> None:
    """A stage that broke off ends where it would have ended; one that is finished is only loaded."""
    from rerank.training.trainer import distil, finished, start_model

    pairs = taught_by_base(_lists(40))
    distil(start_model(recipe), pairs, recipe, tmp_path)
    [last] = (tmp_path / "checkpoints").iterdir()
    steps = json.loads((last / "trainer_state.json").read_text(encoding="utf-8"))["global_step"]
    assert (finished(tmp_path), steps) == (True, 4)
    shutil.rmtree(tmp_path / "model")
    assert not finished(tmp_path)
    resumed = distil(start_model(recipe), pairs, recipe, tmp_path)
    again = distil(start_model(recipe), pairs, recipe, tmp_path)
    pair = [("pump", "seal")]
    np.testing.assert_allclose(resumed.predict(pair), again.predict(pair), atol=1e-6)


def test_exported_model_scores_as_the_trained_one(recipe: Recipe, tmp_path: Path) -> None:
    """The ONNX file gives the logits of torch, and the int8 file correlates with them."""
    import torch

    from encoders.models import resolve
    from encoders.sources import ModelSource
    from rerank.cross_encoder import OnnxCrossEncoder
    from rerank.training.exporting import export
    from rerank.training.trainer import start_model

    model = start_model(recipe)
    model.save_pretrained(str(tmp_path / "trained"), create_model_card=False)
    exported = export(tmp_path / "trained", tmp_path / "exported")
    ours = OnnxCrossEncoder.open(resolve(ModelSource(str(exported.full))))
    passages = ["seal of the pump", "soup"]
    theirs = model.predict([("pump", passage) for passage in passages], activation_fn=torch.nn.Identity())
    np.testing.assert_allclose(ours.score("pump", passages), theirs, atol=1e-3)
    assert exported.pearson > 0.98


def _write_plan(folder: Path, start: Path) -> Path:
    # What judges shares no words with what teaches, or it would be left out as a rephrasing.
    for name, words in (("own", ("pump", "seal", "valve")), ("held", ("torque", "soup", "cats"))):
        found = [
            (f"{one} {two} {count}", f"the {one} of {two}") for count in range(4) for one in words for two in words
        ]
        lines = "".join(json.dumps({"query": query, "passage": passage}) + "\n" for query, passage in found)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    plan = folder / "plan.toml"
    text = f'start = "{start}"\ndepth = 2\nmax_tokens = 32\nlist_size = 4\n[[labelled]]\npairs = "own.jsonl"\n'
    plan.write_text(text + '[[judged]]\npairs = "held.jsonl"\n', encoding="utf-8")
    return plan


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Names a tiny encoder for mining."""
    encoder = make_tiny_bi_encoder(tmp_path / "encoder")
    return {"HEADRACE_ENCODERS__DENSE__MODEL": str(encoder)}


def test_command_trains_judges_and_refuses(
    tiny_start: Path, tmp_path: Path, environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A model of random weights, trained for seconds, does not pass: figures are printed, nothing is installed."""
    from retrieval.cli.main import execute

    target = tmp_path / "small"
    plan, work = _write_plan(tmp_path, tiny_start), str(tmp_path / "work")
    code = execute(["rerank", "train", str(plan), "--work", work, "--into", str(target), "--json"], environment)
    printed = capsys.readouterr()
    assert printed.out, printed.err[-2000:]
    report = json.loads(printed.out)
    assert {one["name"] for one in report["test"]} == {"held"}
    assert report["passes"] is target.exists()
    assert code == (0 if report["passes"] else 1)
    assert report["passes"] or "not installed" in printed.err
