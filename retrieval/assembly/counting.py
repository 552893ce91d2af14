"""What assembly asks of a token counter besides counting: how many tokens a passage has, which may be known already."""

from __future__ import annotations

from typing import Protocol

from encoders.types import TokenCounter
from indexers.types import Passage
from retrieval.assembly.template import BLOCK_SEPARATOR, source_block, source_mark


class PassageCounter(TokenCounter, Protocol):
    """Counts tokens as the target model does."""

    def count_passage(self, passage: Passage) -> int:
        """Counts the tokens of a passage's text, without counting again what was counted when it was indexed."""
        ...

    def count_trail(self, passage: Passage) -> int:
        """Counts the tokens of a passage's title and headings, as a source shows them."""
        ...


def count_source(number: int, passage: Passage, counter: PassageCounter) -> int:
    """Counts the tokens of a source as it stands among others: by its parts, where those add up."""
    if not counter.adds_up:
        return counter.count(source_block(number, passage) + BLOCK_SEPARATOR)
    return counter.count(source_mark(number)) + counter.count_trail(passage) + counter.count_passage(passage)
