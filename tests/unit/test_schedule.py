"""When jobs run by themselves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexers.jobs.schedule import next_run
from indexers.jobs.spec import ScheduleSpec

NOON = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
MOMENTS = st.integers(0, 2 * 366 * 24 * 60).map(
    lambda minutes: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
)


def test_job_without_a_schedule_never_runs_by_itself() -> None:
    """Neither cron nor every_s: no moment."""
    assert next_run(ScheduleSpec(), None, NOON) is None


def test_cron_is_read_in_its_time_zone() -> None:
    """Three in the morning in Berlin is one in UTC in summer, two in winter."""
    schedule = ScheduleSpec(cron="0 3 * * *", timezone="Europe/Berlin")
    assert next_run(schedule, None, NOON) == datetime(2026, 6, 2, 1, 0, tzinfo=UTC)
    assert next_run(schedule, None, datetime(2026, 12, 1, 12, tzinfo=UTC)) == datetime(2026, 12, 2, 2, 0, tzinfo=UTC)


def test_every_counts_from_the_end_of_the_last_run() -> None:
    """The first run is due at once, the next so long after the end of the last; a late one at once."""
    schedule = ScheduleSpec(every_s=3600)
    assert next_run(schedule, None, NOON) == NOON
    assert next_run(schedule, NOON - timedelta(minutes=20), NOON) == NOON + timedelta(minutes=40)
    assert next_run(schedule, NOON - timedelta(hours=5), NOON) == NOON


@given(
    now=MOMENTS,
    hour=st.integers(0, 23),
    minute=st.integers(0, 59),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
)
def test_daily_cron_skips_no_day(now: datetime, hour: int, minute: int, zone: str) -> None:
    """The next slot is later than now and at most a day and a changed hour away, also when clocks change."""
    found = next_run(ScheduleSpec(cron=f"{minute} {hour} * * *", timezone=zone), None, now)
    assert found is not None
    assert now < found <= now + timedelta(hours=25)


@pytest.mark.parametrize(
    ("cron", "zone"), [("nonsense", "UTC"), ("61 * * * *", "UTC"), ("* * * *", "UTC"), ("0 3 * * *", "Mars/Base")]
)
def test_what_is_no_schedule_is_refused(cron: str, zone: str) -> None:
    """Fields and zones that mean nothing are named."""
    with pytest.raises(ValueError, match=r"no five cron fields|no time zone"):
        next_run(ScheduleSpec(cron=cron, timezone=zone), None, NOON)
