"""The parent's side of one child process: starts it, asks it, waits for it no longer than allowed, ends it.

Used by one thread at a time, but for `kill`, which any thread may call.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from indexers.errors import SourceUnavailable
from indexers.parsing.options import ParseOptions, SourceFile
from indexers.parsing.parsed import SourceItem
from indexers.sandbox.frames import HEAD, Json, pack, unpack
from indexers.sandbox.limits import SandboxLimits
from indexers.sandbox.messages import longest_answer_bytes, pack_request, unpack_item

_PROGRAM = (sys.executable, "-P", "-m", "indexers.sandbox.child")
_BLOCK = 256 * 1024
_SMALL_BYTES = 1024
_ROOT = Path(__file__).parents[2]  # where the package `indexers` is found
_REAPED_WITHIN_S = 5.0


class ChildLost(Exception):
    """The child is gone and the file with it; `kind` and `reason` are those of the failure."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason


class Child:
    """One place in the pool; the process in it is replaced when it ends."""

    def __init__(self, limits: SandboxLimits, folder: Path, program: Sequence[str] = _PROGRAM) -> None:
        self._limits = limits
        self._folder = folder
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._read = bytearray()
        self._busy = False
        self._stopped = False

    @property
    def pid(self) -> int:
        """The process's number; 0 when none is running."""
        return self._process.pid if self._process else 0

    def start(self) -> None:
        """Starts a process unless there is one; does not wait until it is ready.

        Raises:
            SourceUnavailable: the machine does not give us one.
        """
        if self._process:
            return
        if self._stopped:
            raise SourceUnavailable("parser", "parsing was stopped")
        limits = self._limits
        try:
            self._process = subprocess.Popen(  # noqa: S603  # our own program
                [*self._program, str(limits.max_memory_bytes), str(limits.timeout_s)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd=self._folder,
                env=_environment(self._folder),
                start_new_session=True,
            )
        except OSError as error:
            raise SourceUnavailable("parser", f"no process can be started: {error.strerror or error}") from error
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)

    def greet(self) -> None:
        """Waits until the process is ready for files.

        Raises:
            SourceUnavailable: it does not get there.
        """
        self._ask({}, "parser")
        try:
            self._answer(self._limits.start_timeout_s, _SMALL_BYTES)
        except ChildLost as lost:
            raise SourceUnavailable("parser", lost.reason) from lost
        self._busy = False

    def parse(self, file: SourceFile, options: ParseOptions) -> Iterator[SourceItem]:
        """Yields what the process makes of a file.

        Raises:
            ChildLost: it did not come to an end; no process is left here.
            SourceUnavailable: no process can be started.
        """
        self._ask(pack_request(file, options), file.name)
        longest = longest_answer_bytes(options)
        while "end" not in (answer := self._answer(self._limits.timeout_s, longest)):
            try:
                item = unpack_item(answer, file)
            except ValueError as error:
                raise self._lost("crashed", f"made its parser give {error}; it is not to be trusted") from error
            yield item
        self._busy = False

    def settle(self) -> None:
        """Ends a process that was left in the middle of a file; the next one starts while nobody waits for it yet."""
        if self._busy:
            self.end()
        with suppress(SourceUnavailable):
            self.start()

    def kill(self) -> None:
        """Stops the process at once and for good; whoever waits for it sees its end."""
        self._stopped = True
        process = self._process
        if process and process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    def end(self) -> int | None:
        """Stops the process and forgets it; returns its exit code, negative for a signal, None when it is not known."""
        process, self._process = self._process, None
        self._read.clear()
        self._busy = False
        if process is None:
            return None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.stdout.close()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        # A process that hangs in the kernel outlives even that; it is left to it.
        with suppress(subprocess.TimeoutExpired):
            process.wait(_REAPED_WITHIN_S)
        return process.returncode

    def _ask(self, request: Json, name: str) -> None:
        """Sends a request to a process that takes it; one that died since the last file is replaced."""
        for _ in range(2):
            self.start()
            self._busy = True
            try:
                self._send(pack(request))
                self._answer(self._limits.start_timeout_s, _SMALL_BYTES)
            except (ChildLost, BrokenPipeError):
                self.end()
            else:
                return
        raise SourceUnavailable(name, "no parser process can be started; try `python -m indexers.sandbox.child 1 1`")

    def _send(self, frame: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        pipe = self._process.stdin.fileno()
        deadline = time.monotonic() + self._limits.start_timeout_s
        rest = memoryview(frame)
        while rest:
            self._await(pipe, select.POLLOUT, deadline)
            with suppress(BlockingIOError):
                rest = rest[os.write(pipe, rest) :]

    def _answer(self, timeout_s: float, longest: int) -> dict[str, Json]:
        """Returns the next answer.

        Raises:
            ChildLost: there is none in time, or none that can be trusted.
        """
        deadline = time.monotonic() + timeout_s
        self._fill(HEAD.size, deadline)
        size = HEAD.unpack_from(self._read)[0]
        if size > longest:
            raise self._lost("too_large", f"gives a document of more than {longest} bytes; split it")
        self._fill(HEAD.size + size, deadline)
        body = self._read[HEAD.size : HEAD.size + size]
        del self._read[: HEAD.size + size]
        try:
            answer = unpack(body)
        except ValueError as error:
            raise self._lost("crashed", "made its parser answer what is no JSON; it is not to be trusted") from error
        if not isinstance(answer, dict):
            raise self._lost("crashed", "made its parser answer in no way that is known; it is not to be trusted")
        if "broken" in answer:
            raise self._lost("crashed", f"made its parser stop with {str(answer['broken'])[:500]}")
        return answer

    def _fill(self, size: int, deadline: float) -> None:
        """Reads until so many bytes are there."""
        assert self._process is not None
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        while len(self._read) < size:
            self._await(pipe, select.POLLIN, deadline)
            with suppress(BlockingIOError):
                block = os.read(pipe, _BLOCK)
                if not block:
                    raise self._died()
                self._read += block

    def _await(self, pipe: int, event: int, deadline: float) -> None:
        waiting = select.poll()
        waiting.register(pipe, event)
        if not waiting.poll(max(0.0, deadline - time.monotonic()) * 1000.0):
            seconds = f"{self._limits.timeout_s:g}"
            raise self._lost("timeout", f"takes longer than {seconds} s to parse; split it or raise the limit")

    def _lost(self, kind: str, reason: str) -> ChildLost:
        self.end()
        return ChildLost(kind, reason)

    def _died(self) -> ChildLost:
        code = self.end()
        if code == -signal.SIGALRM:
            return ChildLost("timeout", f"takes longer than {self._limits.timeout_s:g} s to parse")
        if code is None or code >= 0:
            return ChildLost("crashed", f"ended its parser (exit code {code}); it is damaged or hostile")
        name = signal.Signals(-code).name if -code in signal.valid_signals() else str(-code)
        return ChildLost("crashed", f"ended its parser by {name}: it is damaged, hostile or too large for the limit")


def _environment(folder: Path) -> dict[str, str]:
    """Returns all that the child gets to know of ours: where its code is, and nothing that could be a credential."""
    return {
        "PYTHONPATH": os.pathsep.join([str(_ROOT), *(entry for entry in sys.path if entry)]),
        "PYTHONUTF8": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "LC_ALL": "C.UTF-8",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "OMP_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "1",  # or each thread reserves address space of its own
        "ARROW_DEFAULT_MEMORY_POOL": "system",  # the others reserve address space by the gigabyte
    }
