"""The cross-encoder: query and passage through one model together, one logit out.

One pair a run, at its exact length, unless it was measured that batches are faster and change no score
(`encoders.curve`): a pair's score is the same alone and among any others, so scores can be compared between requests
and cached. The query gets at most half of the limit, so a long question cannot push the passage out.

A model has one logit, or two whose difference is the score. A graph that ends in a sigmoid or softmax of its own cannot
be told from one that does not: its order is right, but a second sigmoid flattens its scores. So export logits.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from copy import copy

import numpy as np
from numpy.typing import NDArray

from encoders.calibration import Calibration
from encoders.curve import sample_of
from encoders.errors import EncoderError, ModelUnsupported, NonFiniteOutput, WorkExpired
from encoders.inputs import inputs_of, run_in_pieces
from encoders.kinds import ModelKind, require_kind
from encoders.measured import Measurements
from encoders.models import ModelFiles
from encoders.onnx import OnnxSession, Tensor
from encoders.pieces import EXACT, PiecePolicy
from encoders.scheduler import TokenScheduler
from encoders.selfcheck import PairCheck
from encoders.sources import ModelSource
from encoders.tokenizing import Tokenization
from encoders.types import Outcome, TokenizedText, WorkClass
from encoders.variants import Choice, open_checked
from rerank.errors import QueryTooLong, Reason, RerankIncomplete
from rerank.types import Load, PairScores

# Tokenizing costs about 0.25 ms for this many code points; longer input leaves the event loop alone.
_INLINE = 1_000
# Six layers of 384 dimensions on a slow core: a guess for the first request after a start.
_UNKNOWN_NS_PER_TOKEN = 250_000.0


class CrossEncoderEngine:
    """An open cross-encoder. Safe to call from several threads at once; computes on the calling thread alone."""

    def __init__(self, session: OnnxSession, files: ModelFiles) -> None:
        self.model_id = files.model_id
        self._session = session
        self._takes = inputs_of(session, files.model_id)
        self._output = _logit_output(session, files)
        self._relevant = files.relevant_class
        self.policy = EXACT
        """How `run` cuts what it is given into runs of the session."""

    def with_policy(self, policy: PiecePolicy) -> CrossEncoderEngine:
        """Returns the same engine, over the same session, that cuts by another policy."""
        other = copy(self)
        other.policy = policy
        return other

    def run(self, items: Sequence[TokenizedText]) -> list[float]:
        """Returns a logit a pair; of two classes, how much the relevant one is ahead of the other.

        Raises:
            NonFiniteOutput: a pair came out with NaN or Inf.
            EncodingFailed: the session failed on a pair.
        """
        logits = [0.0] * len(items)
        for position, heads in run_in_pieces(self._session, self._output.name, self._takes, items, self.policy):
            logits[position] = self._logit(heads.astype(np.float64))
        return logits

    def _logit(self, heads: NDArray[np.float64]) -> float:
        logit = float(heads[self._relevant] - heads[1 - self._relevant]) if len(heads) == 2 else float(heads[0])
        if not math.isfinite(logit):
            raise NonFiniteOutput(self.model_id)
        return logit


class OnnxCrossEncoder:
    """The `Reranker` of a model whose files were resolved: synchronous, for tools and tests."""

    def __init__(self, engine: CrossEncoderEngine, tokenization: Tokenization, revision: str) -> None:
        self.engine = engine
        self.tokenization = tokenization
        self.model_id = engine.model_id
        self.revision = revision

    @classmethod
    def open(cls, files: ModelFiles) -> OnnxCrossEncoder:
        """Opens weights and tokenizer.

        Raises:
            ModelNotFound, ModelUnsupported: one of them cannot be opened, or the model is no cross-encoder.
        """
        served = {ModelKind.CROSS_ENCODER, ModelKind.BI_ENCODER}  # of the second the graph decides
        require_kind(files.model_id, files.kind, served, ModelKind.CROSS_ENCODER)
        tokenization = Tokenization.open(files.tokenizer, files.model_id, files.max_tokens)
        engine = CrossEncoderEngine(OnnxSession.open(files.weights, files.model_id), files)
        return cls(engine, tokenization, files.revision)

    def score(self, query: str, passages: Sequence[str]) -> NDArray[np.float32]:
        """Returns float32 [n], logits; higher is better. Pairs are cut at the model's limit."""
        return np.array(self.engine.run(self.tokenization.pairs(query, passages)), dtype=np.float32)

    def require_whole_query(self, query: str) -> None:
        """Refuses a query that would be cut.

        Raises:
            QueryTooLong: it has more tokens than its share of a pair.
        """
        count, limit = self.tokenization.count(query), self.tokenization.pair_query_limit
        if count > limit:
            raise QueryTooLong(count, limit)


