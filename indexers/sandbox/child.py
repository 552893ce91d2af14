"""The child process: `python -m indexers.sandbox.child MEMORY_BYTES TIMEOUT_S`. Reads requests, writes what it parses.

A file that its parser gives up on is a failure like any other. Whatever else goes wrong ends the process, since nobody
knows what state it is in; it says why with its last breath, and the parent starts another.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import PurePath
from types import TracebackType

from indexers.parsing.dispatch import parse_file
from indexers.parsing.options import ParseOptions, SourceFile
from indexers.parsing.parsed import ParseFailure
from indexers.sandbox.confining import confine
from indexers.sandbox.frames import pack, read_frame, write_all
from indexers.sandbox.memory import AddressSpace
from indexers.sandbox.messages import pack_item, unpack_request

_LATE_LIBRARIES = {".parquet": "pyarrow.parquet"}
_GRACE_S = 10.0  # beyond the time limit, which the parent enforces unless it is gone


def main(max_memory_bytes: int, timeout_s: float) -> None:
    """Serves until the parent closes its end, or memory that does not come back makes a fresh process better."""
    answers = _Answers()
    sys.excepthook = answers.last_words
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    space = confine(max_memory_bytes)
    alarm_s = timeout_s + _GRACE_S
    while isinstance(message := read_frame(0), dict):
        answers.send(pack({"taken": True}))
        sound = True
        if message:
            file, options = unpack_request(message)
            _load_libraries(file, space)
            sound = _serve(file, options, answers, alarm_s)
        answers.send(pack({"end": True}))
        if not sound or not space.fit():
            return


def _load_libraries(file: SourceFile, space: AddressSpace) -> None:
    """Loads what few files need, before it could be counted as memory of this one."""
    library = _LATE_LIBRARIES.get(PurePath(file.name).suffix.lower())
    if library and library not in sys.modules:
        with suppress(ImportError):  # an extra that is not installed; the parser says so
            import_module(library)
        space.fit()


def _serve(file: SourceFile, options: ParseOptions, answers: _Answers, alarm_s: float) -> bool:
    """Parses one file; False when the process is not fit for another."""
    failure: ParseFailure | None = None
    signal.setitimer(signal.ITIMER_REAL, alarm_s)
    try:
        for item in parse_file(file, options):
            frame = pack(pack_item(item))
            signal.setitimer(signal.ITIMER_REAL, 0)  # waiting for the reader is not the parser's fault
            answers.send(frame)
            signal.setitimer(signal.ITIMER_REAL, alarm_s)
    except MemoryError:
        failure = ParseFailure(file.name, file.uri, "takes more memory to parse than is allowed", "memory")
    except RecursionError:
        failure = ParseFailure(file.name, file.uri, "nests too deep to be parsed", "bomb")
    signal.setitimer(signal.ITIMER_REAL, 0)
    if failure:  # sent from here, where the frames that hold the memory are gone
        answers.send(pack(pack_item(failure)))
    return failure is None


class _Answers:
    """The pipe to the parent. What libraries print goes nowhere, so that it cannot garble the frames."""

    def __init__(self) -> None:
        self._pipe = os.dup(1)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)

    def send(self, frame: bytes) -> None:
        """Writes a frame; leaves when nobody reads any more."""
        try:
            write_all(self._pipe, frame)
        except BrokenPipeError:
            os._exit(0)

    def last_words(self, kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
        """Says which exception ends the process."""
        with suppress(OSError):
            write_all(self._pipe, pack({"broken": f"{kind.__name__}: {error}"[:500]}))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
