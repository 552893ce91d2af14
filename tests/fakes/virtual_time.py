"""An event loop on a clock of its own: with nothing left to run it jumps to the next timer, so waits take no time."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
START_S = 1_000.0


class _Jump(selectors.SelectSelector):
    """Moves the loop's clock by what it would have waited."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = START_S

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("all wait for something that never comes")
        self.now_s += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose time passes only while all wait."""

    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        """Seconds on its clock."""
        return self._jump.now_s


def now_ns() -> int:
    """Reads the running loop's clock; stands at its start where none runs."""
    try:
        return round(asyncio.get_running_loop().time() * 1e9)
    except RuntimeError:
        return round(START_S * 1e9)


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Runs to the end in virtual time; no task may be left, and nothing may be said to the loop's error handler."""
    heard = list[str]()

    async def watched() -> T:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(str(context["message"])))
        result = await main
        assert len(asyncio.all_tasks()) == 1, asyncio.all_tasks()
        return result

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        result = runner.run(watched())
    assert not heard, heard
    return result
