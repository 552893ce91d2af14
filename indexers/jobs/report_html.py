"""Draws a report as one HTML file: no scripts, nothing from elsewhere, every text escaped, light and dark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise

from indexers.jobs.report import RunReport, SpeedPoint
from indexers.jobs.report_charts import bars, columns, line

_SHOWN = 200  # rows of a table; the JSON has all that the report lists
_COLOURS: Mapping[str, str] = {
    "failed": "bad",
    "skipped": "dim",
    "unchanged": "dim",
    "seen": "dim",
    "deleting": "warn",
    "deleted": "warn",
}
_STYLE = """
:root{color-scheme:light dark;--back:#fff;--text:#1c2430;--soft:#5b6675;--rule:#d9dee5;--card:#f6f8fa;
--good:#2a78d2;--bad:#c7392f;--warn:#b7791f;--dim:#93a0b0}
@media(prefers-color-scheme:dark){:root{--back:#12161c;--text:#e4e9f0;--soft:#98a4b3;--rule:#2c3542;--card:#1a2029;
--good:#5aa2f0;--bad:#ee7369;--warn:#dfae55;--dim:#66727f}}
body{margin:0 auto;max-width:60rem;padding:2rem 1.5rem 4rem;background:var(--back);color:var(--text);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.5rem;margin:0}h2{font-size:1.05rem;margin:2.2rem 0 .6rem}p{margin:.3rem 0}.soft{color:var(--soft)}
.state{display:inline-block;border-radius:1rem;padding:.05rem .7rem;color:var(--back);background:var(--good);
font-size:.85rem;vertical-align:middle;margin-left:.5rem}.state.bad{background:var(--bad)}.state.warn{background:var(--warn)}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:.7rem;margin:1.2rem 0}
.card{background:var(--card);border:1px solid var(--rule);border-radius:.5rem;padding:.6rem .8rem}
.card b{display:block;font-size:1.3rem;font-variant-numeric:tabular-nums}
.card span{color:var(--soft);font-size:.85rem}svg{width:100%;height:auto;display:block}
svg text{fill:var(--text);font-size:12px}svg .label,svg .tick{fill:var(--soft)}
svg .tick{text-anchor:middle;font-size:11px}
.good{fill:var(--good)}.bad{fill:var(--bad)}.warn{fill:var(--warn)}.dim{fill:var(--dim)}
.line{fill:none;stroke:var(--good);stroke-width:1.6}.axis{stroke:var(--soft)}.grid{stroke:var(--rule)}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.3rem .8rem .3rem 0;border-bottom:1px solid var(--rule)}
th{color:var(--soft);font-weight:600}td{overflow-wrap:anywhere}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def report_html(report: RunReport) -> str:
    """Returns the page."""
    title = escape(f"{report.job}: run {report.run_id}")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"><style>{_STYLE}</style></head><body>'
        f"{''.join(_body(report))}</body></html>\n"
    )


def _body(report: RunReport) -> Iterator[str]:
    yield _head(report)
    yield _cards(report)
    yield _section("Documents", _counts(report.documents))
    yield _section("Items read", _counts(report.items))
    if report.failures_by_kind:
        yield _section("Failures by kind", _counts(report.failures_by_kind, "bad"))
    yield _failures(report)
    if len(report.course) > 2:
        yield _section("Tokens a second", line(_speeds(report.course), "tokens a second"))
    if any(point.resident_bytes for point in report.course):
        memory = [(point.seconds, point.resident_bytes / 2**20) for point in report.course]
        yield _section("Memory of the leading process, MiB", line(memory, "MiB"))
    if report.chunk_lengths:
        lengths = [(str(limit), count) for limit, count in sorted(report.chunk_lengths.items())]
        yield _section("Tokens of a chunk, at most", columns(lengths))
    if len(report.languages) > 0:
        most = sorted(report.languages.items(), key=lambda one: (-one[1], one[0]))[:15]
        yield _section("Languages", bars([(language or "unknown", count, "good") for language, count in most]))
    yield from _tables(report)


def _head(report: RunReport) -> str:
    tone = {"failed": " bad", "partial": " warn", "waiting": " warn", "cancelled": " warn"}.get(report.state, "")
    reason = f"<p>{escape(report.reason)}</p>" if report.reason else ""
    asked = f", asked for by {escape(report.asked_by)}" if report.asked_by else ""
    return (
        f'<h1>{escape(report.job)}<span class="state{tone}">{escape(report.state)}</span></h1>{reason}'
        f'<p class="soft">Run {escape(report.run_id)} from {escape(report.source)} into the collection '
        f"{escape(report.collection)}, {escape(report.started_at)} to {escape(report.ended_at)}{asked}</p>"
    )


