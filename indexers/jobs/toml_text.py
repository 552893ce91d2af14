"""Writes a job as TOML: only what differs from the defaults, so that people see what was chosen."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from indexers.jobs.spec import JobSpec

Value: TypeAlias = "str | int | float | bool | Sequence[Value] | Mapping[str, Value]"


def spec_to_toml(spec: JobSpec) -> str:
    """Returns the job as a file that reads back as the same job."""
    tree = spec.model_dump(exclude_defaults=True, exclude_none=True, mode="json")
    return "\n".join(_table((), tree)).lstrip("\n") + "\n"


def _table(path: tuple[str, ...], table: Mapping[str, Value]) -> Iterator[str]:
    inner: list[tuple[str, Value]] = []
    for name, value in table.items():
        if isinstance(value, Mapping) or _is_tables(value):
            inner.append((name, value))
        else:
            yield f"{_key(name)} = {_inline(value)}"
    for name, value in inner:
        below = (*path, name)
        dotted = ".".join(_key(part) for part in below)
        if isinstance(value, Mapping):
            yield from ("", f"[{dotted}]", *_table(below, value))
        elif isinstance(value, Sequence) and not isinstance(value, str):
            for one in value:
                if isinstance(one, Mapping):
                    yield from ("", f"[[{dotted}]]", *_table(below, one))


def _is_tables(value: Value) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(one, Mapping) for one in value)


def _key(name: str) -> str:
    plain = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if plain else _string(name)


def _inline(value: Value) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(name)} = {_inline(one)}" for name, one in value.items()) + "}"
    return "[" + ", ".join(_inline(one) for one in value) + "]"


def _string(text: str) -> str:
    # JSON escapes what TOML does, except for one character.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
