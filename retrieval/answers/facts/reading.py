"""A question to its facts: its tokens levelled, then each given its part in the sentence.

A question that hardly uses a word we know is in another language or in no sentence at all; there nothing may be dropped
or moved, and every token is taken for a name.
"""

from __future__ import annotations

from dataclasses import replace

from retrieval.answers.facts import vocabulary as known
from retrieval.answers.facts.frames import without_frames
from retrieval.answers.facts.marks import odd_marks
from retrieval.answers.facts.ordinary import CANONICAL, ORDINARY
from retrieval.answers.facts.quantities import level_quantities
from retrieval.answers.facts.repairs import without_repairs
from retrieval.answers.facts.sentences import Sentences
from retrieval.answers.facts.stems import GERUND, word_key
from retrieval.answers.facts.tokens import POSSESSIVE, is_lower_camel, tokenise
from retrieval.answers.facts.turns import turn_key
from retrieval.answers.facts.types import Facts, Kind, Token, Word
from retrieval.answers.facts.units import unit_name

_GRAMMAR = known.JOINTS | known.QUESTION_WORDS.keys() | known.MODALS.keys() | known.PERSONS.keys() | {POSSESSIVE}
# Words of grammar that other languages write too do not tell that a question is in English.
_ENGLISH = _GRAMMAR - known.word_set("was die an am so war du me us no a on as in")
_ENGLISH_OPENINGS = known.word_set("do does did is are can could should would will have if whether")
_LEAST_ENGLISH_SHARE = 0.2
_FEWEST_WORDS_TO_JUDGE = 4
_NEVER_AFTER_ARTICLES = (
    frozenset(known.WEAK_PREPOSITIONS) | known.BE | known.DO | frozenset({"", "?", ".", "!", ",", "and", "or", "of"})
) - {"like"}
_NOT_UNITS_ALONE = known.word_set("min bar second seconds foot feet bit cal us ma bucks a c f g h k l m n s t v w")
_HEADLINE_SHARE = 0.7
_VALUES = frozenset({Kind.NUMBER, Kind.DATE, Kind.VERSION})
_EXACT_KINDS = _VALUES | {Kind.UNIT, Kind.IDENTIFIER, Kind.SYMBOL}


def read_facts(question: str) -> Facts:
    """Returns what a question states. Takes time linear in its length and never raises, whatever the text."""
    tokens = _without_headline_case(tokenise(question.lower() if question.isupper() else question))
    asked = without_frames(without_repairs(tokens))
    facts = _read(level_quantities(asked)) if _is_english(asked) else _unread(tokens)
    return replace(facts, marks=odd_marks(question))


def _without_headline_case(tokens: list[Token]) -> list[Token]:
    """Takes capitals back where nearly every word begins with one: there they tell nothing."""
    words = [token for token in tokens if token.kind is Kind.WORD and token.raw[0].isalpha()]
    capitals = sum(token.raw[0].isupper() for token in words)
    if len(words) < _FEWEST_WORDS_TO_JUDGE or capitals < _HEADLINE_SHARE * len(words):
        return tokens
    return [token._replace(raw=token.text) if token.kind is Kind.WORD else token for token in tokens]


def _is_english(tokens: list[Token]) -> bool:
    words = [token.text for token in tokens if token.kind in (Kind.WORD, Kind.NAME)]
    if not known.QUESTION_WORDS.keys().isdisjoint(words) or (words and words[0] in _ENGLISH_OPENINGS):
        return True
    if len(words) < _FEWEST_WORDS_TO_JUDGE:
        return all(map(str.isascii, words))
    return sum(
        word in _ENGLISH or (len(word) > 4 and word_key(word) in ORDINARY) for word in words
    ) >= _LEAST_ENGLISH_SHARE * len(words)


def _unread(tokens: list[Token]) -> Facts:
    words = tuple(Word(token.text, Kind.NAME, "", 0, ordinary=False) for token in tokens if token.kind is not Kind.STOP)
    return Facts(("what",), (), (), words, (), (), passive=False, keys=frozenset(word.key for word in words))


