"""Lets the arms take turns on the tasks, forwards and backwards, so that none has the better half of the machine."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench._common.peers.arms import Arm, Task

# For the system to settle after one arm was stopped and before the next one begins.
_REST_S = 0.03


@dataclass(frozen=True, slots=True)
class Measured:
    """What one arm gave and took."""

    arm: Arm
    values: tuple[NDArray[np.float64], ...]  # one a task
    spent_ns: NDArray[np.int64]  # [rounds, tasks]


async def take_turns(arms: Sequence[Arm], tasks: Sequence[Task], rounds: int) -> list[Measured]:
    """Runs every arm on every task once a round; the order turns round with each task and each round.

    There must be at least one task, which warms the arms up.
    """
    for arm in arms:
        await arm.run(tasks[0])
    spent = np.zeros((len(arms), rounds, len(tasks)), dtype=np.int64)
    values: list[list[NDArray[np.float64]]] = [[] for _ in arms]
    for one in range(rounds):
        for place, task in enumerate(tasks):
            order = range(len(arms)) if (one + place) % 2 == 0 else reversed(range(len(arms)))
            for number in order:
                await asyncio.sleep(_REST_S)
                done = await arms[number].run(task)
                spent[number, one, place] = done.spent_ns
                if one == 0:
                    values[number].append(done.values)
    return [Measured(arm, tuple(values[number]), spent[number]) for number, arm in enumerate(arms)]
