"""Says in the data folder which process serves it, and where, so that the command line finds it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAME = "server.json"


@contextmanager
def endpoint_file(folder: Path, address: str) -> Iterator[None]:
    """Keeps the file while the body runs; it appears whole."""
    path = folder / NAME
    fresh = folder / f".{NAME}.new"
    fresh.write_text(json.dumps({"address": address, "pid": os.getpid()}), encoding="utf-8")
    fresh.replace(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def running_server(folder: Path, pid: int | None = None) -> str | None:
    """Returns the address of the process that serves the data folder, or of that one `pid`; None when there is none."""
    try:
        endpoint = json.loads((folder / NAME).read_text(encoding="utf-8"))
        address, process = str(endpoint["address"]), int(endpoint["pid"])
        os.kill(process, 0)
    except PermissionError:
        return address  # it lives, as another user
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return address if pid in {None, process} else None
