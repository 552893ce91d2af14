"""Jobs through a real server: declared over the wire, carried out by the server's own workers, watched to their end."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from headrace.v1 import jobs_pb2
from retrieval.cli.exits import Exit
from retrieval.cli.main import execute
from retrieval.client import Client, error_info
from tests.integration.conftest import PATIENCE_S, ServerProcess, environment, free_port, running, settings_text

JOB = 'collection = "books"\n[source]\nkind = "folder"\npath = "docs"\n'


@pytest.fixture(scope="module")
def working(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that may read one folder for jobs, and starts a worker when there is a run."""
    folder = tmp_path_factory.mktemp("working")
    text = settings_text(folder, metrics_port=free_port())
    text += f"[jobs]\nworkers = 1\nfile_roots = [{json.dumps(str(folder / 'shared'))}]\n"
    (folder / "shared" / "docs").mkdir(parents=True)
    with running(folder, text) as server:
        yield server


@pytest.fixture
async def alice(working: ServerProcess) -> AsyncIterator[Client]:
    """A client of tenant alice, who may read and write."""
    async with working.client("alice") as client:
        yield client


def _submission(name: str, text: str = JOB, *, run: bool = True) -> jobs_pb2.SubmitJobRequest:
    return jobs_pb2.SubmitJobRequest(spec_toml=text, name=name, run=run)


async def _failure(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call
    assert error_info(failed.value) is not None
    return failed.value


def _scrape(server: ServerProcess) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.metrics_port}/metrics", timeout=10) as reply:
        return str(reply.read().decode())


async def test_unknown_job_is_not_found_every_time_and_counted_so(working: ServerProcess, alice: Client) -> None:
    """GRP-03: NOT_FOUND is what the caller, the counter and the log say, without a traceback."""
    for _ in range(3):
        error = await _failure(alice.jobs.get(jobs_pb2.GetJobRequest(name="no-such-job")))
        info = error_info(error)
        assert (error.code(), info and info.reason) == (grpc.StatusCode.NOT_FOUND, "JOB_NOT_FOUND")
    metrics = _scrape(working)
    assert re.search(r'headrace_requests_total\{code="NOT_FOUND",method="[^"]*GetJob"\} 3\.0', metrics)
    assert not re.search(r'code="OK",method="[^"]*GetJob"', metrics)
    assert not [line for line in working.seen if "exception" in line]
    assert 'headrace_job_runs{state="queued"}' in metrics


async def test_broken_job_is_refused_with_its_lines(alice: Client) -> None:
    """The faults are facts of the error, one a line."""
    error = await _failure(alice.jobs.submit(_submission("broken", JOB + "includ = []\n")))
    info = error_info(error)
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert info is not None
    assert info.metadata["faults"].startswith("spec_toml:5: source.includ: there is no such key")


async def test_job_that_would_read_the_server_is_refused(alice: Client) -> None:
    """What the settings do not allow is refused when it is submitted."""
    error = await _failure(alice.jobs.submit(_submission("thief", JOB.replace("docs", "/etc"))))
    assert "lies outside the folders" in (error.details() or "")


async def test_jobs_need_their_roles(working: ServerProcess) -> None:
    """A caller without a key declares nothing."""
    async with working.client() as nobody:
        error = await _failure(nobody.jobs.submit(_submission("mine")))
    assert error.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_a_watched_run_does_not_hold_up_a_stop(tmp_path: Path) -> None:
    """GRP-05: who watches is told at once that the server stops, and the run stays in the queue."""
    text = settings_text(tmp_path, grace_s=30) + "[jobs]\nworkers = 0\n"
    text += f"file_roots = [{json.dumps(str(tmp_path))}]\n"
    with running(tmp_path, text) as server:
        async with server.client("alice") as client:
            await client.jobs.submit(_submission("waits"))
            async with aclosing(client.jobs.watch(jobs_pb2.WatchJobRequest(name="waits"))) as states:
                state = await anext(states)
                assert state.run.state == jobs_pb2.RUN_STATE_QUEUED
                stopping = asyncio.create_task(asyncio.to_thread(server.stop))
                async with asyncio.timeout(15):
                    with pytest.raises(grpc.aio.AioRpcError) as told:
                        await anext(states)
                    assert told.value.code() is grpc.StatusCode.UNAVAILABLE
                    assert await stopping == 0


