"""What a run leaves behind: a report for people and programs. Lists in it are bounded, counts are not.

The runner fills a `RunReport` at the end of a run; it is kept as JSON with the run, and `report_html.py` draws it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

LISTED = 1_000
"""Entries that a list of a report has at most."""

POINTS = 500
"""Points that the course of a run has at most."""

SLOWEST = 20
"""Items that are listed as the slowest."""

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class ReportedFailure:
    """Something that gave no document, or whose document could not be stored."""

    name: str
    kind: str
    reason: str
    document_id: str = ""  # empty when the whole item failed
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Noted:
    """A file or document, and what a person should know about it."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class NearDuplicate:
    """A document that says nearly what another one says."""

    document_id: str
    of: str
    similarity: float  # estimated Jaccard similarity of word shingles, 0 to 1


@dataclass(frozen=True, slots=True)
class SpeedPoint:
    """How far the run was at a moment; figures since its start."""

    seconds: float
    documents: int
    chunks: int
    tokens: int
    resident_bytes: int = 0  # of the process that led the run; 0 when unknown


@dataclass(frozen=True, slots=True)
class SlowItem:
    """An item that took long."""

    name: str
    seconds: float
    documents: int


@dataclass(frozen=True, slots=True)
class EnrichmentUse:
    """What one enrichment step did and took."""

    step: str
    calls: int
    remembered: int  # results of earlier runs that were taken again
    tokens: int
    cost: float
    failed: int
    left_out: int  # documents or chunks without a result, since the budget was used up


@dataclass(frozen=True, slots=True)
class RunReport:
    """A run that has ended."""

    job: str
    run_id: str
    collection: str
    source: str  # its kind
    state: str
    reason: str
    asked_by: str
    started_at: str  # ISO 8601
    ended_at: str
    seconds: float
    items: Mapping[str, int]  # by state
    documents: Mapping[str, int]  # by state
    chunks: int
    tokens: int
    failures_by_kind: Mapping[str, int]
    failures: tuple[ReportedFailure, ...] = ()
    skips: tuple[Noted, ...] = ()
    warnings: tuple[Noted, ...] = ()
    deleted: tuple[str, ...] = ()  # document ids
    chunk_lengths: Mapping[int, int] = field(default_factory=dict)  # tokens at most, and chunks of that class
    course: tuple[SpeedPoint, ...] = ()
    duplicates: tuple[NearDuplicate, ...] = ()
    duplicate_count: int = 0
    languages: Mapping[str, int] = field(default_factory=dict)  # documents
    slowest: tuple[SlowItem, ...] = ()
    enrichments: tuple[EnrichmentUse, ...] = ()


def report_to_json(report: RunReport) -> str:
    """Returns the report as one JSON object."""
    return json.dumps({"format": _FORMAT, **asdict(report)}, ensure_ascii=False, allow_nan=False)


def report_from_json(text: str) -> RunReport:
    """Returns the report; keys that a later version may have added are passed over.

    Raises:
        ValueError: the text is no report.
    """
    tree = json.loads(text)
    if not isinstance(tree, dict) or "run_id" not in tree:
        raise ValueError("the text is no report of a run")
    known = {one.name for one in fields(RunReport)}
    values = {name: value for name, value in tree.items() if name in known}
    for name, part in _PARTS.items():
        values[name] = tuple(_part(part, one) for one in values.get(name, ()))
    values["deleted"] = tuple(values.get("deleted", ()))
    values["chunk_lengths"] = {int(limit): count for limit, count in values.get("chunk_lengths", {}).items()}
    try:
        return RunReport(**values)
    except TypeError as error:
        raise ValueError(f"the text is no report of a run: {error}") from None


_PARTS: Mapping[str, type] = {
    "failures": ReportedFailure,
    "skips": Noted,
    "warnings": Noted,
    "course": SpeedPoint,
    "duplicates": NearDuplicate,
    "slowest": SlowItem,
    "enrichments": EnrichmentUse,
}


def _part(part: type, values: Mapping[str, Any]) -> Any:
    known = {one.name for one in fields(part)}
    return part(**{name: value for name, value in values.items() if name in known})
