"""The part of `IndexService` that is about jobs. The tenant of every job is the caller's."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, TypeAlias

import grpc.aio

from headrace.v1 import index_pb2_grpc, jobs_pb2
from retrieval.jobs.service import JobDesk
from retrieval.server.calls import current_call
from retrieval.server.services.job_calls import Asker, JobCalls

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]


class JobMethods(index_pb2_grpc.IndexServiceServicer):
    """The methods of jobs, for a class that serves the rest too."""

    def __init__(self, desk: JobDesk) -> None:
        self._desk = desk

    async def SubmitJob(  # noqa: N802 - the wire's name
        self, request: jobs_pb2.SubmitJobRequest, context: Context
    ) -> jobs_pb2.SubmitJobResponse:
        """Declares a job, or declares it anew, and may queue a run of it."""
        return await self._jobs().submit(request)

    async def GetJob(  # noqa: N802
        self, request: jobs_pb2.GetJobRequest, context: Context
    ) -> jobs_pb2.GetJobResponse:
        """Returns a job and a run of it."""
        return await self._jobs().get(request)

    async def ListJobs(  # noqa: N802
        self, request: jobs_pb2.ListJobsRequest, context: Context
    ) -> jobs_pb2.ListJobsResponse:
        """Lists the caller's jobs, or the runs of one."""
        return await self._jobs().list(request)

    async def WatchJob(  # noqa: N802
        self, request: jobs_pb2.WatchJobRequest, context: Context
    ) -> AsyncGenerator[jobs_pb2.WatchJobResponse, None]:
        """Sends a run whenever it has changed, until its end."""
        async with aclosing(self._jobs().watch(request)) as states:
            async for state in states:
                yield state

    async def CancelJob(  # noqa: N802
        self, request: jobs_pb2.CancelJobRequest, context: Context
    ) -> jobs_pb2.CancelJobResponse:
        """Stops a run."""
        return await self._jobs().cancel(request)

    async def RetryFailures(  # noqa: N802
        self, request: jobs_pb2.RetryFailuresRequest, context: Context
    ) -> jobs_pb2.RetryFailuresResponse:
        """Queues a run over what failed."""
        return await self._jobs().retry(request)

    async def ListFailures(  # noqa: N802
        self, request: jobs_pb2.ListFailuresRequest, context: Context
    ) -> jobs_pb2.ListFailuresResponse:
        """Lists what failed."""
        return await self._jobs().failures(request)

    async def DeleteJob(  # noqa: N802
        self, request: jobs_pb2.DeleteJobRequest, context: Context
    ) -> jobs_pb2.DeleteJobResponse:
        """Forgets a job."""
        return await self._jobs().delete(request)

    def _jobs(self) -> JobCalls:
        identity = current_call().identity
        name = f"key {identity.key_name}" if identity.key_name else "a caller"
        return JobCalls(self._desk, Asker(identity.tenant, name))
