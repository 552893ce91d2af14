"""Starts a scripted server in a process of its own, and asks it for its counts."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from bench._common.generation.script import Counts, Script

_PATIENCE_S = 20.0


@contextmanager
def scripted_server(script: Script) -> Iterator[str]:
    """Runs a server while the body does; gives its address, without `/v1`."""
    command = [sys.executable, "-m", "bench._common.generation.scripted_server", *script.arguments()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            address = child.stdout.readline().strip()
            if not address:
                raise SystemExit("the scripted server did not start")
            yield address
        finally:
            child.terminate()
            child.wait(_PATIENCE_S)


def counts_of(address: str) -> Counts:
    """Returns what a server has counted."""
    with urllib.request.urlopen(f"{address}/stats", timeout=_PATIENCE_S) as answer:
        return Counts(**json.load(answer))
