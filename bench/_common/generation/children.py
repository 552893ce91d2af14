"""Runs a part of a bench in a process of its own, and takes what it writes down."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


async def written_by(module: str, words: Sequence[str]) -> Any:
    """Runs `python -m MODULE WORDS... PATH`, and returns the JSON in the file that it writes.

    A file and no pipe: what a child printed was once cut at 65,536 bytes, without an error.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / "written.json"
        child = await asyncio.create_subprocess_exec(sys.executable, "-m", module, *words, str(path))
        if await child.wait():
            raise SystemExit(f"{module} failed")
        return json.loads(path.read_bytes())
