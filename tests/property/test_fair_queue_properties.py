"""What holds for every mix of calls."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from encoders.calls import Call
from encoders.fair_queue import FairQueue
from tests.fakes.engines import EchoEngine, items

_CALLS = st.lists(
    st.tuples(st.integers(1, 12), st.integers(1, 40), st.none() | st.integers(0, 9)), min_size=1, max_size=6
)


@given(_CALLS)
def test_every_item_is_handed_out_once_and_calls_share_by_tokens(shapes: list[tuple[int, int, int | None]]) -> None:
    """Each call's items come in order; of two waiting calls none is ahead by more than one item of each in tokens."""

    async def check() -> None:
        queue, calls = FairQueue(), []
        for count, tokens, deadline in shapes:
            calls.append(Call(EchoEngine(), items(*range(count), tokens=tokens), deadline, 0))
            queue.put(calls[-1])
        taken: dict[int, list[int]] = {id(call): [] for call in calls}
        while (found := queue.take()) is not None:
            call, position = found
            taken[id(call)].append(position)
            served = [len(taken[id(one)]) * one.items[0].token_count for one in calls if one.waiting_items]
            longest = max(one.items[0].token_count for one in calls)
            assert max(served, default=0) - min(served, default=0) <= longest
        assert [taken[id(call)] for call in calls] == [list(range(len(call.items))) for call in calls]

    asyncio.run(check())
