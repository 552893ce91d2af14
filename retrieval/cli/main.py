"""The entry point: the only place that reads argv and the environment."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping, Sequence


def run() -> None:
    """Runs the command line of this process and exits with its code."""
    # Texts are tokenized on the threads that ask for it, at their priority, not on a pool of the library's.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # A log of JSON lines holds nothing else: gRPC writes its own, on forks above all, which this process does without.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what the terminal cannot show is no reason to fail
            stream.reconfigure(errors="backslashreplace")
    sys.exit(execute(sys.argv[1:], dict(os.environ)))


def execute(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Runs one command and returns its exit code; what it says goes to standard output and standard error."""
    from retrieval.cli.app import app
    from retrieval.cli.session import Surroundings

    try:
        app(args=list(arguments), prog_name="headrace", obj=Surroundings.of(environ))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


if __name__ == "__main__":
    run()
