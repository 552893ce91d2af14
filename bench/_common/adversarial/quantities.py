"""Changes a number, its unit, a version, a year or a date."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from random import Random

from bench._common.adversarial.questions import Asked
from bench._common.adversarial.swaps import Texts, swapped
from bench._common.adversarial.words import MONTHS, NUMBER_WORDS, PRODUCTS, UNITS

_NUMBER = re.compile(r"(?<![\w.,:/$#*-])(\d{1,3}|\d{1,3}(?:,\d{3})+|[1-9]\d{3,})(?![\w.,:/*+-]|\.\d|th|st|nd|rd)")
_YEAR = re.compile(r"(?<![\w.,:/$-])(1[5-9]\d\d|20[0-3]\d)(s?)(?![\w,:/-]|\.\d)")
_VERSION = re.compile(
    r"(?<![\w./])(v?)(\d{1,2})\.(\d{1,3})(\.\d{1,3})?(?![\w./%]| ?(?:gpa|percent|million|billion|inch|%))",
    re.IGNORECASE,
)
_DEPENDING = re.compile(r"(?i)(how (do|can|to|does)|why (do|does|is|can)|can (i|we)|is it possible) ")  # on the version
_NO_VERSION = re.compile(
    r"(?i)gpa|billion|million|light year|cgpa|percent|%|[$]|earthquake|magnitude|score|tax|pay|mm|ielts"
)
_DATE = re.compile(rf"\b({'|'.join(MONTHS)})\b(?:( )(\d{{1,2}})(st|nd|rd|th)?(?! ?\d))?")
_COUNTED_UNIT = r"(?<![\w.])(\d+(?:\.\d+)?)([ -]?)({unit})(?!\w)"
_ASKED_UNIT = r"\b(how many|in|per) ({unit})(?!\w)"


def number(asked: Asked, random: Random) -> Texts | None:
    """Module 2 -> module 5, two teams -> three teams."""
    text = asked.text
    found = [match for match in _NUMBER.finditer(text) if not _YEAR.fullmatch(match[0])]
    if not found:
        counted = re.search(
            r"(?i)\b(first|last|all|the|these|those|what|which|week|into) (two|three|four|five|six)\b", text
        )
        words = {word: [one for one in NUMBER_WORDS if one != word] for word in NUMBER_WORDS}
        return swapped(text, words, random) if counted else None
    chosen = random.choice(found)
    return text, text[: chosen.start()] + _other_number(chosen[0], random) + text[chosen.end() :]


def unit(asked: Asked, random: Random) -> Texts | None:
    """30 days -> 30 weeks, how many miles -> how many yards."""
    for family in random.sample(UNITS, len(UNITS)):
        words = "|".join(map(re.escape, family))
        for pattern in (_COUNTED_UNIT, _ASKED_UNIT):
            found = re.search(pattern.format(unit=words), asked.text, re.IGNORECASE)
            if found and len(re.findall(rf"(?i)\b(?:{words})\b", asked.text)) <= 1:
                place = found.lastindex or 0
                other = _like(found[place], random.choice(_beside(family, found[place].lower())))
                return asked.text, asked.text[: found.start(place)] + other + asked.text[found.end(place) :]
    return None


def version(asked: Asked, random: Random) -> Texts | None:
    """3.1 -> 3.10: a version that the question names, or one that is put into it for its product."""
    found = None if _NO_VERSION.search(asked.text) else _VERSION.search(asked.text)
    if found:
        return asked.text, asked.text[: found.start()] + _other_version(found, random) + asked.text[found.end() :]
    if asked.product not in PRODUCTS or re.search(r"\d", asked.text) or not _DEPENDING.match(asked.text):
        return None
    shown, versions = PRODUCTS[asked.product]
    one, other = random.sample(versions, 2)
    body = asked.text.rstrip("?. ")
    if re.search(rf"\b{re.escape(shown)}\b", body, re.IGNORECASE):
        style = re.sub(rf"\b{re.escape(shown)}\b", f"{shown} {{one}}", body, count=1, flags=re.IGNORECASE) + "?"
    else:
        style = random.choice(
            (f"{body} in {shown} {{one}}?", f"{body} with {shown} v{{one}}?", f"{shown} {{one}}: {body}?")
        )
    return style.replace("{one}", one), style.replace("{one}", other)


def year(asked: Asked, random: Random) -> Texts | None:
    """1985 -> 1991, the 1920s -> the 1930s."""
    found = _YEAR.search(asked.text)
    if not found:
        return None
    step = random.choice((-30, -20, -10, 10)) if found[2] else random.choice((-10, -6, -2, -1, 1, 2, 3, 7))
    return asked.text, asked.text[: found.start(1)] + str(int(found[1]) + step) + asked.text[found.end(1) :]


def date(asked: Asked, random: Random) -> Texts | None:
    """May -> June, September 11 -> September 17."""
    found = _DATE.search(asked.text)
    if not found or (found[1] in ("May", "March") and not _dated(asked.text, found)):
        return None
    if found[3] and not found[4] and random.random() < 0.6:
        day = random.choice([one for one in range(1, 28) if one != int(found[3])])
        return asked.text, asked.text[: found.start(3)] + str(day) + asked.text[found.end(3) :]
    month = random.choice([one for one in MONTHS if one != found[1]])
    return asked.text, asked.text[: found.start(1)] + month + asked.text[found.end(1) :]


def _dated(text: str, found: re.Match[str]) -> bool:
    before, after = text[: found.start()].rsplit(maxsplit=1)[-1:], text[found.end() :]
    return bool(before and before[0].lower() in ("in", "of", "since", "by", "until", "during")) or bool(
        re.match(r" ?\d", after)
    )


def _other_number(shown: str, random: Random) -> str:
    if "," in shown:
        return f"{int(shown.replace(',', '')) + random.choice((1000, 3000, 5000)):,}"
    value = int(shown)
    if random.random() < 0.3 and value:
        return str(value * 10)
    return str(random.choice([one for one in _near(value) if one > 0 and one != value]))


@cache
def _near(value: int) -> Sequence[int]:
    step = 100 if value >= 500 else 10 if value >= 50 else 5 if value >= 20 else 1
    return [value + times * step for times in (-2, -1, 1, 2, 3)]


def _other_version(found: re.Match[str], random: Random) -> str:
    major, minor, patch = found[2], found[3], found[4] or ""
    choices = [f"{major}.{int(minor) + 1}{patch}", f"{int(major) + 1}.{minor}{patch}", f"{major}.{minor}0{patch}"]
    if patch:
        choices.append(f"{major}.{minor}.{int(patch[1:]) + 1}")
    return found[1] + random.choice(choices)


def _beside(family: Sequence[str], one: str) -> Sequence[str]:
    """Returns the units next to one: nobody is fifteen seconds old."""
    place = family.index(one)
    return [*family[max(place - 1, 0) : place], *family[place + 1 : place + 2]]


def _like(old: str, other: str) -> str:
    return other.upper() if old.isupper() else other.capitalize() if old[0].isupper() else other
