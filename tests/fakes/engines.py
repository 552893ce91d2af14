"""Engines without a model: they give each item's first id back, can be held at a gate, and can fail in every way."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence

import numpy as np

from encoders.errors import NonFiniteOutput
from encoders.types import TokenizedText

WAIT_S = 20.0


class EngineDied(BaseException):
    """What ends a worker thread: no `Exception`, as an interpreter that is going down raises it."""


def items(*firsts: int, tokens: int = 4) -> list[TokenizedText]:
    """Makes items whose first id tells them apart."""
    return [_item(first, tokens) for first in firsts]


class EchoEngine:
    """Gives the first id of each item; ids in `faults` fail with that error instead."""

    def __init__(self, model_id: str = "echo", faults: dict[int, type[BaseException]] | None = None) -> None:
        self.model_id = model_id
        self.seen: list[int] = []
        self.runs: list[list[int]] = []
        self.threads: list[threading.Thread] = []
        self.niceness: set[int] = set()
        self._faults = faults or {}

    def run(self, items: Sequence[TokenizedText]) -> list[int]:
        self.niceness.add(_niceness())
        firsts = [int(item.ids[0]) for item in items]
        self.runs.append(firsts)
        self.threads.append(threading.current_thread())
        for first in firsts:
            self.seen.append(first)
            if first in self._faults:
                fault = self._faults[first]
                raise NonFiniteOutput(self.model_id) if fault is NonFiniteOutput else fault("on purpose")
        return firsts


class GatedEngine(EchoEngine):
    """Announces each run and holds it until the gate is open; with `held`, only runs of these ids."""

    def __init__(self, model_id: str = "gated", held: set[int] | None = None) -> None:
        super().__init__(model_id)
        self._held = held
        self.begun = threading.Semaphore(0)
        self.gate = threading.Event()

    def run(self, items: Sequence[TokenizedText]) -> list[int]:
        self.begun.release()
        holds = self._held is None or int(items[0].ids[0]) in self._held
        if holds and not self.gate.wait(WAIT_S):
            raise TimeoutError("the gate stayed shut")
        return super().run(items)

    def wait_begun(self) -> None:
        """Blocks until one more run has begun."""
        if not self.begun.acquire(timeout=WAIT_S):
            raise TimeoutError("no run began")


def _item(first: int, tokens: int) -> TokenizedText:
    ids = np.zeros(tokens, dtype=np.int64)
    ids[0] = first
    return TokenizedText(ids, np.zeros(tokens, dtype=np.int64), tokens)


def _niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) if sys.platform == "linux" else 0
