"""Tries a job's source: opens it and lists what comes first."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from indexers.jobs.spec import JobSpec


def first_items(spec: JobSpec, base_folder: str, most: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns the first items of the source, and what could not be listed, or is left out, before them.

    Raises:
        SourceUnavailable, ItemUnreadable: the source cannot be reached, or may not be read.
    """
    from indexers.parsing.parsed import ParseFailure, SkippedFile
    from indexers.sources.access import SourceAccess
    from indexers.sources.open import open_source

    items: list[dict[str, Any]] = []
    problems: list[dict[str, Any]] = []
    with (
        tempfile.TemporaryDirectory() as scratch,
        closing(open_source(spec.source, Path(base_folder), SourceAccess(), Path(scratch))) as source,
    ):
        for found in source.scan():
            if isinstance(found, ParseFailure | SkippedFile):
                problems.append({"name": found.path, "reason": found.reason})
            else:
                items.append({"name": found.name, "uri": found.uri, "size_bytes": found.size_bytes})
            if len(items) >= most or len(problems) >= most:
                break
    return items, problems
