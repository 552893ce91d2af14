"""The calls about jobs: what they declare, show and refuse, for whom."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from headrace.v1 import jobs_pb2
from indexers.errors import InvalidJob, InvalidPageToken, JobNotFound, RunActive, RunNotFound
from indexers.jobs.state import (
    DocumentRecord,
    DocumentState,
    ItemOutcome,
    ItemState,
    Job,
    RunClaim,
    RunRequest,
    RunState,
)
from indexers.jobs.toml_text import spec_to_toml
from indexers.sources.access import SourceAccess
from indexers.sources.source import ItemRef
from retrieval.errors import InvalidRequest
from retrieval.jobs.service import JobDesk
from retrieval.server.services.job_calls import Asker, JobCalls
from tests.fakes.job_store import MemoryJobStore
from tests.fakes.jobs import FOLDER_JOB, declared, job_of

SITE = 'collection = "books"\n[source]\nkind = "site"\nstart = ["https://docs.example.com/"]\n'


@pytest.fixture
def store() -> MemoryJobStore:
    """A store whose clock stands still."""
    return MemoryJobStore()


def _calls(
    store: MemoryJobStore, access: SourceAccess | None = None, tenant: str = "acme", *, trusted: bool = False
) -> JobCalls:
    return JobCalls(_desk(store, access or SourceAccess(), trusted=trusted), Asker(tenant, "key app"))


def _desk(
    store: MemoryJobStore,
    access: SourceAccess,
    delete: Callable[[Job], Awaitable[int]] | None = None,
    *,
    trusted: bool = False,
) -> JobDesk:
    async def deletes_nothing(_: Job) -> int:
        return 0

    return JobDesk(store, access, delete or deletes_nothing, trusted=trusted, now=lambda: store.moment)


async def _submit(
    calls: JobCalls, text: str = SITE, name: str = "handbook", *, run: bool = False, paused: bool = False
) -> jobs_pb2.SubmitJobResponse:
    return await calls.submit(jobs_pb2.SubmitJobRequest(spec_toml=text, name=name, run=run, paused=paused))


async def test_submit_declares_a_job_and_queues_a_run(store: MemoryJobStore) -> None:
    """The reply has the job as it is stored, and the run that waits for a worker."""
    asked = jobs_pb2.SubmitJobRequest(spec_toml=SITE, name="handbook", run=True, allow_shrink=True)
    reply = await _calls(store).submit(asked)
    assert (reply.job.name, reply.job.collection, reply.run.state) == ("handbook", "books", jobs_pb2.RUN_STATE_QUEUED)
    assert reply.job.last_run.run_id == reply.run.run_id
    [run] = await store.list_runs("acme")
    assert run.request == RunRequest(allow_shrink=True, reason="key app")
    assert reply.job.spec_toml == spec_to_toml(run.spec)


async def test_submit_of_a_name_runs_the_job_as_declared(store: MemoryJobStore) -> None:
    """Without a file the job of that name is run; without a name there is nothing to do."""
    calls = _calls(store)
    await _submit(calls)
    assert not (await calls.list(jobs_pb2.ListJobsRequest(name="handbook"))).runs
    assert (await _submit(calls, "", run=True)).HasField("run")
    with pytest.raises(RunActive):
        await _submit(calls, "", run=True)
    with pytest.raises(JobNotFound):
        await _submit(calls, "", "other")
    with pytest.raises(InvalidRequest):
        await _submit(calls, "", "")


async def test_submit_refuses_a_broken_file_with_its_lines(store: MemoryJobStore) -> None:
    """What is wrong in the file is told by line, and nothing is declared."""
    with pytest.raises(InvalidJob) as raised:
        await _submit(_calls(store), SITE + 'includ = ["x"]\n')
    assert raised.value.faults[0].startswith("spec_toml:5: source.includ: there is no such key")
    with pytest.raises(InvalidJob, match="leave out one"):
        await _submit(_calls(store), 'name = "other"\n' + SITE)
    assert not await store.list_jobs()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ('kind = "folder"\npath = "/etc"', "source.path: lies outside"),
        ('kind = "folder"\npath = "docs/../../etc"', "source.path: lies outside"),
        ('kind = "files"\nurl = "file:///etc"', "source.url: lies outside"),
        ('kind = "files"\nurl = "zip://*.md::file:///etc/a.zip"', "source.url: lies outside"),
        ('kind = "files"\nurl = "s3://b"\npassword_ref = "env:OTHER"', "source.password_ref: env:OTHER is no secret"),
        ('kind = "files"\nurl = "sftp://h/a"\nkey_file = "/root/.ssh/id"', "source.key_file: lies outside"),
        ('kind = "git"\nurl = "/srv/repository"', "source.url: lies outside"),
        ('kind = "git"\nurl = "file:///srv/repository"', "source.url: lies outside"),
        ('kind = "sql"\nurl = "sqlite:////srv/wiki.db"\nquery = "SELECT 1"', "source.url: lies outside"),
        ('kind = "site"\nstart = ["http://a"]\nallow_private = true', "source.allow_private: jobs may not"),
        ('kind = "site"\nstart = ["http://a"]\nheader_refs = {x = "env:B"}', "source.header_refs.x: env:B is no"),
    ],
)
async def test_submit_refuses_what_the_server_must_not_read(
    store: MemoryJobStore, tmp_path: Path, source: str, said: str
) -> None:
    """A tenant cannot have the server read its files, secrets or network."""
    access = SourceAccess((tmp_path,), frozenset({"env:WIKI"}), private_addresses=False)
    with pytest.raises(InvalidJob, match=said):
        await _submit(_calls(store, access), f'collection = "books"\n[source]\n{source}\n')


@pytest.mark.parametrize(
    "source",
    [
        'kind = "folder"\npath = "docs"',
        'kind = "git"\nurl = "git@example.com:team/docs.git"',
        'kind = "git"\nurl = "https://example.com/docs.git"\npassword_ref = "env:WIKI"',
        'kind = "files"\nurl = "s3://bucket/docs"\npassword_ref = "env:WIKI"',
        'kind = "sql"\nurl = "postgresql://reader@db/wiki"\nquery = "SELECT 1"',
    ],
)
async def test_submit_takes_what_the_settings_allow(store: MemoryJobStore, tmp_path: Path, source: str) -> None:
    """Within the roots, and with the secrets that jobs may use, nothing is in the way."""
    access = SourceAccess((tmp_path,), frozenset({"env:WIKI"}), private_addresses=False)
    await _submit(_calls(store, access), f'collection = "books"\n[source]\n{source}\n')
    [job] = await store.list_jobs("acme")
    assert job.base_folder == str(tmp_path.resolve())


async def test_submit_refuses_a_base_folder_elsewhere(store: MemoryJobStore, tmp_path: Path) -> None:
    """Relative paths cannot be made to start anywhere."""
    calls = _calls(store, SourceAccess((tmp_path,)))
    with pytest.raises(InvalidJob, match="base_folder: lies outside"):
        await calls.submit(jobs_pb2.SubmitJobRequest(spec_toml=FOLDER_JOB, name="a", base_folder="/etc"))
    with pytest.raises(InvalidJob, match="relative to nothing"):
        await _submit(_calls(store, SourceAccess(())), FOLDER_JOB)


async def test_submit_of_the_owner_is_bounded_only_when_a_schedule_runs_it(store: MemoryJobStore) -> None:
    """Who owns the data folder reads all that he can; what a schedule starts later is bounded like others' jobs."""
    calls = _calls(store, SourceAccess((), frozenset()), trusted=True)
    text = 'collection = "books"\n[source]\nkind = "folder"\npath = "/etc"\n'
    await _submit(calls, text, run=True)
    [run] = await store.list_runs("acme")
    assert run.request.trusted
    with pytest.raises(InvalidJob, match="lies outside"):
        await _submit(calls, text + "[schedule]\nevery_s = 60\n")


