"""The way to a session's jobs: through the running server, or straight to the store of the data folder without one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

from retrieval.cli.connecting import connect
from retrieval.cli.session import Session
from retrieval.server.endpoint_file import running_server

if TYPE_CHECKING:
    from headrace.v1 import jobs_pb2
    from indexers.jobs.state import Job
    from retrieval.settings import Settings


class Calls(Protocol):
    """The calls about jobs; `retrieval.client.jobs.Jobs` and `JobCalls` of the server both are."""

    async def submit(self, request: jobs_pb2.SubmitJobRequest) -> jobs_pb2.SubmitJobResponse:
        """Declares a job, and may queue a run of it."""
        ...

    async def get(self, request: jobs_pb2.GetJobRequest) -> jobs_pb2.GetJobResponse:
        """Returns a job and a run of it."""
        ...

    async def list(self, request: jobs_pb2.ListJobsRequest) -> jobs_pb2.ListJobsResponse:
        """Returns one page of jobs or runs."""
        ...

    def watch(self, request: jobs_pb2.WatchJobRequest) -> AsyncGenerator[jobs_pb2.WatchJobResponse, None]:
        """Yields a run whenever it has changed."""
        ...

    async def cancel(self, request: jobs_pb2.CancelJobRequest) -> jobs_pb2.CancelJobResponse:
        """Stops a run."""
        ...

    async def retry(self, request: jobs_pb2.RetryFailuresRequest) -> jobs_pb2.RetryFailuresResponse:
        """Queues a run over what failed."""
        ...

    async def failures(self, request: jobs_pb2.ListFailuresRequest) -> jobs_pb2.ListFailuresResponse:
        """Returns one page of what failed."""
        ...

    async def delete(self, request: jobs_pb2.DeleteJobRequest) -> jobs_pb2.DeleteJobResponse:
        """Forgets a job."""
        ...


@asynccontextmanager
async def job_calls(session: Session) -> AsyncIterator[Calls]:
    """Opens the way to the session's jobs, and closes it.

    Raises:
        NoServer: a server is named, and nothing answers there.
        JobStoreUnavailable: there is no server, and the store cannot be opened.
    """
    if session.server:
        address: str | None = session.server
        settings = None
    else:
        settings = session.load().settings
        address = running_server(settings.data.folder)
    if address is None and settings is not None:
        async with _local(settings) as calls:
            yield calls
        return
    async with connect(session, address) as client:
        yield client.jobs


@asynccontextmanager
async def _local(settings: Settings) -> AsyncIterator[Calls]:
    from retrieval.identity import DEFAULT_TENANT
    from retrieval.jobs.bounds import submitted_access
    from retrieval.jobs.open import open_job_store
    from retrieval.jobs.service import JobDesk
    from retrieval.server.services.job_calls import Asker, JobCalls

    store = open_job_store(settings)
    try:

        async def delete_documents(job: Job) -> int:
            from retrieval.jobs.owned_documents import deleting
            from retrieval.server.engines import write_side

            async with write_side(settings) as side:
                return await deleting(side.catalog)(job)

        desk = JobDesk(store, submitted_access(settings.jobs), delete_documents, trusted=True)
        yield JobCalls(desk, Asker(DEFAULT_TENANT, "the command line"))
    finally:
        await store.close()
