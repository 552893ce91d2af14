"""Starts the process that builds a generation, and waits for it."""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path

from indexers.errors import BuildFailed
from indexers.options import IndexOptions

_PACKAGE_ROOT = Path(__file__).resolve().parent.parent
_REASON_CHARS = 500
_ROOM_BYTES = 64 * 1024**2  # what the engine lays out when it opens a generation, and some to spare


async def run_build(collection: str, record: Path, target: Path, number: int, options: IndexOptions) -> None:
    """Builds generation `number` into `target` in a child process; cancelling kills the child.

    Raises:
        BuildFailed: the child failed or took too long, or the disk has no room to serve what it made; the reason is the
            end of what it said. Nothing is left in `target`.
    """
    try:
        await _built(collection, record, target, number, options)
        await asyncio.to_thread(_check_room, collection, target)
    except BaseException:
        await asyncio.to_thread(shutil.rmtree, target, ignore_errors=True)
        raise


async def _built(collection: str, record: Path, target: Path, number: int, options: IndexOptions) -> None:
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


def _check_room(collection: str, target: Path) -> None:
    """Refuses what cannot be served: the files have holes, and a mapped one that cannot be filled kills the process."""
    files = [one.stat() for one in target.rglob("*") if one.is_file()]
    holes = sum(max(0, one.st_size - 512 * one.st_blocks) for one in files)
    short = holes + _ROOM_BYTES - shutil.disk_usage(target).free
    if short > 0:
        raise BuildFailed(
            collection, f"the disk lacks {short / 2**20:,.0f} MiB to serve it; make room, or forget what is kept"
        )