async def test_submit_keeps_a_schedule_resting_until_it_is_told_otherwise(store: MemoryJobStore) -> None:
    """Neither a new file nor a run wakes a schedule that somebody has put to rest."""
    calls = _calls(store)
    assert (await _submit(calls, SITE + "[schedule]\nevery_s = 60\n", paused=True)).job.paused
    assert (await _submit(calls, SITE)).job.paused
    assert (await _submit(calls, "", run=True)).job.paused
    assert not (await _submit(calls, "")).job.paused


async def test_jobs_of_other_tenants_do_not_exist(store: MemoryJobStore) -> None:
    """TEN-03: by-id calls of another tenant find nothing, in the words for a random id, and change nothing."""
    await declared(store)
    run = await store.submit(job_of().key, RunRequest())
    other = _calls(store, tenant="umbrella")
    for name in ("handbook", "random"):
        for ask in (
            other.get(jobs_pb2.GetJobRequest(name=name)),
            other.cancel(jobs_pb2.CancelJobRequest(name=name)),
            other.retry(jobs_pb2.RetryFailuresRequest(name=name)),
            other.failures(jobs_pb2.ListFailuresRequest(name=name)),
            other.delete(jobs_pb2.DeleteJobRequest(name=name, delete_documents=True)),
            other.list(jobs_pb2.ListJobsRequest(name=name)),
            _first(other, jobs_pb2.WatchJobRequest(name=name)),
        ):
            with pytest.raises(JobNotFound) as raised:
                await ask
            assert str(raised.value).replace(name, "random") == str(JobNotFound("random"))
    with pytest.raises(RunNotFound):
        await other.cancel(jobs_pb2.CancelJobRequest(run_id=run.run_id))
    assert (await store.get_run("acme", run.run_id)).state is RunState.QUEUED
    assert not (await other.list(jobs_pb2.ListJobsRequest())).jobs


