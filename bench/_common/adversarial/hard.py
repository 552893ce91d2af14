"""Look-alikes beyond those that change one word: in another form besides, asked by another word, or less narrowly."""

from __future__ import annotations

import re
from random import Random

from bench._common.adversarial import rewording
from bench._common.adversarial.questions import Asked
from bench._common.adversarial.swaps import Change, Texts

_FORMS: tuple[Change, ...] = (
    rewording.word_order,
    rewording.contracted,
    rewording.expanded,
    rewording.polite_opening,
    rewording.polite_ending,
    rewording.lower_case,
)
_ASKED_BY = re.compile(
    r"^(when|where|why|how) (is|are|was|were|do|does|did|can|could|should|will|would)\b(?! (?:you like|it that))",
    re.IGNORECASE,
)
_QUALIFIER = re.compile(
    r"(?P<body>^(?:\S+ ){3,}\S+?) (?P<place>in|on|for|with|using|during|from) "
    r"(?P<what>(?:the )?(?:[A-Z][\w-]*|\d[\w.]*)(?: (?:[A-Z][\w-]*|\d[\w.]*)){0,2})(?P<end>\??)$"
)
_HANGING = re.compile(
    r"(?i)\b(is|are|was|were|be|been|live|lives|go|come|comes|interested|apply|between|and|to|the|of)$"
)


def reworded(change: Change) -> Change:
    """Returns a change that puts the look-alike into another form as well: a second difference hides the first."""

    def both(asked: Asked, random: Random) -> Texts | None:
        texts = change(asked, random)
        if texts is None:
            return None
        for form in random.sample(_FORMS, len(_FORMS)):
            other = form(Asked(texts[1], asked.set_name), random)
            if other is not None and other[0] == texts[1] and other[1] != texts[1]:
                return texts[0], other[1]
        return None

    return both


def question_word(asked: Asked, random: Random) -> Texts | None:
    """When -> where, how -> why."""
    found = _ASKED_BY.match(asked.text)
    if not found:
        return None
    others = [word for word in ("when", "where", "why", "how") if word != found[1].lower()]
    other = random.choice(others)
    return asked.text, (other.capitalize() if found[1][0].isupper() else other) + asked.text[found.end(1) :]


def qualifier(asked: Asked, random: Random) -> Texts | None:
    """Leaves out in which place, product or time; whichever of the two was asked first."""
    found = _QUALIFIER.match(asked.text)
    if not found or _HANGING.search(found["body"]):
        return None
    texts = asked.text, found["body"] + found["end"]
    return texts if random.random() < 0.5 else texts[::-1]
