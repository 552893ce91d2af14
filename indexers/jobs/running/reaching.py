"""Patience with a target that goes away for a while: a server that restarts costs a job time, and nothing else."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from indexers.errors import IndexUnavailable, JobStoreUnavailable, TargetUnavailable

T = TypeVar("T")

_FIRST_S = 0.1
_LONGEST_S = 5.0


class Reaching:
    """Calls again what could not be reached, until it was out of reach for too long."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s

    async def reach(self, call: Callable[[], Awaitable[T]]) -> T:
        """Returns what the call returns in the end. Every call must be one that may be repeated.

        Raises:
            TargetUnavailable, IndexUnavailable, JobStoreUnavailable: still so after all the patience there is.
        """
        give_up = time.monotonic() + self._patience_s
        wait_s = _FIRST_S
        while True:
            try:
                return await call()
            except (TargetUnavailable, IndexUnavailable, JobStoreUnavailable):
                if time.monotonic() + wait_s > give_up:
                    raise
            await asyncio.sleep(wait_s * random.uniform(0.5, 1.0))  # noqa: S311 - spreads workers, hides nothing
            wait_s = min(wait_s * 2, _LONGEST_S)
