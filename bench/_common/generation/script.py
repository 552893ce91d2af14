"""How a scripted server of a language model behaves: its slots, its speed, its faults, and what it has counted."""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass, replace

STAMP_DIGITS = 19
"""Digits of a stamp, so that all stamps are of one length."""


@dataclass(frozen=True, slots=True)
class Script:
    """What a server does. Times are the medians; `spread` is the standard deviation of the logarithm of lengths."""

    slots: int = 64  # requests that it works on at once; the others wait inside, first come, first served
    prompt_ms_per_1k: float = 100.0  # of prompt tokens that were not cached
    token_ms: float = 20.0
    prompt_spread: float = 0.0  # the standard deviation of the logarithm of the time to the first token
    tokens: int = 100  # of an answer, unless the request wants fewer
    spread: float = 0.0
    stall_share: float = 0.0  # of requests whose first token comes `stall_s` late
    stall_s: float = 5.0
    fail_share: float = 0.0  # of requests that get status 500
    refuse_beyond: int = 0  # requests inside, beyond which it answers 429; 0 for never
    cached: int = 0  # tokens that its prefix cache holds; 0 for none
    token_chars: int = 0  # of a token at least
    stamped: int = 0  # 1 makes each token say when it was written, and the first one when its request came
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

    def again(self, seed: int) -> Script:
        """Returns the same script with other draws."""
        return replace(self, seed=seed)

    def length(self, draw: random.Random, wanted: int) -> int:
        """Draws the length of an answer, in tokens; `wanted` is the most, 0 for no bound."""
        drawn = max(1, round(self.tokens * draw.lognormvariate(0.0, self.spread)))
        return min(drawn, wanted) if wanted else drawn

    def first_token_s(self, draw: random.Random, prompt_tokens: int) -> float:
        """Draws how long a prompt takes, without the tokens of it that were cached."""
        late_s = self.stall_s if draw.random() < self.stall_share else 0.0
        prompt_s = self.prompt_ms_per_1k * prompt_tokens / 1e6
        return late_s + (prompt_s * draw.lognormvariate(0.0, self.prompt_spread) if self.prompt_spread else prompt_s)

    def word(self, number: int, last: int, came_ns: int, now_ns: int) -> str:
        """Returns the text of a token that is written now, on the monotonic clock; its request came at `came_ns`."""
        if self.stamped:
            return f"{came_ns}:{now_ns:0{STAMP_DIGITS}} " if number == 0 else f"{now_ns:0{STAMP_DIGITS}} "
        return "[1]." if number == last else f"word{number % 10}".ljust(self.token_chars - 1, "-") + " "


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
