"""Contexts of short passages, each known by a letter."""

from __future__ import annotations

from indexers.types import Passage
from retrieval.assembly.template import BLOCK_SEPARATOR, source_block
from retrieval.types import Citation, Context

TOKENS = 100
"""Tokens of each passage, marks and all."""


def context_of(names: str) -> Context:
    """Returns a context of one passage a letter, most relevant first."""
    citations = tuple(
        Citation(number, _passage(name), (f"chunk-{name}",)) for number, name in enumerate(names, start=1)
    )
    text = BLOCK_SEPARATOR.join(source_block(one.number, one.passage) for one in citations)
    return Context(text, TOKENS * len(names), 10_000, "words", citations)


def _passage(name: str) -> Passage:
    text = f"Passage {name} says {name * 20}."
    return Passage(f"chunk-{name}", f"document-{name}", f"About {name}", (), text, 0, len(text), 0, 0, {})
