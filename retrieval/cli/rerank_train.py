"""`headrace rerank train`: trains a small cross-encoder, and installs it when it improves what is there."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from retrieval.cli.exits import WorkFailed, WrongUse
from retrieval.cli.output import console, note, print_json, show, table
from retrieval.cli.session import SETTINGS, Session, with_session

if TYPE_CHECKING:
    from encoders.dense import OnnxDenseEncoder
    from indexers.types import Document
    from rerank.training.installing import Provenance
    from retrieval.settings import Settings
    from retrieval.training.encoding import Advance
    from retrieval.training.mining import FirstStage
    from retrieval.training.plan_file import PlanFile
    from retrieval.training.run import Trained, TrainingRun

commands = typer.Typer(help="Train the model that reranks.", no_args_is_help=True)


@commands.callback()
def _group() -> None:
    pass


@commands.command("train")
@with_session(*SETTINGS)
def train(
    session: Session,
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="A TOML file; see docs/training.md.")],
    into: Annotated[Path | None, typer.Option("--into", metavar="FOLDER", help="Install it there.")] = None,
    work: Annotated[
        Path, typer.Option("--work", metavar="FOLDER", help="Checkpoints; the same folder goes on.")
    ] = Path("rerank-training"),
) -> None:
    """Train a small cross-encoder; nothing is installed unless it improves nDCG@10 on held-out queries."""
    from rerank.training.errors import TrainingDataInvalid, TrainingError
    from retrieval.training.plan_file import read_plan
    from retrieval.training.run import require_torch

    file, settings = read_plan(plan), session.load().settings
    require_torch()
    try:
        # The trainer prints as it goes; standard output is for the result.
        with _progress() as advance, redirect_stdout(sys.stderr):
            trained = _run(settings, file, plan.read_text(encoding="utf-8"), work, advance).train()
        _show(trained, session.json)
        if into is not None:
            _install(trained, file, into)
    except TrainingDataInvalid as error:
        raise WrongUse(str(error)) from None
    except TrainingError as error:
        raise WorkFailed(str(error)) from None


def _run(settings: Settings, file: PlanFile, text: str, work: Path, advance: Advance) -> TrainingRun:
    """Opens what serves, reads what the plan names, and takes the work folder once all of it is there."""
    from encoders.open import ScheduledDenseEncoder
    from retrieval.server.engines import chunker_of, scheduler_of
    from retrieval.training.encoding import BulkEncoder
    from retrieval.training.loading import load_plan
    from retrieval.training.run import TrainingRun, claim

    encoder = _encoder(settings)
    with scheduler_of(settings) as scheduler:
        chunker = chunker_of(settings.chunking, ScheduledDenseEncoder(encoder, scheduler))
    stage = _first_stage(settings)
    loaded = load_plan(file, chunker, lambda name: asyncio.run(_documents(settings, name)), stage)
    late = settings.rerank.late.enabled
    claim(work, f"{text}\n{encoder.model_id} {encoder.revision} {late=}\n{stage}\n{settings.chunking!r}\n")
    return TrainingRun(loaded, work, BulkEncoder(encoder, advance, late=late), chunker, advance)


def _encoder(settings: Settings) -> OnnxDenseEncoder:
    """Opens the file of the bi-encoder that serves."""
    from encoders.selfcheck import TextCheck
    from encoders.sources import ModelSource
    from encoders.variants import open_checked
    from retrieval.server.engines import measurements_of, models_folder

    dense, models = settings.encoders.dense, models_folder(settings)
    source = ModelSource(dense.model, file=dense.file, max_tokens=dense.limit_tokens, models_folder=models)
    return open_checked(source, TextCheck(), measurements_of(settings)).encoder


def _first_stage(settings: Settings) -> FirstStage:
    from retrieval.thresholds import Overrides, resolve
    from retrieval.training.mining import FirstStage

    thresholds = resolve(settings, Overrides())
    # The weight of the cross-encoder that serves now says nothing about the one that is made.
    mixture = replace(thresholds.mixture, cross_encoder=0.0)
    return FirstStage(thresholds.dense_weight, thresholds.candidates, mixture)


async def _documents(settings: Settings, collection: str) -> list[Document]:
    from indexers.types import CollectionKey
    from retrieval.server.engines import write_side
    from retrieval.training.sections import documents_of

    async with write_side(settings) as side:
        index = await side.catalog.open(CollectionKey("default", collection))
        return [document async for document in documents_of(index)]


def _install(trained: Trained, file: PlanFile, into: Path) -> None:
    from rerank.training.installing import install

    install(trained.folder, into, trained.test, _provenance(trained, file))
    weight = trained.weights.cross_encoder
    note(f"installed in {into}; name it in rerank.model, and set rerank.cross_encoder_weight to {weight}")


def _provenance(trained: Trained, file: PlanFile) -> Provenance:
    from rerank.training.installing import Provenance
    from retrieval.training.loading import data_lines

    return Provenance(
        start=file.start.name,
        depth=file.depth,
        max_tokens=file.max_tokens,
        weights=trained.weights,
        data=data_lines(file),
        command=shlex.join(["headrace", *sys.argv[1:]]),
        agreement=trained.agreement,
    )


def _show(trained: Trained, as_json: bool) -> None:
    import numpy as np

    from rerank.ndcg import NDCG_CUT
    from rerank.training.gate import Gate

    objection = Gate().objection(trained.test)
    if as_json:
        print_json({**_plain(trained), "passes": objection is None, "objection": objection})
        return
    rows = [
        (one.name, str(len(one.before)), f"{np.mean(one.before):.4f}", f"{np.mean(one.after):.4f}", f"{one.gain:+.4f}")
        for one in trained.test
    ]
    columns = ["test set", "queries", f"nDCG@{NDCG_CUT} before", "after", "change"]
    show(table(columns, rows, right=columns[1:]))
    show(f"weight {trained.weights.cross_encoder}, chosen on dev queries; int8: {trained.agreement}")
    show("passes the gate" if objection is None else f"does not pass the gate: {objection}")


def _plain(trained: Trained) -> dict[str, Any]:
    return {**asdict(trained), "folder": str(trained.folder)}


@contextmanager
def _progress() -> Iterator[Advance]:
    """Shows a bar on standard error for what is made before and after training, where a person looks."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("", total=None)

        def advance(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        yield advance
