"""The commands about job files: run, submit, check, example; and what goes into files: reports and failures."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from retrieval.cli.exits import WorkFailed, WrongUse
from retrieval.cli.jobs_calls import Calls, job_calls
from retrieval.cli.jobs_progress import run_progress
from retrieval.cli.jobs_shown import check_ended, run_pairs
from retrieval.cli.output import print_json, show, table
from retrieval.cli.session import CLIENT, JSON_ONLY, Session, with_session
from retrieval.server.convert.plain import plain

if TYPE_CHECKING:
    from indexers.jobs.spec import JobSpec
    from indexers.jobs.state import Run

_PAGE = 1_000

File = Annotated[Path, typer.Argument(metavar="FILE", help="The job file, as jobs/handbook.toml.")]
AllowShrink = Annotated[bool, typer.Option("--allow-shrink", help="Let the run delete much more documents than usual.")]


def register(commands: typer.Typer) -> None:
    """Adds the commands."""
    commands.command("run")(run)
    commands.command("submit")(submit)
    commands.command("check")(check)
    commands.command("example")(example)


@with_session(*CLIENT)
def run(
    session: Session,
    file: File,
    allow_shrink: AllowShrink = False,
    failures: Annotated[bool, typer.Option("--failures", help="Try what failed before, and nothing else.")] = False,
    tenant: Annotated[str, typer.Option("--tenant", help="Whose data, when no server runs; otherwise 'default'.")] = "",
) -> None:
    """Carry out a job here and now, to its end.

    The running server takes the documents; without one, the data folder is opened here. The exit code is 1 when
    anything failed, and 3 when the run stopped before deleting much more than usual. Ctrl-C cancels the run; what was
    written stays.
    """
    spec, folder = _loaded(file)
    request = _Asked(allow_shrink, failures, tenant)
    ended = asyncio.run(_run(session, spec, folder, request))
    print_json(ended) if session.json else show(run_pairs(ended))
    check_ended(ended)


@with_session(*CLIENT)
def submit(
    session: Session,
    file: File,
    allow_shrink: AllowShrink = False,
    declare_only: Annotated[bool, typer.Option("--declare-only", help="Queue no run.")] = False,
    base_folder: Annotated[
        str, typer.Option("--base-folder", help="Where relative paths start, on the server; else the file's folder.")
    ] = "",
) -> None:
    """Declare a job and queue a run of it, which the server's workers, or `headrace worker`, carry out."""
    spec, folder = _loaded(file)
    reply = asyncio.run(_submit(session, spec, base_folder or folder, allow_shrink, not declare_only))
    if session.json:
        print_json(reply)
    elif declare_only:
        show(f"declared {spec.name}")
    else:
        show(f"queued run {reply['run']['run_id']} of {spec.name}; `headrace jobs watch {spec.name}` follows it")


@with_session(*JSON_ONLY)
def check(
    session: Session,
    file: File,
    items: Annotated[int, typer.Option("--items", min=1, max=10_000, help="Items of the source to list.")] = 10,
) -> None:
    """Check a job file, and list the first items of its source."""
    from retrieval.cli.jobs_check import first_items

    spec, folder = _loaded(file)
    listed, problems = first_items(spec, folder, items)
    if session.json:
        print_json({"job": spec.name, "items": listed, "problems": problems})
    else:
        show(table([spec.name, "bytes"], [(one["name"], f"{one['size_bytes']:,}") for one in listed], right=["bytes"]))
        if problems:
            show(table(["problem", "why"], [(one["name"], one["reason"]) for one in problems]))
    if not listed:
        raise WorkFailed(f"the source of {spec.name} lists nothing to read; look at its path, include and exclude")


@with_session(*JSON_ONLY)
def example(
    session: Session, kind: Annotated[str, typer.Argument(metavar="[KIND]", help="The kind of source.")] = "folder"
) -> None:
    """Print a commented job file for a kind of source: folder, files, site, git or sql."""
    from indexers.jobs.examples import example_toml
    from indexers.jobs.file_faults import SOURCES

    if kind not in SOURCES:
        raise WrongUse(f"{kind!r} is no kind of source; the kinds are {', '.join(SOURCES)}")
    text = example_toml(kind)
    print_json({"kind": kind, "toml": text}) if session.json else typer.echo(text, nl=False)


