"""Workers tell by each other's names who still lives."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

from retrieval.jobs.names import is_dead, worker_name


def test_own_process_lives() -> None:
    """A worker never takes itself for dead."""
    assert not is_dead(worker_name())


def test_process_that_has_ended_is_dead() -> None:
    """A name of this machine whose process is gone is dead; so is one whose number another process has now."""
    program = "from retrieval.jobs.names import worker_name; print(worker_name())"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    assert is_dead(ended)
    assert is_dead(f"{socket.gethostname()}:{os.getpid()}:1")


def test_worker_of_another_machine_may_always_live() -> None:
    """Nothing is known of it."""
    assert not is_dead("elsewhere:1:1")
    assert not is_dead("no name at all")
