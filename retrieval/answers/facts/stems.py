"""The key by which two forms of a word are compared: inflection is levelled, derivation is not.

A stemmer for search joins `university` with `universe` and `computer` with `compute`; to the guard these are different
words. So the key is the stem and, after it, the derivational ending that the stemmer took away.
"""

from __future__ import annotations

import re
from functools import lru_cache

from py_rust_stemmers import SnowballStemmer

_STEMMER = SnowballStemmer("english")
_ENDINGS = re.compile(
    r"(?:ization|isation|ation|ition|tion|sion|ity|ment|ence|ance|ency|ancy|ism|ist|ive|ous|ful|less|ness|ship|able|ible|"
    r"ably|ibly|ally|ly|ical|ic|al|ant|ent|ary|ory|ure|er|or|ate|ize|ify|y|e)$"
)
_IRREGULAR = {
    "children": "child", "men": "man", "women": "woman", "mice": "mouse", "feet": "foot", "teeth": "tooth",
    "indices": "index", "indexes": "index", "matrices": "matrix", "vertices": "vertex", "criteria": "criterion",
    "analyses": "analysis", "axes": "axis", "lives": "life", "knives": "knife", "wives": "wife", "leaves": "leaf",
}  # fmt: skip
GERUND = "ing"  # `accounting` is not `account`
_LONGEST_WORD = 40


@lru_cache(maxsize=1 << 15)
def word_key(word: str) -> str:
    """Returns the key of a lower-case word. Words of other scripts and very long ones are their own key."""
    if not word.isascii() or len(word) > _LONGEST_WORD or len(word) < 3:
        return word
    levelled = _levelled_spelling(_IRREGULAR.get(word, word))
    stem: str = _STEMMER.stem_word(levelled)
    ending = _ENDINGS.search(_without_inflection(levelled))
    taken = ending.group() if ending and not stem.endswith(ending.group()) else ""
    if levelled.endswith(GERUND) and not stem.endswith(GERUND):
        taken = GERUND
    return f"{stem}+{taken}" if taken and taken not in ("e", "y", "ate", "ize", "ure") else stem


def bare_stem(key: str) -> str:
    """Returns a key without its derivational ending: what a family of words has in common."""
    return key.partition("+")[0]


def _levelled_spelling(word: str) -> str:
    """American spelling for the commonest British ones."""
    if len(word) > 5:
        word = re.sub(r"our(?=s?$|ite|ed$|ing$|al$|able$|ful$)", "or", word)
        word = re.sub(r"([iy])s(?=e[sdr]?$|ing$|ation)", r"\1z", word)
        word = re.sub(r"([^aeiou])tre(?=s?$)|(?<=[nme])tre(?=s?$)", r"\1ter", word)
        word = re.sub(r"ogue(?=s?$)", "og", word)
        word = re.sub(r"ll(?=ed$|ing$)", "l", word) if word.startswith(("cancel", "travel", "label", "model")) else word
    return word


def _without_inflection(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
