"""How a scripted server of a language model behaves: its slots, its speed, its faults, and what it has counted."""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Script:
    """What a server does. Times are the medians; `spread` is the standard deviation of the logarithm of lengths."""

    slots: int = 64  # requests that it works on at once; the others wait inside, first come, first served
    prompt_ms_per_1k: float = 100.0  # of prompt tokens that were not cached
    token_ms: float = 20.0
    tokens: int = 100  # of an answer, unless the request wants fewer
    spread: float = 0.0
    stall_share: float = 0.0  # of requests whose first token comes `stall_s` late
    stall_s: float = 5.0
    fail_share: float = 0.0  # of requests that get status 500
    refuse_beyond: int = 0  # requests inside, beyond which it answers 429; 0 for never
    cached: int = 0  # tokens that its prefix cache holds; 0 for none
    seed: int = 1

    def arguments(self) -> list[str]:
        """Returns the command line that makes this script."""
        names = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return [word for name, value in names.items() for word in (f"--{name.replace('_', '-')}", str(value))]

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        """Adds an option for each field."""
        for name, field in cls.__dataclass_fields__.items():
            parser.add_argument(f"--{name.replace('_', '-')}", type=type(field.default), default=field.default)

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> Script:
        """Returns the script that parsed options make."""
        return cls(**{name: getattr(arguments, name) for name in cls.__dataclass_fields__})

    def length(self, draw: random.Random, wanted: int) -> int:
        """Draws the length of an answer, in tokens; `wanted` is the most, 0 for no bound."""
        drawn = max(1, round(self.tokens * draw.lognormvariate(0.0, self.spread)))
        return min(drawn, wanted) if wanted else drawn


@dataclass(slots=True)
class Counts:
    """What a server has seen since it was started."""

    connections: int = 0  # that are open
    requests: int = 0
    answered: int = 0
    refused: int = 0
    failed: int = 0
    left: int = 0  # whose client left before the end
    inside: int = 0
    most_inside: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    tokens: int = 0
    held_s: float = 0.0  # time that answered requests kept their slots, in all
    cpu_s: float = 0.0
