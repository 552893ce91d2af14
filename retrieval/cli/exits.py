"""Exit codes, and how errors end a command: one sentence on standard error, never a traceback.

CommandError
├── WrongUse          the command line or the configuration asks for what cannot be; exit code 2
├── WorkFailed        the work, or a part of it, failed; exit code 1
├── WorkWaits         the work stopped before its end, and asks; exit code 3
├── NoServer          no server answers at the address; exit code 1
└── ImportBroken      the server went away in the middle of an import; exit code 1
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from grpc.aio import AioRpcError


class Exit(enum.IntEnum):
    """What the exit code of a command means."""

    OK = 0
    FAILED = 1  # the work, or a part of it, such as one bad file of many
    USAGE = 2  # the command line or the configuration
    WAITING = 3  # for a person to agree
    INTERRUPTED = 130  # by Ctrl-C


class CommandError(Exception):
    """Anything that a command raises on purpose."""

    code = Exit.FAILED


class WrongUse(CommandError):
    """The command line or the configuration asks for what cannot be."""

    code = Exit.USAGE


class WorkFailed(CommandError):
    """The work, or a part of it, failed."""


class WorkWaits(CommandError):
    """The work stopped before its end, and asks a person to agree."""

    code = Exit.WAITING


class NoServer(CommandError):
    """No server answers at the address."""

    def __init__(self, address: str) -> None:
        super().__init__(f"no server answers at {address}; start one with `headrace serve`, or name it with --server")
        self.address = address


class ImportBroken(CommandError):
    """The server went away in the middle of an import."""

    def __init__(self) -> None:
        super().__init__(
            "the import broke off, since the server went away; what it acknowledged is kept: start it again, and the "
            "same command goes on from there, since unchanged documents cost nothing"
        )


@contextmanager
def one_sentence() -> Iterator[None]:
    """Ends the command with the right exit code when one of our errors, or grpc's, comes out of the block."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(Exit.INTERRUPTED) from None
    except BrokenPipeError:
        raise  # whoever read has left, as `head` does; Typer ends quietly
    except _expected() as error:
        code, sentence = _describe(error)
        sys.stderr.write(f"headrace: {sentence}\n")
        raise typer.Exit(code) from None


def _expected() -> tuple[type[Exception], ...]:
    """Imports the error trees; evaluated only when something was raised, so that commands start fast."""
    import grpc

    from encoders.errors import EncoderError
    from indexers.errors import IndexerError
    from rerank.errors import RerankError
    from retrieval.errors import RetrievalError

    return CommandError, RetrievalError, IndexerError, EncoderError, RerankError, grpc.RpcError, OSError


def _describe(error: Exception) -> tuple[Exit, str]:
    import grpc.aio

    from indexers.errors import InvalidInput, InvalidJob
    from retrieval.errors import ConfigError, InvalidRequest

    if isinstance(error, CommandError):
        return error.code, str(error)
    if isinstance(error, InvalidJob):
        return Exit.USAGE, "\n".join(error.faults)
    if isinstance(error, ConfigError | InvalidRequest | InvalidInput):
        return Exit.USAGE, str(error)
    if isinstance(error, grpc.aio.AioRpcError):
        return _describe_status(error)
    return Exit.FAILED, str(error) or type(error).__name__


def _describe_status(error: AioRpcError) -> tuple[Exit, str]:
    import grpc

    from retrieval.client import error_info

    info = error_info(error)
    reason = info.reason if info else error.code().name
    code = Exit.USAGE if error.code() is grpc.StatusCode.INVALID_ARGUMENT else Exit.FAILED
    return code, f"{error.details() or 'the call failed'} ({reason})"
