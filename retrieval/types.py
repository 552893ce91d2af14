"""The values of the request path: what comes in, what each stage hands to the next, what goes out.

All immutable. Scores travel inside the record of their passage, so they can never be given to another one.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeAlias

from encoders.types import EncodedQuery
from indexers.filters import Filter
from indexers.types import Epoch, Passage
from rerank.calibrate import Mixture
from rerank.stopping import StopRule
from retrieval.clock import Ledger
from retrieval.reuse import NO_REUSE, ReuseReport
from retrieval.route import ConversationReport, Priority, RouteReport
from retrieval.speech import NOTHING_SAID, Conversation, Delta, FinishReason, Tools, Turn, Usage


class Mode(enum.Enum):
    """Which branches search."""

    HYBRID = "hybrid"
    DENSE = "dense"
    SPARSE = "sparse"


class Fusion(enum.Enum):
    """How rankings are fused."""

    CONVEX = "convex"
    RRF = "rrf"


@dataclass(frozen=True, slots=True)
class PassageBounds:
    """Hits above the largest gap between two neighbours' scores are assembled, so many at least and at most."""

    least: int
    most: int


Span: TypeAlias = "tuple[int, int]"  # code points into a document's text


@dataclass(frozen=True, slots=True)
class Expansion:
    """How passages are widened before they are served."""

    sentences: int  # on each side at most; 0 takes the section
    limit_tokens: int  # of a widened passage


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What shapes a retrieval, resolved from settings and the request's overrides; within bounds."""

    top_k: int
    mode: Mode
    fusion: Fusion
    dense_weight: float
    rrf_k: int
    candidates: int  # a branch
    min_score: float
    rerank: bool
    rerank_depth: int  # at least top_k when `rerank`
    rerank_deadline_share: float
    late: bool  # whether late interaction takes part
    mixture: Mixture
    gate_margin: float  # 0 for no gate
    stop_rule: StopRule
    context_tokens: int
    duplicate_overlap: float
    passages: PassageBounds | None  # how many hits are assembled; None for all that fit
    expansion: Expansion | None  # None serves chunks as they are
    use_cache: bool


@dataclass(frozen=True, slots=True)
class CacheControl:
    """What the caller asks of the caches of results and answers."""

    no_cache: bool = False  # serve nothing that was made for another request
    no_store: bool = False  # keep nothing of this one
    only_if_cached: bool = False  # fail rather than compute
    max_age_s: float | None = None  # serve nothing that is older


@dataclass(frozen=True, slots=True)
class RetrieveRequest:
    """A checked question: the query is not blank, the thresholds are within bounds, the filter is not coerced yet."""

    request_id: str
    tenant: str  # from the credential
    collection: str
    query: str
    filter: Filter | None
    thresholds: Thresholds
    cache_control: CacheControl = CacheControl()
    data_policy: str = ""  # from the credential
    turns: tuple[Turn, ...] = ()  # earlier ones, oldest first


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """A checked question with what shapes the answer."""

    retrieve: RetrieveRequest
    backend: str  # `auto` for the router's choice
    max_output_tokens: int
    temperature: float
    instructions: str = ""  # the app's own, besides the operator's
    tools: Tools | None = None
    session: str = ""  # the app's name for a conversation; requests of one go to one server
    priority: Priority = Priority.INTERACTIVE
    max_cost: float = 0.0  # predicted, in the prices' currency; 0 for the configured ceiling


@dataclass(frozen=True, slots=True)
class ScoreParts:
    """Every score that a hit's final one was made from; None when that branch or stage was not asked."""

    dense: float | None = None  # cosine
    sparse: float | None = None  # BM25
    fused: float | None = None
    late: float | None = None  # late interaction, in about [-1, 1]
    rerank: float | None = None  # sigmoid of the logit


@dataclass(frozen=True, slots=True)
class FusedCandidate:
    """A candidate with its place in the fused order, before its passage is known."""

    chunk_id: str
    score: float
    parts: ScoreParts


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage with the score that hits are ordered by."""

    passage: Passage
    score: float
    parts: ScoreParts


class DropReason(enum.Enum):
    """Why a hit is not in the context."""

    BUDGET = "budget"
    DUPLICATE = "duplicate"
    MIN_SCORE = "min_score"
    GAP = "gap"


@dataclass(frozen=True, slots=True)
class Citation:
    """A numbered source of the context: one chunk, or adjacent ones of a document merged."""

    number: int  # from 1
    passage: Passage  # merged: document.text[start:end], white space between its chunks as line feeds
    chunk_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Dropped:
    """A hit that is not in the context, and why."""

    chunk_id: str
    reason: DropReason


@dataclass(frozen=True, slots=True)
class Context:
    """What the model gets to read."""

    text: str
    token_count: int
    budget_tokens: int
    tokenizer: str
    citations: tuple[Citation, ...] = ()
    dropped: tuple[Dropped, ...] = ()


NO_CONTEXT = Context("", 0, 0, "")


@dataclass(frozen=True, slots=True)
class Found:
    """What a retrieval found and assembled, whoever asked: given to all who ask the same, and kept by the cache."""

    hits: tuple[Hit, ...]
    context: Context
    epoch: Epoch
    dense: EncodedQuery | None = None  # None when the query was not embedded
    query_tokens: int = 0
    query_truncated: bool = False
    candidates: int = 0
    degraded: tuple[str, ...] = ()  # steps down that shaped it
    deadline_ns: int = 0  # of the request that it was made for, on the clock of time.monotonic_ns
    made_at_s: float = 0.0  # since the epoch


NO_CONVERSATION = ConversationReport()


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The hits, best first, the context made of them, and where the time went."""

    request_id: str
    hits: tuple[Hit, ...]
    context: Context
    ledger: Ledger
    epoch: Epoch
    conversation: ConversationReport = NO_CONVERSATION


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The sources as one model reads them. Their marks may differ from the citation numbers, which are by relevance."""

    text: str
    numbers: tuple[tuple[int, int], ...]  # each mark in the text with the citation number that it stands for, in order
    ranking: str = ""  # names the marks by relevance, most relevant first; empty when they stand in that order

    @classmethod
    def by_relevance(cls, context: Context) -> Arrangement:
        """Returns the sources as they were assembled."""
        return cls(context.text, tuple((citation.number, citation.number) for citation in context.citations))


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a backend gets: the system instructions, the sources, the conversation so far, and the question last."""

    instructions: str
    context: Context
    question: str
    sources: Arrangement
    conversation: Conversation = NOTHING_SAID
    tools: Tools | None = None


@dataclass(frozen=True, slots=True)
class AnswerCitation:
    """A citation mark in the answer, whose offsets are code points of the answer."""

    number: int
    start: int
    end: int
    document_id: str


@dataclass(frozen=True, slots=True)
class Completed:
    """How an answer ended."""

    finish_reason: FinishReason
    usage: Usage
    citations: tuple[AnswerCitation, ...]
    unknown_citations: int
    ledger: Ledger
    backend: str
    model: str
    reuse: ReuseReport = NO_REUSE


@dataclass(frozen=True, slots=True)
class Explained:
    """The route that a question would take now."""

    route: RouteReport
    context_tokens: int
    ledger: Ledger


GenerateEvent: TypeAlias = Retrieved | Delta | Completed
