"""How many threads can really compute here, and which of them go first.

The host's CPU count says neither: a container sees all cores of its host and may use a part of one. What counts is the
affinity mask of the process and the quota of its control group, in either version of that interface.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from threadpoolctl import threadpool_limits

# A step of niceness is worth a factor of about 1.25 (Linux, sched-nice-design): 13 leave bulk 5 % of a contended core.
_BULK_NICENESS = 13
_LOWEST_PRIORITY = 19


_ROOT = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")


def usable_cpus(root: Path = _ROOT, membership: Path = _MEMBERSHIP) -> int:
    """Counts the cores that this process may keep busy: the affinity mask, capped by the quota rounded up."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cgroup_quota(root, membership)
    return allowed if quota is None else max(1, min(allowed, math.ceil(quota)))


def cgroup_quota(root: Path = _ROOT, membership: Path = _MEMBERSHIP) -> float | None:
    """Reads the smallest quota in cores among the process's group and those above it; None when there is none.

    Version 2 says it in `cpu.max`, version 1 in `cpu.cfs_quota_us` and `cpu.cfs_period_us` of its cpu hierarchy.
    """
    quotas = [quota for folder in _groups(root, membership) if (quota := _quota(folder)) is not None]
    return min(quotas, default=None)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keeps NumPy's matrix products on the threads that call them, whichever BLAS it was built with.

    The threads of a BLAS wait for each other by spinning: with both cores busy encoding, a product of 0.4 ms took 13 to
    17 ms on two of them. The encoders' threads fill the cores already.
    """
    with threadpool_limits(limits=1, user_api="blas"):
        yield


def lower_priority_of_this_thread() -> None:
    """Makes the calling thread give way to the others of the process, where the system knows priorities of threads.

    The batch policy keeps it from pushing a running thread aside when it wakes. A sandbox that forbids either is no
    fault: the thread then competes as an equal.
    """
    if sys.platform != "linux":
        return
    thread = threading.get_native_id()
    with suppress(OSError):
        os.sched_setscheduler(thread, os.SCHED_BATCH, os.sched_param(0))
        now = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, min(now + _BULK_NICENESS, _LOWEST_PRIORITY))


def _groups(root: Path, membership: Path) -> list[Path]:
    # A line is "id:controllers:path". Inside a container the path may not exist below the root: the root is its group.
    folders = []
    for line in _read(membership).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "" or "cpu" in controllers.split(","):
            top = root / "cpu" if controllers else root
            group = top / path.lstrip("/")
            folders += [group, *(parent for parent in group.parents if parent.is_relative_to(top))]
    return [*folders, root, root / "cpu"]


def _quota(folder: Path) -> float | None:
    quota, _, period = _read(folder / "cpu.max").partition(" ")
    quota, period = (
        (quota, period) if period else (_read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us"))
    )
    # "max" and "-1" say that there is no quota.
    if not (quota.isdecimal() and period.isdecimal() and int(quota) > 0 and int(period) > 0):
        return None
    return int(quota) / int(period)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""
