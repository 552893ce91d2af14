"""`headrace collections migrate`: moves a collection to another embedding model while it serves."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from retrieval.cli.connecting import connect
from retrieval.cli.exits import WorkFailed, WrongUse
from retrieval.cli.output import console, note, pairs, print_json, show
from retrieval.cli.session import CLIENT, Session, with_session
from retrieval.server.convert.plain import plain
from retrieval.server.endpoint_file import running_server

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.v1 import migrations_pb2

_STEPS = {
    "encoding": "encoding",
    "building": "building the graph, and what was written meanwhile",
    "checking": "measuring",
    "changing_over": "changing over",
}


class Calls(Protocol):
    """The calls about migrations; the client's and those of `MigrationCalls` both are."""

    def migrate(
        self, request: migrations_pb2.MigrateCollectionRequest
    ) -> AsyncGenerator[migrations_pb2.MigrateCollectionResponse, None]:
        """Yields how far a migration is."""
        ...

    async def get(self, request: migrations_pb2.GetMigrationRequest) -> migrations_pb2.GetMigrationResponse:
        """Says of which models a collection is."""
        ...

    async def cancel(self, request: migrations_pb2.CancelMigrationRequest) -> migrations_pb2.CancelMigrationResponse:
        """Stops a migration."""
        ...

    async def forget(self, request: migrations_pb2.ForgetMigrationRequest) -> migrations_pb2.ForgetMigrationResponse:
        """Removes what served before."""
        ...


Name = Annotated[str, typer.Argument(metavar="NAME", help="The collection.")]


@with_session(*CLIENT)
def migrate(  # noqa: PLR0913 - each parameter is an option of the command
    session: Session,
    name: Name,
    *,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="MODEL", help="The model, named as in encoders.dense.model; '' is that one."),
    ] = None,
    back: Annotated[bool, typer.Option("--back", help="Go back to the model that served before.")] = False,
    questions: Annotated[
        Path | None,
        typer.Option("--questions", metavar="FILE", help="Labelled questions that the move must not make worse."),
    ] = None,
    min_recall: Annotated[float | None, typer.Option("--min-recall", help="The least recall@10 of searches.")] = None,
    max_ndcg_loss: Annotated[float | None, typer.Option("--max-ndcg-loss", help="The most nDCG@10 may fall.")] = None,
    token_vectors: Annotated[
        bool | None, typer.Option("--token-vectors/--no-token-vectors", help="Store token vectors; otherwise as now.")
    ] = None,
) -> None:
    """Move a collection to another embedding model while it serves and is written; asked again, it goes on."""
    if (model is not None) == back:
        raise WrongUse("give --model or --back")
    from headrace.v1 import migrations_pb2

    request = migrations_pb2.MigrateCollectionRequest(
        collection=name,
        model=str(Path(model).absolute()) if model and Path(model).is_dir() else model or "",
        back=back,
        token_vectors=token_vectors,
        min_recall=min_recall,
        max_ndcg_loss=max_ndcg_loss,
        questions=[] if questions is None else labelled_questions(questions),
    )
    state = asyncio.run(_followed(session, request))
    if session.json:
        print_json({"collection": name, **state})
    else:
        show(pairs(_figures(name, state)))


@with_session(*CLIENT)
def migration(
    session: Session,
    name: Name,
    *,
    cancel: Annotated[bool, typer.Option("--cancel", help="Stop, and remove what was begun.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Remove what served before.")] = False,
) -> None:
    """Show of which models a collection is; stop its migration, or remove what served before the last one."""
    if cancel and forget:
        raise WrongUse("give --cancel or --forget")
    standing = asyncio.run(_stand(session, name, cancel=cancel, forget=forget))
    if session.json:
        print_json(standing)
    else:
        show(pairs(_standing(standing)))


