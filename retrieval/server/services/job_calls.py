"""The calls about jobs as messages: the server answers them, and the command line by itself when there is none."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from headrace.v1 import jobs_pb2
from indexers.jobs.state import JobKey
from indexers.page_token import read_page_token, write_page_token
from retrieval.errors import InvalidRequest
from retrieval.jobs.service import JobDesk, JobView, Submission
from retrieval.server.convert.jobs import failure_to_pb, job_to_pb, run_to_pb

MAX_PAGE = 1_000
DEFAULT_PAGE = 100


@dataclass(frozen=True, slots=True)
class Asker:
    """Whose jobs are meant, and what a run's reason calls who asked for it."""

    tenant: str
    name: str = "a caller"


class JobCalls:
    """Converts, calls, converts."""

    def __init__(self, desk: JobDesk, asker: Asker) -> None:
        self._desk = desk
        self._asker = asker

    async def submit(self, request: jobs_pb2.SubmitJobRequest) -> jobs_pb2.SubmitJobResponse:
        """Declares a job, and may queue a run of it."""
        if not (request.spec_toml or request.name):
            raise InvalidRequest("spec_toml", "a job file, or a name", "neither a job file nor a name is given")
        asked = Submission(
            request.spec_toml, request.name, request.run, request.allow_shrink, request.paused, request.base_folder
        )
        view, run = await self._desk.submit(self._asker.tenant, asked, self._asker.name)
        message = jobs_pb2.SubmitJobResponse(job=self._job(view))
        if run is not None:
            message.run.CopyFrom(run_to_pb(run, self._desk.now()))
        return message

    async def get(self, request: jobs_pb2.GetJobRequest) -> jobs_pb2.GetJobResponse:
        """Returns a job with one run, the newest when none is named."""
        key = await self._key_of(request.name, request.run_id)
        view = await self._desk.view(key)
        run = await self._desk.run_of(key, request.run_id) if request.run_id else view.last_run
        message = jobs_pb2.GetJobResponse(job=self._job(view))
        if run is not None:
            message.run.CopyFrom(run_to_pb(run, self._desk.now()))
        return message

    async def list(self, request: jobs_pb2.ListJobsRequest) -> jobs_pb2.ListJobsResponse:
        """Lists jobs, or the runs of one."""
        size, after = _page_size(request.page_size), read_page_token(request.page_token)
        if request.name:
            runs = await self._desk.runs(self._key(request.name), after, size + 1)
            token = write_page_token(runs[size - 1].run_id) if len(runs) > size else ""
            messages = [run_to_pb(run, self._desk.now()) for run in runs[:size]]
            return jobs_pb2.ListJobsResponse(runs=messages, next_page_token=token)
        views = await self._desk.jobs(self._asker.tenant, after, size + 1)
        token = write_page_token(views[size - 1].job.key.name) if len(views) > size else ""
        return jobs_pb2.ListJobsResponse(jobs=[self._job(view) for view in views[:size]], next_page_token=token)

    async def watch(self, request: jobs_pb2.WatchJobRequest) -> AsyncGenerator[jobs_pb2.WatchJobResponse, None]:
        """Yields a run whenever it has changed, until its end."""
        key = await self._key_of(request.name, request.run_id)
        async with aclosing(self._desk.watch(key, request.run_id)) as states:
            async for run in states:
                yield jobs_pb2.WatchJobResponse(run=run_to_pb(run, self._desk.now()))

    async def cancel(self, request: jobs_pb2.CancelJobRequest) -> jobs_pb2.CancelJobResponse:
        """Asks a run to stop."""
        key = await self._key_of(request.name, request.run_id)
        run = await self._desk.cancel(key, request.run_id)
        return jobs_pb2.CancelJobResponse(run=run_to_pb(run, self._desk.now()))

    async def retry(self, request: jobs_pb2.RetryFailuresRequest) -> jobs_pb2.RetryFailuresResponse:
        """Queues a run over what failed."""
        run = await self._desk.retry(self._key(request.name), self._asker.name)
        return jobs_pb2.RetryFailuresResponse(run=run_to_pb(run, self._desk.now()))

    async def failures(self, request: jobs_pb2.ListFailuresRequest) -> jobs_pb2.ListFailuresResponse:
        """Lists what failed."""
        size, after = _page_size(request.page_size), read_page_token(request.page_token)
        found, more = await self._desk.failures(self._key(request.name), after, size)
        token = write_page_token(found[-1].item_uri) if more else ""
        messages = [failure_to_pb(failure) for failure in found]
        return jobs_pb2.ListFailuresResponse(failures=messages, next_page_token=token)

    async def delete(self, request: jobs_pb2.DeleteJobRequest) -> jobs_pb2.DeleteJobResponse:
        """Forgets a job."""
        key = self._key(request.name)
        deleted = await self._desk.remove(key, delete_documents=request.delete_documents)
        return jobs_pb2.DeleteJobResponse(deleted=deleted)

    def _key(self, name: str) -> JobKey:
        return JobKey(self._asker.tenant, name)

    async def _key_of(self, name: str, run_id: str) -> JobKey:
        """Returns the job's key; without a name, that of the run's job."""
        if name or not run_id:
            return self._key(name)
        return await self._desk.job_of(self._asker.tenant, run_id)

    def _job(self, view: JobView) -> jobs_pb2.Job:
        return job_to_pb(view.job, view.last_run, view.next_run_at, self._desk.now())


def _page_size(asked: int) -> int:
    if asked > MAX_PAGE:
        raise InvalidRequest("page_size", f"1..{MAX_PAGE}", f"page_size is {asked}; it must be at most {MAX_PAGE}")
    return asked or DEFAULT_PAGE
