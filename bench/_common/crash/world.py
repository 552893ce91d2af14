"""A service that indexes a folder while its processes are killed, and what must hold after each time.

A round changes the source at random, asks for a run, kills one or several processes after a random number of documents,
starts them again, waits for the run to end, and runs once more. Then the index must be the oracle's: the same ids, the
same fingerprints, the same chunks, all of which can be fetched, and not one more.
"""

from __future__ import annotations

import asyncio
import random
import time
import tomllib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import grpc
import grpc.aio

from bench._common.crash.oracle import Oracle, oracle_of
from bench._common.crash.processes import Killable
from bench._common.crash.sources import ChangingFolder
from bench._common.redis_server import RedisServer, free_port
from headrace.v1 import jobs_pb2
from indexers.jobs.spec import ChunkingSpec, JobSpec
from retrieval.client import Client
from retrieval.jobs.remote_target import Connection, RemoteTarget
from retrieval.settings import Settings
from retrieval.settings.service import DataSettings

T = TypeVar("T")

PATIENCE_S = 90.0
_JOB = """
name = "crash"
collection = "docs"

[source]
kind = "folder"
path = "source"

[limits]
backoff_s = 0.05
shrink_share = 1.0
"""
_PASSING = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
_SETTLED = ("verified", "unchanged", "deleted")


@dataclass(frozen=True, slots=True)
class Round:
    """What happened in one round."""

    killed: tuple[str, ...]
    after_documents: int  # settled when they were killed
    run_state: str  # of the run that was hit; empty when the store forgot it
    recovery_s: float  # from the kill to the end of the run after it
    documents: int  # in the index at the end


