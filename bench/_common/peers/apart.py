"""An arm in a process of its own, which stands still while it is not its turn.

Thread pools of other libraries spin between two calls. In one process with them our arm took half as long again on
equal lengths; users run one library a process, so the arms are kept apart, and stopped by signal between their turns.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from multiprocessing.connection import Connection
from typing import Any

from bench._common.peers.arms import Arm, ArmMissing, Done, Task

_PATIENCE_S = 120.0


@asynccontextmanager
async def open_apart(opener: Callable[..., Arm], *arguments: Any) -> AsyncIterator[Arm]:
    """Opens an arm by a module's function in a new process, and ends the process afterwards.

    Raises:
        ArmMissing: the arm cannot take part.
    """
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("spawn").Process(target=_serve, args=(there, opener, arguments), daemon=True)
    child.start()
    there.close()
    try:
        hello = await _answer(here)
        if isinstance(hello, ArmMissing):
            raise hello
        name, weights, software = hello

        async def run(task: Task) -> Done:
            with awake(child.pid):
                here.send(task)
                done: Done = await _answer(here)
            return done

        yield Arm(name, weights, software, run)
    finally:
        child.kill()
        child.join()
        here.close()


@contextmanager
def awake(pid: int | None) -> Iterator[None]:
    """Lets a process run during the body, and stops it afterwards."""
    if pid is None:
        raise RuntimeError("the process of an arm has not started")
    os.kill(pid, signal.SIGCONT)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGSTOP)


async def _answer(connection: Connection) -> Any:
    return await asyncio.wait_for(asyncio.to_thread(connection.recv), _PATIENCE_S)


def _serve(connection: Connection, opener: Callable[..., Arm], arguments: tuple[Any, ...]) -> None:
    try:
        arm = opener(*arguments)
    except ArmMissing as absent:
        connection.send(absent)
        return
    connection.send((arm.name, arm.weights, arm.software))
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        connection.send(asyncio.run(_run(arm, task)))


async def _run(arm: Arm, task: Task) -> Done:
    return await arm.run(task)
