"""The queue of values that wait to be written, and how long they live."""

from __future__ import annotations

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from retrieval.caching.redis.writing import BATCH_COUNT, Pending, WriteQueue, jittered_ms
from tests.fakes.cache_keys import cache_key


def _pending(number: int, size: int = 1) -> Pending:
    return Pending(cache_key(number), str(number).encode(), bytes(size), 0.0, 60.0)


async def test_queue_gives_the_oldest_in_batches() -> None:
    """Values leave in the order they came, no more at once than one pipeline should hold."""
    queue = WriteQueue(1000, 1 << 20)
    for number in range(BATCH_COUNT + 5):
        assert queue.offer(_pending(number))
    first, second = await queue.take(), await queue.take()
    assert [int(pending.name) for pending in first + second] == list(range(BATCH_COUNT + 5))
    assert (len(first), len(queue)) == (BATCH_COUNT, 0)


async def test_queue_keeps_the_newest_value_of_a_name() -> None:
    """A newer value takes the place of the older, also when it is refused: the older must not be written after it."""
    queue = WriteQueue(10, 100)
    assert queue.offer(_pending(1, 90))
    assert queue.offer(_pending(1, 80))
    assert not queue.offer(_pending(1, 101))
    assert queue.offer(_pending(2, 100))
    assert [pending.name for pending in await queue.take()] == [b"2"]


def _is_below(bound: int, pending: Pending) -> bool:
    return int(pending.name) < bound


@given(st.lists(st.tuples(st.sampled_from(["offer", "discard", "sweep"]), st.integers(0, 5), st.integers(0, 60))))
def test_queue_stays_within_its_bounds(steps: list[tuple[str, int, int]]) -> None:
    """Whatever is offered and discarded, it holds what was taken, and no more than the bounds allow."""
    queue = WriteQueue(4, 100)
    model: dict[int, int] = {}
    for step, number, size in steps:
        if step == "offer":
            model.pop(number, None)
            fits = len(model) < 4 and sum(model.values()) + size <= 100
            assert queue.offer(_pending(number, size)) is fits
            if fits:
                model[number] = size
        elif step == "discard":
            queue.discard(str(number).encode())
            model.pop(number, None)
        else:
            gone = [name for name in model if name < number]
            assert queue.discard_where(partial(_is_below, number)) == len(gone)
            for name in gone:
                del model[name]
        assert len(queue) == len(model)


@given(st.floats(0.001, 1e9))
def test_time_to_live_varies_by_a_tenth(ttl_s: float) -> None:
    """Values that came together do not all end together, and none lives without an end."""
    assert max(1, 899 * ttl_s) - 1 <= jittered_ms(ttl_s) <= 1101 * ttl_s + 1
