"""Builds the settings tree from its three sources, and remembers where each value came from.

The sources are `headrace.toml`, `HEADRACE_SECTION__NAME` variables and flags, each stronger than the one before. A key
that the tree does not know is an error in all of them. pydantic-settings would merge the same sources, but says of no
value where it came from and passes over variables that it does not know. Only the entry point reads the environment.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from retrieval.errors import ConfigError
from retrieval.settings.tree import Settings

PREFIX = "HEADRACE_"
DEFAULT_FILE = Path("headrace.toml")


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings, and the origin of each value that is not a default: path to `file`, `environment` or `flag`."""

    settings: Settings
    origins: Mapping[str, str]
    file: Path | None


def load_settings(file: Path | None, environ: Mapping[str, str], flags: Mapping[str, Any]) -> Loaded:
    """Returns the resolved settings. `file` None takes `headrace.toml` when it is there; flags are paths to values.

    Raises:
        ConfigError: lists every fault; nothing is applied.
    """
    path = file or (DEFAULT_FILE if DEFAULT_FILE.exists() else None)
    tree: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for origin, values in (
        ("file", _read_file(path)),
        ("environment", _read_environment(environ)),
        ("flag", dict(flags)),
    ):
        for name, value in values.items():
            _place(tree, name, value)
            if value != {}:
                origins[name] = origin
    _anchor_folder(tree, origins, path)
    try:
        return Loaded(Settings.model_validate(tree), origins, path)
    except ValidationError as error:
        raise ConfigError(tuple(faults_of(error, origins))) from error


def leaves(section: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any, bool]]:
    """Yields every setting as path, value and whether it can be reloaded; lists count as one value."""
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            extra = field.json_schema_extra
            yield f"{prefix}{name}", value, isinstance(extra, dict) and bool(extra.get("reloadable"))


def _read_file(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        return dict(_flatten(tomllib.loads(path.read_text(encoding="utf-8"))))
    except FileNotFoundError as error:
        raise ConfigError((f"{path}: no such file",)) from error
    except OSError as error:
        raise ConfigError((f"{path}: {error.strerror}",)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError((f"{path}: {error}",)) from error


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, Mapping) and value:  # an empty section sets nothing, but its name is checked
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _read_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    known = {path: value for path, value, _ in leaves(Settings())}
    values: dict[str, Any] = {}
    faults = []
    for variable in sorted(environ):
        if not variable.startswith(PREFIX):
            continue
        path = variable.removeprefix(PREFIX).lower().replace("__", ".")
        if path not in known:
            faults.append(f"variable {variable}: there is no setting {path!r}")
        else:
            values[path] = _decode(environ[variable], known[path])
    if faults:
        raise ConfigError(tuple(faults))
    return values


def _decode(text: str, default: Any) -> Any:
    """Lists are given as JSON; everything else as it is, since the tree converts text."""
    if not isinstance(default, tuple):
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _place(tree: dict[str, Any], path: str, value: Any) -> None:
    *sections, name = path.split(".")
    for section in sections:
        inner = tree.setdefault(section, {})
        if not isinstance(inner, dict):
            raise ConfigError((f"{path}: {section!r} is a value, not a section",))
        tree = inner
    tree[name] = value


def _anchor_folder(tree: dict[str, Any], origins: Mapping[str, str], file: Path | None) -> None:
    """A relative data folder that a file names is relative to that file, wherever the command is run."""
    if file is not None and origins.get("data.folder") == "file" and isinstance(tree["data"]["folder"], str):
        tree["data"]["folder"] = str(file.parent / tree["data"]["folder"])


def faults_of(error: ValidationError, origins: Mapping[str, str]) -> Iterator[str]:
    """Yields a line for each fault: the setting, what is wrong, and where it came from."""
    for fault in error.errors(include_url=False, include_input=False):
        path = ".".join(str(part) for part in fault["loc"]) or "settings"
        message = (
            "there is no such setting"
            if fault["type"] == "extra_forbidden"
            else fault["msg"].removeprefix("Value error, ")
        )
        origin = origins.get(path)
        yield f"{path}: {message}" + (f" (from {origin})" if origin else "")