def _read(tokens: list[Token]) -> Facts:
    sentences = Sentences()
    before = ""
    for position, token in enumerate(tokens):
        after = tokens[position + 1].text if position + 1 < len(tokens) else ""
        if token.kind is Kind.STOP:
            sentences.end()
        elif _is_letter(token, sentences.place, after):
            sentences.content(Word(token.text, Kind.NAME, "", 0, ordinary=False), token.text, before)
        elif token.kind is not Kind.COMMA and not _grammar(sentences, token, before, after):
            if token.text in known.ARTICLES:
                sentences.article()
            sentences.content(_word(token, is_first=sentences.place == 0), token.text, before)
        sentences.place += 1
        before = token.text
    return sentences.close()


def _is_letter(token: Token, place: int, after: str) -> bool:
    """Whether an `a` is a letter ("site A"): no article ends a phrase."""
    if token.text != "a" or token.kind is not Kind.WORD or place == 0:
        return False
    return token.raw == "A" or after in _NEVER_AFTER_ARTICLES


def _grammar(sentences: Sentences, token: Token, before: str, after: str) -> bool:
    """Takes a word of grammar; False when the token is not one."""
    text = token.text
    if token.kind is not Kind.WORD and (token.kind is not Kind.NAME or text in known.ACRONYMS):
        return False
    if text in known.QUESTION_WORDS or text == "whether":
        sentences.question_word(known.QUESTION_WORDS.get(text, "polar"), before, "" if text == "how-to" else after)
    elif text in known.NEGATIONS:
        sentences.negation(known.ALIKE_NEGATIONS.get(text, text))
    elif text in known.MODALS or text in known.AUXILIARIES:
        sentences.auxiliary(text, before, after)
    elif text in known.PERSONS:
        sentences.person(known.PERSONS[text], is_article=text in known.ARTICLES)
    elif (text == "different" and after in known.SORTS) or (text == "mean" and sentences.has_do):
        # "What does it mean" asks what it is.
        sentences.pause()
    else:
        return _joint(sentences, text)
    return True


def _joint(sentences: Sentences, text: str) -> bool:
    """Takes prepositions, articles and other joints; False when the word is not one."""
    if text == "of" or text in known.WEAK_PREPOSITIONS:
        sentences.preposition(known.WEAK_PREPOSITIONS.get(text, "of"))
    elif text in known.STRONG_PREPOSITIONS:
        sentences.preposition(known.STRONG_PREPOSITIONS[text], is_strong=True)
    elif text in ("and", "or", "vs", "versus"):
        sentences.conjunction(text)
    elif text in known.ARTICLES and text in known.DROPPED:
        sentences.article()
    else:
        return text in known.DROPPED or text == POSSESSIVE
    return True


def _word(token: Token, *, is_first: bool) -> Word:
    if token.kind in _EXACT_KINDS:
        return _exact(token)
    if turn := turn_key(token.text):
        return Word(turn, Kind.TURN, "", 0, ordinary=False)
    if token.text not in _NOT_UNITS_ALONE and (unit := unit_name(token.raw)):
        return Word(f"~{unit}", Kind.UNIT, "", 0, ordinary=False)
    if token.text in known.ACRONYMS:
        return Word(token.raw, Kind.NAME, "", 0, ordinary=False)
    stem, ending, _ = word_key(token.text).partition(f"+{GERUND}")
    base = CANONICAL.get(stem, stem)
    is_name = token.kind is Kind.NAME or (token.raw[0].isupper() and not is_first)
    return Word(base + ending, Kind.NAME if is_name else Kind.WORD, "", 0, base in ORDINARY and not is_name)


def _exact(token: Token) -> Word:
    if token.kind in _VALUES:
        return Word(f"#{token.text}", token.kind, "", 0, ordinary=False)
    if token.kind is Kind.UNIT:
        return Word(f"~{token.text}", token.kind, "", 0, ordinary=False)
    # `getName` and `getname` are two names, `-f` and `-F` two flags; `ERR_IO` written small is the same.
    is_cased = token.raw.startswith("-") or (token.raw.isalpha() and len(token.raw) < 3) or is_lower_camel(token.raw)
    return Word(token.raw if is_cased else token.text, token.kind, "", 0, ordinary=False)
