"""A server with a prefix cache that is counted in whole passages, behind an arranger."""

from __future__ import annotations

from retrieval.dispatch.types import Arranger
from retrieval.speech import Usage
from retrieval.types import Arrangement, Context
from tests.fakes.contexts import TOKENS

HEAD_TOKENS = 30


class PassageServer:
    """Keeps the prompts of its last requests, as sequences of blocks, and reports what of a prompt it had."""

    def __init__(self, prompts: int, *, reports: bool = True) -> None:
        self.prompts = prompts
        self.reports = reports
        self._kept: list[tuple[str, list[str]]] = []

    def ask(self, arranger: Arranger, context: Context, root: str = "root") -> int:
        """Sends one prompt through the arranger; returns how many passages were cached."""
        arrangement = arranger.arrange(root, context)
        arranger.sent(root, context, arrangement)
        return self.answer(arranger, context, arrangement, root)

    def answer(self, arranger: Arranger, context: Context, arrangement: Arrangement, root: str = "root") -> int:
        """Answers a prompt that was sent; returns how many passages were cached."""
        blocks = arrangement.text.split("\n\n")
        same_root = [kept for name, kept in self._kept if name == root]
        cached = max((_shared(kept, blocks) for kept in same_root), default=0)
        known = HEAD_TOKENS if same_root else 0
        self._kept = [*self._kept, (root, blocks)][-self.prompts :] if self.prompts else []
        tokens = known + TOKENS * cached if self.reports else 0
        arranger.learn(root, context, arrangement, Usage(HEAD_TOKENS + TOKENS * len(blocks), 5, tokens))
        return cached

    def forget(self) -> None:
        """Loses its cache, as a server does that is started again."""
        self._kept = []


def _shared(first: list[str], second: list[str]) -> int:
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count