def labelled_questions(file: Path) -> list[migrations_pb2.LabelledQuestion]:
    """Reads labelled questions: JSON lines with `query`, and `relevant`, a list of document ids or grades by id.

    Raises:
        WrongUse: the file cannot be read, or a line is not so; names the line.
    """
    from headrace.v1 import migrations_pb2

    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUse(f"{file}: {error}") from error
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            read = json.loads(line)
            relevant = read["relevant"]
            grades = dict.fromkeys(relevant, 1) if isinstance(relevant, list) else dict(relevant)
            found.append(migrations_pb2.LabelledQuestion(query=read["query"], relevance=grades))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            shape = '{"query": "...", "relevant": ["id"]}'
            raise WrongUse(f"{file}:{number}: not of the form {shape}: {error}") from error
    if not found:
        raise WrongUse(f"{file}: holds no labelled question")
    return found


async def _followed(session: Session, request: migrations_pb2.MigrateCollectionRequest) -> dict[str, Any]:
    state: dict[str, Any] = {}
    async with _calls(session) as (calls, served):
        try:
            with _progress() as advanced:
                async with aclosing(calls.migrate(request)) as states:
                    async for one in states:
                        state = dict(plain(one.migration))
                        advanced(state)
        except asyncio.CancelledError:
            if served:
                note("the migration goes on in the server; `headrace collections migration` shows and stops it")
            raise
        except Exception as error:
            if state.get("step") == "failed":  # its last message says more than the status
                raise WorkFailed(state["reason"]) from error
            raise
    return state


async def _stand(session: Session, name: str, *, cancel: bool, forget: bool) -> dict[str, Any]:
    from headrace.v1 import migrations_pb2

    async with _calls(session) as (calls, _):
        if cancel:
            await calls.cancel(migrations_pb2.CancelMigrationRequest(collection=name))
        if forget:
            await calls.forget(migrations_pb2.ForgetMigrationRequest(collection=name))
        return {"collection": name, **plain(await calls.get(migrations_pb2.GetMigrationRequest(collection=name)))}


@asynccontextmanager
async def _calls(session: Session) -> AsyncIterator[tuple[Calls, bool]]:
    """Gives the way to the session's collections, and whether a server is at its end."""
    settings = None if session.server else session.load().settings
    address = session.server or (running_server(settings.data.folder) if settings else None)
    if address is not None:
        async with connect(session, address) as client:
            yield client.migrations, True
        return
    from retrieval.identity import DEFAULT_TENANT
    from retrieval.server.migrations import local_migrations
    from retrieval.server.services.migration_calls import MigrationCalls

    assert settings is not None
    async with local_migrations(settings) as desk:
        yield MigrationCalls(desk, DEFAULT_TENANT), False


@contextmanager
def _progress() -> Iterator[Callable[[dict[str, Any]], None]]:
    """Shows how far it is on standard error while the block runs, where a person looks."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.fields[state]}"))
    with Progress(*columns, console=console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("", total=None, state="starting")

        def advanced(state: dict[str, Any]) -> None:
            doing = _STEPS.get(state["step"], state["step"])
            total = state["documents"] or None
            progress.update(task, total=total, completed=state["documents_done"], state=f"documents; {doing}")

        yield advanced


def _figures(name: str, state: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "collection", name
    yield "model", state["model"]
    if (check := state["check"]) is None:
        yield "moved", "nothing; the collection is of that model already"
        return
    yield "documents", f"{state['documents']:,}, of which {state['encoded']:,} were encoded"
    yield "recall@10", f"{check['recall']:.3f} of exact search, over {check['sampled']} searches"
    if check["ndcg_after"] is not None:
        before = "it could not serve" if check["ndcg_before"] is None else f"{check['ndcg_before']:.3f}"
        yield "nDCG@10", f"{check['ndcg_after']:.3f}, before {before}"
    yield "to go back", f"headrace collections migrate {name} --back"
    yield "to keep it", f"headrace collections migration {name} --forget"


def _standing(standing: dict[str, Any]) -> Iterator[tuple[str, str]]:
    under_way = standing["migration"]
    yield "collection", standing["collection"]
    yield "serves", standing["serving"]
    yield "begun", standing["building"] or "nothing"
    yield "before", standing["previous"] or "nothing to go back to"
    if under_way is not None:
        done = f"{under_way['documents_done']:,} of {under_way['documents']:,} documents"
        yield "migration", "; ".join(filter(None, (under_way["step"], done, under_way["reason"])))
