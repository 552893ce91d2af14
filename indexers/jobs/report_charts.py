"""Charts of a report as inline SVG: bars and a line. Colours come from the page's style, so they follow its theme."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_WIDTH, _HEIGHT = 640, 180
_LEFT, _BOTTOM, _TOP = 56, 24, 12
_ROW = 24


def bars(rows: Sequence[tuple[str, int, str]]) -> str:
    """Returns horizontal bars: a label, a count and a class of colour each; the longest fills the width."""
    most = max((count for _, count, _ in rows), default=0) or 1
    height = _ROW * len(rows)
    parts = [f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(_spoken(rows))}">']
    for position, (label, count, colour) in enumerate(rows):
        y = position * _ROW
        width = (_WIDTH - 260) * count / most
        parts.append(f'<text x="150" y="{y + 16}" class="label" text-anchor="end">{escape(label)}</text>')
        parts.append(f'<rect x="160" y="{y + 4}" width="{width:.1f}" height="16" rx="2" class="{escape(colour)}"/>')
        parts.append(f'<text x="{168 + width:.1f}" y="{y + 16}" class="number">{count:,}</text>')
    return "".join((*parts, "</svg>"))


def columns(values: Sequence[tuple[str, int]]) -> str:
    """Returns a histogram: a label and a count each, from left to right."""
    most = max((count for _, count in values), default=0) or 1
    step = (_WIDTH - _LEFT) / max(1, len(values))
    every = max(1, -(-len(values) // 10))
    parts = [*_frame(f"{most:,}", "histogram"), ""]
    for position, (label, count) in enumerate(values):
        height = (_HEIGHT - _BOTTOM - _TOP) * count / most
        x, y = _LEFT + position * step, _HEIGHT - _BOTTOM - height
        parts.append(
            f'<rect x="{x + 1:.1f}" y="{y:.1f}" width="{max(1.0, step - 2):.1f}" height="{height:.1f}" class="good">'
            f"<title>{escape(label)}: {count:,}</title></rect>"
        )
        if position % every == 0:
            middle = x + step / 2
            parts.append(f'<text x="{middle:.1f}" y="{_HEIGHT - 8}" class="tick">{escape(label)}</text>')
    return "".join((*parts, "</svg>"))


def line(points: Sequence[tuple[float, float]], unit: str) -> str:
    """Returns a line over seconds; `unit` names what it shows."""
    longest = max((x for x, _ in points), default=0.0) or 1.0
    most = max((y for _, y in points), default=0.0) or 1.0
    path = " ".join(
        f"{_LEFT + (_WIDTH - _LEFT) * x / longest:.1f},{_HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * y / most:.1f}"
        for x, y in points
    )
    parts = [*_frame(f"{most:,.0f}", unit)]
    parts.append(f'<polyline points="{path}" class="line"/>')
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = _LEFT + (_WIDTH - _LEFT) * share
        anchor = "end" if share == 1.0 else "middle"
        label = f"{longest * share:,.0f} s"
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - 8}" class="tick" style="text-anchor:{anchor}">{label}</text>')
    return "".join((*parts, "</svg>"))


def _frame(most: str, name: str) -> list[str]:
    base = _HEIGHT - _BOTTOM
    return [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(name)}">',
        f'<line x1="{_LEFT}" y1="{base}" x2="{_WIDTH}" y2="{base}" class="axis"/>',
        f'<line x1="{_LEFT}" y1="{_TOP}" x2="{_WIDTH}" y2="{_TOP}" class="grid"/>',
        f'<text x="{_LEFT - 6}" y="{_TOP + 4}" class="label" text-anchor="end">{escape(most)}</text>',
        f'<text x="{_LEFT - 6}" y="{base}" class="label" text-anchor="end">0</text>',
    ]


def _spoken(rows: Sequence[tuple[str, int, str]]) -> str:
    return ", ".join(f"{label}: {count}" for label, count, _ in rows)