async def test_a_submitted_job_is_carried_out_by_the_servers_worker(working: ServerProcess, alice: Client) -> None:
    """Adds, a change and a deletion each end in what the source has, and WatchJob ends with the run."""
    docs = working.folder / "shared" / "docs"
    (docs / "pump.md").write_text("# Pump\n\nThe seal is replaced every two years.\n", encoding="utf-8")
    (docs / "valve.md").write_text("# Valve\n\nTorque the bonnet to twenty newton metres.\n", encoding="utf-8")
    await alice.jobs.submit(_submission("books"))
    first = await _followed(alice, "books")
    assert first.state == jobs_pb2.RUN_STATE_SUCCEEDED, first.reason
    assert dict(first.documents) == {"verified": 2}
    [hit] = (await alice.retrieve("books", "how often is the seal replaced?", top_k=1)).hits
    assert hit.document_id == "pump.md"
    (docs / "pump.md").write_text("# Pump\n\nThe seal is replaced every nine years.\n", encoding="utf-8")
    (docs / "valve.md").unlink()
    await alice.jobs.submit(_submission("books", ""))
    second = await _followed(alice, "books")
    assert dict(second.documents) == {"verified": 1, "deleted": 1}
    assert json.loads(second.report_json)["documents"] == {"verified": 1, "deleted": 1}
    [hit] = (await alice.retrieve("books", "how often is the seal replaced?", top_k=2)).hits
    assert "nine years" in hit.text


async def _followed(client: Client, name: str) -> jobs_pb2.Run:
    async with asyncio.timeout(PATIENCE_S):
        states = client.jobs.watch(jobs_pb2.WatchJobRequest(name=name))
        return [state.run async for state in states][-1]


def test_the_command_line_follows_a_submitted_job(working: ServerProcess, capsys: pytest.CaptureFixture[str]) -> None:
    """Submitting, watching, listing and removing go through the server; the end of the run is the exit code."""
    (working.folder / "shared" / "docs" / "gate.md").write_text("# Gate\n\nIt closes at noon.\n", encoding="utf-8")
    file = working.folder / "shared" / "gates.toml"
    file.write_text(JOB.replace("books", "gates"), encoding="utf-8")
    there = {"HEADRACE_SERVER": working.address, "HEADRACE_API_KEY": "bob"}
    assert execute(["jobs", "submit", str(file)], there) == 0
    assert execute(["jobs", "watch", "gates", "--json"], there) == 0
    assert execute(["jobs", "list"], there) == 0
    assert "succeeded" in capsys.readouterr().out
    assert execute(["jobs", "show", "gates", "--report", str(working.folder / "r.html")], there) == 0
    assert "gates" in (working.folder / "r.html").read_text(encoding="utf-8")
    assert execute(["jobs", "remove", "gates", "--documents", "--yes"], there) == 0
    assert execute(["documents", "list", "--collection", "gates"], there) == 0
    assert "gate.md" not in capsys.readouterr().out


