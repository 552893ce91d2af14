"""What the tool for hostile files reports."""

from __future__ import annotations

from bench.hostile import measure
from tests.fakes.hostile import HostileFile


def test_endings_are_counted_by_kind() -> None:
    """Documents, failures by kind and skipped files; nothing of it is a fault."""
    files = [
        HostileFile("a.md", b"# text", "good"),
        HostileFile("b.md", b"", "empty"),
        HostileFile("c.xyz", b"x", "unknown"),
        HostileFile("d.jsonl", b'{"text": "x"}\nno json\n', "half good"),
    ]
    report = measure(iter(files), 20.0, 256 * 1024**2)
    assert report.files == 4
    assert report.outcomes["documents"] == 1
    assert report.outcomes["skipped"] == 1
    assert sum(report.outcomes.values()) == 4
    assert not report.faults
    assert report.slowest[0].seconds >= report.slowest[-1].seconds
    assert report.crashes == []
