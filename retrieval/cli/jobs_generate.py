"""`headrace jobs generate`: answers a file of questions, resumable, within a budget."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from retrieval.cli.connecting import connect
from retrieval.cli.documents import Collection
from retrieval.cli.exits import WorkFailed
from retrieval.cli.output import note, pairs, print_json, show
from retrieval.cli.session import CLIENT, Session, with_session

if TYPE_CHECKING:
    from retrieval.enrichment.batch import BatchFigures, BatchOptions, BatchQuestion

_SAID_EVERY = 50  # answers


@with_session(*CLIENT)
def generate(
    session: Session,
    *,
    questions: Annotated[Path, typer.Argument(metavar="FILE", help="Questions, one JSON object a line.")],
    collection: Collection,
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="Where answers are added, one JSON object a line.")
    ],
    backend: Annotated[str, typer.Option("--backend", help="Who answers; otherwise the configured default.")] = "",
    at_once: Annotated[int, typer.Option("--at-once", min=1, max=256, help="Questions that are asked at once.")] = 4,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", min=0, help="Tokens of prompts and answers at most; 0 for no bound.")
    ] = 0,
) -> None:
    """Answer a file of questions; the same command goes on where it was broken off."""
    from retrieval.enrichment.batch import BatchOptions, read_questions

    asked = read_questions(questions)
    options = BatchOptions(collection, backend, at_once, max_tokens)
    figures = asyncio.run(_answer(session, asked, out, options))
    print_json(asdict(figures)) if session.json else show(pairs(_shown(figures)))
    if left := figures.failed + figures.left_out:
        raise WorkFailed(f"{left} questions have no answer; run the same command again to go on")


async def _answer(session: Session, asked: list[BatchQuestion], out: Path, options: BatchOptions) -> BatchFigures:
    from retrieval.enrichment.batch import answer_all

    def watch(figures: BatchFigures) -> None:
        done = figures.answered + figures.failed
        if done % _SAID_EVERY == 0 and not session.json:
            note(f"{figures.kept + done} of {figures.total} questions, {figures.tokens:,} tokens")

    async with connect(session) as client:
        return await answer_all(client, asked, out, options, watch)


def _shown(figures: BatchFigures) -> list[tuple[str, Any]]:
    reasons = ", ".join(f"{count} {reason}" for reason, count in figures.reasons.items())
    return [
        ("questions", f"{figures.total:,}"),
        ("answered", f"{figures.answered:,} now, {figures.kept:,} before"),
        ("failed", f"{figures.failed:,} {reasons}".strip()),
        ("left out", f"{figures.left_out:,}"),
        ("tokens", f"{figures.tokens:,}"),
    ]
