"""The child process that runs llama.cpp's own server: `python -m retrieval.generation.llama_server`.

A process of its own, since its threads compute for seconds, a broken file may take it down, and its memory is given
back with it. It reads one line, says one line, and serves until its standard input ends, which happens however the
parent ends. Signals are the parent's business: those of a terminal or of a service manager reach both, and the parent
finishes its streams first.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

from retrieval.generation.llama_launch import Launch, Report

_HTTP_THREADS = 8
# Tokens that are computed in one go: a long prompt holds up the other answers, and one that nobody waits for any more
# goes on, for so long at most. Prompts take no longer for it.
_BATCH_TOKENS = 256
_ERRORS_ONLY = 1


def main() -> None:
    """Serves until the parent is gone."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    say = _own_output()
    launch = Launch.read(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.nice(launch.niceness)
    try:
        server = _Server(launch)
    except ImportError:
        os.write(say, Report(fault="xllamacpp is not installed; run pip install 'headrace[llama]'").line())
    except RuntimeError as error:
        os.write(say, Report(fault=f"llama.cpp does not take {Path(launch.weights).name}: {error}").line())
    else:
        os.write(say, Report(port=server.port).line())
        threading.Event().wait()


class _Server:
    """The running server; it ends with the process."""

    def __init__(self, launch: Launch) -> None:
        from xllamacpp import CommonParams, Server  # noqa: PLC0415 - an extra

        params = CommonParams()
        params.model.path = launch.weights
        params.model_alias = {launch.label}
        params.api_keys = [launch.api_key]
        params.n_parallel = launch.slots
        params.n_ctx = launch.slots * launch.slot_tokens
        params.n_batch = params.n_ubatch = _BATCH_TOKENS
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = launch.threads
        params.n_threads_http = _HTTP_THREADS
        params.cache_prompt = True
        params.cache_ram_mib = launch.cache_mib
        params.endpoint_slots = params.ui = params.fit_params = False
        params.verbosity = _ERRORS_ONLY
        self._server = Server(params)
        self.port = urlsplit(self._server.listening_address).port or 0


def _own_output() -> int:
    """Keeps standard output for the report alone; what a library prints goes where errors go."""
    kept = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return kept


def _end_with_parent() -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
