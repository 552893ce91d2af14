"""The real questions that adversarial pairs are made of, read from the handed sets and shuffled by a seed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from random import Random

_FILES = (
    "squad-sub/queries.jsonl",
    "nq-mini/queries.jsonl",
    "docs-faq/queries.jsonl",
    "datatalks-faq/queries.jsonl",
    "bank-faq/queries.jsonl",
    "quora-cache/queries.jsonl",
    "quora-cache/corpus.jsonl",
)
_QUESTION_WORD = re.compile(
    r"(?i)\b(who|whom|whose|what|when|where|which|why|how|is|are|do|does|did|can|should|will)\b"
)
_REPHRASED = ("disfl-", "para-", "adv-", "pfaq")  # other phrasings of questions that are there already
_MOST_WORDS = {"quora-cache": 16}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that somebody asked."""

    text: str
    set_name: str
    product: str = ""  # whose documentation answers it
    answers: tuple[str, ...] = ()


def read_questions(folder: Path) -> Mapping[str, tuple[Asked, ...]]:
    """Returns usable questions by file of origin; files that are not there are left out.

    Raises:
        FileNotFoundError: none of the sets is in the folder.
    """
    found = {name: tuple(_read(folder / name)) for name in _FILES if (folder / name).exists()}
    if not found:
        raise FileNotFoundError(f"no handed set with queries in {folder}; give the folder that holds squad-sub")
    return found


def mixed(questions: Mapping[str, tuple[Asked, ...]], random: Random) -> Iterator[Asked]:
    """Yields all questions in a random order, taking turns between the files so that none drowns the others."""
    piles = [random.sample(pile, len(pile)) for pile in questions.values()]
    for turn in zip_longest(*piles):
        yield from (asked for asked in turn if asked is not None)


def _read(path: Path) -> Iterator[Asked]:
    seen = set[str]()
    with path.open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            text = " ".join(row["text"].split())
            if row["_id"].startswith(_REPHRASED) or text.casefold() in seen or not _usable(text, path.parent.name):
                continue
            seen.add(text.casefold())
            metadata = row.get("metadata") or {}
            answers = tuple(metadata.get("answers") or ())
            yield Asked(text, path.parent.name, metadata.get("product", ""), answers)


def _usable(text: str, set_name: str) -> bool:
    """One sentence of plain characters that asks something."""
    words = text.split()
    if not 4 <= len(words) <= _MOST_WORDS.get(set_name, 24):
        return False
    plain = text.isascii() and not re.search(r"[\[\]{}\\|~]", text)
    one_sentence = not re.search(r"[.?!;:] +\S", text)
    asks = bool(_QUESTION_WORD.search(text)) and (set_name != "quora-cache" or text.endswith("?"))
    return plain and one_sentence and asks
