"""Which item of which call is computed next: start-time fair queuing over calls (Goyal, Vin and Cheng, 1996).

Each call has a tag, the virtual time at which its next item starts; the call with the smallest tag goes first, and an
item moves its call's tag on by its tokens. A new call starts at the present virtual time. So calls share the workers by
tokens: a call with one item waits for about one item of each other call and never for the rest of a long one. Among
equal tags the earliest deadline goes first, then the earlier call.

Not safe for threads; the lane that owns a queue locks around it.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable
from typing import Any

from encoders.calls import Call

_NO_DEADLINE = sys.maxsize
_LOOKED_AT = 64  # calls that may be asked in vain for company, so that a full queue costs no more than a short one


class FairQueue:
    """The calls of one work class that still have items to hand out."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, Call[Any]]] = []
        self._virtual_tokens = 0
        self._arrivals = 0

    def put(self, call: Call[Any]) -> None:
        """Lets a call with at least one item take part from now on."""
        self._arrivals += 1
        self._push(self._virtual_tokens, self._arrivals, call)

    def take(self) -> tuple[Call[Any], int] | None:
        """Hands out the next item as (call, position); None when there is none. Calls that were closed are dropped."""
        while self._heap:
            tag, _, arrival, call = heapq.heappop(self._heap)
            if call.closed:
                continue
            self._virtual_tokens = tag
            return call, self._hand_out(call, tag, arrival)
        return None

    def take_with(self, fits: Callable[[Call[Any]], bool]) -> list[tuple[Call[Any], int]]:
        """Hands out more items for the piece that `take` began: those that fit, of the calls whose turn comes first.

        `fits` is asked about the next item of a call, and once more after each one that was handed out. A call that
        does not fit keeps its turn.
        """
        taken: list[tuple[Call[Any], int]] = []
        passed: list[tuple[int, int, int, Call[Any]]] = []
        while self._heap and len(passed) < _LOOKED_AT:
            tag, _, arrival, call = entry = heapq.heappop(self._heap)
            if call.closed:
                continue
            if not fits(call):
                passed.append(entry)
                continue
            taken.append((call, self._hand_out(call, tag, arrival)))
        for entry in passed:
            heapq.heappush(self._heap, entry)
        return taken

    def _hand_out(self, call: Call[Any], tag: int, arrival: int) -> int:
        position = call.hand_out()
        if call.waiting_items:
            self._push(tag + call.items[position].token_count, arrival, call)
        return position

    def _push(self, tag: int, arrival: int, call: Call[Any]) -> None:
        deadline = _NO_DEADLINE if call.deadline_ns is None else call.deadline_ns
        heapq.heappush(self._heap, (tag, deadline, arrival, call))
