"""Reports survive JSON, draw themselves safely, and stay bounded."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from indexers.jobs.report import (
    POINTS,
    SLOWEST,
    EnrichmentUse,
    NearDuplicate,
    Noted,
    ReportedFailure,
    RunReport,
    SlowItem,
    SpeedPoint,
    report_from_json,
    report_to_json,
)
from indexers.jobs.report_html import report_html
from indexers.jobs.report_parts import ChunkLengths, Course, Slowest

HOSTILE = "<script>alert('x')</script>\"&"


def _report() -> RunReport:
    return RunReport(
        job="handbook",
        run_id="r1",
        collection="books",
        source="folder",
        state="partial",
        reason=HOSTILE,
        asked_by=HOSTILE,
        started_at="2026-01-01T00:00:00+00:00",
        ended_at="2026-01-01T00:01:00+00:00",
        seconds=60.0,
        items={"done": 7, "failed": 1, "skipped": 2},
        documents={"verified": 5, "unchanged": 2, "failed": 1, "deleted": 1},
        chunks=40,
        tokens=4000,
        failures_by_kind={HOSTILE: 1},
        failures=(ReportedFailure(HOSTILE, "parse", HOSTILE, "d", 4),),
        skips=(Noted("a.bin", HOSTILE),),
        warnings=(Noted(HOSTILE, "odd"),),
        deleted=(HOSTILE,),
        chunk_lengths={16: 3, 128: 37},
        course=tuple(SpeedPoint(float(at), at, at * 4, at * 400, 2**28) for at in range(10)),
        duplicates=(NearDuplicate(HOSTILE, "b", 0.95),),
        duplicate_count=3,
        languages={"en": 4, HOSTILE: 1},
        slowest=(SlowItem(HOSTILE, 3.5, 1),),
        enrichments=(EnrichmentUse(HOSTILE, 5, 2, 900, 0.25, 1, 0),),
    )


class _Page(HTMLParser):
    """Collects what a page is made of."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.addresses: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.addresses += [value or "" for name, value in attrs if name in {"src", "href", "action"}]
        if tag not in {"meta", "rect", "line", "polyline"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_report_reads_back_from_json() -> None:
    """The JSON is the report."""
    assert report_from_json(report_to_json(_report())) == _report()


def test_report_of_a_later_version_is_read() -> None:
    """Keys that are not known yet are passed over; what is no report is refused."""
    text = report_to_json(_report())
    later = text.replace('"format": 1', '"format": 2, "mood": "good"').replace('"similarity"', '"why": 1, "similarity"')
    assert report_from_json(later) == _report()
    for bad in ("[]", "{}", '{"run_id": "r"}', "no"):
        with pytest.raises(ValueError, match=r"report|Expecting"):
            report_from_json(bad)


def test_report_html_escapes_everything_and_fetches_nothing() -> None:
    """Names and reasons come from foreign files: none becomes markup, and nothing is loaded from elsewhere."""
    html = report_html(replace(_report(), job=HOSTILE, collection=HOSTILE, source=HOSTILE, run_id=HOSTILE))
    page = _Page()
    page.feed(html)
    page.close()
    assert not page.open
    assert "script" not in page.tags
    assert not page.addresses
    assert HOSTILE in page.text
    assert "default-src 'none'" in html


def test_report_html_shows_charts_and_counts() -> None:
    """The page has the charts and the tables; what is listed in part says how much is left out."""
    page = _Page()
    page.feed(report_html(_report()))
    assert {"svg", "polyline", "rect", "table"} <= page.tags
    for heading in ("Tokens a second", "Tokens of a chunk", "Languages", "What failed (1)", "Near duplicates (3)"):
        assert heading in page.text
    assert "and 2 more" in page.text


def test_report_html_of_an_empty_run_is_whole() -> None:
    """A run over nothing has a page too."""
    empty = replace(
        _report(), items={}, documents={}, failures_by_kind={}, failures=(), skips=(), warnings=(), deleted=(),
        chunk_lengths={}, course=(), duplicates=(), duplicate_count=0, languages={}, slowest=(), enrichments=(),
        seconds=0.0, tokens=0,
    )  # fmt: skip
    page = _Page()
    page.feed(report_html(empty))
    assert not page.open
    assert "none" in page.text


def test_chunk_lengths_count_in_classes() -> None:
    """Lengths go into classes of sixteen tokens, named by the longest."""
    lengths = ChunkLengths()
    lengths.add([1, 16, 17, 0, 250])
    assert dict(lengths.counts) == {16: 3, 32: 1, 256: 1}


def test_course_stays_bounded_and_keeps_its_ends() -> None:
    """However long a run is, its course has few points, in order, from the first to the last."""
    course = Course(step_s=1.0)
    for at in range(20_000):
        course.add(SpeedPoint(float(at), at, at, at))
    points = course.points(SpeedPoint(20_000.0, 1, 1, 1))
    assert 100 < len(points) <= POINTS
    assert (points[0].seconds, points[-1].seconds) == (0.0, 20_000.0)
    assert all(early.seconds < late.seconds for early, late in pairwise(points))


def test_slowest_keeps_the_slowest() -> None:
    """Only so many are kept, slowest first."""
    slowest = Slowest()
    for at in range(100):
        slowest.add(SlowItem(f"i{at}", float(at * 37 % 100), 1))
    assert [item.seconds for item in slowest.items] == [float(99 - at) for at in range(SLOWEST)]
