"""What a conversation is about, in the words that its users wrote, and which of them a follow-up takes over.

Only the last few turns are read. Each earlier question that leans on the one before is completed by the same rules, so
that "who founded it?" and then "when was that?" still know what "it" was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from retrieval.answers.facts.tokens import tokenise
from retrieval.answers.facts.turns import ORDINALS
from retrieval.answers.facts.types import Kind, Token
from retrieval.answers.facts.vocabulary import QUESTION_WORDS
from retrieval.conversation.following import Lean, lean_of
from retrieval.conversation.terms import VALUES, Reading, Term, read, reading_of, written
from retrieval.speech import Speaker, Turn

_LAST_TURNS = 12  # looked through for the last questions
_LAST_QUESTIONS = 3
_MOST_ITEM_TERMS = 8
_MOST_TOPIC_TOKENS = 64
_EMPTY = Reading((), (), "en")
# How many words are carried into a question that brings none, one, two, three or more of its own that tell something.
# Those of the last question help where the follow-up stays with its passage, and mislead where it leaves it
# (bench.conversation).
_REFERENT_ROOM = (8, 4, 2, 1)
_REST_ROOM = (16, 12, 5, 2)
_ENOUGH_TO_CHOOSE = 2  # such words; then only those are carried that tell something too
_VERB_ENDINGS = ("ing", "ed")
_ANSWER_CHARS = 300  # of an answer: who or what a question asked for stands at its beginning
_ITEMS_CHARS = 2000
_MOST_NAME_WORDS = 4
_ITEM = re.compile(r"^[ \t]*(?:\d{1,2}[.)]|[-*•])[ \t]+(\S[^\n]{0,200})", re.MULTILINE)
_PLACES = {
    **{word: place for place, word in enumerate(ORDINALS)},
    **{f"{place}th": place - 1 for place in range(1, len(ORDINALS) + 1)},  # as tokens have "2nd"
    "former": 0,
    "latter": -1,
    "last": -1,
}
_ASKS_FOR_A_NAME = frozenset({"who", "whom", "which", "what", "whose", "where", "wer", "qui", "quién"})
_ASKS_FOR_A_THING = frozenset({"which", "what", "whose", "welcher", "welche", "welches", "quel", "quelle", "qué"})
_ASKING = QUESTION_WORDS.keys() | _ASKS_FOR_A_NAME


def carried_words(question: Reading, lean: Lean, turns: Sequence[Turn]) -> list[Token]:
    """Returns what the question lacks, in a natural order; nothing when the turns do not tell."""
    recent = _spoken(turns)
    topic = last = _EMPTY
    for turn in [turn for turn in recent if turn.speaker is Speaker.USER][-_LAST_QUESTIONS:]:
        asked = read(turn.text)
        before = _chosen(asked, lean_of(asked), topic) if topic.terms else []
        if before or asked.terms:
            last = asked
            topic = reading_of([*before, *asked.tokens][:_MOST_TOPIC_TOKENS]) if before else asked
    answer = recent[-1].text if recent and recent[-1].speaker is Speaker.ASSISTANT else ""
    said = _from_answer(question, lean, last, topic, answer)
    completed = reading_of([*question.tokens, *said]) if said else question
    return [*said, *_chosen(completed, lean, topic)]


def own_keys(turns: Sequence[Turn]) -> frozenset[str]:
    """Returns the keys of all content words of the last turns."""
    return frozenset(term.key for turn in _spoken(turns) for term in reading_of(_all_tokens(turn)).terms)


def is_of_these(words: set[str], turns: Sequence[Turn]) -> bool:
    """Whether all words stand in the last turns. Reads the answer only when the questions do not have them."""
    recent = _spoken(turns)
    asked = [turn for turn in recent if turn.speaker is Speaker.USER][-_LAST_QUESTIONS:]
    left = words.difference(*(_words(read(turn.text).tokens) for turn in asked))
    return not left or (bool(recent) and left <= _words(_all_tokens(recent[-1])))


def _spoken(turns: Sequence[Turn]) -> list[Turn]:
    return [turn for turn in turns[-_LAST_TURNS:] if turn.speaker is not Speaker.TOOL]


def _all_tokens(turn: Turn) -> list[Token]:
    return tokenise(turn.text[:_ITEMS_CHARS])


def _words(tokens: Sequence[Token]) -> set[str]:
    # Code in backticks is one token; carried over, it has lost them.
    apart = [part for token in tokens if " " in token.raw for part in tokenise(token.raw)]
    return {token.text for token in (*tokens, *apart)}


def _chosen(question: Reading, lean: Lean, topic: Reading) -> list[Token]:
    """The words of the topic that complete a question, without those that it has; all when it says nothing itself."""
    if lean is Lean.NOTHING:
        return []
    keys = {term.key for term in question.terms}
    terms: Sequence[Term] = [*_each_once(term for term in topic.terms if term.key not in keys)]
    if lean is Lean.REST:
        terms = _unchanged(terms, question.terms)
    brought = sum(not term.is_ordinary for term in question.terms)
    if lean is Lean.REST and not brought:
        return [token for token in topic.tokens if token.kind not in (Kind.STOP, Kind.COMMA)][:_MOST_TOPIC_TOKENS]
    if lean in (Lean.THING, Lean.PERSON) or brought >= _ENOUGH_TO_CHOOSE:
        terms = [term for term in terms if not term.is_ordinary or term.place in _asked_for(topic)] or terms
    rooms = _REFERENT_ROOM if lean in (Lean.THING, Lean.PERSON) else _REST_ROOM
    return written(topic.tokens, _weightiest(terms, rooms[min(brought, len(rooms) - 1)]))


def _asked_for(topic: Reading) -> frozenset[int]:
    """Returns the places of what "which filter" and "what colour" ask for, which "it" then stands for."""
    tokens = topic.tokens
    return frozenset(place + 1 for place, token in enumerate(tokens) if token.text in _ASKS_FOR_A_THING)


def _each_once(terms: Iterable[Term]) -> Iterable[Term]:
    first: dict[str, Term] = {}
    for term in terms:
        first.setdefault(term.key, term)
    return first.values()


def _weightiest(terms: Sequence[Term], room: int) -> Sequence[Term]:
    """As many terms as there is room for: names, then what is of no common vocabulary and looks like no verb."""
    ranked = sorted(
        terms, key=lambda term: (not term.is_name, term.is_ordinary, term.token.text.endswith(_VERB_ENDINGS))
    )
    return sorted(ranked[:room], key=lambda term: term.place)


def _unchanged(terms: Sequence[Term], present: Sequence[Term]) -> Sequence[Term]:
    """What "and in 2020?" leaves as it was: all but the one figure of the kind that it brings."""
    kinds = [term.token.kind for term in present]
    replaced = [kind for kind in VALUES if kind in kinds and sum(term.token.kind is kind for term in terms) == 1]
    return [term for term in terms if term.token.kind not in replaced]


def _from_answer(question: Reading, lean: Lean, last: Reading, topic: Reading, answer: str) -> list[Token]:
    """What only the last answer can have named: the person or thing that was asked for, an item of its list."""
    if not answer:
        return []
    if lean is Lean.CHOICE:
        return _item(question.tokens, answer)
    asks = next((token.text for token in last.tokens if token.text in _ASKING), "")
    if lean not in (Lean.THING, Lean.PERSON) or asks not in _ASKS_FOR_A_NAME:
        return []
    if asks == "what" and any(term.is_name for term in topic.terms):
        return []
    return _first_name(reading_of(tokenise(answer[:_ANSWER_CHARS])), {term.key for term in topic.terms})


def _item(question: Sequence[Token], answer: str) -> list[Token]:
    items = _ITEM.findall(answer[:_ITEMS_CHARS])
    places = [_PLACES[token.text] for token in question if token.text in _PLACES]
    if len(items) < 2 or not places or places[0] >= len(items):
        return []
    item = reading_of(tokenise(items[places[0]]))
    return written(item.tokens, item.terms[:_MOST_ITEM_TERMS])


def _first_name(answer: Reading, known: set[str]) -> list[Token]:
    """The first run of names in an answer, with the word that begins it, that the questions do not have."""
    run: list[Term] = []
    for term in answer.terms:
        is_name = term.key not in known and term.token.raw[0].isupper() and term.token.kind in (Kind.WORD, Kind.NAME)
        if run and (not is_name or term.place != run[-1].place + 1):
            break
        if is_name:
            run.append(term)
    return [term.token for term in run[:_MOST_NAME_WORDS]]
