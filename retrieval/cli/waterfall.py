"""The stages of a request as a waterfall: each a bar that begins where the stage before it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from retrieval.cli.output import table

if TYPE_CHECKING:
    from rich.console import RenderableType

_BAR_CELLS = 40
_EIGHTHS = " ▏▎▍▌▋▊▉"
_MS = 1_000_000


def waterfall(ledger: dict[str, Any]) -> RenderableType:
    """Returns a plain `Ledger` as a table: wall time, the share of it that waited or computed, and a bar."""
    from rich.text import Text

    total = max(ledger["total_ns"], 1)
    rows: list[tuple[str | Text, ...]] = []
    begun = 0
    for stage in ledger["stages"]:
        wall = stage["wall_ns"]
        drawn = Text(bar(begun, wall, total), style="cyan")
        rows.append((stage["stage"], _ms(wall), _ms(stage["queue_ns"]), _ms(stage["compute_ns"]), drawn))
        begun += wall
    rows.append(("total", _ms(ledger["total_ns"]), "", "", ""))
    numbers = ["ms", "queued", "computed"]
    return table(["stage", *numbers, "when"], rows, right=numbers)


def bar(begun: int, length: int, total: int) -> str:
    """Returns a bar of eighths of a cell, behind the room that was used before it; whatever took time is visible."""
    before = begun * _BAR_CELLS // total
    eighths = max(round(length * _BAR_CELLS * 8 / total), 1 if length else 0)
    return " " * before + "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def remarks(ledger: dict[str, Any]) -> list[str]:
    """Returns what else the ledger has to say, in words."""
    said = [f"degraded: {', '.join(ledger['degraded'])}"] if ledger["degraded"] else []
    if ledger["query_truncated"]:
        said.append(f"the question is longer than the encoder takes; it saw {ledger['query_tokens']} tokens")
    if ledger["first_delta_ns"]:
        said.append(f"first words after {_ms(ledger['first_delta_ns'])} ms")
    said += [f"cache {use['cache']}: {_use(use)}" for use in ledger["caches"]]
    said += _reranking(ledger["rerank"]) if ledger["rerank"] else []
    return said + (_generation(ledger) if ledger["generation"] else [])


def _generation(ledger: dict[str, Any]) -> list[str]:
    report, route = ledger["generation"], ledger["route"]
    chosen = f" ({route['reason']})" if route else ""
    figures = (
        f"queued {_ms(report['queue_ns']) or 0} ms",
        f"first token after {_ms(report['first_token_ns']) or 0} ms",
        f"{_ms(report['token_ns']) or 0} ms a token",
        f"{_ms(report['total_ns']) or 0} ms in all",
    )
    said = [f"backend {report['backend']}{chosen}: {', '.join(figures)}"]
    failed = [f"{each['backend']}: {each['outcome']}" for each in report["attempts"] if each["outcome"] != "answered"]
    return said + ([f"asked besides: {', '.join(failed)}"] if failed else [])


def _use(use: dict[str, Any]) -> str:
    places = {"shared": ", in the shared tier", "flight": ", made for another request meanwhile"}
    return f"hit{places.get(use['tier'], '')}" if use["hit"] else "miss"


def _reranking(report: dict[str, Any]) -> list[str]:
    late, said = report["late"], []
    if late and late["passages"]:
        computed = f", {late['computed']} of them with token vectors computed now" if late["computed"] else ""
        said.append(f"late interaction: {late['passages']} passages{computed}")
    elif late and late["skipped"]:
        said.append(f"late interaction: left out ({late['skipped'].replace('_', ' ')})")
    if report["model"]:
        cached = f", {report['cached_pairs']} more were known" if report["cached_pairs"] else ""
        cost = f"{report['pairs']} pairs, {report['tokens']:,} tokens{cached}"
        said.append(f"cross-encoder {report['model']}: {cost}; stopped: {report['stop']}")
    return said


def _ms(nanoseconds: int) -> str:
    return f"{nanoseconds / _MS:.2f}" if nanoseconds else ""
