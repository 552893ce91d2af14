"""One run of `headrace rerank train`, from examples to an installed model or a refusal.

Everything it makes lies in the work folder under names that say what it is, so a run that broke off goes on where it
was: pools, each stage's checkpoints, the exported model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from encoders.errors import ExtraMissing
from encoders.models import resolve
from encoders.sources import ModelSource
from indexers.chunking import Chunker
from rerank.calibrate import Mixture
from rerank.cross_encoder import OnnxCrossEncoder
from rerank.training.calibration import fit_scale
from rerank.training.errors import RunDiffers, TrainingDataInvalid
from rerank.training.examples import Example, ExampleSet
from rerank.training.gate import Gate, ScoredPool, SetFigures, choose_weight, judge
from rerank.training.lists import Mining, TrainingList, draw_lists
from rerank.training.pools import PoolSet, load_pools
from rerank.training.recipe import Recipe
from rerank.training.scoring import score_pools
from rerank.training.splits import Split, part, split_of
from rerank.training.teaching import TaughtPair, taught_by_base, taught_by_model
from retrieval.training.encoding import Advance, BulkEncoder
from retrieval.training.leaks import without_rephrasings
from retrieval.training.mining import FirstStage, SearchablePassages, make_pools, prepare

_MARK = "plan.txt"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run learns from, what judges it, and how."""

    labelled: tuple[ExampleSet, ...]  # their train split teaches
    unlabelled: tuple[ExampleSet, ...]  # all of their queries teach
    judged: tuple[ExampleSet, ...]  # their dev split chooses the weight, their test split judges
    recipe: Recipe
    first_stage: FirstStage
    teacher: str = ""  # a cross-encoder to distil from; "" takes the first stage's own score
    mining: Mining = field(default_factory=Mining)
    unlabelled_limit: int = 2_500  # queries of each unlabelled set
    judged_limit: int = 150  # queries of each split of a judged set


@dataclass(frozen=True, slots=True)
class Trained:
    """What came out of a run."""

    folder: Path  # the int8 model
    weights: Mixture  # of the settings; the cross-encoder's was chosen on dev queries
    dev: tuple[SetFigures, ...]
    test: tuple[SetFigures, ...]
    agreement: str  # int8 against full precision


class TrainingRun:
    """A run in its work folder."""

    def __init__(self, plan: Plan, work: Path, encoder: BulkEncoder, chunker: Chunker, advance: Advance) -> None:
        self._plan = plan
        self._work = work
        self._encoder = encoder
        self._chunker = chunker
        self._advance = advance
        self._searchable: dict[str, SearchablePassages] = {}  # a set is prepared once for all of its splits

    def train(self) -> Trained:
        """Does the run, or what is left of it.

        Raises:
            TrainingDataInvalid: there is nothing to learn from.
            ModelError: the trained model cannot be exported, or its int8 file disagrees with it.
        """
        limit = self._plan.unlabelled_limit
        labelled = self._lists(self._plan.labelled, lambda one: part(one.examples, Split.TRAIN))
        unlabelled = self._lists(self._plan.unlabelled, lambda one: one.examples[:limit])
        agreement = self._fit(labelled, unlabelled)
        return self._judged(agreement)

    def _fit(self, labelled: Sequence[TrainingList], unlabelled: Sequence[TrainingList]) -> str:
        # torch takes seconds to import, and the pools are made without it.
        from rerank.training import exporting, trainer  # noqa: PLC0415

        recipe = self._plan.recipe
        model = trainer.start_model(recipe)
        if unlabelled:
            model = trainer.distil(model, self._taught(unlabelled), recipe, self._work / "distilled")
        lists = [*labelled, *unlabelled]
        if not lists:
            raise TrainingDataInvalid(self._work, "no query is left to learn from: none trains, or all are held out")
        scale = recipe.base_trust * fit_scale(labelled or lists)
        trainer.fit_residual(model, lists, scale, recipe, self._work / "residual")
        exported = exporting.export(self._work / "residual" / "model", self._work / "exported")
        return f"Pearson {exported.pearson:.4f} and Kendall {exported.rank_agreement:.3f} with full precision"

    def _taught(self, lists: Sequence[TrainingList]) -> list[TaughtPair]:
        if not self._plan.teacher:
            return taught_by_base(lists)
        return taught_by_model(lists, OnnxCrossEncoder.open(resolve(ModelSource(self._plan.teacher))))

    def _judged(self, agreement: str) -> Trained:
        folder = self._work / "exported" / "served"
        reranker = OnnxCrossEncoder.open(resolve(ModelSource(str(folder))))
        scored = {split: self._scored(reranker, split) for split in (Split.DEV, Split.TEST)}
        weights = choose_weight(scored[Split.DEV], self._plan.first_stage.mixture, Gate())
        dev, test = (
            tuple(judge(name, pools, weights) for name, pools in scored[split].items())
            for split in (Split.DEV, Split.TEST)
        )
        return Trained(folder, weights, dev, test, agreement)

    def _scored(self, reranker: OnnxCrossEncoder, split: Split) -> Mapping[str, list[ScoredPool]]:
        found: dict[str, list[ScoredPool]] = {}
        limit = self._plan.judged_limit
        for pools in self._pools(self._plan.judged, lambda one: part(one.examples, split, limit), split.value):
            for count, scored in enumerate(score_pools(reranker, pools), 1):
                found.setdefault(pools.name, []).append(scored)
                self._advance(f"scoring {pools.name}", count, len(pools.pools))
        return found

    def _lists(
        self, sets: Sequence[ExampleSet], examples: Callable[[ExampleSet], Sequence[Example]]
    ) -> list[TrainingList]:
        held_out = [
            example.query
            for one in self._plan.judged
            for example in one.examples
            if split_of(example.query_id) is not Split.TRAIN
        ]
        pools = self._pools(
            sets, lambda one: without_rephrasings(examples(one), held_out, self._encoder), Split.TRAIN.value
        )
        mixture = self._plan.first_stage.mixture
        return [one for each in pools for one in draw_lists(each, mixture, self._plan.mining)]

    def _pools(
        self, sets: Sequence[ExampleSet], examples: Callable[[ExampleSet], Sequence[Example]], use: str
    ) -> Iterator[PoolSet]:
        for one in sets:
            path = self._work / "pools" / f"{one.name.replace(':', '.')}.{use}.jsonl"
            if not path.is_file():
                path.parent.mkdir(parents=True, exist_ok=True)
                if one.name not in self._searchable:
                    self._searchable[one.name] = prepare(one.texts, self._chunker, self._encoder)
                searchable = self._searchable[one.name]
                make_pools(one.name, examples(one), searchable, self._encoder, self._plan.first_stage).save(path)
            yield load_pools(path)


def require_torch() -> None:
    """Looks for the extra `train`.

    Raises:
        ExtraMissing: a package of it is not there.
    """
    from importlib.util import find_spec  # noqa: PLC0415

    for name in ("torch", "sentence_transformers", "datasets", "accelerate"):
        if find_spec(name) is None:
            raise ExtraMissing("train", name)


def claim(work: Path, fingerprint: str) -> None:
    """Makes the work folder that of one plan and its settings; a run of the same goes on in it.

    Raises:
        RunDiffers: it belongs to another.
    """
    work.mkdir(parents=True, exist_ok=True)
    mark = work / _MARK
    if not mark.is_file():
        mark.write_text(fingerprint, encoding="utf-8")
    elif mark.read_text(encoding="utf-8") != fingerprint:
        raise RunDiffers(work)
