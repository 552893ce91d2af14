"""`headrace jobs`: runs, submits, lists, shows, watches, cancels and retries indexing jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from retrieval.cli import jobs_files, jobs_generate, jobs_schedule
from retrieval.cli.exits import WorkFailed, WrongUse
from retrieval.cli.jobs_calls import Calls, job_calls
from retrieval.cli.jobs_progress import run_progress
from retrieval.cli.jobs_shown import check_ended, failure_table, job_table, run_pairs, run_table
from retrieval.cli.output import note, pairs, print_json, show
from retrieval.cli.session import CLIENT, Session, with_session
from retrieval.server.convert.plain import plain

if TYPE_CHECKING:
    from headrace.v1 import jobs_pb2

T = TypeVar("T")

commands = typer.Typer(help="Run, submit, list, show, watch, cancel and retry indexing jobs.", no_args_is_help=True)

NameOrRun = Annotated[str, typer.Argument(metavar="NAME|RUN", help="A job, whose newest run is meant, or a run.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The job.")]


@commands.command("list")
@with_session(*CLIENT)
def list_(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="A job whose runs are listed.")] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="Runs at most.")] = 20,
) -> None:
    """List the jobs, or the runs of one."""
    if name:
        runs = call(session, lambda calls: _runs(calls, name, limit))
        print_json({"runs": runs}) if session.json else show(run_table(runs))
    else:
        jobs = call(session, _all_jobs)
        print_json({"jobs": jobs}) if session.json else show(job_table(jobs))


@commands.command("show")
@with_session(*CLIENT)
def show_(
    session: Session,
    name: NameOrRun,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Write the final report: .html or .json.")
    ] = None,
) -> None:
    """Show a job with its newest run, or one run."""
    found = call(session, lambda calls: find(calls, name))
    if report is not None:
        jobs_files.write_report(report, found["run"])
    if session.json:
        print_json(found)
        return
    job, run = found["job"], found["run"]
    shown = [("job", job["name"]), ("collection", job["collection"]), ("description", job["description"])]
    show(pairs([(label, value) for label, value in shown if value]), "", job["spec_toml"])
    show(run_pairs(run) if run else "it was never run")


@commands.command("watch")
@with_session(*CLIENT)
def watch(session: Session, name: NameOrRun) -> None:
    """Follow a run to its end, whose state decides the exit code; leaving does not stop it."""
    _end(session, call(session, lambda calls: follow(calls, name)))


@commands.command("cancel")
@with_session(*CLIENT)
def cancel(session: Session, name: NameOrRun) -> None:
    """Stop a run; what it has written stays."""
    from headrace.v1 import jobs_pb2

    async def ask(calls: Calls) -> Any:
        job, run_id = await _which(calls, name)
        return (await calls.cancel(jobs_pb2.CancelJobRequest(name=job, run_id=run_id))).run

    _one(session, plain(call(session, ask)))


@commands.command("retry")
@with_session(*CLIENT)
def retry(
    session: Session,
    name: Name,
    follows: Annotated[bool, typer.Option("--watch", help="Follow the run to its end.")] = False,
) -> None:
    """Queue a run over what failed and has not succeeded since."""
    from headrace.v1 import jobs_pb2

    async def ask(calls: Calls) -> dict[str, Any]:
        run = plain((await calls.retry(jobs_pb2.RetryFailuresRequest(name=name))).run)
        return await follow(calls, run["run_id"]) if follows else dict(run)

    run = call(session, ask)
    _end(session, run) if follows else _one(session, run)


@commands.command("failures")
@with_session(*CLIENT)
def failures(
    session: Session,
    name: Name,
    export: Annotated[
        Path | None, typer.Option("--export", metavar="FILE", help="Write all of them as JSON lines.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many are shown.")] = 50,
) -> None:
    """Show what failed and has not succeeded since."""
    if export is not None:
        count = call(session, lambda calls: jobs_files.export_failures(calls, name, export))
        print_json({"exported": count, "file": str(export)}) if session.json else note(f"{count:,} in {export}")
        return
    found = call(session, lambda calls: jobs_files.some_failures(calls, name, limit))
    if session.json:
        print_json({"failures": found})
    else:
        show(failure_table(found) if found else f"nothing of {name} has failed and not succeeded since")


@commands.command("remove")
@with_session(*CLIENT)
def remove(
    session: Session,
    name: Name,
    documents: Annotated[bool, typer.Option("--documents", help="Delete what it has indexed, too.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask first.")] = False,
) -> None:
    """Forget a job; what it has indexed stays unless asked otherwise."""
    from headrace.v1 import jobs_pb2

    if documents and not yes:
        typer.confirm(f"Delete the job {name!r} with all documents that it has indexed?", abort=True, err=True)
    request = jobs_pb2.DeleteJobRequest(name=name, delete_documents=documents)
    deleted = call(session, lambda calls: calls.delete(request)).deleted
    if session.json:
        print_json({"removed": name, "deleted_documents": deleted})
    else:
        show(f"removed {name}" + (f" and {deleted:,} documents" if documents else ""))


def call(session: Session, ask: Callable[[Calls], Awaitable[T]]) -> T:
    """Runs calls about the session's jobs."""

    async def run() -> T:
        async with job_calls(session) as calls:
            return await ask(calls)

    return asyncio.run(run())