class World:
    """One data folder with its processes, in the same order of events for the same seed."""

    def __init__(
        self, folder: Path, seed: int, oracle: Oracle, redis: RedisServer | None = None, files: int = 12
    ) -> None:
        """`redis` holds the queue and keeps nothing on disk; without it the queue is a file."""
        self._rng = random.Random(seed)
        self._folder = folder
        self._oracle = oracle
        self._redis = redis
        self._source = ChangingFolder(folder / "source", self._rng, files)
        self._address = f"127.0.0.1:{free_port()}"
        config = str(folder / "headrace.toml")
        (folder / "headrace.toml").write_text(self._settings(), encoding="utf-8")
        self._server = Killable(folder, "server", "serve", "--config", config, ready='"serving"')
        self._worker = Killable(folder, "worker", "worker", "--config", config)
        self._spec = JobSpec.model_validate(tomllib.loads(_JOB))

    async def begin(self) -> None:
        """Starts everything and indexes the source for the first time."""
        self._server.start()
        self._worker.start()
        await self._run()
        await self.check()

    async def round(self) -> Round:
        """Goes through one round.

        Raises:
            AssertionError: the index is not what it must be.
        """
        changed = self._source.change()
        victims = self._victims()
        limit = self._rng.randint(0, changed)
        run_id = await self._submit()
        reached = await self._settled(run_id, limit)
        killed_at = time.monotonic()
        self._kill(victims)
        self._rng.shuffle(victims)
        for name in victims:
            if name != "queue":
                self._part(name).start()
            elif self._redis is not None:
                self._redis.start()
        state = await self._ended(run_id)
        await self._run()
        recovery_s = time.monotonic() - killed_at
        return Round(tuple(sorted(victims)), reached, state, recovery_s, await self.check())

    async def check(self) -> int:
        """Compares the index with the oracle's and returns how many documents there are."""
        connection = Connection(lambda: self._address, "")
        try:
            target = RemoteTarget(connection, self._spec.collection, ChunkingSpec())
            await target.open(self._spec)
            expected = self._oracle.expected(self._source.folder, self._spec, target.shaping)
            ids = sorted(expected)
            owned = [name for name, _ in await target.owned(self._spec.name, "", 10_000)]
            assert owned == ids, f"too many: {set(owned) - set(ids)}, too few: {set(ids) - set(owned)}"
            stored = (await target.look(ids)).documents
            wrong = [name for name in ids if stored[name].fingerprint != expected[name].fingerprint]
            assert not wrong, f"other fingerprints: {wrong}"
            for name in ids:
                chunks = await target.chunk_ids([name])
                assert sorted(chunks) == sorted(expected[name].chunk_ids), f"other chunks: {name}"
                assert len(await target.present(chunks)) == len(chunks), f"chunks of {name} cannot be fetched"
            async with Client(self._address) as client:
                counted = await client.count(self._spec.collection)
            assert counted.documents == len(ids)
            assert counted.chunks == sum(len(one.chunk_ids) for one in expected.values())
            return len(ids)
        finally:
            await connection.close()

    def end(self) -> None:
        """Stops everything."""
        self._worker.stop()
        self._server.stop()

    def logs(self) -> str:
        """Returns the ends of the logs, for when something went wrong."""
        texts = [part.log.read_text(encoding="utf-8")[-3000:] for part in (self._server, self._worker)]
        return "\n".join(texts)

    def _victims(self) -> list[str]:
        """Chooses who is killed. A queue whose file is lost takes everybody along who has it open."""
        names = ["queue", "server", "worker"]
        chosen = self._rng.sample(names, self._rng.randint(1, len(names)))
        everybody = "queue" in chosen and self._redis is None
        return sorted({*chosen, "server", "worker"} if everybody else chosen)

    def _kill(self, victims: list[str]) -> None:
        for name in victims:
            if name != "queue":
                self._part(name).kill()
        if "queue" in victims and self._redis is not None:
            self._redis.kill()
        elif "queue" in victims:
            for left in (self._folder / "data").glob("jobs.sqlite*"):
                left.unlink()

    def _part(self, name: str) -> Killable:
        return self._server if name == "server" else self._worker

    async def _run(self) -> None:
        """Runs the job to its end, which must be a good one."""
        state = await self._ended(await self._submit())
        assert state == "RUN_STATE_SUCCEEDED", f"{state}\n{self.logs()}"

    async def _submit(self) -> str:
        async def submit(client: Client) -> str:
            request = jobs_pb2.SubmitJobRequest(spec_toml=_JOB, run=True, base_folder=str(self._folder))
            return (await client.jobs.submit(request)).run.run_id

        return await self._patiently(submit)

    async def _settled(self, run_id: str, limit: int) -> int:
        """Waits until so many documents are settled, or the run has ended; returns how many are."""
        settled = 0

        async def look(client: Client) -> bool:
            nonlocal settled
            run = (await client.jobs.get(jobs_pb2.GetJobRequest(name="crash", run_id=run_id))).run
            settled = sum(run.documents.get(state, 0) for state in _SETTLED)
            return settled >= limit or run.HasField("end_time")

        while not await self._patiently(look):  # noqa: ASYNC110 - the state of another process
            await asyncio.sleep(0.005)
        return settled

    async def _ended(self, run_id: str) -> str:
        """Waits for the end of a run and returns its state; empty when the store has forgotten it."""

        async def look(client: Client) -> str | None:
            try:
                run = (await client.jobs.get(jobs_pb2.GetJobRequest(name="crash", run_id=run_id))).run
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.NOT_FOUND:
                    return ""
                raise
            return jobs_pb2.RunState.Name(run.state) if run.HasField("end_time") else None

        until = time.monotonic() + PATIENCE_S
        while (state := await self._patiently(look)) is None:
            assert time.monotonic() < until, f"the run does not end\n{self.logs()}"
            await asyncio.sleep(0.02)
        return state

    async def _patiently(self, call: Callable[[Client], Awaitable[T]]) -> T:
        """Calls until the server answers, since it and the store may just be starting."""
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                async with Client(self._address, timeout_s=20.0) as client:
                    return await call(client)
            except grpc.aio.AioRpcError as error:
                passes = error.code() in _PASSING or "has not ended" in (error.details() or "")
                if not passes or time.monotonic() > until:
                    raise AssertionError(f"{error}\n{self.logs()}") from error
            await asyncio.sleep(0.05)

    def _settings(self) -> str:
        host, _, port = self._address.rpartition(":")
        redis = f'[cache.redis]\nurl = "{self._redis.url}"' if self._redis else ""
        return f"""
[server]
host = "{host}"
port = {port}

[data]
folder = "data"

[encoders]
workers = 1

[jobs]
store = "{"redis" if self._redis else "sqlite"}"
workers = 0
lease_s = 1.0
items_per_lease = 4
file_roots = ["{self._folder}"]
{redis}"""


@contextmanager
def world(folder: Path, seed: int, *, redis: bool = False) -> Iterator[World]:
    """Opens a world and ends its processes."""
    settings = Settings(data=DataSettings(folder=folder / "oracle"))
    with ExitStack() as stack:
        server = stack.enter_context(RedisServer()) if redis else None
        made = World(folder, seed, stack.enter_context(oracle_of(settings)), server)
        stack.callback(made.end)
        yield made