async def _first(calls: JobCalls, request: jobs_pb2.WatchJobRequest) -> jobs_pb2.WatchJobResponse:
    return await anext(calls.watch(request))


async def test_get_finds_a_run_without_the_name_of_its_job(store: MemoryJobStore) -> None:
    """A run's id alone is enough; a run of another job is not found under a name."""
    await declared(store)
    await declared(store, "other")
    run = await store.submit(job_of().key, RunRequest())
    calls = _calls(store)
    assert (await calls.get(jobs_pb2.GetJobRequest(run_id=run.run_id))).job.name == "handbook"
    with pytest.raises(RunNotFound):
        await calls.get(jobs_pb2.GetJobRequest(name="other", run_id=run.run_id))
    assert not (await calls.get(jobs_pb2.GetJobRequest(name="other"))).HasField("run")


async def test_lists_come_in_pages(store: MemoryJobStore) -> None:
    """Jobs come by name and runs newest first, each once, and an invented token is refused."""
    calls = _calls(store)
    for number in range(5):
        await declared(store, f"j{number}")
    names, token = [], ""
    while True:
        page = await calls.list(jobs_pb2.ListJobsRequest(page_size=2, page_token=token))
        names.append([job.name for job in page.jobs])
        if not (token := page.next_page_token):
            break
    assert names == [["j0", "j1"], ["j2", "j3"], ["j4"]]
    for _ in range(3):
        run = await store.submit(job_of("j0").key, RunRequest())
        await store.cancel_run("acme", run.run_id)
    first = await calls.list(jobs_pb2.ListJobsRequest(name="j0", page_size=2))
    rest = await calls.list(jobs_pb2.ListJobsRequest(name="j0", page_size=2, page_token=first.next_page_token))
    ids = [run.run_id for run in (*first.runs, *rest.runs)]
    assert ids == sorted(ids, reverse=True)
    assert (len(ids), rest.next_page_token) == (3, "")
    with pytest.raises(InvalidPageToken):
        await calls.list(jobs_pb2.ListJobsRequest(page_token="made up"))
    with pytest.raises(InvalidRequest):
        await calls.list(jobs_pb2.ListJobsRequest(page_size=1001))


