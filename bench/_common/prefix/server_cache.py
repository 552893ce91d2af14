"""A model server's prefix cache when nothing is lost: every token of every prompt, the least recently used out first.

Exact to the token; real servers keep pages of 16 tokens or more, and the answers' tokens besides.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence


class SimulatedCache:
    """Serves prompts and says how many tokens of each were cached."""

    def __init__(self, capacity_tokens: int) -> None:
        self._capacity_tokens = capacity_tokens
        self._nodes: dict[tuple[int, Hashable], int] = {}
        # Ends of prompts before their beginnings, so that what leaves first is always an end.
        self._recent: OrderedDict[tuple[int, Hashable], None] = OrderedDict()
        self._made = 0

    def serve(self, tokens: Sequence[Hashable]) -> int:
        """Returns how many tokens at the beginning were cached, and keeps all of them."""
        node, path, cached = 0, list[tuple[int, Hashable]](), 0
        for token in tokens:
            edge = (node, token)
            known = self._nodes.get(edge)
            if known is None:
                self._made += 1
                known = self._nodes[edge] = self._made
            else:
                cached += 1  # a new node has no children yet, so no later token of this prompt can be known
            path.append(edge)
            node = known
        for edge in reversed(path):
            self._recent[edge] = None
            self._recent.move_to_end(edge)
        while len(self._recent) > self._capacity_tokens:
            edge, _ = self._recent.popitem(last=False)
            del self._nodes[edge]
        return cached
