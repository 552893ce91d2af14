"""Queries without labels: a section answers its own heading.

The heading is taken out of the text that must be found, or the match would be one of strings. Only headings that say
something are used: of a few words, of letters, and of one section alone ("Examples" answers to a thousand of them).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from rerank.training.examples import Example, ExampleSet, SourceText

_SEPARATOR = " > "  # between the headings of a path
_NUMBER = re.compile(r"^(?:chapter |appendix )?[\dA-Z]?[\d.]*\.?\s+", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True, slots=True)
class Conditions:
    """Which documents take part, by their metadata: one of the values for each kept field, none of the dropped."""

    keep: Mapping[str, frozenset[str]]
    drop: Mapping[str, frozenset[str]]

    def admit(self, text: SourceText) -> bool:
        """Whether a document takes part."""
        found = {name: str(value) for name, value in text.metadata.items()}
        kept = all(found.get(name) in values for name, values in self.keep.items())
        return kept and not any(found.get(name) in values for name, values in self.drop.items())


EVERY = Conditions({}, {})


def heading_set(
    name: str,
    texts: Iterable[SourceText],
    conditions: Conditions = EVERY,
    least_words: int = 3,
    least_characters: int = 200,
) -> ExampleSet:
    """Makes a query of the heading of every admitted document that has a telling one.

    All admitted documents are texts of the set, without their titles; a shorter text than `least_characters` is none.
    """
    admitted = [text for text in texts if conditions.admit(text) and len(text.text) >= least_characters]
    headings = [heading_of(text.title) for text in admitted]
    seen = Counter(heading.casefold() for heading in headings)
    examples = tuple(
        Example(f"heading:{text.text_id}", heading, {text.text_id: 1})
        for text, heading in zip(admitted, headings, strict=True)
        if seen[heading.casefold()] == 1 and len(_WORD.findall(heading)) >= least_words
    )
    return ExampleSet(name, tuple(replace(text, title="") for text in admitted), examples)


def heading_of(title: str) -> str:
    """Returns the last heading of a path, without its number."""
    return _NUMBER.sub("", title.rpartition(_SEPARATOR)[2].strip()).strip()
