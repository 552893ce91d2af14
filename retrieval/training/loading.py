"""From a plan file to a plan: reads the sets, the corpora and the collections that it names."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from indexers.chunking import Chunker
from indexers.types import Document
from rerank.training.examples import ExampleSet, read_beir, read_pairs, read_texts
from rerank.training.headings import Conditions, heading_set
from rerank.training.lists import Mining
from rerank.training.recipe import Recipe
from retrieval.training.mining import FirstStage
from retrieval.training.plan_file import HeadingsPlan, PlanFile, SetPlan
from retrieval.training.run import Plan
from retrieval.training.sections import document_of, sections

Collections = Callable[[str], Iterable[Document]]  # a collection's documents by its name


def load_plan(file: PlanFile, chunker: Chunker, collections: Collections, first_stage: FirstStage) -> Plan:
    """Reads all that a plan learns from.

    Raises:
        OSError: a file is missing.
        TrainingDataInvalid: a file cannot be learnt from.
    """
    labelled = tuple(_read_set(one) for one in file.labelled)
    return Plan(
        labelled=labelled,
        unlabelled=tuple(_read_headings(one, chunker, collections) for one in file.headings),
        judged=tuple(_read_set(one) for one in file.judged) or labelled,
        recipe=Recipe(
            start=file.start,
            depth=file.depth,
            max_tokens=file.max_tokens,
            loss=file.loss,
            epochs=file.epochs,
            lists_per_step=file.lists_per_step,
            learning_rate=file.learning_rate,
            base_trust=file.base_trust,
        ),
        first_stage=first_stage,
        teacher=file.teacher,
        mining=Mining(list_size=file.list_size),
        unlabelled_limit=file.heading_queries,
        judged_limit=file.judged_queries,
    )


def data_lines(file: PlanFile) -> tuple[str, ...]:
    """Says what the plan learns from, a line a source, for the model card."""
    labelled = [f"{_set_name(one)}, queries of its train split; licence: {one.licence}" for one in file.labelled]
    headings = [
        f"headings and sections of {one.collection or (one.corpus.name if one.corpus else '')}"
        f"{_conditions(one)}; licence: {one.licence}"
        for one in file.headings
    ]
    return (*labelled, *headings)


def _read_set(one: SetPlan) -> ExampleSet:
    if one.pairs is not None:
        return read_pairs(one.pairs)
    assert one.folder is not None  # the plan holds one of the two
    return read_beir(one.folder, one.qrels)


def _read_headings(one: HeadingsPlan, chunker: Chunker, collections: Collections) -> ExampleSet:
    conditions = Conditions(
        {name: frozenset(values) for name, values in one.keep.items()},
        {name: frozenset(values) for name, values in one.drop.items()},
    )
    if one.corpus is None:
        return heading_set(one.collection, sections(collections(one.collection), chunker), conditions)
    # Conditions are asked before anything is cut: most of a large corpus may be left out.
    admitted = (document_of(text) for text in read_texts(one.corpus) if conditions.admit(text))
    return heading_set(one.corpus.name.partition(".")[0], sections(admitted, chunker), conditions)


def _set_name(one: SetPlan) -> str:
    if one.folder is None:
        return one.pairs.name if one.pairs else ""
    return one.folder.name if one.qrels == "test" else f"{one.folder.name} ({one.qrels})"


def _conditions(one: HeadingsPlan) -> str:
    kept = [f"{name} one of {', '.join(values)}" for name, values in one.keep.items()]
    dropped = [f"without {name} {', '.join(values)}" for name, values in one.drop.items()]
    return f" ({'; '.join([*kept, *dropped])})" if kept or dropped else ""
