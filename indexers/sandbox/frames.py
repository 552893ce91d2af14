"""How the two sides talk: frames of JSON, each after its length in four bytes.

JSON and never pickle, since whoever takes over a child must not get to run code in its parent. Lone surrogates, which
names of files may have, go through as they are.
"""

from __future__ import annotations

import json
import os
import struct
from typing import TypeAlias

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

HEAD = struct.Struct(">I")


def pack(message: Json) -> bytes:
    """Returns the frame of a message."""
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return HEAD.pack(len(body)) + body


def unpack(body: bytes | bytearray) -> Json:
    """Returns the message of a frame's body.

    Raises:
        ValueError: it is no JSON, or none that a sane sender writes.
    """
    try:
        message: Json = json.loads(body.decode("utf-8", "surrogatepass"))
    except RecursionError:
        raise ValueError("nests too deep") from None
    return message


def write_all(descriptor: int, frame: bytes) -> None:
    """Writes a frame to a blocking pipe; waits while the other side has enough to read.

    Raises:
        BrokenPipeError: nobody reads any more.
    """
    rest = memoryview(frame)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def read_frame(descriptor: int) -> Json:
    """Reads one frame from a blocking pipe; None at its end. For the child, which trusts its parent."""
    head = _read_exactly(descriptor, HEAD.size)
    return unpack(_read_exactly(descriptor, HEAD.unpack(head)[0])) if head else None


def _read_exactly(descriptor: int, size: int) -> bytes:
    """Returns so many bytes; none when the pipe ends before."""
    found = bytearray()
    while len(found) < size:
        block = os.read(descriptor, size - len(found))
        if not block:
            return b""
        found += block
    return bytes(found)
