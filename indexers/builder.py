"""Starts the process that builds a generation, and waits for it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from indexers.errors import BuildFailed
from indexers.options import IndexOptions

_PACKAGE_ROOT = Path(__file__).resolve().parent.parent
_REASON_CHARS = 500


async def run_build(collection: str, record: Path, target: Path, number: int, options: IndexOptions) -> None:
    """Builds generation `number` into `target` in a child process; cancelling kills the child.

    Raises:
        BuildFailed: the child failed or took too long; the reason is the end of what it said.
    """
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "indexers.build"),
        *(str(record), str(target), str(number), options.kind.value, str(options.build_niceness)),
        *(str(options.graph.m), str(options.graph.ef_construct)),
        cwd=_PACKAGE_ROOT,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(options.build_timeout_s):
            _, said = await child.communicate()
    except TimeoutError:
        raise BuildFailed(collection, f"it took longer than {options.build_timeout_s:.0f} s") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode != 0:
        reason = said.decode(errors="replace").strip()[-_REASON_CHARS:] or f"exit code {child.returncode}"
        raise BuildFailed(collection, reason)
