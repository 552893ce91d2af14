"""What an arm is: a name, the weights it runs, and a call that takes a question's texts and times itself."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

OURS = "headrace"
REFERENCE = "sentence-transformers, torch"  # fp32: what the others are compared with


@dataclass(frozen=True, slots=True)
class Task:
    """A question with its candidates, best first."""

    set_name: str
    query: str
    passages: tuple[str, ...]
    documents: tuple[str, ...]  # the id of each passage
    relevant: dict[str, int]


@dataclass(frozen=True, slots=True)
class Done:
    """What an arm gave for a task: logits float [n] or vectors float [n, dim], and how long it took."""

    values: NDArray[np.float64]
    spent_ns: int


Run: TypeAlias = Callable[[Task], Awaitable[Done]]


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to compute the same thing."""

    name: str
    weights: str  # fp32 or int8
    software: str  # packages with their versions
    run: Run


class ArmMissing(Exception):
    """An arm cannot take part; it is reported, and the others run."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.name} is left out: {self.reason}"


def versions(*packages: str) -> str:
    """Returns the packages with their versions, as in "torch 2.13.0"."""
    return ", ".join(f"{package} {version(package)}" for package in packages)


def blocking(compute: Callable[[Task], Any]) -> Run:
    """Makes a run of a plain function that gives anything NumPy can read; making an array of it is not timed."""

    async def run(task: Task) -> Done:
        # The peers' default; the tools switch it off for the product's own event loop.
        os.environ["TOKENIZERS_PARALLELISM"] = "true"
        started = time.perf_counter_ns()
        given = compute(task)
        spent = time.perf_counter_ns() - started
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        return Done(np.asarray(given, dtype=np.float64), spent)

    return run


def waiting(compute: Callable[[Task], Awaitable[Any]]) -> Run:
    """Makes a run of a coroutine function that gives anything NumPy can read."""

    async def run(task: Task) -> Done:
        started = time.perf_counter_ns()
        given = await compute(task)
        spent = time.perf_counter_ns() - started
        return Done(np.asarray(given, dtype=np.float64), spent)

    return run
