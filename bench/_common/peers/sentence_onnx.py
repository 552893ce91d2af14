"""sentence-transformers' ONNX back end on the same int8 file, in a child process, since it may need another Python."""

from __future__ import annotations

import asyncio
import json
import os
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np

from bench._common.peers.apart import awake
from bench._common.peers.arms import Arm, ArmMissing, Done, Task
from bench._common.peers.folders import PeerFolder

NAME = "sentence-transformers, ONNX"
_WORKER = Path(__file__).with_name("onnx_worker.py")
_LINE_BYTES = 64 * 1024 * 1024  # a line holds all vectors of a task
_PATIENCE_S = 120.0


@asynccontextmanager
async def open_arm(python: str, kind: str, folder: PeerFolder) -> AsyncIterator[Arm]:
    """Starts the child and ends it afterwards; `kind` is `pairs` or `texts`.

    Raises:
        ArmMissing: it cannot open the model.
    """
    environment = {name: value for name, value in os.environ.items() if name != "TOKENIZERS_PARALLELISM"}
    child = await asyncio.create_subprocess_exec(
        *(python, str(_WORKER), kind, str(folder.path), str(folder.max_tokens)),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        limit=_LINE_BYTES,
        env=environment,
    )
    try:
        yield Arm(NAME, "int8", await _started(child), lambda task: _ask(child, task))
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def _started(child: Process) -> str:
    if hello := await _line(child):
        return str(json.loads(hello))
    said = (await child.stderr.read()).decode(errors="replace").strip() if child.stderr else ""
    raise ArmMissing(NAME, said.splitlines()[-1] if said else "its process ended at once")


async def _ask(child: Process, task: Task) -> Done:
    if child.stdin is None:
        raise RuntimeError("the child has no standard input")
    with awake(child.pid):
        child.stdin.write(json.dumps({"query": task.query, "passages": task.passages}).encode() + b"\n")
        await child.stdin.drain()
        line = await _line(child)
    if not line:
        raise RuntimeError("the child of the ONNX arm ended; run it by itself to see why")
    answer = json.loads(line)
    return Done(np.array(answer["values"], dtype=np.float64), int(answer["spent_ns"]))


async def _line(child: Process) -> bytes:
    if child.stdout is None:
        return b""
    return await asyncio.wait_for(child.stdout.readline(), _PATIENCE_S)
