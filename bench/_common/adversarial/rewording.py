"""Rewords a question without changing what it asks: case, punctuation, politeness, word order, contractions."""

from __future__ import annotations

import re
from random import Random

from bench._common.adversarial.questions import Asked
from bench._common.adversarial.swaps import Change, Texts
from bench._common.adversarial.words import PRODUCTS

_CODE = re.compile(r"[()/@<>=_.:*#~%$-]|[a-z][A-Z]|\b[A-Z]{2,}\b")  # where case may mean something
_OPENINGS = (
    "Please tell me: ", "Hi, ", "Hello, ", "Hi there! ", "Could you tell me: ", "Quick question: ", "Excuse me, ",
    "I would like to know: ", "Please, ", "Can you please tell me ", "Hey, ", "Good morning! ", "I'd like to know ",
)  # fmt: skip
_ENDINGS = (", please?", " please", "? Thanks!", "? Thank you!", "? Thanks in advance.", ", thanks", "? Many thanks")
_PLACE = r"(?:in|on|during|at|for)"
_FRONTED = re.compile(
    rf"^({_PLACE} [^,?]{{3,40}}), ((?:what|who|when|where|which|why|how)\b[^,]*?)(\??)$", re.IGNORECASE
)
_TRAILING = re.compile(
    r"^((?:what|who|when|where|which|why|how)\b[^,?]*?\b\w+) ((?:in|during) (?:the |\d|[A-Z])[^,?]{0,28})(\??)$",
    re.IGNORECASE,
)
_SMALL = re.compile(  # words that begin questions and are no names
    r"(how|what|who|whom|whose|when|where|which|why|is|are|was|were|do|does|did|can|could|should|will|would|in|on|"
    r"during|at|for|if|the|has|have|after|before|what's)\b",
    re.IGNORECASE,
)
_SHORT: tuple[tuple[str, str], ...] = (
    ("do not", "don't"), ("does not", "doesn't"), ("did not", "didn't"), ("is not", "isn't"), ("are not", "aren't"),
    ("was not", "wasn't"), ("were not", "weren't"), ("cannot", "can't"), ("can not", "can't"),
    ("should not", "shouldn't"),
    ("would not", "wouldn't"), ("has not", "hasn't"), ("have not", "haven't"), ("could not", "couldn't"),
    ("what is", "what's"), ("who is", "who's"), ("where is", "where's"), ("how is", "how's"), ("when is", "when's"),
    ("I am", "I'm"), ("it is", "it's"), ("that is", "that's"), ("there is", "there's"), ("you are", "you're"),
    ("I have been", "I've been"), ("they are", "they're"), ("we are", "we're"), ("I would like", "I'd like"),
)  # fmt: skip
_INVERTED = re.compile(
    r"\b(do|does|did|is|are|was|were|can|ca|should|would|has|have|could)n't "
    r"(I|you|we|they|he|she|it|my \w+|this|that)\b",
    re.IGNORECASE,
)


def lower_case(asked: Asked, random: Random) -> Texts | None:
    """All letters small."""
    return asked.text, asked.text.lower()


def title_case(asked: Asked, random: Random) -> Texts | None:
    """A capital for every word."""
    if _CODE.search(asked.text):
        return None
    return asked.text, " ".join(word[0].upper() + word[1:] for word in asked.text.split())


def upper_case(asked: Asked, random: Random) -> Texts | None:
    """All letters large."""
    return None if _CODE.search(asked.text) else (asked.text, asked.text.upper())


def end_mark(asked: Asked, random: Random) -> Texts | None:
    """The question mark goes, comes or changes."""
    body = asked.text.rstrip("?!. ")
    ends = ("", ".", "??", "?!", " ?", "...") if asked.text.endswith("?") else ("?", "??", ".", " ?")
    return asked.text, body + random.choice(ends)


def quotes_and_commas(asked: Asked, random: Random) -> Texts | None:
    """Quotes and commas go; an apostrophe turns typographic; the whole is put in quotes."""
    text = asked.text
    if re.search(r"\d,\d|[()<>/]", text):
        return None
    if re.search(r'["]', text):
        return text, random.choice((text.replace('"', ""), text.replace('"', "'"), _curly(text)))
    if ", " in text:
        return text, text.replace(", ", " ")
    if re.search(r"\w'\w", text):
        return text, text.replace("'", "\N{RIGHT SINGLE QUOTATION MARK}")
    return (text, f'"{text}"') if random.random() < 0.01 else None


