"""What the commands about jobs show: tables of jobs, runs and failures, and one run at length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from retrieval.cli.exits import WorkFailed, WorkWaits
from retrieval.cli.output import pairs, table

if TYPE_CHECKING:
    from rich.console import RenderableType

_STORED = ("written", "verified")


def counts_text(counts: Mapping[str, int]) -> str:
    """Returns counts as `3 done, 1 failed`."""
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count) or "none"


def moment(stamp: str | None) -> str:
    """Returns a time stamp as people read it."""
    return (stamp or "").partition(".")[0].replace("T", " ").removesuffix("Z")


def job_table(jobs: Sequence[dict[str, Any]]) -> RenderableType:
    """Returns jobs with their newest runs."""
    rows = []
    for job in jobs:
        run = job["last_run"]
        following = "paused" if job["paused"] else moment(job["next_run_time"])
        state, documents = (run["state"], counts_text(run["documents"])) if run else ("never run", "")
        ended = moment(run["end_time"] or run["start_time"]) if run else ""
        rows.append((job["name"], job["collection"], state, documents, ended, following))
    return table(["job", "collection", "last run", "documents", "when", "next"], rows)


def run_table(runs: Sequence[dict[str, Any]]) -> RenderableType:
    """Returns runs, newest first."""
    rows = [
        (
            run["run_id"],
            run["state"],
            counts_text(run["documents"]),
            f"{run['chunks']:,}",
            counts_text(run["failures"]) if run["failures"] else "",
            moment(run["start_time"] or run["create_time"]),
        )
        for run in runs
    ]
    return table(["run", "state", "documents", "chunks", "failures", "begun"], rows, right=["chunks"])


def failure_table(failures: Sequence[dict[str, Any]]) -> RenderableType:
    """Returns dead letters."""
    rows = [
        (one["name"] or one["item_uri"], one["kind"], one["reason"], str(one["attempt"]), moment(one["fail_time"]))
        for one in failures
    ]
    return table(["name", "kind", "why", "tries", "when"], rows, right=["tries"])


def run_pairs(run: dict[str, Any]) -> RenderableType:
    """Returns one run at length."""
    rows = [("run", run["run_id"]), ("state", run["state"])]
    rows += [("reason", run["reason"])] if run["reason"] else []
    rows += [
        ("items", counts_text(run["items"]) + ("" if run["scanned"] else "; the source is not listed to its end")),
        ("documents", counts_text(run["documents"])),
        ("chunks", f"{run['chunks']:,} ({run['tokens']:,} tokens)"),
        ("failures", counts_text(run["failures"])),
        ("queued", moment(run["create_time"])),
        ("begun", moment(run["start_time"])),
        ("ended", moment(run["end_time"])),
    ]
    rows += [("worker", run["worker"])] if run["worker"] else []
    rows += [("remaining", f"{run['remaining_s']:,.0f} s")] if run["remaining_s"] is not None else []
    return pairs(rows)


def check_ended(run: dict[str, Any]) -> None:
    """Lets a run pass that succeeded; others decide the exit code of the command.

    Raises:
        WorkWaits: it stopped before deleting much more than usual.
        WorkFailed: it failed, as a whole or in part, or was cancelled.
    """
    name, state, reason = run["job"], run["state"], run["reason"]
    if state == "waiting":
        raise WorkWaits(f"{name} waits: {reason}; run it again with --allow-shrink if that is meant")
    if state == "partial":
        raise WorkFailed(f"{name}: {reason}; the others are in place, `headrace jobs failures {name}` names them")
    if state in {"failed", "cancelled"}:
        raise WorkFailed(f"{name} {state}: {reason or 'no reason is known'}")
