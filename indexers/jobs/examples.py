"""Commented job files, one for each kind of source, made from the documentation of the keys themselves."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from indexers.jobs.file_faults import SOURCES
from indexers.jobs.spec import (
    ChunkingSpec,
    EnrichmentSpec,
    JobSpec,
    LimitsSpec,
    MetadataSpec,
    ParsingSpec,
    ScheduleSpec,
)
from indexers.spec_part import Part

_WIDTH = 100
_VALUES: Mapping[str, Mapping[str, Any]] = {
    "folder": {"path": "../docs", "include": ["**/*.md", "**/*.pdf"]},
    "files": {"url": "s3://company-docs/handbook", "username": "access-key-id", "password_ref": "env:S3_SECRET"},
    "site": {"start": ["https://docs.example.com/sitemap.xml"]},
    "git": {"url": "https://git.example.com/team/handbook.git", "ref": "main", "include": ["docs/**/*.md"]},
    "sql": {
        "url": "postgresql+psycopg://reader@db.example.com/wiki",
        "password_ref": "env:WIKI_PASSWORD",
        "query": "SELECT id, title, text, updated_at FROM pages",
        "title_column": "title",
        "watermark_column": "updated_at",
    },
}
_SECTIONS: Mapping[str, type[Part]] = {
    "parsing": ParsingSpec,
    "chunking": ChunkingSpec,
    "metadata": MetadataSpec,
    "schedule": ScheduleSpec,
    "limits": LimitsSpec,
}
_WITHOUT_DEFAULT: Mapping[str, Any] = {"keep": ["author", "year"]}
_ENRICH: Mapping[str, Any] = {"name": "topics", "task": "labels", "labels": ["billing", "security", "setup"]}


def example_toml(kind: str) -> str:
    """Returns a job file for a kind of source: what it needs is set, everything else is a comment with its default."""
    return "\n".join(_lines(kind)) + "\n"


def _lines(kind: str) -> Iterator[str]:
    top = {"name": f"{kind}-example", "collection": "handbook", "description": "What our colleagues ask for."}
    yield from _part(JobSpec, top, skip=("source", "enrich", *_SECTIONS))
    yield ""
    yield from _comment(_summary(SOURCES[kind]))
    yield "[source]"
    yield from _part(SOURCES[kind], {"kind": kind, **_VALUES[kind]})
    for name, part in _SECTIONS.items():
        yield ""
        yield from _comment(_summary(part))
        yield f"[{name}]"
        yield from _part(part, {})
    yield ""
    yield from _comment(_summary(EnrichmentSpec))
    yield "# [[enrich]]"
    for line in _part(EnrichmentSpec, _ENRICH):
        yield line if line.startswith("#") else f"# {line}"


def _part(part: type[Part], values: Mapping[str, Any], skip: tuple[str, ...] = ()) -> Iterator[str]:
    for name, field in part.model_fields.items():
        if name in skip:
            continue
        yield from _comment(field.description or "")
        if name in values:
            yield f"{name} = {_text(values[name])}"
        else:
            yield f"# {name} = {_default(name, field)}"


def _summary(part: type[Part]) -> str:
    return (part.__doc__ or "").strip()


def _comment(text: str) -> Iterator[str]:
    for line in textwrap.wrap(" ".join(text.replace("`", "").split()), _WIDTH):
        yield f"# {line}"


def _default(name: str, field: FieldInfo) -> str:
    default = field.default
    known = default is not None and default is not PydanticUndefined
    return _text(default if known else _WITHOUT_DEFAULT.get(name, ""))


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} = {_text(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