def polite_opening(asked: Asked, random: Random) -> Texts | None:
    """Please tell me, at the start."""
    return asked.text, random.choice(_OPENINGS) + _uncapitalised(asked.text)


def polite_ending(asked: Asked, random: Random) -> Texts | None:
    """Thanks at the end."""
    return asked.text, asked.text.rstrip("?!. ") + random.choice(_ENDINGS)


def word_order(asked: Asked, random: Random) -> Texts | None:
    """In 1997, what happened, against: what happened in 1997."""
    text = asked.text
    if found := _FRONTED.match(text):
        return text, f"{_capitalised(found[2])} {_uncapitalised(found[1])}{found[3]}"
    if asked.product in PRODUCTS and asked.product not in text.lower() and re.match(r"(?i)(how|what|why|where) ", text):
        shown, body = PRODUCTS[asked.product][0], text.rstrip("?. ")
        return f"{body} in {shown}?", f"In {shown}, {_uncapitalised(body)}?"
    found = _TRAILING.match(text)
    if not found or re.search(r"(?i)\b(of|to|for|from|with|at|by|between|and|or|that|who)\b|\w the\b", found[2][3:]):
        return None
    first = _capitalised(found[2]) if text[0].isupper() else found[2]
    return text, f"{first}, {_uncapitalised(found[1])}{found[3]}"


def contracted(asked: Asked, random: Random) -> Texts | None:
    """What is -> what's, does not -> doesn't."""
    return _with_one(asked.text, _SHORT, random)


def expanded(asked: Asked, random: Random) -> Texts | None:
    """What's -> what is; why don't I -> why do I not."""
    if found := _INVERTED.search(asked.text):
        verb = "can" if found[1].lower() == "ca" else found[1]
        return asked.text, f"{asked.text[: found.start()]}{verb} {found[2]} not{asked.text[found.end() :]}"
    if re.match(r"(?i)\w+ ?\w*n't \w+", asked.text):
        return None
    return _with_one(asked.text, tuple((short, long) for long, short in _SHORT if long != "can not"), random)


def white_space(asked: Asked, random: Random) -> Texts | None:
    """Doubled, leading, trailing and other white space."""
    words = asked.text.split(" ")
    place = random.randrange(1, len(words))
    gap = random.choice(("  ", "\t", "   ", "\n", "\N{NO-BREAK SPACE}"))
    broken = " ".join(words[:place]) + gap + " ".join(words[place:])
    return asked.text, random.choice(("", " ", "  ")) + broken + random.choice(("", " ", "\n"))


def several(asked: Asked, random: Random) -> Texts | None:
    """Two or three of the others, one after the other."""
    firsts: tuple[Change, ...] = (contracted, expanded, word_order, end_mark)
    text_a, text_b = asked.text, asked.text
    for number, change in enumerate(
        (random.choice(firsts), *random.sample((polite_opening, polite_ending, lower_case, white_space), 2))
    ):
        changed = change(Asked(text_b, asked.set_name), random)
        if changed is None:
            continue
        text_a, text_b = (changed[0], changed[1]) if number == 0 else (text_a, changed[1])
    return text_a, text_b


def _with_one(text: str, pairs: tuple[tuple[str, str], ...], random: Random) -> Texts | None:
    """Replaces one of the phrases that occur; not at the end, where a verb keeps its full form."""
    for old, new in random.sample(pairs, len(pairs)):
        found = re.search(rf"(?i)(?<![\w'])({re.escape(old)}) (?=\w)", text)
        if found and not (old == "who's" and found.start()) and (old != "what is" or random.random() < 0.3):
            other = new[0].upper() + new[1:] if found[1][0].isupper() else new
            return text, text[: found.start()] + other + text[found.end(1) :]
    return None


def _curly(text: str) -> str:
    left, right = "\N{LEFT DOUBLE QUOTATION MARK}", "\N{RIGHT DOUBLE QUOTATION MARK}"
    return re.sub(r'"([^"]*)"', rf"{left}\1{right}", text)


def _capitalised(text: str) -> str:
    return text[0].upper() + text[1:]


def _uncapitalised(text: str) -> str:
    """Small first letter, unless the first word is a name or an acronym."""
    known = re.match(
        r"(?i)(how|what|who|whom|whose|when|where|which|why|is|are|was|were|do|does|did|can|could|should|will|would|in|on|during|at|for|if|the|has|have|after|before|what's)\b",
        text,
    )
    return text[0].lower() + text[1:] if known else text
