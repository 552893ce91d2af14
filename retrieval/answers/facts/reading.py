"""A question to its facts: its tokens levelled, then each given its part in the sentence.

A question that hardly uses a word we know is in another language or in no sentence at all; there nothing may be dropped
or moved, and every token is taken for a name.
"""

from __future__ import annotations

from retrieval.answers.facts import vocabulary as known
from retrieval.answers.facts.frames import without_frames
from retrieval.answers.facts.ordinary import CANONICAL, ORDINARY
from retrieval.answers.facts.quantities import level_quantities
from retrieval.answers.facts.sentences import Sentences
from retrieval.answers.facts.stems import word_key
from retrieval.answers.facts.tokens import POSSESSIVE, tokenise
from retrieval.answers.facts.types import Facts, Kind, Token, Word
from retrieval.answers.facts.units import unit_name

_STRICT_KEYS = {word_key(word): f"!{meaning}" for word, meaning in known.STRICT.items()} | {
    word: f"!{meaning}" for word, meaning in known.STRICT.items()
}
_GRAMMAR = (
    frozenset(known.QUESTION_WORDS) | known.AUXILIARIES | frozenset(known.MODALS) | known.DROPPED | frozenset(known.PERSONS)
    | known.NEGATIONS | frozenset(known.WEAK_PREPOSITIONS) | frozenset(known.STRONG_PREPOSITIONS) | {"of", POSSESSIVE}
)  # fmt: skip
# Words of grammar that other languages write too do not tell that a question is in English.
_ENGLISH = _GRAMMAR - frozenset("was die an am so war du me us no a on as in".split())
_LEAST_ENGLISH_SHARE = 0.2
_FEWEST_WORDS_TO_JUDGE = 4
_NOT_UNITS_ALONE = frozenset("min bar second seconds foot feet bit cal us ma bucks a c f g h k l m n s t v w".split())
_VALUES = frozenset({Kind.NUMBER, Kind.DATE, Kind.VERSION})
_EXACT_KINDS = _VALUES | {Kind.UNIT, Kind.IDENTIFIER, Kind.SYMBOL}


def read_facts(question: str) -> Facts:
    """Returns what a question states. Takes time linear in its length and never raises, whatever the text."""
    tokens = tokenise(question.lower() if question.isupper() else question)
    return _read(level_quantities(without_frames(tokens))) if _is_english(tokens) else _unread(tokens)


def _is_english(tokens: list[Token]) -> bool:
    words = [token.text for token in tokens if token.kind in (Kind.WORD, Kind.NAME)]
    if not known.QUESTION_WORDS.keys().isdisjoint(words):
        return True
    if len(words) < _FEWEST_WORDS_TO_JUDGE:
        return all(map(str.isascii, words))
    return sum(word in _ENGLISH for word in words) > _LEAST_ENGLISH_SHARE * len(words)


def _unread(tokens: list[Token]) -> Facts:
    words = tuple(Word(token.text, Kind.NAME, "", ordinary=False) for token in tokens if token.kind is not Kind.STOP)
    return Facts(("what",), (), (), words, (), frozenset(), passive=False, keys=frozenset(word.key for word in words))


def _read(tokens: list[Token]) -> Facts:
    sentences = Sentences()
    before = ""
    for position, token in enumerate(tokens):
        after = tokens[position + 1].text if position + 1 < len(tokens) else ""
        if not _punctuation(sentences, token) and not _grammar(sentences, token, before, after):
            sentences.content(_word(token, is_first=sentences.place == 0), token.text)
        sentences.place += 1
        before = token.text
    return sentences.close()


def _punctuation(sentences: Sentences, token: Token) -> bool:
    """Takes a mark; False when the token is none."""
    if token.kind is Kind.STOP:
        sentences.end()
    elif token.kind is Kind.COMMA:
        sentences.pause()
    return token.kind in (Kind.STOP, Kind.COMMA)


def _grammar(sentences: Sentences, token: Token, before: str, after: str) -> bool:
    """Takes a word of grammar; False when the token is not one."""
    text = token.text
    if token.kind is not Kind.WORD or (token.raw == "A" and sentences.place > 0):
        return False
    if text in known.QUESTION_WORDS or text == "whether":
        sentences.question_word(known.QUESTION_WORDS.get(text, "polar"), before, after)
    elif text in known.NEGATIONS:
        sentences.negation(known.ALIKE_NEGATIONS.get(text, text))
    elif text in known.MODALS or text in known.AUXILIARIES:
        sentences.auxiliary(text)
    elif text in known.PERSONS:
        sentences.person(known.PERSONS[text], is_article=text in known.ARTICLES)
    elif text == "different" and after in known.SORTS:
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
    strict = _STRICT_KEYS.get(token.text) or _STRICT_KEYS.get(word_key(token.text))
    if strict:
        return Word(strict, Kind.TURN, "", ordinary=False)
    if token.text not in _NOT_UNITS_ALONE and (unit := unit_name(token.raw)):
        return Word(f"~{unit}", Kind.UNIT, "", ordinary=False)
    if token.text in _GRAMMAR:
        # `WHO` and `IT` amid small letters, and the letter A.
        return Word(token.raw, Kind.NAME, "", ordinary=False)
    stem = word_key(token.text)
    key = CANONICAL.get(stem, stem)
    is_name = token.kind is Kind.NAME or (token.raw[0].isupper() and not is_first)
    return Word(key, Kind.NAME if is_name else Kind.WORD, "", key in ORDINARY and not is_name)


def _exact(token: Token) -> Word:
    if token.kind in _VALUES:
        return Word(f"#{token.text}", token.kind, "", ordinary=False)
    if token.kind is Kind.UNIT:
        return Word(f"~{token.text}", token.kind, "", ordinary=False)
    # `getName` and `getname` are two names; `ERR_IO` written small is the same.
    key = token.text if token.raw == token.raw.upper() else token.raw
    return Word(key, token.kind, "", ordinary=False)
