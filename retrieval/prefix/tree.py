"""What a server's prefix cache holds, as far as it can be told from what was sent: a tree of blocks for each root.

The server forgets what was used longest ago, ends of prompts before their beginnings, and so does the tree: a path is
touched from its end to its root, so the least recently used node is always a leaf.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from retrieval.prefix.marks import Block

MOST_NODES = 50_000
"""Nodes at most, whatever the server can hold; one takes about 400 bytes."""

_MOST_VISITED = 128


@dataclass(slots=True, eq=False)
class Node:
    """A block behind all those before it. Nodes above the blocks stand for a root, and for the server."""

    key: int | str
    parent: Node | None
    tokens: int
    depth_tokens: int  # from the root to the end of this block
    used: int = 0  # the number of the prompt that used it last
    confirmed: bool = False  # a prompt with it has been answered, so the server has computed it
    children: dict[int | str, Node] = field(default_factory=dict)


class PrefixTree:
    """Paths of blocks that a cache of so many tokens holds."""

    def __init__(self, capacity_tokens: int) -> None:
        self.capacity_tokens = capacity_tokens
        self.tokens = 0  # held now
        self._server = Node("", None, 0, 0)
        self._recent: OrderedDict[Node, None] = OrderedDict()  # least recently used first
        self._prompts = 0

    def __len__(self) -> int:
        return len(self._recent)

    def longest(self, root: str, keys: AbstractSet[int]) -> list[int]:
        """Returns the keys along the path with the most tokens among those that consist of these blocks only.

        The search is bounded, so in a tree of a great many such paths it may be another long one.
        """
        best = start = self._server.children.get(root)
        if start is None or best is None:
            return []
        waiting, visited = [start], 0
        while waiting and visited < _MOST_VISITED:
            node = waiting.pop()
            visited += 1
            if (node.depth_tokens, node.used) > (best.depth_tokens, best.used):
                best = node
            waiting += [node.children[key] for key in node.children.keys() & keys]
        return [node.key for node in _path(best) if isinstance(node.key, int)]

    def matched(self, root: str, blocks: Sequence[Block]) -> list[Node]:
        """Returns the nodes of the longest beginning of the blocks that is in the tree."""
        found: list[Node] = []
        node = self._server.children.get(root)
        for block in blocks:
            node = None if node is None else node.children.get(block.key)
            if node is None:
                break
            found.append(node)
        return found

    def insert(self, root: str, blocks: Sequence[Block]) -> None:
        """Notes that a prompt with these blocks was sent, and forgets what the server had to forget for it."""
        self._prompts += 1
        node = self._child(self._server, root, 0)
        path = [node]
        for block in blocks:
            node = self._child(node, block.key, block.tokens)
            path.append(node)
        for node in reversed(path):
            node.used = self._prompts
            self._recent[node] = None
            self._recent.move_to_end(node)
        self._shrink()

    def forget_older(self, prompt: int) -> None:
        """Forgets all that was used last by this prompt or an earlier one: what is as old as the forgotten is gone."""
        while self._recent and next(iter(self._recent)).used <= prompt:
            self._drop()

    def _child(self, node: Node, key: int | str, tokens: int) -> Node:
        child = node.children.get(key)
        if child is None:
            child = node.children[key] = Node(key, node, tokens, node.depth_tokens + tokens)
            self.tokens += tokens
        return child

    def _shrink(self) -> None:
        while self.tokens > self.capacity_tokens or len(self._recent) > MOST_NODES:
            self._drop()

    def _drop(self) -> None:
        node, _ = self._recent.popitem(last=False)
        self.tokens -= node.tokens
        assert node.parent is not None
        del node.parent.children[node.key]


def _path(node: Node) -> list[Node]:
    """Returns the nodes from the root to this one."""
    path = [node]
    while path[-1].parent is not None:
        path.append(path[-1].parent)
    return path[::-1]