async def export_failures(calls: Calls, name: str, path: Path) -> int:
    """Writes all failures of a job as JSON lines, and returns how many there are; the file appears whole."""
    from headrace.v1 import jobs_pb2

    fresh, count, token = path.with_name(f".{path.name}.new"), 0, ""
    with fresh.open("w", encoding="utf-8") as lines:
        while True:
            page = await calls.failures(jobs_pb2.ListFailuresRequest(name=name, page_size=_PAGE, page_token=token))
            for failure in page.failures:
                lines.write(json.dumps(plain(failure), ensure_ascii=False) + "\n")
                count += 1
            if not (token := page.next_page_token):
                break
    fresh.replace(path)
    return count


async def some_failures(calls: Calls, name: str, limit: int) -> list[dict[str, Any]]:
    """Returns the first failures of a job."""
    from headrace.v1 import jobs_pb2

    page = await calls.failures(jobs_pb2.ListFailuresRequest(name=name, page_size=limit))
    return [plain(failure) for failure in page.failures][:limit]


def write_report(path: Path, run: dict[str, Any] | None) -> None:
    """Writes the final report of a run, as its file's ending says.

    Raises:
        WorkFailed: there is no report yet.
        WrongUse: the ending is neither .html nor .json.
    """
    from indexers.jobs.report import report_from_json
    from indexers.jobs.report_html import report_html

    text = run["report_json"] if run else ""
    if path.suffix not in {".html", ".json"}:
        raise WrongUse(f"{path} must end in .html or .json")
    if not text:
        raise WorkFailed("the run has no report; it is made when a run ends that a worker has begun")
    path.write_text(text if path.suffix == ".json" else report_html(report_from_json(text)), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class _Asked:
    """How `headrace jobs run` was asked to run a job."""

    allow_shrink: bool
    failures: bool
    tenant: str


def _loaded(file: Path) -> tuple[JobSpec, str]:
    from indexers.jobs.files import load_job

    return load_job(file)


async def _run(session: Session, spec: JobSpec, folder: str, asked: _Asked) -> dict[str, Any]:
    from datetime import UTC, datetime

    from indexers.jobs.state import Job, JobKey, RunRequest
    from retrieval.identity import DEFAULT_TENANT
    from retrieval.jobs.opening import Surroundings
    from retrieval.jobs.worker import run_here
    from retrieval.server.convert.jobs import run_to_pb

    here = Surroundings(session.load().settings, session.server, session.api_key)
    if asked.tenant and here.address() is not None:
        raise WrongUse("--tenant is for runs without a server, where the API key decides the tenant")
    now = datetime.now(UTC)
    job = Job(JobKey(asked.tenant or here.tenant or DEFAULT_TENANT, spec.name), spec, folder, now)
    request = RunRequest(asked.allow_shrink, only_failures=asked.failures, reason="the command line", trusted=True)
    with run_progress() as progress:

        def watcher(run: Run) -> None:
            progress.advanced(plain(run_to_pb(run, datetime.now(UTC))))

        ended = await run_here(here, job, request, watcher)
    return dict(plain(run_to_pb(ended, datetime.now(UTC))))


async def _submit(session: Session, spec: JobSpec, base_folder: str, allow_shrink: bool, run: bool) -> dict[str, Any]:
    from headrace.v1 import jobs_pb2
    from indexers.jobs.toml_text import spec_to_toml
    from retrieval.jobs.bounds import needs_base

    request = jobs_pb2.SubmitJobRequest(
        spec_toml=spec_to_toml(spec),
        run=run,
        allow_shrink=allow_shrink,
        base_folder=base_folder if needs_base(spec) else "",
    )
    async with job_calls(session) as calls:
        return dict(plain(await calls.submit(request)))
