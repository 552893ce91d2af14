"""When a job runs by itself next.

cronsim (BSD) reads cron fields as Debian's cron does, daylight saving time included: a time that a clock skips is made
up for, one that it shows twice runs once. It is one small file; croniter also reads dialects that nobody here writes.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from indexers.jobs.spec import ScheduleSpec


def next_run(schedule: ScheduleSpec, last_end: datetime | None, now: datetime) -> datetime | None:
    """Returns the next moment after `now`, in UTC; None when the job has neither `cron` nor `every_s`.

    With `every_s` the first run is due at once, each further one so long after the end of the one before; of both, the
    earlier counts.

    Raises:
        ValueError: the cron fields or the time zone cannot be read.
    """
    moments: list[datetime] = []
    if schedule.cron:
        moments.append(_next_slot(schedule, now))
    if schedule.every_s:
        due = now if last_end is None else last_end + timedelta(seconds=schedule.every_s)
        moments.append(max(due, now).astimezone(UTC))
    return min(moments, default=None)


def _next_slot(schedule: ScheduleSpec, now: datetime) -> datetime:
    try:
        zone = ZoneInfo(schedule.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"{schedule.timezone!r} is no time zone; write it like Europe/Berlin") from error
    try:
        return next(CronSim(schedule.cron, now.astimezone(zone))).astimezone(UTC)
    except (CronSimError, StopIteration) as error:
        raise ValueError(f"{schedule.cron!r} are no five cron fields, as in '0 3 * * *': {error}") from error
