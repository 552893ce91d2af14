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

    def __init__(self, desk: JobDesk) -> None:
        self._desk = desk

    async def submit(self, asker: Asker, request: jobs_pb2.SubmitJobRequest) -> jobs_pb2.SubmitJobResponse:
        """Declares a job, and may queue a run of it."""
        if not (request.spec_toml or request.name):
            raise InvalidRequest("spec_toml", "a job file, or a name", "neither a job file nor a name is given")
        asked = Submission(
            request.spec_toml, request.name, request.run, request.allow_shrink, request.paused, request.base_folder
        )
        view, run = await self._desk.submit(asker.tenant, asked, asker.name)
        message = jobs_pb2.SubmitJobResponse(job=self._job(view))
        if run is not None:
            message.run.CopyFrom(run_to_pb(run, self._desk.now()))
        return message

    async def get(self, asker: Asker, request: jobs_pb2.GetJobRequest) -> jobs_pb2.GetJobResponse:
        """Returns a job with one run, the newest when none is named."""
        key = JobKey(asker.tenant, request.name)
        view = await self._desk.view(key)
        run = await self._desk.run_of(key, request.run_id) if request.run_id else view.last_run
        message = jobs_pb2.GetJobResponse(job=self._job(view))
        if run is not None:
            message.run.CopyFrom(run_to_pb(run, self._desk.now()))
        return message

    async def list(self, asker: Asker, request: jobs_pb2.ListJobsRequest) -> jobs_pb2.ListJobsResponse:
        """Lists jobs, or the runs of one."""
        size, after = _page_size(request.page_size), read_page_token(request.page_token)
        if request.name:
            runs = await self._desk.runs(JobKey(asker.tenant, request.name), after, size + 1)
            token = write_page_token(runs[size - 1].run_id) if len(runs) > size else ""
            messages = [run_to_pb(run, self._desk.now()) for run in runs[:size]]
            return jobs_pb2.ListJobsResponse(runs=messages, next_page_token=token)
        views = await self._desk.jobs(asker.tenant, after, size + 1)
        token = write_page_token(views[size - 1].job.key.name) if len(views) > size else ""
        return jobs_pb2.ListJobsResponse(jobs=[self._job(view) for view in views[:size]], next_page_token=token)

    async def watch(
        self, asker: Asker, request: jobs_pb2.WatchJobRequest
    ) -> AsyncGenerator[jobs_pb2.WatchJobResponse, None]:
        """Yields a run whenever it has changed, until its end."""
        async with aclosing(self._desk.watch(JobKey(asker.tenant, request.name), request.run_id)) as states:
            async for run in states:
                yield jobs_pb2.WatchJobResponse(run=run_to_pb(run, self._desk.now()))

    async def cancel(self, asker: Asker, request: jobs_pb2.CancelJobRequest) -> jobs_pb2.CancelJobResponse:
        """Asks a run to stop."""
        run = await self._desk.cancel(JobKey(asker.tenant, request.name), request.run_id)
        return jobs_pb2.CancelJobResponse(run=run_to_pb(run, self._desk.now()))

    async def retry(self, asker: Asker, request: jobs_pb2.RetryFailuresRequest) -> jobs_pb2.RetryFailuresResponse:
        """Queues a run over what failed."""
        run = await self._desk.retry(JobKey(asker.tenant, request.name), asker.name)
        return jobs_pb2.RetryFailuresResponse(run=run_to_pb(run, self._desk.now()))

    async def failures(self, asker: Asker, request: jobs_pb2.ListFailuresRequest) -> jobs_pb2.ListFailuresResponse:
        """Lists what failed."""
        size, after = _page_size(request.page_size), read_page_token(request.page_token)
        found = await self._desk.failures(JobKey(asker.tenant, request.name), after, size + 1)
        token = write_page_token(found[size - 1].item_uri) if len(found) > size else ""
        messages = [failure_to_pb(failure) for failure in found[:size]]
        return jobs_pb2.ListFailuresResponse(failures=messages, next_page_token=token)

    async def delete(self, asker: Asker, request: jobs_pb2.DeleteJobRequest) -> jobs_pb2.DeleteJobResponse:
        """Forgets a job."""
        key = JobKey(asker.tenant, request.name)
        deleted = await self._desk.remove(key, delete_documents=request.delete_documents)
        return jobs_pb2.DeleteJobResponse(deleted=deleted)

    def _job(self, view: JobView) -> jobs_pb2.Job:
        return job_to_pb(view.job, view.last_run, view.next_run_at, self._desk.now())


def _page_size(asked: int) -> int:
    if asked > MAX_PAGE:
        raise InvalidRequest("page_size", f"1..{MAX_PAGE}", f"page_size is {asked}; it must be at most {MAX_PAGE}")
    return asked or DEFAULT_PAGE