async def find(calls: Calls, name: str) -> dict[str, Any]:
    """Returns what is known of a job and its newest run, or of a run and its job.

    Raises:
        WorkFailed: the name is neither a job's nor a run's.
    """
    reply = await _found(calls, name)
    return dict(plain(reply))


async def follow(calls: Calls, name: str) -> dict[str, Any]:
    """Shows the progress of a run until its end, and returns it."""
    from headrace.v1 import jobs_pb2

    job, run_id = await _which(calls, name)
    run: dict[str, Any] = {}
    with run_progress() as progress:
        async with aclosing(calls.watch(jobs_pb2.WatchJobRequest(name=job, run_id=run_id))) as states:
            async for state in states:
                run = plain(state.run)
                progress.advanced(run)
    return run


def _end(session: Session, run: dict[str, Any]) -> None:
    _one(session, run)
    check_ended(run)


def _one(session: Session, run: dict[str, Any]) -> None:
    print_json(run) if session.json else show(run_pairs(run))


async def _found(calls: Calls, name: str) -> jobs_pb2.GetJobResponse:
    import grpc.aio

    from headrace.v1 import jobs_pb2
    from indexers.errors import JobNotFound, RunNotFound

    for request in (jobs_pb2.GetJobRequest(name=name), jobs_pb2.GetJobRequest(run_id=name)):
        try:
            return await calls.get(request)
        except (JobNotFound, RunNotFound):
            continue
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.NOT_FOUND:
                raise
    raise WorkFailed(f"{name!r} is neither a job nor a run; `headrace jobs list` shows those that there are")


async def _which(calls: Calls, name: str) -> tuple[str, str]:
    """Returns the job and the run that a name means.

    Raises:
        WorkFailed: it is neither a job's nor a run's.
        WrongUse: the job was never run.
    """
    reply = await _found(calls, name)
    if not reply.HasField("run"):
        raise WrongUse(f"{name} was never run; `headrace jobs run` and `headrace jobs submit` do that")
    return reply.job.name, reply.run.run_id


async def _all_jobs(calls: Calls) -> list[dict[str, Any]]:
    from headrace.v1 import jobs_pb2

    found: list[dict[str, Any]] = []
    token = ""
    while True:
        page = await calls.list(jobs_pb2.ListJobsRequest(page_token=token))
        found += [plain(job) for job in page.jobs]
        if not (token := page.next_page_token):
            return found


async def _runs(calls: Calls, name: str, limit: int) -> list[dict[str, Any]]:
    from headrace.v1 import jobs_pb2

    page = await calls.list(jobs_pb2.ListJobsRequest(name=name, page_size=limit))
    return [plain(run) for run in page.runs]


jobs_files.register(commands)
jobs_schedule.register(commands)
commands.command("generate")(jobs_generate.generate)
