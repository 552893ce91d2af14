"""Whether a question can be understood alone, and if not, what it lacks.

Rules over tokens. They look for what a question of its own does not have: a pronoun with nothing before it that it
could stand for, an opening that goes on ("what about ..."), a choice among things that were named before, a
comparison with one side, or no content at all. When in doubt a question stands alone: words that do not belong cost a
self-contained question more than a follow-up gains from them.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from retrieval.answers.facts.types import Kind, Token
from retrieval.answers.facts.vocabulary import (
    ARTICLES,
    AUXILIARIES,
    BE,
    MODALS,
    QUESTION_WORDS,
    STRONG_PREPOSITIONS,
    WEAK_PREPOSITIONS,
    word_set,
)
from retrieval.conversation import words as known
from retrieval.conversation.terms import Reading, Term

_LONGEST_OPENED = 3  # content words after "what about"; more say themselves what they are about
_LONGEST_FRAGMENT = 3
_FEW_TERMS = 2
_ENOUGH_TERMS = 4  # that tell something, whatever the pronouns beside them stand for
_VERBS = AUXILIARIES | MODALS.keys()
_PREPOSITIONS = (WEAK_PREPOSITIONS.keys() | STRONG_PREPOSITIONS.keys() | {"of"}) - {"if", "while", "because"}
_COMPARED = frozenset({"than", "or", "between", "vs", "versus", "and", "from", "to", "with"})
_NO_COMPARATIVES = word_set("after other another never ever over under however number server user order computer")


class Lean(enum.Enum):
    """What a question lacks."""

    NOTHING = "nothing"
    THING = "thing"  # what a pronoun stands for
    PERSON = "person"  # whom a pronoun stands for
    CHOICE = "choice"  # which of several that were named
    REST = "rest"  # everything but what it changes: "and in 2020?"


def lean_of(question: Reading) -> Lean:
    """Returns what a question lacks."""
    words, terms, language = question
    if all(word.text in known.SMALL_TALK for word in words):
        return Lean.NOTHING
    if language != "en" or (words and words[0].text in known.FOREIGN_OPENERS):
        return _foreign(words, terms, language)
    if not terms or _goes_on(words, terms):
        return Lean.REST
    if sum(not term.is_ordinary for term in terms) < _ENOUGH_TERMS and (pronoun := _dangling(words, terms)):
        return pronoun
    if _chooses(words, terms):
        return Lean.CHOICE
    return Lean.REST if _is_bare(words, terms) or _compares(words, terms) else Lean.NOTHING


def _foreign(words: Sequence[Token], terms: Sequence[Term], language: str) -> Lean:
    first = words[0].text
    if _opens(words) or (first in known.FOREIGN_JOINING and len(terms) <= _LONGEST_FRAGMENT):
        return Lean.REST
    if not terms or (len(terms) == 1 and terms[0].token.text in known.FOREIGN_ALONE):
        return Lean.REST
    has_antecedent = any(term.is_name for term in terms)
    pronouns = known.FOREIGN_PRONOUNS.get(language, frozenset())
    dangles = any(_stands_alone(words, place, pronouns) for place in range(len(words)))
    return Lean.THING if dangles and not has_antecedent and len(terms) <= _LONGEST_FRAGMENT else Lean.NOTHING


def _stands_alone(words: Sequence[Token], place: int, pronouns: frozenset[str]) -> bool:
    """Whether a pronoun is no article: before a verb or the end, not before a noun."""
    if words[place].text in known.FOREIGN_SURE:
        return True
    if words[place].text not in pronouns:
        return False
    after = words[place + 1] if place + 1 < len(words) else None
    return after is None or after.kind is not Kind.WORD or after.text in known.FOREIGN_GRAMMAR


def _opens(words: Sequence[Token]) -> bool:
    texts = tuple(word.text for word in words[:5])
    return any(texts[: len(opening)] == opening for opening in known.OPENINGS)


def _goes_on(words: Sequence[Token], terms: Sequence[Term]) -> bool:
    """Whether it opens like a follow-up and brings little of its own."""
    if any(word.kind is Kind.STOP for word in words[:-1]):
        return False
    start = 0
    while start < len(words) and (words[start].text in known.JOINING or words[start].kind is Kind.COMMA):
        start += 1
    rest = words[start:]
    if not rest or _opens(rest):
        return len(terms) <= _LONGEST_OPENED
    if terms and all(term.token.text in known.ABOUT_SPEECH for term in terms):
        return not _is_clause(rest) or any(word.text in known.POINTING for word in rest)
    return start > 0 and len(terms) <= _LONGEST_FRAGMENT and not _is_clause(rest)


def _is_clause(words: Sequence[Token]) -> bool:
    """Whether a question word or a verb of grammar opens it, after a preposition perhaps."""
    opening = [word.text for word in words[:2]]
    return any(text in QUESTION_WORDS or text in _VERBS for text in opening)


def _dangling(words: Sequence[Token], terms: Sequence[Term]) -> Lean | None:
    """Returns what a pronoun stands for when nothing in the question can be it."""
    for place, word in enumerate(words):
        if word.kind is not Kind.WORD or not _refers(words, place):
            continue
        if word.text in known.DEMONSTRATIVES and _is_determined(terms, place):
            continue
        # People in general: "when did they stop putting lead in paint".
        if word.text == "they" and len(terms) >= _LONGEST_FRAGMENT:
            continue
        if not _has_antecedent(words, terms, place):
            return Lean.PERSON if word.text in known.PERSONAL else Lean.THING
    return None


def _is_determined(terms: Sequence[Term], place: int) -> bool:
    """Whether a "this" stands before a noun, in a question that says what it is about besides."""
    tells = [term for term in terms if not term.is_ordinary]
    before_noun = any(term.place == place + 1 for term in terms)
    return (before_noun and len(tells) >= _FEW_TERMS) or (any(term.is_name for term in terms) and len(terms) > 3)


def _refers(words: Sequence[Token], place: int) -> bool:
    """Whether a word is a pronoun that stands for something."""
    text = words[place].text
    before = words[place - 1].text if place else ""
    after = words[place + 1].text if place + 1 < len(words) else "?"
    if text == "it":
        return not _is_empty(words, place)
    if text in known.SUBJECTS or text in known.OBJECTS or text in known.POSSESSIVES:
        return True
    if text == "there":
        return place > 0 and before not in _VERBS and after not in _VERBS
    if text == "that":
        return (place == 0 and after in _VERBS) or before in known.BEFORE_THAT
    return text in known.DEMONSTRATIVES and after not in known.TIMES


def _is_empty(words: Sequence[Token], place: int) -> bool:
    """Whether an "it" stands for nothing: "is it safe to", "how long does it take to", "what time is it"."""
    before = words[place - 1].text if place else ""
    following = [word.text for word in words[place + 1 : place + 5]]
    if not following or following[0] not in known.EMPTY_AFTER_IT:
        is_of_being = before in BE or following[:1] == ["be"] or following[:1] == ["is"] or following[:1] == ["was"]
        opens = [text for text in following[1:] if text in ("to", "that", "if", "for", "when")]
        opens += [text for text in following[:1] if text in ("that", "when", "who")]
        is_time = before == "is" and place >= 2 and words[place - 2].text == "time"
        is_degree = words[0].text == "how" and place > 2 and following[:1] == ["to"]  # "how likely is it to"
        return (
            is_time or (before in BE and is_degree) or bool(is_of_being and opens and following[0] not in _PREPOSITIONS)
        )
    return any(text in ("to", "for", "when", "if", "that") for text in following[1:])


def _has_antecedent(words: Sequence[Token], terms: Sequence[Term], place: int) -> bool:
    """Whether a noun stands before a pronoun, and for an object in a clause before its own."""
    border = place
    ends = [at for at in range(place) if words[at].kind is Kind.STOP]
    if ends and any(term.place < ends[-1] for term in terms):
        return True  # an earlier sentence
    if words[place].text not in known.POSSESSIVES:
        borders = [at for at in range(place) if words[at].text in known.CLAUSE_OPENERS or words[at].kind is Kind.COMMA]
        border = borders[-1] if borders else 0
    return any(term.place < border and _is_noun(words, term, place) for term in terms)


def _is_noun(words: Sequence[Token], term: Term, pronoun: int) -> bool:
    if term.is_name:
        return True
    before = words[term.place - 1].text if term.place else ""
    if before in ARTICLES or before in _PREPOSITIONS or before in _VERBS or before in ("which", "what", "many"):
        return True
    return not term.is_ordinary and term.place < pronoun - 1


def _chooses(words: Sequence[Token], terms: Sequence[Term]) -> bool:
    if len(terms) > _LONGEST_FRAGMENT:
        return False
    texts = [word.text for word in words if word.kind is not Kind.STOP]
    for place, text in enumerate(texts):
        before = texts[place - 1] if place else ""
        is_last = place == len(texts) - 1
        if text in ("one", "ones") and (before in known.CHOOSERS or before.endswith(("th", "er", "est"))):
            return (
                is_last or texts[place + 1] != "of" or texts[place + 2 : place + 3] in (["them"], ["those"], ["these"])
            )
        if before == "the" and (text in known.CHOSEN or (is_last and text in known.CHOOSERS)):
            return True
        if text in known.BOTH and (
            is_last or texts[place + 1] in _VERBS or texts[place + 1 : place + 3] == ["of", "them"]
        ):
            return "and" not in texts and "or" not in texts
    return False


def _is_bare(words: Sequence[Token], terms: Sequence[Term]) -> bool:
    """Whether it has next to no content: "why?", "in 2020?", "what are the advantages?", "more details"."""
    tells = [term for term in terms if not term.is_ordinary and term.token.text not in known.MORE]
    texts = {word.text for word in words}
    if not tells and len(terms) <= _LONGEST_FRAGMENT and texts & known.MORE and "than" not in texts:
        return True
    if not tells and len(terms) <= _FEW_TERMS and "the" in texts and "of" not in texts:
        return True
    if _is_clause(words) or len(terms) > _LONGEST_FRAGMENT:
        return False
    return words[0].text in _PREPOSITIONS or (len(terms) == 1 and words[-1].text == "?")


def _compares(words: Sequence[Token], terms: Sequence[Term]) -> bool:
    """Whether it compares with something that it does not name."""
    if len(terms) > _FEW_TERMS or any(word.text in _COMPARED for word in words):
        return False
    comparatives = [term for term in terms if _is_comparative(term.token.text)]
    return bool(comparatives) and all(term.is_ordinary or term in comparatives for term in terms)


def _is_comparative(text: str) -> bool:
    if text in ("better", "worse", "more", "less"):
        return True
    return text.endswith("er") and len(text) > 4 and text not in _NO_COMPARATIVES
