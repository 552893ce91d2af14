"""Makes a trace by its law: draws questions, words them, groups them in conversations, changes documents between."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import accumulate
from random import Random

from bench._common.beir import BeirSet
from bench._common.traces.events import Ask, Event, Kind, Law, Trace
from bench._common.traces.phrasing import look_alike, rewritten
from bench._common.traces.questions import TraceQuestion
from bench._common.traces.writing import Collection

_NEW_SHARE = 0.2  # of the questions are kept out of the law, to be asked once each


def make_trace(read: BeirSet, questions: Sequence[TraceQuestion], law: Law, seed: int) -> Trace:
    """Returns the trace of a law and a seed, the same on every machine.

    Raises:
        ValueError: the set holds too few questions.
    """
    return _Maker(read, questions, law, seed).trace()


class _Maker:
    """Draws one event after the other."""

    def __init__(self, read: BeirSet, questions: Sequence[TraceQuestion], law: Law, seed: int) -> None:
        if len(questions) < 10:
            raise ValueError(f"{read.name} has {len(questions)} questions; a trace takes ten or more")
        self._read, self._law, self._seed = read, law, seed
        self._random = Random(f"trace {seed}")
        ranked = self._random.sample(list(questions), len(questions))
        kept_out = max(1, int(len(ranked) * _NEW_SHARE))
        self._ranked, self._new = ranked[kept_out:], iter(ranked[:kept_out])
        self._weights = list(accumulate(1.0 / rank**law.zipf for rank in range(1, len(self._ranked) + 1)))
        self._held_back = self._choose_held_back()
        self._collection = Collection(read.documents, questions, self._held_back)
        self._known = {text: question for question in questions for text in (*question.paraphrases, question.text)}
        self._about: dict[str, list[TraceQuestion]] = defaultdict(list)
        for question in questions:
            for document_id in question.documents:
                self._about[document_id].append(question)
        self._asked: dict[str, list[str]] = {}  # question id -> texts so far
        self._seen = set[str]()

    def trace(self) -> Trace:
        """Returns the whole trace."""
        count = round(self._law.requests * self._law.writes)
        places = set(self._random.sample(range(1, self._law.requests), min(count, self._law.requests - 1)))
        events = list[Event]()
        conversations = self._conversations()
        for number in range(self._law.requests):
            if number in places and (write := self._write()) is not None:
                events.append(write)
            events.append(self._ask(number, *next(conversations)))
        return Trace(self._read.name, self._seed, self._law, self._held_back, tuple(events))

    def _choose_held_back(self) -> tuple[str, ...]:
        count = round(self._law.requests * self._law.writes * self._law.adds)
        documents = dict.fromkeys(one for question in self._ranked for one in question.documents)
        return tuple(self._random.sample(list(documents), min(count, len(documents))))

    def _conversations(self) -> Iterator[tuple[int, int]]:
        """Yields (conversation, turn): some are open at a time, and take turns at random."""
        opened = 0
        going = list[tuple[int, list[int]]]()
        while True:
            while len(going) < self._law.open_conversations:
                turns = list(range(self._random.randint(1, self._law.most_turns)))
                going.append((opened, turns[::-1]))
                opened += 1
            conversation, left = self._random.choice(going)
            yield conversation, left.pop()
            going = [one for one in going if one[1]]

    def _draw(self) -> TraceQuestion:
        return self._random.choices(self._ranked, cum_weights=self._weights)[0]

    def _write(self) -> Event | None:
        """Changes a document; where the drawn one does not allow it another one is drawn."""
        share = self._random.random()
        for _ in range(50):
            document_id = self._random.choice(self._draw().documents)
            if share < self._law.adds and (added := self._collection.add()) is not None:
                return added
            if self._law.adds <= share < self._law.adds + self._law.deletes:
                written: Event | None = self._collection.delete(document_id)
            else:
                touched = share >= 1 - self._law.touched
                written = self._collection.update(document_id, self._random, touched)
            if written is not None:
                return written
        return None

    def _ask(self, number: int, conversation: int, turn: int) -> Ask:
        place = (number, conversation, turn)
        if self._random.random() < self._law.new and (new := next(self._new, None)) is not None:
            return self._asking(place, new, new.text, Kind.NEW)
        question = self._draw()
        text, kind = self._worded(question)
        if kind is not Kind.LOOK_ALIKE:
            return self._asking(place, question, text, kind)
        if (other := self._known.get(text)) is not None:
            return self._asking(place, other, text, kind)
        # Nobody knows the answer to a question that was made, only that it is another one.
        kind = Kind.EXACT if text in self._seen else kind
        self._seen.add(text)
        mark = blake2b(text.encode(), digest_size=4).hexdigest()
        return Ask(*place, text, f"{question.question_id}~{mark}", kind)

    def _asking(self, place: tuple[int, int, int], question: TraceQuestion, text: str, kind: Kind) -> Ask:
        kind = Kind.EXACT if text in self._seen else kind
        self._seen.add(text)
        self._asked.setdefault(question.question_id, []).append(text)
        answers, version = self._collection.state(question)
        return Ask(*place, text, question.question_id, kind, answers, version, question.documents)

    def _worded(self, question: TraceQuestion) -> tuple[str, Kind]:
        """Chooses the words: the question's own at first, afterwards by the shares of the law."""
        earlier = self._asked.get(question.question_id)
        if earlier is None:
            return question.text, Kind.FIRST
        law, share = self._law, self._random.random()
        if share < law.rewrites:
            found, kind = rewritten(question, self._random), Kind.REWRITE
        elif share < law.rewrites + law.look_alikes:
            found, kind = look_alike(question, self._random) or self._neighbour(question), Kind.LOOK_ALIKE
        elif share < law.rewrites + law.look_alikes + law.paraphrases and question.paraphrases:
            found, kind = self._random.choice(question.paraphrases), Kind.PARAPHRASE
        else:
            found, kind = None, Kind.EXACT
        return (found, kind) if found else (self._random.choice(earlier), Kind.EXACT)

    def _neighbour(self, question: TraceQuestion) -> str | None:
        """Returns a phrasing of another question about the same document."""
        others = [one for one in self._about[question.documents[0]] if one is not question]
        if not others:
            return None
        other = self._random.choice(others)
        return self._random.choice((other.text, *other.paraphrases))
