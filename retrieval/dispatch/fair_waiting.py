"""Who is next among those who wait, and who has to go when too many do.

Classes of priority are served strictly in order, but for a share that keeps the lower ones alive: a class in which
somebody waits is owed a place after it was passed over `PASSES` times in a row. So however much INTERACTIVE work there
is, BATCH gets one place in eight, and BACKGROUND at least one in nine.

Within a class tenants share by weight, by start-time fair queuing (Goyal, Vin and Cheng, 1996): a tenant's tag is the
virtual time at which its next request starts, the smallest tag goes first, and each place given moves the tag on by
1 / weight. Tags move when a place is given and not on arrival, so who leaves while waiting has paid nothing.

The structure knows neither places nor clocks, and it belongs to one event loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from retrieval.route import Priority

PASSES = 7
"""How often in a row a class with somebody waiting is passed over for a higher one."""

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class Waiter(Generic[T]):
    """Somebody who waits; `turn` is whatever tells them that their turn has come."""

    tenant: str
    priority: Priority
    turn: T


@dataclass(slots=True)
class _Line(Generic[T]):
    """A tenant's waiters in one class, and the virtual time at which the first of them starts."""

    tag: float
    waiters: deque[Waiter[T]] = field(default_factory=deque)


class FairWaiting(Generic[T]):
    """Those who wait, in the order in which they are served."""

    def __init__(self, weight: Callable[[str], float]) -> None:
        self._classes = {priority: _Class[T](weight) for priority in Priority}

    def __len__(self) -> int:
        return sum(len(one) for one in self._classes.values())

    def put(self, waiter: Waiter[T]) -> None:
        """Lets somebody wait, behind all others of the same tenant and priority."""
        self._classes[waiter.priority].put(waiter)

    def remove(self, waiter: Waiter[T]) -> bool:
        """Returns whether this one waited; it does not any more."""
        return self._classes[waiter.priority].remove(waiter)

    def take(self) -> Waiter[T] | None:
        """Returns the one whose turn it is, who waits no more; None when nobody waits."""
        waiting = [one for one in self._classes.values() if len(one)]
        if not waiting:
            return None
        owed = [one for one in waiting if one.passed >= PASSES]
        chosen = owed[0] if owed else waiting[0]
        for one in waiting:
            one.passed = 0 if one is chosen else one.passed + 1
        return chosen.take()

    def ahead_of(self, tenant: str, priority: Priority) -> int:
        """Returns how many of those who wait now would be served before a new one, if nobody else came."""
        own = self._classes[priority].ahead_of(tenant)
        higher = sum(len(one) for rank, one in self._classes.items() if rank < priority)
        lower = sum(len(one) for rank, one in self._classes.items() if rank > priority)
        ahead = own + min(higher, PASSES * (own + 1))
        return ahead + min(lower, ahead // PASSES)

    def make_room(self, tenant: str, priority: Priority, max_queued: int) -> Waiter[T] | None:
        """Returns whom a new one displaces from a full queue, who waits no more; None when nobody has to yield.

        The newest of the tenant with the most waiters for its weight yields: in a lower class that holds more than it
        is owed (an eighth of the queue); else in the same class, when that tenant holds more for its weight than the
        new one's then would; else in the largest higher class, when the new one's holds less than it is owed.
        """
        owed = max(1, max_queued // (PASSES + 1))
        for rank in sorted(Priority, reverse=True):
            if rank > priority and len(self._classes[rank]) > owed:
                return self._classes[rank].drop_newest()
        own = self._classes[priority]
        if own.holds_too_little(tenant):
            return own.drop_newest()
        higher = max((one for rank, one in self._classes.items() if rank < priority), key=len, default=own)
        if higher is not own and len(own) < owed and len(higher):
            return higher.drop_newest()
        return None


class _Class(Generic[T]):
    """Those who wait with the same priority, by tenant."""

    def __init__(self, weight: Callable[[str], float]) -> None:
        self.passed = 0  # how often in a row another class was served while somebody waited here
        self._weight = weight
        self._lines: dict[str, _Line[T]] = {}  # those without waiters remember a tag that is still ahead
        self._virtual = 0.0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, waiter: Waiter[T]) -> None:
        line = self._lines.setdefault(waiter.tenant, _Line(self._virtual))
        if not line.waiters:
            line.tag = max(line.tag, self._virtual)
        line.waiters.append(waiter)
        self._count += 1

    def remove(self, waiter: Waiter[T]) -> bool:
        line = self._lines.get(waiter.tenant)
        if line is None or waiter not in line.waiters:
            return False
        line.waiters.remove(waiter)
        self._left()
        return True

    def take(self) -> Waiter[T]:
        tenant, line = min(self._occupied(), key=lambda found: found[1].tag)
        self._virtual = line.tag
        line.tag += 1.0 / self._weight(tenant)
        waiter = line.waiters.popleft()
        self._left()
        return waiter

    def ahead_of(self, tenant: str) -> int:
        line = self._lines.get(tenant)
        own = len(line.waiters) if line else 0
        start = (max(line.tag, self._virtual) if line else self._virtual) + own / self._weight(tenant)
        others = (
            min(len(found.waiters), int((start - found.tag) * self._weight(name)) + 1)
            for name, found in self._occupied()
            if name != tenant and found.tag <= start
        )
        return own + sum(others)

    def holds_too_little(self, tenant: str) -> bool:
        line = self._lines.get(tenant)
        after = (len(line.waiters) if line else 0) + 1
        return any(
            len(found.waiters) / self._weight(name) > after / self._weight(tenant)
            for name, found in self._occupied()
            if name != tenant
        )

    def drop_newest(self) -> Waiter[T]:
        _, line = max(self._occupied(), key=lambda found: len(found[1].waiters) / self._weight(found[0]))
        waiter = line.waiters.pop()
        self._left()
        return waiter

    def _occupied(self) -> Iterable[tuple[str, _Line[T]]]:
        return ((name, line) for name, line in self._lines.items() if line.waiters)

    def _left(self) -> None:
        """Forgets lines that hold nobody and whose tag says nothing any more."""
        self._count -= 1
        if not self._count:
            self._lines.clear()
            self._virtual = 0.0
            self.passed = 0
        elif len(self._lines) > 2 * self._count:
            kept = self._lines.items()
            self._lines = {name: line for name, line in kept if line.waiters or line.tag > self._virtual}