async def _fail(store: MemoryJobStore, failures: dict[str, int]) -> RunClaim:
    await declared(store)
    run = await store.submit(job_of().key, RunRequest())
    claim = await store.claim_run("w", 60.0)
    assert claim is not None
    await store.offer(claim, [ItemRef(uri, uri, "") for uri in failures])
    await store.lease_items(run.run_id, "w", len(failures), 60.0)
    for uri, count in failures.items():
        records = [
            DocumentRecord(f"{uri}/{at}", uri, DocumentState.FAILED, reason="bad", kind="parse") for at in range(count)
        ]
        await store.record(run.run_id, "w", records)
    return claim


async def test_failures_come_in_pages_that_end_with_an_item(store: MemoryJobStore) -> None:
    """No failure is lost between pages, not even those of an item that has more of them than a page."""
    await _fail(store, {"a": 2, "b": 7, "c": 1, "d": 3})
    calls, found, token = _calls(store), [], ""
    while True:
        asked = jobs_pb2.ListFailuresRequest(name="handbook", page_size=3, page_token=token)
        page = await calls.failures(asked)
        found += [failure.document_id for failure in page.failures]
        if not (token := page.next_page_token):
            break
    assert sorted(found) == sorted(set(found))
    assert len(found) == 13


async def test_retry_queues_a_run_over_failures_alone(store: MemoryJobStore) -> None:
    """The run that retries reads nothing but what failed."""
    await store.end_run(await _fail(store, {"a": 1}), RunState.PARTIAL, "", "")
    run = (await _calls(store).retry(jobs_pb2.RetryFailuresRequest(name="handbook"))).run
    assert (await store.get_run("acme", run.run_id)).request == RunRequest(only_failures=True, reason="key app")


async def test_cancel_ends_a_run_that_waits(store: MemoryJobStore) -> None:
    """A run that nobody has begun is cancelled at once; one that runs is asked to stop."""
    await declared(store)
    await store.submit(job_of().key, RunRequest())
    calls = _calls(store)
    run = (await calls.cancel(jobs_pb2.CancelJobRequest(name="handbook"))).run
    assert run.state == jobs_pb2.RUN_STATE_CANCELLED
    await store.submit(job_of().key, RunRequest())
    await store.claim_run("w", 60.0)
    run = (await calls.cancel(jobs_pb2.CancelJobRequest(name="handbook"))).run
    assert (run.state, run.cancel_requested) == (jobs_pb2.RUN_STATE_RUNNING, True)


async def test_delete_removes_documents_first_and_refuses_while_a_run_goes_on(store: MemoryJobStore) -> None:
    """Whoever is interrupted can do it again, since the job goes last."""
    job = await declared(store)
    deleted: list[Job] = []

    async def delete(job: Job) -> int:
        deleted.append(job)
        assert await store.get_job(job.key) == job
        return 7

    calls = JobCalls(_desk(store, SourceAccess(), delete), Asker("acme"))
    await store.submit(job.key, RunRequest())
    with pytest.raises(RunActive):
        await calls.delete(jobs_pb2.DeleteJobRequest(name="handbook", delete_documents=True))
    assert not deleted
    await calls.cancel(jobs_pb2.CancelJobRequest(name="handbook"))
    assert (await calls.delete(jobs_pb2.DeleteJobRequest(name="handbook", delete_documents=True))).deleted == 7
    assert deleted == [job]
    assert not await store.list_jobs()


async def test_run_message_tells_how_long_it_will_take(store: MemoryJobStore) -> None:
    """JOB-07: the remaining time follows from the items, once all are known; before, nothing is promised."""
    await declared(store)
    await store.submit(job_of().key, RunRequest())
    claim = await store.claim_run("w", 1e6)
    assert claim is not None
    await store.offer(claim, [ItemRef(f"u{at}", f"u{at}", "") for at in range(4)])
    await store.fail_scanned(claim, "x", "x", ItemOutcome(ItemState.SKIPPED, "hidden"))
    store.pass_s(30.0)
    calls = _calls(store)
    run = (await calls.get(jobs_pb2.GetJobRequest(name="handbook"))).run
    assert not run.HasField("remaining_s")
    await store.mark_scanned(claim)
    run = (await calls.get(jobs_pb2.GetJobRequest(name="handbook"))).run
    assert dict(run.items) == {"queued": 4, "skipped": 1}
    assert run.remaining_s == pytest.approx(120.0)
