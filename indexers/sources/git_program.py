"""The `git` program, kept on a short lead: no configuration of users, no prompts, no hooks, a deadline, bounded files.

The program and not a library in this process: it streams large files instead of holding them, can be ended when it
takes too long, and a hostile pack costs its memory, not ours. Secrets reach it in its environment, never in arguments.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from indexers.errors import JobError, SourceUnavailable

_OLDEST = (2, 37)  # brings http.curloptResolve, which pins addresses, and cat-file --batch-command
_MAX_FILE_BLOCKS = 32 * 1024**3 // 512  # of the files that it writes, in the unit of `ulimit -f`
_MAX_REASON = 300
_KEPT = ("PATH", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "TMPDIR")
_SETTINGS = {
    "core.bigFileThreshold": "16m",  # larger files are streamed
    "core.hooksPath": "/dev/null",
    "gc.autoDetach": "false",
    "gc.pruneExpire": "1.day.ago",
    "http.followRedirects": "false",  # another address would have to be checked; also turns alternates off
    "protocol.version": "2",
}


class GitProgram:
    """Runs `git` in one folder of Git's."""

    def __init__(
        self, folder: Path, settings: Mapping[str, str], environment: Mapping[str, str], secrets: Sequence[str] = ()
    ) -> None:
        """`settings` are of its configuration, `secrets` are taken out of what it says."""
        self._folder = folder
        self._secrets = [secret for secret in secrets if secret]
        self._environment = {
            **{name: os.environ[name] for name in _KEPT if name in os.environ},
            "HOME": "/nonexistent",
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_ALLOW_PROTOCOL": "none",
            **_configuration({**_SETTINGS, **settings}),
            **environment,
        }

    def run(self, arguments: Sequence[str], name: str, timeout_s: float) -> bytes:
        """Runs to the end and returns what it printed, which must be little.

        Raises:
            SourceUnavailable: it failed, or took too long; with its own reason.
        """
        with self.started(arguments, name) as child:
            try:
                printed, _ = child.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                raise SourceUnavailable(name, f"took longer than {timeout_s:g} s") from None
        return bytes(printed)

    @contextmanager
    def started(self, arguments: Sequence[str], name: str) -> Iterator[subprocess.Popen[bytes]]:
        """Runs while the block runs, with pipes to talk to it.

        Raises:
            SourceUnavailable: it failed; with its own reason.
        """
        limited = ["sh", "-c", f'ulimit -f {_MAX_FILE_BLOCKS}; exec git "$@"', "git", f"--git-dir={self._folder}"]
        with tempfile.TemporaryFile() as said:
            child = subprocess.Popen(  # noqa: S603
                [*limited, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                env=self._environment,
                start_new_session=True,  # it starts others, which end with it
            )
            try:
                yield child
                assert child.stdin is not None
                child.stdin.close()
                code = child.wait()
            finally:
                _end(child)
            if code:
                raise SourceUnavailable(name, self._reason(said.fileno()) or f"git ended with {code}")

    def _reason(self, said: int) -> str:
        size = os.fstat(said).st_size
        text = os.pread(said, 4_000, max(0, size - 4_000)).decode("utf-8", "replace")
        lines = [line.strip() for line in text.splitlines() if line.startswith(("fatal:", "error:"))]
        reason = (lines[-1] if lines else " ".join(text.split()))[:_MAX_REASON]
        for secret in self._secrets:
            reason = reason.replace(secret, "***")
        return reason


def require_git() -> None:
    """Checks that the program is there.

    Raises:
        JobError: it is not, or is too old.
    """
    if shutil.which("git") is None:
        raise JobError("a source of kind `git` needs the program `git`, which is not installed")
    said = subprocess.run(["git", "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S607
    found = re.search(r"(\d+)\.(\d+)", said)
    if found is None or (int(found[1]), int(found[2])) < _OLDEST:
        raise JobError(f"a source of kind `git` needs git {_OLDEST[0]}.{_OLDEST[1]} or later, this is {said.strip()!r}")


def _configuration(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns settings as the variables by which git takes them."""
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ends a program that still runs, with those that it has started."""
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                continue
