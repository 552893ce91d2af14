"""An adversarial set: look-alike questions whose answers differ, and harmless rewrites of one and the same question.

Made with a seed of real questions of the handed sets, independently of the guard that is judged by it: a guard that
is written against its own examples proves nothing. Each pair keeps to one kind, in about equal numbers, so that a
failure says what was overlooked. No question is used for two pairs of a set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random

from bench._common.adversarial import hard, quantities, rewording, swaps, turns
from bench._common.adversarial.questions import Asked, mixed, read_questions
from bench._common.adversarial.swaps import Change

LOOK_ALIKE_KINDS: Mapping[str, Change] = {
    "negation": turns.negation,
    "negating prefix": swaps.prefix,
    "swapped arguments": turns.arguments,
    "swapped roles": turns.roles,
    "number": quantities.number,
    "unit": quantities.unit,
    "version": quantities.version,
    "year": quantities.year,
    "date": quantities.date,
    "name": swaps.name,
    "name in lower case": swaps.name_lower,
    "product": swaps.software,
    "direction": swaps.direction,
    "superlative": swaps.superlative,
    "ordinal": swaps.ordinal,
}

HARD_KINDS: Mapping[str, Change] = {
    **{f"{kind}, reworded": hard.reworded(change) for kind, change in LOOK_ALIKE_KINDS.items()},
    "question word": hard.question_word,
    "qualifier left out": hard.qualifier,
}

REWRITE_KINDS: Mapping[str, Change] = {
    "lower case": rewording.lower_case,
    "title case": rewording.title_case,
    "upper case": rewording.upper_case,
    "end mark": rewording.end_mark,
    "quotes and commas": rewording.quotes_and_commas,
    "polite opening": rewording.polite_opening,
    "polite ending": rewording.polite_ending,
    "word order": rewording.word_order,
    "contracted": rewording.contracted,
    "expanded": rewording.expanded,
    "white space": rewording.white_space,
    "several at once": rewording.several,
}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two questions, what makes the second of the first, and the set that the first comes from."""

    kind: str
    text_a: str
    text_b: str
    set_name: str


def look_alikes(data_folder: Path, count: int, seed: int) -> list[Pair]:
    """Returns pairs of questions that read alike and have different answers.

    Raises:
        FileNotFoundError: none of the handed sets is in the folder.
        ValueError: the sets do not hold enough questions.
    """
    return _draw(data_folder, LOOK_ALIKE_KINDS, count, seed)


def hard_look_alikes(data_folder: Path, count: int, seed: int) -> list[Pair]:
    """Returns look-alikes that differ in their form besides, and two kinds that no list of facts covers.

    Raises:
        FileNotFoundError: none of the handed sets is in the folder.
        ValueError: the sets do not hold enough questions.
    """
    return _draw(data_folder, HARD_KINDS, count, seed)


def rewrites(data_folder: Path, count: int, seed: int) -> list[Pair]:
    """Returns pairs of texts that ask the same.

    Raises:
        FileNotFoundError: none of the handed sets is in the folder.
        ValueError: the sets do not hold enough questions.
    """
    return _draw(data_folder, REWRITE_KINDS, count, seed)


def _draw(folder: Path, kinds: Mapping[str, Change], count: int, seed: int) -> list[Pair]:
    """Takes one pair of each kind in turn; a kind that has run dry leaves its share to the others."""
    questions, used = read_questions(folder), set[str]()
    streams = [_pairs(kind, change, questions, used, Random(f"{seed} {kind}")) for kind, change in kinds.items()]
    drawn = list(islice(_in_turn(streams), count))
    if len(drawn) < count:
        raise ValueError(f"only {len(drawn)} pairs of {count} can be made of the sets in {folder}; ask for fewer")
    return sorted(drawn, key=lambda pair: list(kinds).index(pair.kind))


def _pairs(
    kind: str, change: Change, questions: Mapping[str, tuple[Asked, ...]], used: set[str], random: Random
) -> Iterator[Pair]:
    for asked in mixed(questions, random):
        if asked.text in used:
            continue
        texts = change(asked, random)
        if texts is not None and texts[0] != texts[1]:
            used.add(asked.text)
            yield Pair(kind, *texts, asked.set_name)


def _in_turn(streams: Sequence[Iterator[Pair]]) -> Iterator[Pair]:
    alive = list(streams)
    while alive:
        for stream in tuple(alive):
            pair = next(stream, None)
            if pair is None:
                alive.remove(stream)
            else:
                yield pair
