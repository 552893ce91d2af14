"""In which order passages are sent, so that a server finds as much as possible of the prompt in its prefix cache.

First the longest beginning that the cache holds, among those that consist of this context's passages only. Without one,
the passage that is sent most often goes first. What follows is ordered by how often it was sent behind that first
passage, since those that keep its company will be asked for together again. A passage that was never seen there counts
for less the less relevant it is, and no more than one prompt: the best hits are those that other wordings of the
question find too. Ties go by relevance.
"""

from __future__ import annotations

from collections.abc import Sequence

from retrieval.prefix.marks import Block
from retrieval.prefix.popularity import Popularity
from retrieval.prefix.tree import PrefixTree

_PRIOR_DECAY = 0.9  # a rank


def prefix_order(root: str, blocks: Sequence[Block], tree: PrefixTree, popularity: Popularity) -> list[Block]:
    """Returns the blocks, given by relevance, in the order in which they should be sent; at least one."""
    by_key = {block.key: block for block in blocks}
    path = [by_key[key] for key in tree.longest(root, by_key.keys())]
    if not path:
        path = [max(blocks, key=lambda block: (popularity.of(block.key), -block.number))]
    first, placed = path[0].key, {block.key for block in path}
    rest = [block for block in blocks if block.key not in placed]
    rest.sort(
        key=lambda block: (-popularity.beside(first, block.key) - _PRIOR_DECAY ** (block.number - 1), block.number)
    )
    return path + rest
