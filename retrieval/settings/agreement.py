"""What settings of different sections must agree on, so that what cannot be meant is refused and not passed over.

A rule that can never apply fails open, and one that nobody can satisfy fails shut, both in silence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from retrieval.settings.backends import AUTO, BackendSettings
from retrieval.settings.routing import RouteRule
from retrieval.settings.service import ApiKey

if TYPE_CHECKING:
    from retrieval.settings.caching import RedisSettings
    from retrieval.settings.generation import GenerationSettings
    from retrieval.settings.jobs import JobsSettings


def generation_faults(generation: GenerationSettings) -> Iterator[str]:
    """Yields what is wrong within `generation`, each fault with the setting's name."""
    names = [backend.name for backend in generation.backends]
    if len(set(names)) != len(names):
        yield "backends: two have the same name"
    choices = (AUTO, *names)
    for path, name in (
        ("default_backend", generation.default_backend),
        ("conversation.rewrite_backend", generation.conversation.rewrite_backend or AUTO),
    ):
        if name not in choices:
            yield f"{path} {name!r} is none of {', '.join(choices)}"
    yield from _rule_faults(generation)
    yield from _writing_faults(generation)
    yield from _window_faults(generation)


def permits(rule: RouteRule, backend: BackendSettings) -> bool:
    """Tells whether a backend meets all of a rule's conditions."""
    return (
        backend.name in (rule.backends or (backend.name,))
        and backend.tier in (rule.tiers or (backend.tier,))
        and backend.region in (rule.regions or (backend.region,))
    )


def policy_faults(rules: Iterable[RouteRule], keys: Iterable[ApiKey]) -> Iterator[str]:
    """Yields the data policies in rules that no key has; without keys nobody has any, and nothing is wrong."""
    known = {key.data_policy for key in keys}
    for rule in rules:
        if known and (unknown := sorted(set(rule.data_policies) - known)):
            yield f"generation.routing.rules: {rule.name!r} is for data policies that no key has: {', '.join(unknown)}"


def port_faults(ports: Iterable[tuple[str, int]]) -> Iterator[str]:
    """Yields each pair of settings that name one port; 0 is none."""
    taken: dict[int, str] = {}
    for path, port in ports:
        if port and taken.setdefault(port, path) != path:
            yield f"{path}: {port} is {taken[port]} too; choose another"


def store_faults(jobs: JobsSettings, redis: RedisSettings) -> Iterator[str]:
    """Yields what is missing for the store of jobs."""
    if jobs.store == "redis" and not redis.url.get_secret_value():
        yield "cache.redis.url: jobs.store = 'redis' needs it; name the server"


def _rule_faults(generation: GenerationSettings) -> Iterator[str]:
    rules, backends = generation.routing.rules, generation.backends
    for name, count in Counter(rule.name for rule in rules).items():
        if count > 1:
            yield f"routing.rules: two are called {name!r}"
    for rule in rules:
        if unknown := sorted(set(rule.backends) - {backend.name for backend in backends}):
            yield f"routing.rules: {rule.name!r} names backends that do not exist: {', '.join(unknown)}"
        elif not any(permits(rule, backend) for backend in backends):
            yield f"routing.rules: no backend meets {rule.name!r}; check its backends, tiers and regions"
    yield from _unconditional_faults(generation)


def _unconditional_faults(generation: GenerationSettings) -> Iterator[str]:
    always = [rule for rule in generation.routing.rules if not _has_condition(rule)]
    for rule in always:
        for backend in generation.backends:
            if backend.name == generation.default_backend and not permits(rule, backend):
                yield f"default_backend {backend.name!r} is forbidden to everyone by rule {rule.name!r}"
    if not any(all(permits(rule, backend) for rule in always) for backend in generation.backends):
        names = ", ".join(repr(rule.name) for rule in always)
        yield f"routing.rules: {names} together leave no backend to anyone" if names else "backends: there is none"


def _has_condition(rule: RouteRule) -> bool:
    return bool(rule.tenants or rule.collections or rule.data_policies or rule.field)


def _writing_faults(generation: GenerationSettings) -> Iterator[str]:
    """Yields what asks for a model that rewrites or sums up where none is."""
    settings = generation.conversation
    models = {backend.name for backend in generation.backends if backend.kind != "extractive"}
    named = settings.rewrite_backend
    if named in {backend.name for backend in generation.backends} - models:
        yield f"conversation.rewrite_backend {named!r} is extractive, which cannot rewrite; name another"
    if models:
        return
    if settings.rewrite == "model":
        yield "conversation.rewrite: no backend is a model, and extractive ones cannot rewrite"
    if settings.summarise:
        yield "conversation.summarise: no backend is a model, and extractive ones cannot sum up"


def _window_faults(generation: GenerationSettings) -> Iterator[str]:
    chosen = generation.default_backend
    windows = [each.context_window_tokens for each in generation.backends if chosen in (AUTO, each.name)]
    if windows and generation.max_output_tokens > max(windows):
        yield f"max_output_tokens is above {max(windows)}, the largest context_window_tokens of backend {chosen!r}"
