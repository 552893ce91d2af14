"""When a job is due by its schedule, and what is wrong with one that cannot be kept."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from indexers.jobs.spec import ScheduleSpec


def schedule_faults(schedule: ScheduleSpec) -> Iterator[tuple[str, str]]:
    """Yields keys of the schedule, each with what is wrong with it."""
    try:
        ZoneInfo(schedule.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        yield "timezone", "is no time zone; write one like Europe/Berlin, or UTC"
        return
    if schedule.cron:
        try:
            next_time(schedule, None, datetime.now(UTC))
        except ValueError as error:
            yield "cron", str(error)


def has_schedule(schedule: ScheduleSpec) -> bool:
    """Tells whether the job runs by itself."""
    return bool(schedule.cron or schedule.every_s or schedule.watch)


def next_time(schedule: ScheduleSpec, last_end: datetime | None, now: datetime) -> datetime | None:
    """Returns when a run is due next: the first slot of `cron` after `now`, or the end of the last run and a while.

    The latter may lie before `now`, as it does when nobody was there to start it, and is `now` before any run. The
    earlier of both counts; None without either.

    Raises:
        ValueError: the fields of `cron` are none, or name no day that there is.
    """
    times = []
    if schedule.every_s:
        times.append(last_end + timedelta(seconds=schedule.every_s) if last_end else now)
    if schedule.cron:
        from indexers.jobs.schedule import next_run  # noqa: PLC0415 - its library is read only where it is used

        slot: datetime | None = next_run(schedule, last_end, now)
        times += [slot] if slot else []
    return min(times, default=None)
