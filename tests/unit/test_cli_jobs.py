"""The commands about jobs: what they show, write and end with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from indexers.jobs.files import parse_job
from indexers.jobs.state import DocumentRecord, DocumentState, Job, RunRequest, RunState
from indexers.sources.access import SourceAccess
from indexers.sources.source import ItemRef
from retrieval.cli.exits import Exit, WorkFailed, WorkWaits, WrongUse
from retrieval.cli.jobs import find, follow
from retrieval.cli.jobs_files import export_failures, some_failures, write_report
from retrieval.cli.jobs_progress import progress_text
from retrieval.cli.jobs_shown import check_ended, failure_table, job_table, run_pairs, run_table
from retrieval.cli.main import execute
from retrieval.cli.output import show
from retrieval.jobs.service import JobDesk
from retrieval.server.services.job_calls import Asker, JobCalls
from tests.fakes.job_store import MemoryJobStore
from tests.fakes.jobs import declared


@pytest.fixture
def store() -> MemoryJobStore:
    """A store whose clock stands still."""
    return MemoryJobStore()


@pytest.fixture
def calls(store: MemoryJobStore) -> JobCalls:
    """The way to the jobs of one tenant."""

    async def deletes_nothing(_: Job) -> int:
        return 0

    return JobCalls(JobDesk(store, SourceAccess(), deletes_nothing, now=lambda: store.moment), Asker("acme"))


async def _partial(store: MemoryJobStore) -> str:
    job = await declared(store)
    run = await store.submit(job.key, RunRequest())
    claim = await store.claim_run("w", 60.0)
    assert claim is not None
    await store.offer(claim, [ItemRef("u/a", "a", ""), ItemRef("u/b", "b", "")])
    await store.lease_items(run.run_id, "w", 2, 60.0)
    await store.record(
        run.run_id,
        "w",
        [
            DocumentRecord("a", "u/a", DocumentState.VERIFIED, chunk_count=3, token_count=90),
            DocumentRecord("b", "u/b", DocumentState.FAILED, reason="is [encrypted]", kind="encrypted"),
        ],
    )
    await store.end_run(claim, RunState.PARTIAL, "1 document failed", "")
    return run.run_id


async def test_find_takes_a_job_or_a_run(store: MemoryJobStore, calls: JobCalls) -> None:
    """A name means the job with its newest run, a run's id that run; anything else is said to be neither."""
    run_id = await _partial(store)
    by_name, by_run = await find(calls, "handbook"), await find(calls, run_id)
    assert by_name == by_run
    assert by_name["run"]["documents"] == {"failed": 1, "verified": 1}
    with pytest.raises(WorkFailed, match="neither a job nor a run"):
        await find(calls, "nothing")


async def test_follow_ends_with_the_run(store: MemoryJobStore, calls: JobCalls) -> None:
    """JOB-07: a run that failed in part says so, with its numbers, and the exit code is 1."""
    await _partial(store)
    run = await follow(calls, "handbook")
    assert run["state"] == "partial"
    with pytest.raises(WorkFailed, match="headrace jobs failures handbook"):
        check_ended(run)
    await declared(store, "idle")
    with pytest.raises(WrongUse, match="never run"):
        await follow(calls, "idle")


@pytest.mark.parametrize(
    ("state", "error", "code"),
    [
        ("waiting", WorkWaits, Exit.WAITING),
        ("partial", WorkFailed, Exit.FAILED),
        ("failed", WorkFailed, Exit.FAILED),
        ("cancelled", WorkFailed, Exit.FAILED),
    ],
)
def test_the_end_of_a_run_decides_the_exit_code(state: str, error: type[WorkFailed], code: Exit) -> None:
    """A run that waits for a person has a code of its own."""
    with pytest.raises(error) as raised:
        check_ended({"job": "a", "state": state, "reason": "r"})
    assert raised.value.code == code
    check_ended({"job": "a", "state": "succeeded", "reason": ""})


async def test_export_writes_every_failure_as_a_line(store: MemoryJobStore, calls: JobCalls, tmp_path: Path) -> None:
    """The file holds all of them, whole lines of JSON."""
    await _partial(store)
    assert await export_failures(calls, "handbook", tmp_path / "dead.jsonl") == 1
    [line] = (tmp_path / "dead.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["reason"] == "is [encrypted]"
    assert [path.name for path in tmp_path.iterdir()] == ["dead.jsonl"]
    assert len(await some_failures(calls, "handbook", 5)) == 1


async def test_tables_show_texts_as_they_are(
    store: MemoryJobStore, calls: JobCalls, capsys: pytest.CaptureFixture[str]
) -> None:
    """Brackets in foreign texts are just brackets."""
    await _partial(store)
    found = await find(calls, "handbook")
    show(job_table([found["job"]]), run_table([found["run"]]), run_pairs(found["run"]))
    show(failure_table(await some_failures(calls, "handbook", 5)))
    shown = capsys.readouterr().out
    assert "is [encrypted]" in shown
    assert "1 failed, 1 verified" in shown


def _shown_run(**changed: Any) -> dict[str, Any]:
    return {
        "state": "running", "documents": {"verified": 5}, "chunks": 12_345, "failures": {"parse": 2},
        "remaining_s": 3725.0, "cancel_requested": True,
    } | changed  # fmt: skip


def test_progress_says_how_far_the_run_is() -> None:
    """Documents by state, chunks, rate, failures by kind and the remaining time stand beside the bar."""
    assert progress_text(_shown_run(), 1234.5) == (
        "documents: 5 verified; 12,345 chunks; 1,234 tokens/s; failures: 2 parse; 1:02:05 left; stopping"
    )
    assert progress_text(_shown_run(state="queued"), 0.0) == "waits for a worker"


def test_write_report_refuses_what_is_none(tmp_path: Path) -> None:
    """Without a report nothing is written, and only two endings are known."""
    with pytest.raises(WorkFailed):
        write_report(tmp_path / "a.html", {"report_json": ""})
    with pytest.raises(WrongUse):
        write_report(tmp_path / "a.txt", {"report_json": "{}"})
    assert not list(tmp_path.iterdir())


def test_example_prints_a_job_file(capsys: pytest.CaptureFixture[str]) -> None:
    """What is printed can be saved as it is; an unknown kind is told with those that there are."""
    assert execute(["jobs", "example", "git"], {}) == 0
    assert parse_job(capsys.readouterr().out, "x", "x").source.kind == "git"
    assert execute(["jobs", "example", "ftp"], {}) == Exit.USAGE
    assert "folder, files, site, git, sql" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["check"], ["run"], ["submit"]])
def test_a_broken_file_ends_a_command_with_its_faults(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each fault stands in a line, and the exit code says that the file is wrong."""
    path = tmp_path / "bad.toml"
    path.write_text('collection = "A"\ncolor = 1\n', encoding="utf-8")
    assert execute(["jobs", *command, str(path)], {}) == Exit.USAGE
    said = capsys.readouterr().err
    assert f"{path}:1: collection: must be" in said
    assert f"\n{path}:2: color: there is no such key" in said


def test_schedule_options_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    """A schedule either rests or goes on, and it is that of a named job."""
    assert execute(["jobs", "schedule", "a", "--pause", "--resume"], {}) == Exit.USAGE
    assert execute(["jobs", "schedule", "--pause"], {}) == Exit.USAGE
    assert "name the job" in capsys.readouterr().err
