"""`headrace jobs schedule`: when jobs run by themselves, and whether their schedules rest."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from retrieval.cli.exits import WrongUse
from retrieval.cli.jobs_calls import Calls
from retrieval.cli.jobs_shown import moment
from retrieval.cli.output import print_json, show, table
from retrieval.cli.session import CLIENT, Session, with_session
from retrieval.server.convert.plain import plain

if TYPE_CHECKING:
    from rich.console import RenderableType


def register(commands: typer.Typer) -> None:
    """Adds the command."""
    commands.command("schedule")(schedule)


@with_session(*CLIENT)
def schedule(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="A job; otherwise all.")] = "",
    pause: Annotated[bool, typer.Option("--pause", help="Let its schedule rest.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Let its schedule go on.")] = False,
) -> None:
    """Show when jobs run by themselves, or let a schedule rest or go on. The server keeps the times."""
    from retrieval.cli.jobs import _all_jobs, call, find

    if pause and resume:
        raise WrongUse("give --pause or --resume, not both")
    if (pause or resume) and not name:
        raise WrongUse("name the job whose schedule is meant")
    if pause or resume:
        jobs = [call(session, lambda calls: _set(calls, name, paused=pause))]
    elif name:
        jobs = [call(session, lambda calls: find(calls, name))["job"]]
    else:
        jobs = call(session, _all_jobs)
    shown = [_shown(job) for job in jobs]
    if session.json:
        print_json({"schedules": shown})
    else:
        show(_table([one for one in shown if name or one["schedule"]]))


async def _set(calls: Calls, name: str, *, paused: bool) -> dict[str, Any]:
    from headrace.v1 import jobs_pb2

    return dict(plain((await calls.submit(jobs_pb2.SubmitJobRequest(name=name, paused=paused))).job))


def _shown(job: dict[str, Any]) -> dict[str, Any]:
    return {
        "job": job["name"],
        "schedule": tomllib.loads(job["spec_toml"]).get("schedule", {}),
        "paused": job["paused"],
        "next_run_time": job["next_run_time"],
    }


def _table(schedules: list[dict[str, Any]]) -> RenderableType:
    rows = [
        (
            one["job"],
            ", ".join(f"{key} = {value}" for key, value in one["schedule"].items()) or "none",
            "paused" if one["paused"] else moment(one["next_run_time"]) or "when it is asked to",
        )
        for one in schedules
    ]
    return table(["job", "schedule", "next"], rows)
