"""Makes conversations of two questions out of a set: the second one leans on the first, and its labels are known.

Two questions belong together when one run of words, which tells something, stands in both. In the second it is
replaced by a pronoun ("when was it founded?"), or everything that both share is left out ("what about fossils?"). A
third form asks for more about the same. Where the two have the same relevant passage, words carried over from the first
help more than they would in life, so those pairs are told apart from the others.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from bench._common.beir import BeirSet, Question
from retrieval.answers.facts.types import Token
from retrieval.conversation.terms import Term, read

_WORD = re.compile(r"[^\W_]+(?:['\u2019.-][^\W_]+)*")
_ARTICLE = re.compile(r"\b(?:the|a|an) $", re.IGNORECASE)
_MORE = ("tell me more about that", "why?", "can you explain it?", "more details please")
_LONGEST_RUN = 5
_MOST_SHARING = 40  # questions with a word that makes two of them be about the same


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question, the follow-up made of a second one, and that second one as it was."""

    first: str
    follow_up: str
    gold: Question
    form: str
    same_passage: bool


@dataclass(frozen=True, slots=True)
class _Pair:
    first: Question
    second: Question
    run: tuple[str, ...]

    @property
    def same_passage(self) -> bool:
        return not _relevant(self.first).isdisjoint(_relevant(self.second))


def exchanges(source: BeirSet, limit: int) -> list[Exchange]:
    """Returns at most `limit` conversations of each form and of each kind of pair, the same ones in every run."""
    made: dict[tuple[str, bool], list[Exchange]] = defaultdict(list)
    for pair in _pairs(source):
        for one in _made_of(pair):
            made[one.form, one.same_passage].append(one)
    return [one for group in made.values() for one in group[:limit]]


def unrelated(source: BeirSet, limit: int) -> list[tuple[str, Question]]:
    """Returns questions that stand alone, each with a question of the set that comes before it by chance."""
    questions = sorted(source.questions, key=lambda one: _shuffled(one.query_id))
    return [(before.text, one) for before, one in zip(questions[1:], questions, strict=False)][:limit]


def related(source: BeirSet, limit: int) -> list[tuple[str, Question]]:
    """Returns questions that stand alone, each with one about the same before it."""
    return [(pair.first.text, pair.second) for pair in _pairs(source)][:limit]


def _pairs(source: BeirSet) -> Iterator[_Pair]:
    """Pairs that share a run, each question at most once as the second one."""
    by_term: dict[str, list[Question]] = defaultdict(list)
    questions = sorted(source.questions, key=lambda one: _shuffled(one.query_id))
    for question in questions:
        for key in {term.key for term in read(question.text).terms if not term.is_ordinary}:
            by_term[key].append(question)
    used: set[str] = set()
    for question in questions:
        partners = [
            other
            for term in read(question.text).terms
            for other in by_term.get(term.key, ())
            if other is not question and len(by_term[term.key]) <= _MOST_SHARING
        ]
        partner = next((other for other in partners if other.query_id not in used and _run(question, other)), None)
        if partner is not None and partner.text.casefold() != question.text.casefold():
            used.add(partner.query_id)
            yield _Pair(question, partner, _run(question, partner))


def _made_of(pair: _Pair) -> Iterator[Exchange]:
    first, second = pair.first.text, pair.second
    pronoun = _with_pronoun(second.text, pair.run)
    if pronoun is not None:
        yield Exchange(first, pronoun, second, "pronoun", pair.same_passage)
    rest = _unshared(first, second.text)
    if rest:
        yield Exchange(first, f"what about {' '.join(rest)}?", second, "what about", pair.same_passage)
    text = _MORE[_shuffled(second.query_id)[0] % len(_MORE)]
    yield Exchange(first, text, pair.first, "more", same_passage=True)


def _run(first: Question, second: Question) -> tuple[str, ...]:
    """The longest run of words in both that begins and ends with one that tells something; empty without one."""
    words = [word.lower() for word in _WORD.findall(second.text)]
    other = f" {' '.join(_WORD.findall(first.text)).lower()} "
    for length in range(min(_LONGEST_RUN, len(words) - 1), 0, -1):
        for start in range(len(words) - length + 1):
            run = tuple(words[start : start + length])
            if f" {' '.join(run)} " in other and _tells(run[0]) and _tells(run[-1]):
                return run
    return ()


def _tells(word: str) -> bool:
    terms = read(word).terms
    return bool(terms) and not terms[0].is_ordinary


def _with_pronoun(text: str, run: Sequence[str]) -> str | None:
    """Puts a pronoun where the run stands; None when another word that tells something would be lost."""
    found = re.search(r"[\s-]+".join(map(re.escape, run)) + r"('s|\u2019s)?\b", text, re.IGNORECASE)
    if found is None or len(read(text).terms) <= len(run):
        return None
    if not (
        _is_border(_WORD.findall(text[: found.start()])[-1:]) and _is_border(_WORD.findall(text[found.end() :])[:1])
    ):
        return None
    before = _ARTICLE.sub("", text[: found.start()])
    return before + ("its" if found[1] else "it") + text[found.end() :]


def _is_border(words: Sequence[str]) -> bool:
    """Whether a noun phrase ends here: at the text's end, or at a word of grammar."""
    return not words or not read(words[0].lower()).terms


def _unshared(first: str, second: str) -> list[str]:
    shared = {term.key for term in read(first).terms}
    terms: Sequence[Term] = read(second).terms
    rest: list[Token] = [term.token for term in terms if term.key not in shared]
    return [token.raw for token in rest] if 0 < len(rest) <= 4 and len(rest) < len(terms) else []


def _relevant(question: Question) -> set[str]:
    return {document_id for document_id, grade in question.relevant.items() if grade > 0}


def _shuffled(query_id: str) -> bytes:
    return blake2b(query_id.encode(), digest_size=8).digest()
