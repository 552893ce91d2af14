"""Which jobs there are, and which job a run belongs to: the one key of the store that all jobs share.

A job's own keys lie together in a slot of their own. An entry is made before what it leads to and outlives it, so an
entry that leads nowhere is no error; nothing is ever without its entry.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from urllib.parse import quote, unquote

from indexers.errors import RunNotFound
from indexers.jobs.state import JobKey
from retrieval.caching.redis.scripting import RedisScripts, Script

FORMAT_VERSION = 1
_CACHED_RUNS = 10_000

_ADD_JOB = Script("return redis.call('SADD', KEYS[1] .. ':jobs', ARGV[1])")
_LIST_JOBS = Script("return redis.call('SMEMBERS', KEYS[1] .. ':jobs')")
_ADD_RUN = Script("return redis.call('HSET', KEYS[1] .. ':runs', ARGV[1], ARGV[2])")
_FIND_RUN = Script("return redis.call('HGET', KEYS[1] .. ':runs', ARGV[1]) or ''")
_REMOVE_RUNS = Script("for _, id in ipairs(ARGV) do redis.call('HDEL', KEYS[1] .. ':runs', id) end")
_TICK = Script(
    r"""
redis.replicate_commands()
local now = tonumber(ARGV[1])
if not now then
    local told = redis.call('TIME')
    now = tonumber(told[1]) * 1000000 + tonumber(told[2])
end
now = math.max(now, tonumber(redis.call('GET', KEYS[1] .. ':last') or '0') + 1)
local told = string.format('%.0f', now)
redis.call('SET', KEYS[1] .. ':last', told)
return told
"""
)
"""Gives microseconds since the epoch, each time more; an empty argument takes the server's clock."""


class JobIndex:
    """Finds jobs and runs."""

    def __init__(self, scripts: RedisScripts, prefix: str) -> None:
        self._scripts = scripts
        self._prefix = f"{prefix}:jobs:{FORMAT_VERSION}"
        self._key = f"{self._prefix}:{{all}}"
        self._runs: dict[str, JobKey] = {}  # which never change

    def key_of(self, job: JobKey) -> str:
        """Returns what all keys of a job begin with; its braces choose the slot."""
        return f"{self._prefix}:{{{_tag(job)}}}"

    async def add_job(self, job: JobKey) -> None:
        """Makes the entry of a job."""
        await self._scripts.run(_ADD_JOB, self._key, _tag(job))

    async def jobs(self, tenant: str) -> list[JobKey]:
        """Returns the jobs of a tenant, or of all, in order; some may be gone."""
        found = await self._scripts.run(_LIST_JOBS, self._key)
        assert isinstance(found, list)
        return sorted(key for tag in found if tenant in ("", (key := _key_of(tag)).tenant))

    async def new_run(self, job: JobKey, now: float | None) -> str:
        """Returns the id of a new run, above all before, and makes its entry; None takes the server's time."""
        told = await self._scripts.run(_TICK, self._key, "" if now is None else round(now * 1e6))
        assert isinstance(told, bytes)
        seconds, micros = divmod(int(told), 1_000_000)
        moment = datetime.fromtimestamp(seconds, UTC)
        run_id = f"{moment:%Y%m%dt%H%M%S}{micros:06}-{secrets.token_hex(3)}"
        await self._scripts.run(_ADD_RUN, self._key, run_id, _tag(job))
        return run_id

    async def remove_runs(self, run_ids: list[str]) -> None:
        """Removes entries."""
        await self._scripts.run(_REMOVE_RUNS, self._key, *run_ids)
        for run_id in run_ids:
            self._runs.pop(run_id, None)

    async def job_of(self, run_id: str) -> JobKey:
        """Returns the job that a run is of. Raises: RunNotFound."""
        if (known := self._runs.get(run_id)) is not None:
            return known
        found = await self._scripts.run(_FIND_RUN, self._key, run_id)
        if not isinstance(found, bytes) or not found:
            raise RunNotFound(run_id)
        if len(self._runs) >= _CACHED_RUNS:
            self._runs.clear()
        self._runs[run_id] = _key_of(found)
        return self._runs[run_id]


def _tag(job: JobKey) -> str:
    """Tenants may be called anything, braces included."""
    return f"{quote(job.tenant, safe='')}/{job.name}"


def _key_of(tag: bytes) -> JobKey:
    tenant, _, name = tag.decode().partition("/")
    return JobKey(unquote(tenant), name)
