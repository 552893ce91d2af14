"""Sends prompts to real llama.cpp servers, one for each arm, in turn, and reads what they say they had cached.

A server takes one request at a time here and computes with one thread. What the simulation predicts for the same
requests stands beside, counted by the model's own tokenizer. Each request goes to all arms before the next one, the
first arm changing, so that what else the machine does falls on all of them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from bench._common.prefix.arms import REAL_ARMS, Arm, Contexts
from bench._common.prefix.questions import Asked
from bench._common.prefix.server_cache import SimulatedCache
from bench._common.prefix.simulating import tokens_of
from bench._common.statistics import Quantiles, quantiles
from bench._common.tables import say
from retrieval.generation.llama_backend import LlamaBackend, open_llama
from retrieval.settings import Settings
from retrieval.settings.generation import BackendSettings
from retrieval.speech import BackendEnd, Delta, GenerationParams, Usage
from retrieval.token_counters import open_counter
from retrieval.types import Prompt

_WINDOW_TOKENS = 2048
_OUTPUT_TOKENS = 8
_PATIENCE_S = 600.0
_SAY_EVERY = 10


@dataclass(frozen=True, slots=True)
class RealFigures:
    """What a real server did in an arm; tokens are means a request."""

    arm: str
    requests: int
    prompt_tokens: float
    uncached_tokens: float  # as the server says
    simulated_uncached_tokens: float  # as the simulation says
    first_token: Quantiles
    mean_first_token_ms: float


class _RealArm:
    """An arm with its server, and what has come of it."""

    def __init__(self, arm: Arm, backend: LlamaBackend, capacity_tokens: int, instructions: str) -> None:
        self._name, self._gap = arm.name, arm.gap
        self._backend, self._instructions = backend, instructions
        self._arranger = arm.open(capacity_tokens)
        self._cache = SimulatedCache(capacity_tokens)
        self._took_ns = list[int]()
        self._prompt_tokens = self._uncached = self._simulated = 0

    async def send(self, asked: Asked, contexts: Contexts) -> None:
        """Sends a request and waits for the whole of its short answer."""
        context, root = contexts.of(asked, gap=self._gap), self._instructions
        arrangement = self._arranger.arrange(root, context)
        prompt = Prompt(root, context, asked.ask.text, arrangement)
        self._arranger.sent(root, context, arrangement)
        usage = await self._answered(prompt)
        self._arranger.learn(root, context, arrangement, usage)
        tokens = tokens_of(prompt, self._backend.counter)
        self._prompt_tokens += usage.prompt_tokens
        self._uncached += usage.prompt_tokens - usage.cached_prompt_tokens
        self._simulated += len(tokens) - self._cache.serve(tokens)

    def figures(self) -> RealFigures:
        """Returns what has come so far."""
        count = max(1, len(self._took_ns))
        return RealFigures(
            arm=self._name,
            requests=len(self._took_ns),
            prompt_tokens=self._prompt_tokens / count,
            uncached_tokens=self._uncached / count,
            simulated_uncached_tokens=self._simulated / count,
            first_token=quantiles(self._took_ns),
            mean_first_token_ms=sum(self._took_ns) / count / 1e6,
        )

    async def _answered(self, prompt: Prompt) -> Usage:
        params = GenerationParams(_OUTPUT_TOKENS, 0.0, time.monotonic_ns() + int(_PATIENCE_S * 1e9))
        began_ns, first_ns, usage = time.monotonic_ns(), 0, Usage()
        async for piece in self._backend.stream(prompt, params):
            if isinstance(piece, Delta) and not first_ns:
                first_ns = time.monotonic_ns()
            elif isinstance(piece, BackendEnd):
                usage = piece.usage
        self._took_ns.append((first_ns or time.monotonic_ns()) - began_ns)
        return usage


async def measure_real(
    model: Path, asked: Sequence[Asked], settings: Settings, capacity_tokens: int, budget_tokens: int
) -> list[RealFigures]:
    """Sends the requests to a server for each arm.

    Raises:
        ExtraMissing: the extra `llama` is not installed.
        ModelNotFound, ModelUnsupported: the weights cannot be used.
        BackendError: a server failed.
    """
    instructions = settings.generation.instructions
    async with AsyncExitStack() as stack:
        counter, arms = open_counter(settings.context.tokenizer), list[_RealArm]()
        for order in REAL_ARMS:
            backend = open_llama(_backend(order, model, capacity_tokens), model.parent, counter)
            stack.push_async_callback(backend.close)
            arms.append(_RealArm(order, backend, capacity_tokens, instructions))
        contexts = Contexts(settings, backend.counter, budget_tokens)
        for number, one in enumerate(asked):
            first = number % len(arms)
            for arm in arms[first:] + arms[:first]:
                await arm.send(one, contexts)
            if (number + 1) % _SAY_EVERY == 0:
                say(f"{number + 1} requests to each server")
        return [arm.figures() for arm in arms]


def _backend(arm: Arm, model: Path, capacity_tokens: int) -> BackendSettings:
    return BackendSettings(
        name=arm.name.replace(", ", "-"),
        kind="llama",
        model=str(model),
        threads=1,
        max_concurrent=1,
        context_window_tokens=_WINDOW_TOKENS,
        first_token_timeout_s=_PATIENCE_S,
        token_timeout_s=_PATIENCE_S,
        prefix_cache_tokens=capacity_tokens,
    )
