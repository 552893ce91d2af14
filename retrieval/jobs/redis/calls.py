"""Calls of scripts on a job's or a run's keys, with the store's errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from indexers.errors import JobError, JobNotFound, JobStoreUnavailable, LeaseLost, RunActive, RunNotFound
from indexers.jobs.state import JobKey, Run, RunClaim
from retrieval.caching.redis.calls import RedisUnavailable
from retrieval.caching.redis.options import RedisOptions
from retrieval.caching.redis.scripting import Call, RedisScripts, Script, Value
from retrieval.jobs.redis.index import JobIndex
from retrieval.jobs.redis.values import Reply, run_of

CALL_S = 10.0
"""What a call may take, waiting for a connection included."""


class JobCalls:
    """Runs the store's scripts where a job's keys are."""

    def __init__(self, options: RedisOptions, limit_s: float = CALL_S) -> None:
        """Opens no connection. Raises: RedisOptionsError when a certificate cannot be read."""
        self._shown = f"redis {options.shown}"
        self._scripts = RedisScripts(options, limit_s)
        self.index = JobIndex(self._scripts, options.key_prefix)
        self._closed = False

    async def of_job(self, script: Script, key: JobKey, *values: Value) -> Reply:
        """Returns the reply of a script on the job's keys."""
        return await self._scripts.run(script, self.index.key_of(key), *values)

    async def of_jobs(self, script: Script, keys: Sequence[JobKey], *values: Value) -> list[Reply]:
        """Returns the replies of a script on each of the jobs' keys."""
        return await self._scripts.run_all([Call(script, self.index.key_of(key), values) for key in keys])

    async def of_runs(self, script: Script, runs: Sequence[tuple[JobKey, str]]) -> list[Reply]:
        """Returns the replies of a script that takes a run id, for each of the runs."""
        return await self._scripts.run_all([Call(script, self.index.key_of(key), (run_id,)) for key, run_id in runs])

    async def of_run(self, script: Script, run_id: str, *values: Value) -> Reply:
        """Returns the reply of a script on the keys of a run's job; None when there is no such run."""
        try:
            key = await self.index.job_of(run_id)
        except RunNotFound:
            return None
        return await self.of_job(script, key, run_id, *values)

    async def of_claim(self, script: Script, claim: RunClaim, *values: Value) -> Reply:
        """Returns the reply of a script that needs the claim. Raises: LeaseLost."""
        run_id = claim.run.run_id
        reply = await self.of_job(script, claim.run.key, run_id, claim.fence, *values)
        if reply[0] == b"lost":
            raise LeaseLost(f"run {run_id}")
        return reply

    async def close(self) -> None:
        """Closes all connections; later calls are refused."""
        self._closed = True
        await self._scripts.close()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Translates what the client library's owner raises."""
        if self._closed:
            raise JobStoreUnavailable(self._shown, "it was closed")
        try:
            yield
        except RedisUnavailable as error:
            raise JobStoreUnavailable(self._shown, str(error)) from error


def told_run(key: JobKey, run_id: str, reply: Reply) -> Run:
    """Reads a reply of a first word and a run. Raises: what the word says."""
    match reply[0]:
        case b"not_found" if not run_id:
            raise JobNotFound(key.name)
        case b"not_found":
            raise RunNotFound(run_id)
        case b"active":
            raise RunActive(key.name, reply[1].decode())
        case b"nothing":
            raise JobError(f"job {key.name!r} has no failures that could be tried again")
    return run_of(key, run_id, reply[1])
