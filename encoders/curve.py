"""What a token costs by length, alone and in batches, and how pieces are cut because of it.

Measured once for a model, a processor and a version of ONNX Runtime, on one thread, with the other arms in between
(interleaved), and the best of the rounds counts: other work on the machine only ever adds time. A batch is preferred
only where it saves more than `_MARGIN`, takes no longer than `_PIECE_NS`, and leaves every result as it is alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from encoders.errors import EncoderError
from encoders.pieces import EXACT, PiecePolicy
from encoders.tokenizing import Tokenization
from encoders.types import TokenizedText

_LENGTHS = (8, 16, 32, 64, 128, 256)  # tokens of a text
_BATCHES = (4, 16, 64, 256)  # texts of a batch
_ROUNDS = 6
_MARGIN = 1.15
_NEARLY = 0.95  # the smallest batch that gains this share of the best one's gain is taken
_PIECE_NS = 20_000_000  # what arrives during a piece waits for no longer
_TOLERANCE = 1e-5
_COMPARED = 32  # tokens of the texts that are computed alone and together
_LIKE = 4  # as many lengths one below the other are alike
_WORDS = "A pump moves water through the turbine, and the turbine turns the wheel that makes the light. "


@dataclass(frozen=True, slots=True)
class LengthCost:
    """What a token of a text of this length costs."""

    tokens: int
    ns_per_token: float
    texts: int = 1  # in one run


@dataclass(frozen=True, slots=True)
class CostCurve:
    """A model's measured cost and the policy that follows from it."""

    single: tuple[LengthCost, ...]  # one text a run, by rising length
    batched: tuple[LengthCost, ...]  # the batches that were tried; empty for a model that takes none
    policy: PiecePolicy


class Batching(Protocol):
    """An engine that computes several texts in one run when its policy says so."""

    def with_policy(self, policy: PiecePolicy) -> Batching:
        """Returns the same engine, over the same session, with another policy."""
        ...

    def run(self, items: Sequence[TokenizedText]) -> Sequence[Any]:
        """Returns one result an item, a number or a vector."""
        ...


Sample = Callable[[int], TokenizedText]
"""Returns a text of so many tokens."""


def sample_of(tokenization: Tokenization, *, paired: bool) -> Sample:
    """Returns what makes texts, or pairs, of any length up to the model's limit."""
    text = _WORDS * (1 + tokenization.max_tokens // 8)
    whole = tokenization.pairs(_WORDS, [text])[0] if paired else tokenization.texts([text])[0]

    def sample(tokens: int) -> TokenizedText:
        keep = np.r_[: tokens - 1, whole.token_count - 1]
        return TokenizedText(whole.ids[keep], whole.type_ids[keep], tokens)

    return sample


def measure(
    engine: Batching, sample: Sample, longest: int, *, may_batch: bool, ended: Callable[[], bool] = lambda: False
) -> CostCurve | None:
    """Measures an engine on the calling thread, for a second or less; None when `ended` says so in between.

    `longest` is the model's limit in tokens. Without `may_batch` no batch is tried.
    """
    lengths = [length for length in _LENGTHS if length < longest] + [longest] * (longest <= _LENGTHS[-1])
    single = _best(engine.with_policy(EXACT), [(length, 1) for length in lengths], sample, ended)
    if single is None or not may_batch or not _independent(engine, sample, min(lengths[-1], _COMPARED)):
        return None if single is None else CostCurve(single, (), EXACT)
    shapes = [(one.tokens, texts) for one in single for texts in _BATCHES if _fits(one, texts)]
    batched = _best(engine.with_policy(_AS_GIVEN), shapes, sample, ended)
    return None if batched is None else CostCurve(single, batched, decide(single, batched))


def decide(single: Sequence[LengthCost], batched: Sequence[LengthCost]) -> PiecePolicy:
    """Returns the policy for measured costs: one text a run, unless batches of the shorter lengths gain enough."""
    policy = EXACT
    for alone in single:
        gains = {one.texts: alone.ns_per_token / one.ns_per_token for one in batched if one.tokens == alone.tokens}
        best = max(gains.values(), default=0.0)
        if best < _MARGIN:
            break
        texts = min(count for count, gain in gains.items() if gain >= best * _NEARLY)
        policy = PiecePolicy(max(policy.budget_tokens, texts * alone.tokens), alone.tokens)
    return policy


_AS_GIVEN = PiecePolicy(budget_tokens=2**31, longest_tokens=2**31)


def _fits(alone: LengthCost, texts: int) -> bool:
    # A batch that turns out faster than its texts alone fits all the more.
    return alone.ns_per_token * alone.tokens * texts <= 2 * _PIECE_NS


def _best(
    engine: Batching, shapes: Iterable[tuple[int, int]], sample: Sample, ended: Callable[[], bool]
) -> tuple[LengthCost, ...] | None:
    runs = {(tokens, texts): [sample(tokens)] * texts for tokens, texts in shapes}
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(_ROUNDS):
        for shape, items in runs.items():
            if ended():
                return None
            begun = time.perf_counter_ns()
            engine.run(items)
            best[shape] = min(best[shape], float(time.perf_counter_ns() - begun))
    within = {shape: spent for shape, spent in best.items() if shape[1] == 1 or spent <= _PIECE_NS}
    return tuple(LengthCost(tokens, spent / (tokens * texts), texts) for (tokens, texts), spent in within.items())


def _independent(engine: Batching, sample: Sample, longest: int) -> bool:
    """Tells whether texts come out of a batch as they do alone, to a hundred-thousandth."""
    items = [sample(longest), *(_backwards(sample(max(3, longest - fewer))) for fewer in range(_LIKE))]
    try:
        alone = engine.with_policy(EXACT).run(items)
        together = engine.with_policy(_AS_GIVEN).run(items)
    except EncoderError:
        return False
    pairs = zip(alone, together, strict=True)
    return all(np.allclose(one, other, rtol=_TOLERANCE, atol=_TOLERANCE) for one, other in pairs)


def _backwards(item: TokenizedText) -> TokenizedText:
    ids = np.concatenate([item.ids[:1], item.ids[-2:0:-1], item.ids[-1:]])
    return TokenizedText(ids, item.type_ids, item.full_token_count)