def test_the_command_line_runs_a_job_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a server the job is carried out in this process; a second run finds everything unchanged."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "gate.md").write_text("# Gate\n\nIt closes at noon.\n", encoding="utf-8")
    (tmp_path / "handbook.toml").write_text(JOB, encoding="utf-8")
    options = ["--data", str(tmp_path / "data"), "--set", "encoders.workers=1", "--json"]
    run = ["jobs", "run", str(tmp_path / "handbook.toml"), *options]
    assert execute(["jobs", "check", str(tmp_path / "handbook.toml"), "--json"], {}) == 0
    assert json.loads(capsys.readouterr().out)["items"][0]["name"] == "gate.md"
    assert execute(run, {}) == 0
    assert json.loads(capsys.readouterr().out)["documents"] == {"verified": 1}
    assert execute(run, {}) == 0
    assert json.loads(capsys.readouterr().out)["documents"] == {"unchanged": 1}
    (tmp_path / "docs" / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    assert execute(run, {}) == 1
    assert json.loads(capsys.readouterr().out)["state"] == "partial"
    failures = ["jobs", "failures", "handbook", *options]
    assert execute(failures, {}) == 0
    assert json.loads(capsys.readouterr().out)["failures"][0]["name"] == "broken.pdf"


def test_a_worker_carries_out_what_was_submitted_without_a_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Jobs are kept in the data folder; a source that loses most of its documents makes the run wait, not delete."""
    (tmp_path / "docs").mkdir()
    for name in ("gate", "pump", "seal"):
        (tmp_path / "docs" / f"{name}.md").write_text(f"# {name}\n\nAbout the {name}.\n", encoding="utf-8")
    file = tmp_path / "handbook.toml"
    file.write_text(JOB + "[limits]\nshrink_documents = 0\n", encoding="utf-8")
    options = ["--data", str(tmp_path / "data"), "--set", "encoders.workers=1"]
    assert execute(["jobs", "submit", str(file), *options], {}) == 0
    assert execute(["worker", "--once", *options], {}) == 0
    assert execute(["jobs", "watch", "handbook", *options], {}) == 0
    for name in ("gate", "pump"):
        (tmp_path / "docs" / f"{name}.md").unlink()
    assert execute(["jobs", "run", str(file), *options], {}) == Exit.WAITING
    assert "--allow-shrink" in capsys.readouterr().err
    assert execute(["jobs", "run", str(file), "--allow-shrink", "--json", *options], {}) == 0
    assert json.loads(capsys.readouterr().out)["documents"] == {"deleted": 2, "unchanged": 1}


def _worker(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "retrieval.cli.main", "worker", *options]
    environ = environment() | {"HEADRACE_API_KEY": "alice"}
    return subprocess.Popen(command, cwd=folder, env=environ, stdin=subprocess.PIPE)


async def test_a_worker_waits_for_work_until_it_is_told_to_stop(tmp_path: Path) -> None:
    """A worker takes up what is submitted while it runs, and SIGTERM ends it with exit code 0."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "gate.md").write_text("# Gate\n\nIt closes at noon.\n", encoding="utf-8")
    text = settings_text(tmp_path) + f"[jobs]\nworkers = 0\nfile_roots = [{json.dumps(str(tmp_path))}]\n"
    with running(tmp_path, text) as server, _worker(tmp_path) as process:
        try:
            async with server.client("alice") as client:
                await client.jobs.submit(_submission("handbook"))
                assert dict((await _followed(client, "handbook")).documents) == {"verified": 1}
            process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(process.wait, PATIENCE_S) == 0
        finally:
            process.kill()


def test_a_worker_of_a_server_ends_when_the_server_is_gone(tmp_path: Path) -> None:
    """However the server ends, its end of the pipe closes, and no worker is left behind."""
    with _worker(tmp_path, "--attached") as process:
        try:
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()


async def test_a_watched_folder_is_kept_in_step_by_itself(working: ServerProcess, alice: Client) -> None:
    """What is there when watching begins is indexed, and a change starts a run without anybody asking."""
    docs = working.folder / "shared" / "watched"
    docs.mkdir()
    (docs / "lock.md").write_text("# Lock\n\nIt opens at dawn.\n", encoding="utf-8")
    text = JOB.replace('"docs"', '"watched"').replace("books", "locks") + "[schedule]\nwatch = true\n"
    await alice.jobs.submit(_submission("locks", text, run=False))
    await _ended_runs(alice, "locks", 1)
    (docs / "lock.md").write_text("# Lock\n\nIt opens at dusk.\n", encoding="utf-8")
    newest = (await _ended_runs(alice, "locks", 2))[0]
    assert dict(newest.documents) == {"verified": 1}
    await alice.jobs.submit(jobs_pb2.SubmitJobRequest(name="locks", paused=True))
    shown = await alice.jobs.get(jobs_pb2.GetJobRequest(name="locks"))
    assert shown.job.paused


async def _ended_runs(client: Client, name: str, count: int) -> list[jobs_pb2.Run]:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            runs = (await client.jobs.list(jobs_pb2.ListJobsRequest(name=name))).runs
            ended = [run for run in runs if run.HasField("end_time")]
            if len(ended) >= count:
                return ended
            await asyncio.sleep(0.05)


async def test_a_stop_leaves_a_run_that_the_next_server_finishes(tmp_path: Path) -> None:
    """GRP-05: SIGTERM in the middle of a run ends server and worker, and after a restart the run goes on to its end."""
    text = settings_text(tmp_path) + f"[jobs]\nfile_roots = [{json.dumps(str(tmp_path))}]\nitems_per_lease = 4\n"
    _write_gates(tmp_path / "docs", 70)
    with running(tmp_path, text) as server:
        async with server.client("alice") as client:
            await client.jobs.submit(_submission("gates"))
            async with aclosing(client.jobs.watch(jobs_pb2.WatchJobRequest(name="gates"))) as states:
                async for state in states:
                    assert state.run.state in {jobs_pb2.RUN_STATE_QUEUED, jobs_pb2.RUN_STATE_RUNNING}
                    if state.run.documents.get("verified", 0):
                        break
            assert await asyncio.to_thread(server.stop) == 0
    with running(tmp_path, text) as server:
        async with server.client("alice") as client:
            ended = await _followed(client, "gates")
            assert ended.state == jobs_pb2.RUN_STATE_SUCCEEDED, ended.reason
            assert sum(ended.documents.values()) == 70
            assert (await client.count("books")).documents == 70


def _write_gates(folder: Path, count: int) -> None:
    """Writes files that take some seconds to index."""
    folder.mkdir()
    for number in range(count):
        passage = f"Gate {number} closes at noon, and opens when the basin holds {number} cubic metres of water. " * 6
        (folder / f"{number}.md").write_text(f"# Gate {number}\n\n{passage}\n", encoding="utf-8")


def test_ctrl_c_cancels_a_run_cleanly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JOB-09: the run ends as cancelled, what was written stays, and the next run does the rest."""
    _write_gates(tmp_path / "docs", 70)
    (tmp_path / "handbook.toml").write_text(JOB, encoding="utf-8")
    there = ["--data", str(tmp_path / "data"), "--set", "encoders.workers=1", "--set", "jobs.items_per_lease=4"]
    run = ["jobs", "run", str(tmp_path / "handbook.toml"), *there]
    command = [sys.executable, "-m", "retrieval.cli.main", *run]
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL) as process:
        try:
            while not _verified(there, capsys):
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == Exit.INTERRUPTED
        finally:
            process.kill()
    execute(["jobs", "show", "handbook", "--json", *there], {})
    cancelled = json.loads(capsys.readouterr().out)["run"]
    assert cancelled["state"] == "cancelled"
    assert execute([*run, "--json"], {}) == 0
    documents = json.loads(capsys.readouterr().out)["documents"]
    assert documents["unchanged"] >= cancelled["documents"]["verified"]
    assert sum(documents.values()) == 70


def _verified(there: Sequence[str], capsys: pytest.CaptureFixture[str]) -> int:
    """Returns how many documents the newest run has verified so far."""
    if execute(["jobs", "show", "handbook", "--json", *there], {}):
        return 0
    run = json.loads(capsys.readouterr().out)["run"]
    return int(run["documents"].get("verified", 0)) if run else 0
