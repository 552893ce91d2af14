"""What the model is asked: the requests of a trace with the hits that the product's own request path finds for them.

The documents stay as they are at the start: what the writes of a trace change is a fiftieth of the requests, and would
cost all arms the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench._common.beir import BeirSet
from bench._common.engines import Encoders, open_encoders
from bench._common.pipelines import KEY, index_documents, open_request_path
from bench._common.tables import say
from bench._common.traces.events import Ask, Law
from bench._common.traces.making import make_trace
from bench._common.traces.questions import read_trace_questions
from retrieval.clock import StageClock
from retrieval.deadline import Deadline
from retrieval.settings import Settings
from retrieval.thresholds import Overrides, resolve
from retrieval.types import Hit, RetrieveRequest

_CONTEXT_TOKENS = 16  # contexts are assembled anew for each arm
_PATIENCE_S = 3600.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of the trace, and its hits, best first."""

    ask: Ask
    hits: tuple[Hit, ...]


async def ask_all(folder: Path, law: Law, seed: int, top_k: int, settings: Settings, cache: Path) -> Sequence[Asked]:
    """Retrieves for every request of the trace of a set.

    Raises:
        FileNotFoundError: a file of the set is missing.
    """
    source, questions = read_trace_questions(folder)
    asks = list(make_trace(source, questions, law, seed).asks())
    async with open_encoders(settings, cache) as encoders:
        found = await _hits(source, list(dict.fromkeys(ask.text for ask in asks)), top_k, settings, encoders)
    return [Asked(ask, found[ask.text]) for ask in asks]


async def _hits(
    source: BeirSet, texts: Sequence[str], top_k: int, settings: Settings, encoders: Encoders
) -> dict[str, tuple[Hit, ...]]:
    async with open_request_path(settings, encoders, encoders.cached) as path:
        await index_documents(path.catalog, source.documents, {}, encoders, encoders.cached)
        say(f"{source.name}: {len(source.documents):,} documents, {len(texts):,} texts of questions")
        thresholds = resolve(settings, Overrides(top_k=top_k, context_tokens=_CONTEXT_TOKENS, cache=False))
        found: dict[str, tuple[Hit, ...]] = {}
        for text in texts:
            request = RetrieveRequest(text, KEY.tenant, KEY.collection, text, None, thresholds)
            reply = await path.without_cross_encoder.retrieve(request, StageClock(), Deadline.after(_PATIENCE_S))
            found[text] = reply.hits
        return found


def hottest(asked: Sequence[Asked], questions: int, limit: int) -> list[Asked]:
    """Returns the first requests about the questions asked most, look-alikes counted for what they resemble."""
    counts = Counter(_base(one) for one in asked)
    kept = {name for name, _ in counts.most_common(questions)}
    return [one for one in asked if _base(one) in kept][:limit]


def _base(asked: Asked) -> str:
    return asked.ask.question_id.partition("~")[0]
