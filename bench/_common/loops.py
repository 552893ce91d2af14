"""Runs a coroutine on the event loop that the server uses."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from retrieval.server.interpreter import settle

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs the coroutine to its end, on uvloop where it exists, with the interpreter tuned as the server has it."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    settle()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(work)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
