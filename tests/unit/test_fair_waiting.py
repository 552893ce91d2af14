"""Who is next, and who has to go."""

from __future__ import annotations

from collections import Counter

from retrieval.dispatch.fair_waiting import PASSES, FairWaiting, Waiter
from retrieval.route import Priority


def _queue(**weights: float) -> FairWaiting[int]:
    return FairWaiting(lambda tenant: weights.get(tenant, 1.0))


def _put(queue: FairWaiting[int], tenants: str, priority: Priority = Priority.INTERACTIVE) -> list[Waiter[int]]:
    waiters = [Waiter(tenant, priority, number) for number, tenant in enumerate(tenants)]
    for waiter in waiters:
        queue.put(waiter)
    return waiters


def _order(queue: FairWaiting[int], count: int | None = None) -> str:
    taken: list[str] = []
    while (count is None or len(taken) < count) and (waiter := queue.take()):
        taken.append(waiter.tenant)
    return "".join(taken)


def test_waiting_serves_one_tenant_first_come_first_served() -> None:
    """Without other tenants it is a plain queue."""
    queue = _queue()
    _put(queue, "aaaa")
    taken = [waiter.turn for _ in range(4) if (waiter := queue.take())]
    assert taken == [0, 1, 2, 3]
    assert queue.take() is None


def test_waiting_lets_tenants_take_turns() -> None:
    """Who brings many requests does not keep out who brings few."""
    queue = _queue()
    _put(queue, "aaaabb")
    assert _order(queue) == "ababaa"


def test_waiting_serves_by_weight() -> None:
    """A tenant of three times the weight gets three places for each one of another."""
    queue = _queue(a=3.0)
    _put(queue, "a" * 40 + "b" * 40)
    served = Counter(_order(queue, 24))
    assert abs(served["a"] - 18) <= 1


def test_waiting_gives_no_credit_for_time_away() -> None:
    """A tenant that comes back after a long time starts with the others, not with all that it missed."""
    queue = _queue()
    _put(queue, "a" * 20)
    _order(queue, 10)
    _put(queue, "bbbbbb")
    assert _order(queue, 6).count("b") in (3, 4)


def test_waiting_who_leaves_has_paid_nothing() -> None:
    """Requests that were given up do not move their tenant back."""
    queue = _queue()
    gone = _put(queue, "aaaa")
    _put(queue, "bbaa")
    for waiter in gone:
        assert queue.remove(waiter)
        assert not queue.remove(waiter)
    assert _order(queue) in ("abab", "baba")


def test_waiting_serves_higher_priorities_first_but_not_only() -> None:
    """BATCH gets one place in eight and BACKGROUND about as many while INTERACTIVE could use all."""
    queue = _queue()
    _put(queue, "i" * 100)
    _put(queue, "b" * 100, Priority.BATCH)
    _put(queue, "g" * 100, Priority.BACKGROUND)
    order = _order(queue, 81)
    assert order.startswith("i" * PASSES)
    served = Counter(order)
    assert served["b"] >= 9
    assert served["g"] >= 9
    assert served["i"] >= 60


def test_full_queue_makes_room_for_a_tenant_that_has_less() -> None:
    """The newest request of the tenant with the most yields, until both have the same."""
    queue = _queue()
    _put(queue, "aaaa")
    yielded = queue.make_room("b", Priority.INTERACTIVE, 4)
    assert yielded is not None
    assert (yielded.tenant, yielded.turn) == ("a", 3)
    _put(queue, "b")
    assert queue.make_room("b", Priority.INTERACTIVE, 4) is not None
    _put(queue, "b")
    assert queue.make_room("b", Priority.INTERACTIVE, 4) is None
    assert queue.make_room("a", Priority.INTERACTIVE, 4) is None
    assert len(queue) == 4


def test_full_queue_makes_room_by_weight() -> None:
    """A tenant of twice the weight may hold twice as much."""
    queue = _queue(a=2.0)
    _put(queue, "aaaab")
    assert queue.make_room("b", Priority.INTERACTIVE, 5) is None
    _put(queue, "a")
    assert queue.make_room("b", Priority.INTERACTIVE, 6) is not None


def test_full_queue_makes_room_for_higher_priorities_and_keeps_some_for_lower_ones() -> None:
    """BATCH yields down to an eighth of the queue, and may always have that eighth."""
    queue = _queue()
    _put(queue, "b" * 16, Priority.BATCH)
    for _ in range(14):
        yielded = queue.make_room("i", Priority.INTERACTIVE, 16)
        assert yielded is not None
        assert yielded.priority is Priority.BATCH
        _put(queue, "i")
    assert queue.make_room("i", Priority.INTERACTIVE, 16) is None
    assert queue.make_room("b", Priority.BATCH, 16) is None
    queue.take()
    _put(queue, "ii")
    taken = queue.make_room("g", Priority.BACKGROUND, 16)
    assert taken is not None
    assert taken.priority is Priority.INTERACTIVE


def test_waiting_knows_how_many_are_ahead() -> None:
    """A new tenant waits for one turn of each other one, not for all that they have brought."""
    queue = _queue()
    _put(queue, "aaaabb")
    assert queue.ahead_of("c", Priority.INTERACTIVE) == 2
    assert queue.ahead_of("a", Priority.INTERACTIVE) == 6
    assert queue.ahead_of("c", Priority.BATCH) == 6
