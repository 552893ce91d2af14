"""Opens what counts tokens as the target model does.

Passages come again from one request to the next, and counting one costs more than anything else in assembly, so counts
of texts of passage length are remembered. Longer texts are whole prompts: they rarely come twice.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from encoders.sources import ModelSource, locate
from encoders.tokenizing import Tokenization
from encoders.types import TokenCounter
from indexers.types import Passage
from retrieval.assembly.template import source_trail

BUNDLED = "bundled"
BUNDLED_MODEL = "bundled:minilm-l6"

_UNLIMITED_TOKENS = 1 << 30
_LONGEST_REMEMBERED = 4096  # code points
_REMEMBERED_TEXTS = 4096


def open_counter(tokenizer: str, *, knows_passages: bool = False) -> RememberingCounter:
    """Opens a counter: `bundled` for the bundled encoder's tokenizer, else the path of a `tokenizer.json`.

    `knows_passages` says that the dense encoder has the same tokenizer, so the counts stored with passages hold.

    Raises:
        ModelNotFound: there is no such file.
        ModelUnsupported: it is no tokenizer.
    """
    path = locate(ModelSource(BUNDLED_MODEL)) / "tokenizer.json" if tokenizer == BUNDLED else Path(tokenizer)
    name = BUNDLED if tokenizer == BUNDLED else path.parent.name or path.name
    return RememberingCounter(Tokenization.open(path, name, _UNLIMITED_TOKENS), knows_passages=knows_passages)


class RememberingCounter:
    """A `TokenCounter` that remembers the counts of texts of passage length. Safe to use from several threads."""

    def __init__(self, counter: TokenCounter, *, knows_passages: bool = False) -> None:
        self._counter = counter
        self._knows_passages = knows_passages
        self._remembered = lru_cache(maxsize=_REMEMBERED_TEXTS)(counter.count)

    @property
    def name(self) -> str:
        """The tokenizer's name."""
        return self._counter.name

    @property
    def adds_up(self) -> bool:
        """Whether texts joined by white space have just the tokens that they have apart."""
        return self._counter.adds_up

    def count(self, text: str) -> int:
        """Counts the tokens of the text alone, without special tokens."""
        return self._remembered(text) if len(text) <= _LONGEST_REMEMBERED else self._counter.count(text)

    def count_passage(self, passage: Passage) -> int:
        """Counts the tokens of a passage's text; takes the stored count where this tokenizer made it."""
        if self._knows_passages and passage.token_count:
            return passage.token_count
        return self.count(passage.text)

    def count_trail(self, passage: Passage) -> int:
        """Counts the tokens of a passage's title and headings; takes the stored count where it holds."""
        if self._knows_passages and passage.header:
            return passage.header_token_count
        return self.count(source_trail(passage))

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Returns the code-point span of each token, in order, without special tokens."""
        return self._counter.offsets(text)
