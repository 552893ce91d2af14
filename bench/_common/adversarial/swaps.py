"""Puts one word in the place of another: names, products, directions, superlatives, prefixes, ordinals."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import Random

from bench._common.adversarial.opposites import DIRECTIONS, PREFIXES, SUPERLATIVES, Pairs
from bench._common.adversarial.questions import Asked
from bench._common.adversarial.words import CLASSES, PRODUCTS, SOFTWARE

Texts = tuple[str, str]
Change = Callable[[Asked, Random], Texts | None]  # two questions with different answers, or None where it cannot

# Beside these words an opposite does not turn the question round.
_NOT_TURNING = re.compile(
    r"(?i)\b(open source|open-source|once added|at first|first name|first class|first-class|first of all|most of|"
    r"second hand|per second|not only|or not|used to|like to|would like|looks? like|feel like|known as|known for|"
    r"best known|start with|to start|more or less|vice versa|and/or|sooner or later|direct messages?|last name|"
    r"show (?:an|me|how|that))\b"
)
# Common words that are also the names of software.
_OTHER_SENSE = re.compile(r"\b(amazon|windows|apple|fish|mage|oracle|mac|spark|ruby|nano)\b")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "last")
_RANKED = re.compile(
    r"(?i)\b(the|his|her|its|their|'s) (first|second|third|fourth|fifth|last) (?!time|year|name|few|\w+ed\b)\w+"
)
_NUMBERED = re.compile(r"\b(\d{1,2})(st|nd|rd|th)\b", re.IGNORECASE)


def direction(asked: Asked, random: Random) -> Texts | None:
    """Before -> after, import -> export."""
    return _turned(asked.text, DIRECTIONS, random)


def superlative(asked: Asked, random: Random) -> Texts | None:
    """Largest -> smallest."""
    return _turned(asked.text, SUPERLATIVES, random)


def prefix(asked: Asked, random: Random) -> Texts | None:
    """Possible -> impossible."""
    texts = _turned(asked.text, PREFIXES, random)
    return (texts[0], _with_articles(texts[1])) if texts else None


def ordinal(asked: Asked, random: Random) -> Texts | None:
    """First -> third, 19th -> 18th."""
    if _NOT_TURNING.search(asked.text) or re.search(r"(?i)\bseconds?\b.*\b(per|a) \w+|\d second", asked.text):
        return None
    if found := _NUMBERED.search(asked.text):
        number = int(found[1]) + random.choice((-2, -1, 1, 2))
        return (asked.text, _replaced(asked.text, found, numbered(number))) if number > 0 else None
    if not _RANKED.search(asked.text):
        return None
    return swapped(asked.text, _family(_ORDINALS), random)


def name(asked: Asked, random: Random) -> Texts | None:
    """India -> Japan; a person that other questions ask for in the place of another."""
    return swapped(asked.text, _names(), random) if asked.text != asked.text.lower() else None


def name_lower(asked: Asked, random: Random) -> Texts | None:
    """The same in a question without capitals."""
    return swapped(asked.text.lower(), _names(), random)


def software(asked: Asked, random: Random) -> Texts | None:
    """A product that the question names, or one that it is asked about, against another."""
    if not _OTHER_SENSE.search(asked.text) and (found := swapped(asked.text, _software(), random)):
        return found
    if asked.product not in PRODUCTS or asked.product in asked.text.lower():
        return None
    named = PRODUCTS[asked.product][0]
    other = random.choice([shown for shown, _ in PRODUCTS.values() if shown != named])
    style = random.choice(("{body} in {product}?", "In {product}, {opened}?", "{body}? ({product})"))
    body = asked.text.rstrip("?. ")
    opened = body[0].lower() + body[1:] if body[:2] != "I " else body
    first, second = (style.format(body=body, opened=opened, product=one) for one in (named, other))
    return (first.lower(), second.lower()) if random.random() < 0.3 else (first, second)


def swapped(text: str, others: Mapping[str, Sequence[str]], random: Random) -> Texts | None:
    """Replaces one of the words that `others` knows; None when there is none, or the other is in the text already."""
    found = list(_any_of(tuple(others)).finditer(text))
    if not found:
        return None
    chosen = random.choice(found)
    fitting = [word for word in others[chosen[0].lower()] if word.lower() not in text.lower()]
    if not fitting or len(_any_of((chosen[0].lower(),)).findall(text)) > 1:
        return None
    return text, _replaced(text, chosen, random.choice(fitting))


def numbered(number: int) -> str:
    """Returns 1st, 2nd, 3rd, 4th and so on."""
    teen = 10 <= number % 100 <= 20
    return f"{number}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _turned(text: str, pairs: Pairs, random: Random) -> Texts | None:
    return None if _NOT_TURNING.search(text) else swapped(text, _opposites(pairs), random)


def _with_articles(text: str) -> str:
    return re.sub(
        r"\b([Aa])n? (?=(?:un|in|im|il|ir|as)\w)", r"\1n ", re.sub(r"\b([Aa])n (?=[bcdfghj-np-tv-z])", r"\1 ", text)
    )


def _replaced(text: str, found: re.Match[str], other: str) -> str:
    old = found[0]
    if old.islower():
        other = other.lower()
    elif old.isupper() and len(old) > 1:
        other = other.upper()
    elif old[0].isupper() and other.islower():
        other = other[0].upper() + other[1:]
    return text[: found.start()] + other + text[found.end() :]


@cache
def _any_of(words: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(words, key=len, reverse=True)
    return re.compile(r"(?<![\w.-])(" + "|".join(map(re.escape, longest_first)) + r")(?![\w-]|\.\w|')", re.IGNORECASE)


@cache
def _opposites(pairs: Pairs) -> Mapping[str, Sequence[str]]:
    table: dict[str, list[str]] = {}
    for one, other in pairs:
        table.setdefault(one, []).append(other)
        table.setdefault(other, []).append(one)
    return table


@cache
def _family(words: tuple[str, ...]) -> Mapping[str, Sequence[str]]:
    return {word.lower(): [other for other in words if other != word] for word in words}


@cache
def _names() -> Mapping[str, Sequence[str]]:
    return {word: others for words in CLASSES.values() for word, others in _family(words).items()}


@cache
def _software() -> Mapping[str, Sequence[str]]:
    return {word: others for words in SOFTWARE for word, others in _family(words).items()}
