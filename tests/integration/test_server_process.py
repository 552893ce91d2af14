"""The server as a process: starting, refusing to start, health, reloading, stopping."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from headrace.v1 import index_pb2
from retrieval.client import document
from tests.integration.conftest import PATIENCE_S, ServerProcess, command, environment, running, settings_text

GRACE_S = 5.0


def _refused(folder: Path, settings: str) -> str:
    """Starts a server that must not start, and returns what it says."""
    (folder / "headrace.toml").write_text(settings, encoding="utf-8")
    done = subprocess.run(
        command(folder), cwd=folder, env=environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return done.stderr


def test_second_server_on_one_folder_is_refused(server: ServerProcess, tmp_path: Path) -> None:
    """The data folder belongs to one process; the second one says so and goes, and the first goes on."""
    said = _refused(tmp_path, settings_text(server.folder))
    assert "in use by process" in said
    assert json.loads((server.folder / "data" / "server.json").read_text()) == {
        "address": server.address,
        "pid": server.process.pid,
    }


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ('[server]\nhost = "0.0.0.0"\n', "auth.keys"),
        ("[retrieval]\ntop_kk = 3\n", "retrieval.top_kk"),
        ("[retrieval]\ntop_k = 0\n", "retrieval.top_k"),
    ],
)
def test_server_refuses_a_configuration_that_cannot_be_used(tmp_path: Path, settings: str, said: str) -> None:
    """A wide bind without keys, a misspelt key, a value out of bounds: named, before anything is opened."""
    assert said in _refused(tmp_path, settings)
    assert not (tmp_path / "data").exists()


def test_server_refuses_a_taken_port(server: ServerProcess, tmp_path: Path) -> None:
    """A port that another server has is not shared with it."""
    taken = int(server.address.rpartition(":")[2])
    said = _refused(tmp_path, settings_text(tmp_path).replace("port = 0", f"port = {taken}"))
    assert "server.port" in said


async def test_server_reloads_whole_or_not_at_all(tmp_path: Path) -> None:
    """SIGHUP takes over what can change, names what needs a restart, and refuses a bad file as a whole."""
    text = settings_text(tmp_path, keys=False)
    with running(tmp_path, text) as server:
        async with server.client() as client:
            await client.create_collection("docs")
            await client.upsert("docs", [document(str(number), f"turbine {number}") for number in range(4)])
            (tmp_path / "headrace.toml").write_text(text + "[retrieval]\ntop_k = 2\n[index]\nhnsw_m = 8\n")
            server.process.send_signal(signal.SIGHUP)
            reloaded = await asyncio.to_thread(server.wait_for, "reloaded")
            assert (reloaded["changed"], reloaded["needs_restart"]) == (["retrieval.top_k"], ["index.hnsw_m"])
            assert len((await client.retrieve("docs", "turbine")).hits) == 2
            (tmp_path / "headrace.toml").write_text(text + "[retrieval]\ntop_k = 1\nmin_score = 99\n")
            server.process.send_signal(signal.SIGHUP)
            assert "min_score" in str((await asyncio.to_thread(server.wait_for, "reload_refused"))["faults"])
            assert len((await client.retrieve("docs", "turbine")).hits) == 2
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await client.reload_config()
            assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
            (tmp_path / "headrace.toml").write_text(text + "[retrieval]\ntop_k = 1\n")
            reply = await client.reload_config()
            assert [(setting.path, setting.value) for setting in reply.changed] == [("retrieval.top_k", "1")]
            assert len((await client.retrieve("docs", "turbine")).hits) == 1
        assert server.stop() == 0
        assert not (tmp_path / "data" / "server.json").exists()


async def test_server_stops_gracefully(tmp_path: Path) -> None:
    """After SIGTERM health says NOT_SERVING, what runs may end, and the process goes with 0 (GRP-05, GRP-14)."""
    with running(tmp_path, settings_text(tmp_path, keys=False, grace_s=GRACE_S)) as server:
        more = asyncio.Event()

        async def documents() -> AsyncIterator[index_pb2.Document]:
            for number in range(64):
                yield document(f"d{number}", "Words about turbines.")
            yield document("last of the first message", "Words.")
            await more.wait()

        async with server.client() as client, grpc.aio.insecure_channel(server.address) as channel:
            health = health_pb2_grpc.HealthStub(channel)
            for service in ("", "headrace.v1.RetrievalService"):
                assert await _status(health, service) == "SERVING"
            with pytest.raises(grpc.aio.AioRpcError) as unknown:
                await _status(health, "nope")
            assert unknown.value.code() is grpc.StatusCode.NOT_FOUND
            await client.create_collection("docs")
            running_import = asyncio.create_task(client.import_documents("docs", documents()))
            while (await client.count("docs")).documents < 64:
                await asyncio.sleep(0)
            asked = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(server.wait_for, "stopping")
            assert await _status(health, "") == "NOT_SERVING"
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await client.retrieve("docs", "q")
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
            more.set()
            assert (await running_import).indexed == 65
        assert await asyncio.to_thread(server.process.wait, PATIENCE_S) == 0
        assert time.monotonic() - asked < GRACE_S + 2


async def test_server_ends_what_does_not_end_by_itself(tmp_path: Path) -> None:
    """A call that goes on past the grace is ended with a status, and the process goes with 0 all the same (GRP-05)."""
    with running(tmp_path, settings_text(tmp_path, keys=False, grace_s=0.0)) as server:

        async def documents() -> AsyncIterator[index_pb2.Document]:
            for number in range(65):
                yield document(f"d{number}", "Words about turbines.")
            await asyncio.Event().wait()

        async with server.client() as client:
            await client.create_collection("docs")
            hanging = asyncio.create_task(client.import_documents("docs", documents()))
            while (await client.count("docs")).documents < 64:
                await asyncio.sleep(0)
            server.process.send_signal(signal.SIGTERM)
            with pytest.raises(grpc.aio.AioRpcError) as ended:
                await hanging
            assert ended.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
        assert await asyncio.to_thread(server.process.wait, PATIENCE_S) == 0


async def _status(stub: Any, service: str) -> str:
    reply = await stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=PATIENCE_S)
    return str(health_pb2.HealthCheckResponse.ServingStatus.Name(reply.status))
