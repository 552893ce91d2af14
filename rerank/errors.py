"""What can go wrong while reranking.

RerankError
├── LateIncomplete        not every passage has token vectors in time; the whole list falls back
├── RerankIncomplete      not every pair was scored: the deadline, a failing item; the whole list falls back
└── QueryTooLong          the query alone fills its share of a pair and truncation was not allowed
"""

from __future__ import annotations

from typing import Literal, TypeAlias

Reason: TypeAlias = Literal["deadline", "unavailable"]


class RerankError(Exception):
    """Anything that this package raises on purpose."""


class LateIncomplete(RerankError):
    """Late interaction could not score every passage, so the caller keeps the previous order for all.

    `reason` is `deadline` when time ran out and `unavailable` when the store or a passage failed; the cause is chained.
    """

    def __init__(self, reason: Reason) -> None:
        super().__init__(f"late interaction could not score every passage ({reason}); the previous order stays")
        self.reason = reason


class RerankIncomplete(RerankError):
    """Not every pair was scored; real and made-up scores never mix, so the caller keeps the previous order for all.

    `reason` is `deadline` when time ran out and `unavailable` when a pair failed; the cause is chained.
    """

    def __init__(self, reason: Reason, scored_pairs: int, asked_pairs: int, scored_tokens: int = 0) -> None:
        super().__init__(f"{scored_pairs} of {asked_pairs} pairs were scored ({reason}); the previous order stays")
        self.reason = reason
        self.scored_pairs = scored_pairs
        self.asked_pairs = asked_pairs
        self.scored_tokens = scored_tokens


class QueryTooLong(RerankError):
    """The query alone has more tokens than its share of a pair."""

    def __init__(self, token_count: int, limit_tokens: int) -> None:
        super().__init__(f"the query has {token_count} tokens, a pair leaves it {limit_tokens}; shorten it")
        self.token_count = token_count
        self.limit_tokens = limit_tokens
