"""The examples of the users' page of sources are job files that are taken."""

from __future__ import annotations

import re
from pathlib import Path

from indexers.jobs.files import parse_job

PAGE = Path(__file__).parents[2] / "docs" / "indexing-sources.md"


def test_examples_are_job_files() -> None:
    """Each example parses, and every kind of source has one."""
    examples = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    kinds = [parse_job(text, "example", "example.toml").source.kind for text in examples]
    assert sorted(kinds) == ["files", "folder", "git", "site", "sql"]
