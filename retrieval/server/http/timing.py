"""The `Server-Timing` header: the stages of a ledger, in milliseconds, as browsers and proxies read them."""

from __future__ import annotations

from retrieval.clock import Ledger


def server_timing(ledger: Ledger) -> str:
    """Returns the stages that took time, and the whole."""
    stages = [(cost.stage.value, cost.wall_ns) for cost in ledger.stages if cost.wall_ns]
    return ", ".join(f"{name};dur={wall_ns / 1e6:.3f}" for name, wall_ns in [*stages, ("total", ledger.total_ns)])
