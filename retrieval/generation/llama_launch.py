"""What the child process that runs llama.cpp is told, and what it says: one line of JSON each way.

The line goes through the child's standard input, since other users can read command lines, and the key is in it. Both
sides read it from here, and neither loads anything else of the other's.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Launch:
    """How the child serves."""

    weights: str  # path of the GGUF file
    label: str  # what replies call the model
    api_key: str
    slots: int  # answers at once
    slot_tokens: int  # prompt and answer of one of them together
    threads: int
    cache_mib: int  # memory for the keys and values of prompts that no slot holds any more
    niceness: int

    def line(self, api_key: str) -> bytes:
        """Writes it as a line, with another key."""
        return json.dumps(asdict(self) | {"api_key": api_key}).encode() + b"\n"

    @classmethod
    def read(cls, line: bytes) -> Launch:
        """Reads such a line."""
        return cls(**json.loads(line))


@dataclass(frozen=True, slots=True)
class Report:
    """What the child says once: where it serves, or why it does not."""

    port: int = 0
    fault: str = ""

    def line(self) -> bytes:
        """Writes it as a line."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def read(cls, line: bytes) -> Report:
        """Reads such a line; anything else is a fault."""
        try:
            said = json.loads(line)
            return cls(int(said["port"]), str(said["fault"]))
        except (ValueError, KeyError, TypeError):
            return cls(fault="it ended before it served")
