"""The calls of the client that are about jobs: one method an rpc, messages of `headrace.v1` both ways."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import grpc.aio

from headrace.v1 import index_pb2_grpc, jobs_pb2


class Jobs:
    """The jobs of one server; made by `Client`."""

    def __init__(
        self, stub: index_pb2_grpc.IndexServiceAsyncStub, metadata: grpc.aio.Metadata, timeout_s: float | None
    ) -> None:
        self._stub = stub
        self._metadata = metadata
        self._timeout_s = timeout_s

    async def submit(self, request: jobs_pb2.SubmitJobRequest) -> jobs_pb2.SubmitJobResponse:
        """Declares a job, or declares it anew, and may queue a run of it."""
        return await self._stub.SubmitJob(request, metadata=self._metadata, timeout=self._timeout_s)

    async def get(self, request: jobs_pb2.GetJobRequest) -> jobs_pb2.GetJobResponse:
        """Returns a job and a run of it."""
        return await self._stub.GetJob(request, metadata=self._metadata, timeout=self._timeout_s)

    async def list(self, request: jobs_pb2.ListJobsRequest) -> jobs_pb2.ListJobsResponse:
        """Returns one page of jobs, or of runs of one job."""
        return await self._stub.ListJobs(request, metadata=self._metadata, timeout=self._timeout_s)

    async def watch(self, request: jobs_pb2.WatchJobRequest) -> AsyncGenerator[jobs_pb2.WatchJobResponse, None]:
        """Yields a run whenever it has changed, until its end, however long that takes."""
        call = self._stub.WatchJob(request, metadata=self._metadata)
        try:
            async for state in call:
                yield state
        finally:
            call.cancel()

    async def cancel(self, request: jobs_pb2.CancelJobRequest) -> jobs_pb2.CancelJobResponse:
        """Stops a run."""
        return await self._stub.CancelJob(request, metadata=self._metadata, timeout=self._timeout_s)

    async def retry(self, request: jobs_pb2.RetryFailuresRequest) -> jobs_pb2.RetryFailuresResponse:
        """Queues a run over what failed."""
        return await self._stub.RetryFailures(request, metadata=self._metadata, timeout=self._timeout_s)

    async def failures(self, request: jobs_pb2.ListFailuresRequest) -> jobs_pb2.ListFailuresResponse:
        """Returns one page of what failed."""
        return await self._stub.ListFailures(request, metadata=self._metadata, timeout=self._timeout_s)

    async def delete(self, request: jobs_pb2.DeleteJobRequest) -> jobs_pb2.DeleteJobResponse:
        """Forgets a job; deleting its documents takes as long as it takes."""
        return await self._stub.DeleteJob(request, metadata=self._metadata)
