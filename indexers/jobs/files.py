"""Reads job files: TOML into a `JobSpec`, with every fault in it named by file, line and key.

A fault reads `jobs/handbook.toml:12: source.includ: there is no such key; did you mean 'include'?`. Values are never
part of it, since one may be a password that does not belong there.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from indexers.errors import InvalidJob
from indexers.jobs.file_faults import Fault, faults_of
from indexers.jobs.secrets_in_text import credentials_in
from indexers.jobs.spec import JobSpec
from indexers.jobs.toml_lines import Path, lines_of
from indexers.jobs.toml_text import spec_to_toml
from indexers.jobs.when import schedule_faults

__all__ = ["load_job", "parse_job", "spec_to_toml"]

MAX_BYTES = 1024 * 1024
_PLACE = re.compile(r" \(at line (\d+), column \d+\)$")
_NO_NAME = re.compile(r"[^a-z0-9_-]+")


def load_job(path: FilePath) -> tuple[JobSpec, str]:
    """Returns the job of a file, and the folder that relative paths in it start from.

    Raises:
        InvalidJob: the file cannot be read, or lists every fault of it.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise InvalidJob((f"{path}: is larger than {MAX_BYTES} bytes, which no job file needs",))
        text = content.decode("utf-8")
    except OSError as error:
        raise InvalidJob((f"{path}: cannot be read: {error.strerror}",)) from error
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidJob((f"{path}:{line}: is no valid UTF-8; save the file as UTF-8",)) from error
    return parse_job(text, name_of(path), str(path)), str(path.resolve().parent)


def parse_job(text: str, name: str, where: str) -> JobSpec:
    """Returns the job that the text declares; `name` is its name when it says none, `where` what faults begin with.

    Raises:
        InvalidJob: lists every fault.
    """
    text = text.removeprefix("\ufeff")
    if len(text) > MAX_BYTES:
        raise InvalidJob((f"{where}: is longer than {MAX_BYTES} characters, which no job file needs",))
    try:
        tree = tomllib.loads(text)
        if not tree.get("name"):
            tree["name"] = name
        return _checked(tree, lines_of(text), where)
    except tomllib.TOMLDecodeError as error:
        raise InvalidJob((_syntax_fault(error, text, where),)) from error
    except RecursionError:
        raise InvalidJob((f"{where}: nests too deep for a job file",)) from None


def name_of(path: FilePath) -> str:
    """Returns the job's name when the file says none: the file's own, in the characters that names may have."""
    return _NO_NAME.sub("-", path.stem.lower()).strip("-_")[:63]


def _checked(tree: dict[str, Any], lines: dict[Path, int] | Any, where: str) -> JobSpec:
    faults: list[Fault] = list(credentials_in(tree))
    spec: JobSpec | None = None
    try:
        spec = JobSpec.model_validate(tree)
    except ValidationError as error:
        faults += faults_of(error, tree)
    else:
        faults += (Fault(("schedule", key), message) for key, message in schedule_faults(spec.schedule))
    if faults or spec is None:
        raise InvalidJob(tuple(_in_order(faults, lines, where)))
    return spec


def _in_order(faults: list[Fault], lines: Any, where: str) -> list[str]:
    placed = sorted({(_line(fault.path, lines), fault.path_text, fault.message) for fault in faults})
    return [
        f"{where}:{line}: {key}: {message}" if key else f"{where}:{line}: {message}" for line, key, message in placed
    ]


def _line(path: Path, lines: Any) -> int:
    """Returns the line of the key, or of what it should stand in."""
    for end in range(len(path), 0, -1):
        if path[:end] in lines:
            return int(lines[path[:end]])
    return 1


def _syntax_fault(error: tomllib.TOMLDecodeError, text: str, where: str) -> str:
    message = str(error)
    found = _PLACE.search(message)
    line = int(found[1]) if found else text.count("\n") + 1
    said = _PLACE.sub("", message).removesuffix(" (at end of document)")
    return f"{where}:{line}: is no valid TOML: {said[:1].lower()}{said[1:]}"