def _cards(report: RunReport) -> str:
    documents = report.documents
    stored = sum(documents.get(state, 0) for state in ("written", "verified"))
    rate = f"{report.tokens / report.seconds:,.0f}" if report.seconds > 0 and report.tokens else "0"
    figures = (
        ("indexed", f"{stored:,}"),
        ("unchanged", f"{documents.get('unchanged', 0):,}"),
        ("failed", f"{documents.get('failed', 0):,}"),
        ("deleted", f"{documents.get('deleted', 0):,}"),
        ("chunks", f"{report.chunks:,}"),
        ("tokens", f"{report.tokens:,}"),
        ("tokens a second", rate),
        ("seconds", f"{report.seconds:,.1f}"),
    )
    cards = (f'<div class="card"><b>{escape(value)}</b><span>{name}</span></div>' for name, value in figures)
    return f'<div class="cards">{"".join(cards)}</div>'


def _counts(counts: Mapping[str, int], colour: str = "") -> str:
    rows = [(name, count, colour or _COLOURS.get(name, "good")) for name, count in counts.items() if count]
    return bars(rows) if rows else '<p class="soft">none</p>'


def _failures(report: RunReport) -> str:
    rows = [(one.name, one.kind, one.reason, str(one.attempt)) for one in report.failures]
    total = sum(report.failures_by_kind.values())
    return _table("What failed", ("name", "kind", "why", "tries"), rows, max(total, len(rows)))


def _tables(report: RunReport) -> Iterator[str]:
    pairs = [(one.document_id, one.of, f"{one.similarity:.2f}") for one in report.duplicates]
    yield _table("Near duplicates", ("document", "of", "similarity"), pairs, report.duplicate_count)
    slow = [(one.name, f"{one.seconds:,.2f}", f"{one.documents:,}") for one in report.slowest]
    yield _table("Slowest items", ("name", "seconds", "documents"), slow, len(slow))
    used = [
        (one.step, f"{one.calls:,}", f"{one.remembered:,}", f"{one.tokens:,}", f"{one.cost:,.4f}", f"{one.failed:,}",
         f"{one.left_out:,}")
        for one in report.enrichments
    ]  # fmt: skip
    names = ("step", "calls", "remembered", "tokens", "cost", "failed", "left out")
    yield _table("Enrichment", names, used, len(used))
    notes = [(one.name, one.reason) for one in report.warnings]
    yield _table("Worth knowing", ("name", "what"), notes, len(notes))
    skipped = [(one.name, one.reason) for one in report.skips]
    yield _table("Left out on purpose", ("name", "why"), skipped, max(len(skipped), report.items.get("skipped", 0)))
    gone = [(document_id,) for document_id in report.deleted]
    yield _table("Deleted", ("document",), gone, max(len(gone), report.documents.get("deleted", 0)))


_NUMBERS = frozenset({"tries", "similarity", "seconds", "documents", "calls", "remembered", "tokens", "cost"})


def _table(title: str, names: Sequence[str], rows: Sequence[Sequence[str]], total: int) -> str:
    if not rows:
        return ""
    kinds = [' class="n"' if name in _NUMBERS or name in {"failed", "left out"} else "" for name in names]
    head = "".join(f"<th{kind}>{escape(name)}</th>" for name, kind in zip(names, kinds, strict=True))
    body = "".join(
        f"<tr>{''.join(f'<td{kind}>{escape(cell)}</td>' for cell, kind in zip(row, kinds, strict=True))}</tr>"
        for row in rows[:_SHOWN]
    )
    left = total - min(len(rows), _SHOWN)
    more = f'<p class="soft">and {left:,} more</p>' if left > 0 else ""
    table = f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{more}'
    return _section(f"{title} ({total:,})", table)


def _section(title: str, content: str) -> str:
    return f"<h2>{escape(title)}</h2>{content}"


def _speeds(course: Sequence[SpeedPoint]) -> list[tuple[float, float]]:
    """Returns tokens a second between neighbouring points."""
    return [
        (late.seconds, max(0.0, (late.tokens - early.tokens) / (late.seconds - early.seconds)))
        for early, late in pairwise(course)
        if late.seconds > early.seconds
    ]
