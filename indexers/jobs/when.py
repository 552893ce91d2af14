"""When a job is due by its schedule, and what is wrong with one that cannot be kept."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
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


def next_time(schedule: ScheduleSpec, last_end: datetime | None, now: datetime) -> datetime | None:
    """Returns when a run is due next, after `now` or at once when one was missed; None without a schedule.

    Raises:
        ValueError: the fields of `cron` are none, or name no day that there is.
    """
    from indexers.jobs.schedule import next_run  # noqa: PLC0415 - its library is read only where schedules are

    return next_run(schedule, last_end, now)
