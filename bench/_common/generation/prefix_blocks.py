"""What a server with a prefix cache would have of a prompt: whole blocks from its beginning, the least used forgotten.

Blocks are chained by hash, so one counts as cached only where all before it are the same, as in vLLM's block manager
(Kwon et al., 2023). A token is a word here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

BLOCK_TOKENS = 16


class PrefixBlocks:
    """The blocks that are kept, for one server."""

    def __init__(self, capacity_tokens: int) -> None:
        self._capacity = capacity_tokens // BLOCK_TOKENS
        self._kept: OrderedDict[int, None] = OrderedDict()

    def read(self, tokens: Sequence[str]) -> int:
        """Returns how many of a prompt's tokens were cached, and keeps its whole blocks from now on."""
        cached, unbroken, chained = 0, True, 0
        for start in range(0, len(tokens) - BLOCK_TOKENS + 1, BLOCK_TOKENS):
            chained = hash((chained, *tokens[start : start + BLOCK_TOKENS]))
            unbroken = unbroken and chained in self._kept
            cached += BLOCK_TOKENS if unbroken else 0
            self._kept[chained] = None
            self._kept.move_to_end(chained)
        while len(self._kept) > self._capacity:
            self._kept.popitem(last=False)
        return cached
