"""Sends the prompts of an arm to a simulated server, whose reports the arm learns from."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench._common.prefix.arms import Arm, Contexts, gold_share, least_uncached
from bench._common.prefix.questions import Asked
from bench._common.prefix.server_cache import SimulatedCache
from bench._common.statistics import Quantiles, quantiles
from encoders.types import TokenCounter
from retrieval.generation.messages import chat_messages
from retrieval.prefix import PrefixOrder
from retrieval.speech import Usage
from retrieval.types import Arrangement, Context, Prompt


@dataclass(frozen=True, slots=True)
class Server:
    """What the prompts are sent to."""

    capacity_tokens: int  # of its prefix cache
    counter: TokenCounter
    instructions: str


@dataclass(frozen=True, slots=True)
class ArmFigures:
    """What came of an arm; tokens are means a request."""

    arm: str
    passages: float
    prompt_tokens: float
    uncached_tokens: float
    least_uncached_tokens: float  # of passages, whatever the order
    gold_share: float  # of requests whose context holds a document with the answer
    same_passages: bool  # whether each prompt had just the passages of its context
    active: bool  # whether the order was in force at the end
    arrange: Quantiles


def simulate(arm: Arm, asked: Sequence[Asked], contexts: Contexts, server: Server) -> ArmFigures:
    """Sends all requests of the trace, one after the other."""
    cache, arranger = SimulatedCache(server.capacity_tokens), arm.open(server.capacity_tokens)
    used = [contexts.of(one, gap=arm.gap) for one in asked]
    took, prompt_tokens, uncached, same = list[int](), 0, 0, True
    for one, context in zip(asked, used, strict=True):
        began_ns = time.perf_counter_ns()
        arrangement = arranger.arrange(server.instructions, context)
        took.append(time.perf_counter_ns() - began_ns)
        arranger.sent(server.instructions, context, arrangement)
        tokens = tokens_of(Prompt(server.instructions, context, one.ask.text, arrangement), server.counter)
        cached = cache.serve(tokens)
        arranger.learn(server.instructions, context, arrangement, Usage(len(tokens), 0, cached))
        prompt_tokens, uncached = prompt_tokens + len(tokens), uncached + len(tokens) - cached
        same = same and holds_all(context, arrangement)
    count = max(1, len(asked))
    return ArmFigures(
        arm=arm.name,
        passages=sum(len(context.citations) for context in used) / count,
        prompt_tokens=prompt_tokens / count,
        uncached_tokens=uncached / count,
        least_uncached_tokens=least_uncached(used, server.capacity_tokens),
        gold_share=gold_share([one.ask for one in asked], used),
        same_passages=same,
        active=arranger.figures.active if isinstance(arranger, PrefixOrder) else True,
        arrange=quantiles(took),
    )


def tokens_of(prompt: Prompt, counter: TokenCounter) -> list[str]:
    """Returns the tokens of a prompt's messages as pieces of text."""
    pieces = list[str]()
    for message in chat_messages(prompt):
        pieces += [message.content[start:end] for start, end in counter.offsets(message.content)]
        pieces.append(f"<end of {message.role}>")
    return pieces


def holds_all(context: Context, arrangement: Arrangement) -> bool:
    """Tells whether an arrangement has every passage of its context once, and its text nothing else."""
    numbers = sorted(number for _, number in arrangement.numbers)
    texts = [citation.passage.text.strip() for citation in context.citations]
    return numbers == [citation.number for citation in context.citations] and all(
        text in arrangement.text for text in texts
    )
