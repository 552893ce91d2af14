"""What is wrong with a job file, in words: pydantic's errors as sentences that name the key and say what to do."""

from __future__ import annotations

import difflib
import re
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from indexers.jobs.spec import JobSpec
from indexers.jobs.toml_lines import Path
from indexers.sources.spec import FilesSource, FolderSource, GitSource, SiteSource, SqlSource
from indexers.spec_part import NAME, Part

SOURCES: Mapping[str, type[Part]] = {
    "folder": FolderSource,
    "files": FilesSource,
    "site": SiteSource,
    "git": GitSource,
    "sql": SqlSource,
}
"""The kinds of sources, and what each can be told."""

_SECRET_KEY = re.compile(r"pass|secret|token|api_?key|credential", re.IGNORECASE)
_NAMES = "1 to 63 of a-z, 0-9, '-' and '_', beginning with a letter or digit"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong, and the key that it is about."""

    path: Path
    message: str

    @property
    def path_text(self) -> str:
        """The key as people write it: `enrich[0].task`."""
        text = ""
        for part in self.path:
            text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
        return text


def faults_of(error: ValidationError, tree: Any) -> Iterator[Fault]:
    """Yields what pydantic found, once a key."""
    seen: set[Path] = set()
    for fault in error.errors(include_url=False, include_input=False):
        path = _written(tuple(fault["loc"]), fault["type"], tree)
        if fault["type"].startswith("union_tag"):
            path = (*path, "kind")
        if path not in seen:
            seen.add(path)
            yield Fault(path, _message(fault, path, tree))


def _message(fault: Any, path: Path, tree: Any) -> str:
    kind, context = fault["type"], fault.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown(path, tree)
    if kind == "missing":
        return "is missing; give it a value"
    if kind.startswith("union_tag"):
        return f"must say what kind of source it is: {', '.join(SOURCES)}"
    if kind == "string_pattern_mismatch":
        return _pattern(path, str(context.get("pattern", "")))
    said = str(fault["msg"]).removeprefix("Value error, ").removeprefix("Input ")
    said = re.sub(r"^[A-Z][a-z]+ should", "should", said)
    if kind == "literal_error":
        return f"must be {context['expected']}"
    return said.replace("valid list", "list").replace("valid tuple", "list")


def _pattern(path: Path, pattern: str) -> str:
    last = str(path[-1]) if path else ""
    if last.endswith("_ref") or "header_refs" in path:
        return "must be env:NAME or file:/path, which say where the secret is found; the secret itself is never here"
    if pattern == NAME or last == "policy_class":
        return f"must be {_NAMES}"
    if last == "url":
        return "must begin with a scheme, as in s3://bucket/folder; for files on this machine take kind = 'folder'"
    return f"must match {pattern}"


def _unknown(path: Path, tree: Any) -> str:
    name, known = str(path[-1]), _known(path[:-1], tree)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if _SECRET_KEY.search(name):
        near = [key for key in known if key.endswith(("_ref", "_refs"))][:1]
        advice = "; credentials are never in a job file, keys that end in _ref say where they are found"
    else:
        advice = ""
    guess = f" (did you mean {near[0]!r}?)" if near else ""
    return f"there is no such key{guess}{advice}; known keys: {', '.join(known)}"


def _known(path: Path, tree: Any) -> list[str]:
    """Returns the keys that the table at the path may have."""
    part: Any = JobSpec
    for step, key in enumerate(path):
        if isinstance(key, int):
            continue
        if key == "source" and step == 0:
            part = SOURCES[str(_at(tree, ("source", "kind")))]
        else:
            part = _part_of(part.model_fields[key].annotation)
    return list(part.model_fields)


def _part_of(annotation: Any) -> type[BaseModel]:
    """Returns the part that an annotation holds, alone or as a tuple of them."""
    if isinstance(annotation, type):
        return annotation
    return next(_part_of(one) for one in typing.get_args(annotation) if one is not Ellipsis)


def _written(location: tuple[str | int, ...], kind: str, tree: Any) -> Path:
    """Returns the location as the file has it: without the names of union members that pydantic puts between."""
    if location[:1] == ("source",) and len(location) > 1 and location[1] in SOURCES:
        location = (location[0], *location[2:])
    if kind in {"missing", "extra_forbidden"}:
        return location
    end = len(location)
    while end and _at(tree, location[:end]) is _ABSENT:
        end -= 1
    return location[:end]


_ABSENT = object()


def _at(tree: Any, path: Path) -> Any:
    for key in path:
        try:
            tree = tree[key]
        except (KeyError, IndexError, TypeError):
            return _ABSENT
    return tree