class ScheduledCrossEncoder:
    """The `AsyncReranker` of a model: tokenizes, then waits for the scheduler."""

    def __init__(self, encoder: OnnxCrossEncoder, scheduler: TokenScheduler) -> None:
        self.encoder = encoder
        self.model_id = encoder.model_id
        self.revision = encoder.revision
        self.choice: Choice | None = None
        """Which file was opened and what its check said; None when it was opened without."""
        self.calibration: Calibration | None = None
        """What a token costs; None when it was opened without."""
        self._scheduler = scheduler

    async def score(self, query: str, passages: Sequence[str], deadline_ns: int | None) -> PairScores:
        """Scores all passages or none. `deadline_ns` is on the clock of `time.monotonic_ns`.

        Raises:
            RerankIncomplete: not every pair was scored: the deadline, a full queue, a failing pair.
        """
        return await self.score_pairs(await self.tokenize(query, passages), deadline_ns)

    async def score_pairs(self, pairs: Sequence[TokenizedText], deadline_ns: int | None) -> PairScores:
        """Does what `score` does for pairs that `tokenize` has made."""
        try:
            outcomes = await self._scheduler.submit(self.encoder.engine, pairs, WorkClass.ONLINE, deadline_ns)
        except EncoderError as cause:
            raise RerankIncomplete("unavailable", 0, len(pairs)) from cause
        return _complete(outcomes)

    def load(self) -> Load:
        """Says what scoring costs at the moment."""
        stats = self._scheduler.stats()
        cost = stats.ns_per_token.get(self.model_id, _UNKNOWN_NS_PER_TOKEN)
        return Load(stats.workers, cost, stats.queued_online_items)

    async def tokenize(self, query: str, passages: Sequence[str]) -> list[TokenizedText]:
        """Makes the pairs as the model takes them, cut at its limit."""
        if len(query) + sum(map(len, passages)) <= _INLINE:
            return self.encoder.tokenization.pairs(query, passages)
        return await asyncio.to_thread(self.encoder.tokenization.pairs, query, passages)


def open_cross_encoder(
    source: ModelSource, scheduler: TokenScheduler, memory: Measurements | None = None
) -> ScheduledCrossEncoder:
    """Finds and opens a cross-encoder, and compares it with its reference logits on this CPU.

    `memory` holds what earlier starts have measured; without one everything is measured anew.

    Raises:
        ModelNotFound: there is no such model.
        ModelUnsupported: it is no cross-encoder.
        ModelCheckFailed: it computes something else than its references.
    """
    memory = memory or Measurements()
    chosen = open_checked(source, PairCheck(OnnxCrossEncoder.open), memory)
    opened = ScheduledCrossEncoder(chosen.encoder, scheduler)
    opened.choice = chosen.choice
    sample = sample_of(chosen.encoder.tokenization, paired=True)
    opened.calibration = Calibration(chosen.encoder.engine, sample, chosen.files, scheduler, memory)
    return opened


def _complete(outcomes: Sequence[Outcome[float]]) -> PairScores:
    logits = [outcome.value for outcome in outcomes if outcome.value is not None]
    failure = next((outcome.error for outcome in outcomes if outcome.error is not None), None)
    if failure is not None:
        reason: Reason = "deadline" if isinstance(failure, WorkExpired) else "unavailable"
        tokens = sum(outcome.token_count for outcome in outcomes if outcome.value is not None)
        raise RerankIncomplete(reason, len(logits), len(outcomes), tokens) from failure
    return PairScores(
        logits=np.array(logits, dtype=np.float64),
        token_count=sum(outcome.token_count for outcome in outcomes),
        truncated_count=sum(outcome.truncated for outcome in outcomes),
        queue_ns=min((outcome.queue_ns for outcome in outcomes), default=0),
        compute_ns=sum(outcome.compute_ns for outcome in outcomes),
    )


def _logit_output(session: OnnxSession, files: ModelFiles) -> Tensor:
    outputs = {tensor.name: tensor for tensor in session.outputs}
    found = outputs.get("logits") or next(iter(session.outputs))
    if len(found.shape) == 2 and found.shape[-1] in {1, 2}:
        return found
    given = f"it gives {sorted(outputs)}, not one logit a pair"
    if files.kind is ModelKind.CROSS_ENCODER and len(found.shape) == 3:
        raise ModelUnsupported(
            files.model_id, f"{given}: the file lacks the scoring head; export it with `headrace models export`"
        )
    raise ModelUnsupported(files.model_id, f"{given}; choose a cross-encoder")
