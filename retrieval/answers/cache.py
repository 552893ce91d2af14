"""The answer cache: what is kept of answers, in both tiers, and what is learned from each new one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from encoders.types import EncodedQuery
from retrieval.answers.agreement import answers_agree
from retrieval.answers.asking import Asked
from retrieval.answers.entry import Answer, Cited, Seen, decode, encode, fingerprint
from retrieval.answers.gates import WORLD, Gates, Match, Pending, Tools, facts_of
from retrieval.answers.operating import AnswerOperations, Served
from retrieval.answers.risks import Risks
from retrieval.answers.store import AnswerStore, Kept
from retrieval.caching.shared import SharedTier, Stored
from retrieval.dispatch.answering import Verified
from retrieval.scope import VectorSpace
from retrieval.settings.caching import AnswerCacheSettings
from retrieval.speech import BackendEnd, FinishReason
from retrieval.types import Found


@dataclass(frozen=True, slots=True)
class Made:
    """A new answer: whole, with its citations checked."""

    verified: Verified
    end: BackendEnd
    backend: str

    @property
    def whole(self) -> bool:
        """Whether it ended normally."""
        return self.end.finish_reason is FinishReason.STOP and bool(self.verified.text.strip())


class AnswerCache:
    """Keeps answers and learns from them; `gates` decide which serve. `settings` gives those in force."""

    def __init__(
        self,
        store: AnswerStore,
        risks: Risks,
        settings: Callable[[], AnswerCacheSettings],
        tier: SharedTier | None = None,
        tools: Tools = WORLD,
    ) -> None:
        self._store = store
        self._risks = risks
        self._settings = settings
        self._tier = tier
        self._tools = tools
        self.gates = Gates(store, risks, settings, tools)
        self.operations = AnswerOperations(store, risks, tier, tools.now_s)

    @property
    def shared(self) -> bool:
        """Whether an answer that is not in this process may be in the shared tier."""
        return self._tier is not None

    @property
    def enabled(self) -> bool:
        """Whether answers are kept and used again."""
        return self._settings().enabled

    async def prepare(self, asked: Asked) -> None:
        """Gets ready to judge answers for the question; waits only the first time that a collection is asked."""
        await self._risks.prepare(asked.scope.space)

    async def save(self) -> None:
        """Saves what was learned since the last time, and makes good what could not be done then."""
        await self._risks.save()
        await self.operations.delete_again()

    def recall(self, asked: Asked) -> Kept | None:
        """Returns the answer to exactly this question, if it is in this process, young enough and may serve."""
        if asked.control.no_cache:
            return None
        kept = self._store.get(asked.key)
        if kept is None or not self.gates.is_young(kept.answer, asked.control):
            return None
        kept.tier = "memory"
        return kept

    def take(self, asked: Asked, stored: Stored | None, encoded: EncodedQuery | None) -> Kept | None:
        """Keeps in this process what the shared tier gave; None for a miss, a damaged answer or one that is too old."""
        answer = None if stored is None else decode(stored.value, asked.key, asked.partition)
        if answer is None or self.operations.refuses(answer) or not self.gates.is_young(answer, asked.control):
            return None
        kept = Kept(answer, facts_of(answer.question), encoded, None, 0, tier="shared")
        self._store.put(kept)
        return kept

    def keep(self, asked: Asked, found: Found, made: Made) -> bool:
        """Keeps a new answer if it may serve again: whole, ended normally, unflagged, citing what was found."""
        if asked.control.no_store or not self._settings().enabled or not _worth_keeping(found, made):
            return False
        answer = answer_of(asked, found, made, self._tools.now_s())
        if self._tier is not None:
            self._tier.put(answer.key, encode(answer), self._settings().ttl_s)
        kept = Kept(answer, facts_of(answer.question), found.dense, asked.result_key, asked.read_at_ns)
        return self._store.put(kept)

    def learn(self, asked: Asked, pending: Pending, fresh: str, *, shadowed: bool = False) -> bool:
        """Compares a new answer with the one that was judged for its question; returns whether they agree."""
        agree = answers_agree(fresh, pending.kept.answer.text)
        risk = self._risks.of(asked.scope.space)
        share = pending.sampled_share
        risk.learn(pending.kept.answer.key.digest, pending.judgement, pending.features, agree, share)
        self._risks.count_label(asked.scope.space, served=shadowed, agree=agree)
        return agree

    def served(self, request_id: str, space: VectorSpace, match: Match) -> None:
        """Remembers what a request was served, so that a verdict on it can be learned from."""
        pending = match.pending
        if match.replay is not None and pending is not None:
            key = pending.kept.answer.key
            self.operations.note_served(request_id, Served(key, space, pending.features, pending.judgement))


def answer_of(asked: Asked, found: Found, made: Made, now_s: float) -> Answer:
    """Returns the answer as it is kept."""
    numbers = {mark.number for mark in made.verified.citations}
    return Answer(
        key=asked.key,
        partition=asked.partition,
        question=asked.question,
        text=made.verified.text,
        marks=made.verified.citations,
        cited=tuple(Cited(one.number, one.chunk_ids) for one in found.context.citations if one.number in numbers),
        seen=tuple(Seen(hit.passage.chunk_id, hit.passage.document_id, fingerprint(hit.passage)) for hit in found.hits),
        backend=made.backend,
        model=made.end.model,
        stored_at_s=now_s,
    )


def _worth_keeping(found: Found, made: Made) -> bool:
    unflagged = not (found.degraded or found.query_truncated or made.verified.unknown_count)
    return unflagged and made.whole and bool(made.verified.citations)
