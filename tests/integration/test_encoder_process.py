"""The encoders inside a real server: damaged models at start, work in progress at a stop, threads that are gone."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import threading
from pathlib import Path

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from encoders.scheduler import TokenScheduler
from encoders.sources import bundled_folders
from encoders.types import WorkClass
from retrieval.client import error_info
from retrieval.server.health import Health
from tests.fakes.engines import EchoEngine, EngineDied, items
from tests.integration.conftest import PATIENCE_S, command, environment, running, settings_text

SERVICE = "headrace.v1.EncodingService"


def test_server_refuses_a_half_downloaded_model(tmp_path: Path) -> None:
    """One sentence at start, no stack trace, no server that answers nonsense."""
    folder = tmp_path / "model"
    [bundled] = [found for found in bundled_folders() if found.name == "minilm-l6"]
    for path in bundled.rglob("*"):
        if path.is_file() and "late" not in path.name:
            copied = folder / path.relative_to(bundled)
            copied.parent.mkdir(parents=True, exist_ok=True)
            copied.write_bytes(path.read_bytes()[: 4_000_000 if path.suffix == ".onnx" else None])
    text = settings_text(tmp_path, keys=False) + f"[encoders.dense]\nmodel = {json.dumps(str(folder))}\n"
    (tmp_path / "headrace.toml").write_text(text, encoding="utf-8")
    done = subprocess.run(
        command(tmp_path),
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode != 0
    assert "cannot open model.onnx" in done.stderr
    assert "Traceback" not in done.stderr


async def test_stop_in_the_middle_of_a_batch_loses_no_reply(tmp_path: Path) -> None:
    """Texts that wait or are being encoded when SIGTERM comes get their vectors, and the process goes with 0."""
    with running(tmp_path, settings_text(tmp_path, keys=False, grace_s=PATIENCE_S)) as server:
        async with server.client() as client:
            texts = [f"The turbine turns {number} times. " * 12 for number in range(24)]
            calls = [asyncio.create_task(client.embed(texts)) for _ in range(3)]
            await client.embed(["one that is answered while the others run"])
            server.process.send_signal(signal.SIGTERM)
            replies = await asyncio.gather(*calls, return_exceptions=True)
        # On a busy machine a call may reach the server after the signal; it is refused as a whole and by name.
        refused = [one for one in replies if isinstance(one, grpc.aio.AioRpcError)]
        assert all((info := error_info(one)) is not None and info.reason == "SHUTTING_DOWN" for one in refused)
        taken = [one for one in replies if not isinstance(one, BaseException)]
        assert taken
        assert len(taken) + len(refused) == len(calls)
        for reply in taken:
            assert [len(embedding.vector) for embedding in reply.embeddings] == [384] * 24
        assert await asyncio.to_thread(server.process.wait, PATIENCE_S) == 0


async def test_info_shows_file_check_and_pieces_of_a_model(tmp_path: Path) -> None:
    """What a token costs is measured once for a data folder; the next start reads it."""
    with running(tmp_path, settings_text(tmp_path, keys=False)) as server:
        await asyncio.to_thread(server.wait_for, "token_cost_measured")
        async with server.client() as client:
            first = (await client.info()).models[0]
        assert server.stop() == 0
    assert (first.file, first.precision, first.check.reference_count) == ("model.onnx", "int8", 4)
    assert first.check.lowest_cosine >= 0.97
    assert first.pieces.budget_tokens == 0
    assert [cost.tokens for cost in first.pieces.costs] == [8, 16, 32, 64, 128, 256]
    with running(tmp_path, settings_text(tmp_path, keys=False)) as server:
        async with server.client() as client:
            assert (await client.info()).models[0].pieces == first.pieces
        assert server.stop() == 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_health_follows_the_encoder_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that dies and cannot be replaced takes the server out of rotation, until it can."""
    scheduler = TokenScheduler(workers=1, capacity_items=10)
    engine = EchoEngine(faults={1: EngineDied})
    health = Health([SERVICE])
    server = grpc.aio.server()
    health_pb2_grpc.add_HealthServicer_to_server(health.servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await health.set(serving=False)
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            seen = stub.Watch(health_pb2.HealthCheckRequest(service=SERVICE), timeout=PATIENCE_S)
            assert await _next(seen) == "NOT_SERVING"
            async with health.following(scheduler.workers):
                assert await _next(seen) == "SERVING"
                with monkeypatch.context() as patched:
                    patched.setattr(threading.Thread, "start", _no_thread)
                    await scheduler.submit(engine, items(1), WorkClass.ONLINE, None)
                    assert await _next(seen) == "NOT_SERVING"
                assert await _next(seen) == "SERVING"
                [outcome] = await scheduler.submit(EchoEngine(), items(2), WorkClass.ONLINE, None)
                assert outcome.value == 2
                await health.stop()
                assert await _next(seen) == "NOT_SERVING"
            seen.cancel()
    finally:
        await server.stop(None)
        await asyncio.to_thread(scheduler.stop)
        await asyncio.to_thread(engine.threads[0].join)


async def _next(seen: grpc.aio.UnaryStreamCall[health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse]) -> str:
    reply = await seen.read()
    return str(health_pb2.HealthCheckResponse.ServingStatus.Name(reply.status))


def _no_thread(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")
