"""Turns a question round: a negation comes or goes, or two arguments change places."""

from __future__ import annotations

import re
from random import Random

from bench._common.adversarial.questions import Asked
from bench._common.adversarial.swaps import Texts
from bench._common.adversarial.words import PRODUCTS

_AUX = "is|are|was|were|does|do|did|has|have|can|could|should|would|will"
_CONTRACTED = {"can": "can't", "will": "won't"}
_HARMLESS_NOT = re.compile(
    r"(?i)\b(not only|not just|why not|or not|if not|not sure|not know|n't know|n't mind|n't want|not understand|"
    r"n't understand|n't seem|whether|not to mention|n't you think|n't it)\b"
)
_WHY = re.compile(rf"^(why|how come) ({_AUX})\b(?! not\b)", re.IGNORECASE)
_SUBJECT = re.compile(
    r"^(who |which (?:\w+ ){1,2}|what (?:\w+s ))(is|are|was|were|can|has|have|should|could)\b"
    r"(?! (?:the|a|an|I|you|we)\b)",
    re.IGNORECASE,
)
_PRONOUN = re.compile(
    r"^((?:when|where|what|which \w+|who)\b.*?\b(?:can|should|could|must) (?:I|you|we|they|one|it))\b(?! not\b)",
    re.IGNORECASE,
)
_NEGATED = re.compile(rf"(?<=\w)\s(?P<aux>{_AUX})(?:n't| not)\b", re.IGNORECASE)
_CANNOT = re.compile(r"(?<=\w) (cannot|can't|can not)\b", re.IGNORECASE)

_THING = r"(?:the |a |an |my )?[\w/.+-]+"
_SAID = r"(?:(?!for )[\w-]+ ){0,2}[\w-]+"
_NAMED = r"(?:the )?[A-Z][\w-]+(?: [A-Z][\w-]+){0,2}"
_STOP = r"(?:\?|$|,| (?:in|by|using|with|for|without|on|via|at|during|when)\b)"
_MOVES = "convert|converting|translate|transform|prefer|compare|switch|change|add|connect|attach|copy"
_DEEDS = (
    "attack|invade|defeat|support|help|hate|betray|kill|leave|beat|buy|acquire|need|like|love|fight|influence|replace|"
    "join|want|meet|marry|succeed|lose to|play against|sell|trust|respect|fear|follow|conquer|occupy"
)
_FROM_TO = re.compile(
    rf"\bfrom (?P<one>{_THING}(?: [\w/.+-]+)?) (?:to|into) (?P<two>{_THING}(?: [\w/.+-]+)?){_STOP}", re.IGNORECASE
)
_CONVERT = re.compile(rf"\b(?:{_MOVES}) (?P<one>{_THING}) (?:to|into|over) (?P<two>{_THING}){_STOP}", re.IGNORECASE)
_THAN = re.compile(
    rf"\b(?:is|are|was|were) (?P<one>(?!(?:it|there|this|that|they|he|she)\b){_SAID}?) "
    rf"(?:so much |much )?(?:\w+er|more \w+|less \w+|worse) than (?P<two>{_SAID})(?:\?|$)",
    re.IGNORECASE,
)
_DID = re.compile(rf"\b(?:did|does|do) (?P<one>{_NAMED}) (?:{_DEEDS}) (?P<two>{_NAMED}){_STOP}")
_ROLES = (
    "How do I call {0} code from {1}?", "How do I migrate a project from {0} to {1}?", "How do I embed {0} in {1}?",
    "Can {0} read files that {1} wrote?",
    "How do I replace {0} by {1}?", "Is it faster to start {0} from {1}?", "How can I send the output of {0} to {1}?",
    "What does {0} depend on {1} for?", "Should I learn {0} before {1}?",
)  # fmt: skip
_EMPTY = re.compile(
    r"(?i)\b(time|end|start|home|scratch|day|now|here|where|beginning|me|you|us|them|it|\d+|n|be|do|get|another|other|with)\b"
)


def negation(asked: Asked, random: Random) -> Texts | None:
    """Takes the negation out where there is one, and puts one in where the grammar is simple."""
    text = asked.text
    if _HARMLESS_NOT.search(text):
        return None
    if found := _CANNOT.search(text):
        return text, _without_just(text[: found.start()] + " can" + text[found.end() :])
    if found := _NEGATED.search(text):
        return text, _without_just(text[: found.start()] + f" {found['aux']}" + text[found.end() :])
    if re.search(r"(?i)\bwithout\b", text):
        return text, re.sub(r"(?i)\bwithout\b", "with", text, count=1)
    return None if re.search(r"(?i)\b(not|no|never|nothing|none)\b|n't\b", text) else _negated(text)


def arguments(asked: Asked, random: Random) -> Texts | None:
    """From A to B -> from B to A; A is better than B -> B is better than A."""
    for pattern in (_FROM_TO, _CONVERT, _THAN, _DID):
        found = None if re.search(r"(?i) and (from|to) ", asked.text) else pattern.search(asked.text)
        if found and not _EMPTY.search(f"{found['one']} {found['two']}") and _even(found["one"], found["two"]):
            one, two = found.span("one"), found.span("two")
            text = asked.text
            return text, text[: one[0]] + found["two"] + text[one[1] : two[0]] + found["one"] + text[two[1] :]
    return None


def roles(asked: Asked, random: Random) -> Texts | None:
    """Two products in the roles of a question about both; the first is the product of a real question."""
    if asked.product not in PRODUCTS:
        return None
    other = random.choice([shown for shown, _ in PRODUCTS.values() if shown != PRODUCTS[asked.product][0]])
    question, one = random.choice(_ROLES), PRODUCTS[asked.product][0]
    texts = question.format(one, other), question.format(other, one)
    return (texts[0].lower(), texts[1].lower()) if random.random() < 0.3 else texts


def _negated(text: str) -> Texts | None:
    if found := _PRONOUN.search(text):
        return text, text[: found.end()] + " not" + text[found.end() :]
    for pattern in (_WHY, _SUBJECT):
        if found := pattern.search(text):
            verb = found[2].lower()
            contracted = _CONTRACTED.get(verb, f"{verb}n't")
            return text, text[: found.start(2)] + contracted + text[found.end(2) :]
    return None


def _without_just(text: str) -> str:
    return re.sub(r"\b(I|we|you) (just|even) ", r"\1 ", text)


def _even(one: str, two: str) -> bool:
    """Tells whether both sides are things that could change places."""
    return one.lower() != two.lower() and one[0].isupper() == two[0].isupper()
