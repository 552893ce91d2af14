"""Hard constraints: which rules apply to a request, and what they forbid.

Every rule that applies restricts, so what may answer is the intersection. Nothing here knows of load, health or cost:
there is no way for them to relax a rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from retrieval.caching.policy import holds_value
from retrieval.routing.asking import Subject
from retrieval.settings.agreement import permits
from retrieval.settings.generation import BackendSettings, RouteRule
from retrieval.types import Context


def known_before(rules: Iterable[RouteRule], subject: Subject) -> tuple[RouteRule, ...]:
    """Returns the rules that apply whatever will be found."""
    return tuple(rule for rule in rules if _concerns(rule, subject) and (not rule.field or subject.in_conversation))


def applying(rules: Iterable[RouteRule], subject: Subject, context: Context) -> tuple[RouteRule, ...]:
    """Returns the rules that apply to the request and to what was found for it; `known_before` are among them."""
    return tuple(
        rule
        for rule in rules
        if _concerns(rule, subject) and (not rule.field or subject.in_conversation or _is_in(rule, context))
    )


def forbidding(rules: Sequence[RouteRule], backend: BackendSettings) -> str:
    """Returns the name of the first of these rules that the backend would break; empty when it breaks none."""
    return next((rule.name for rule in rules if not permits(rule, backend)), "")


def is_about(rule: RouteRule, tenant: str, collection: str) -> bool:
    """Tells whether the rule may concern a collection of a tenant, whoever asks and whatever is in it."""
    return tenant in (rule.tenants or (tenant,)) and collection in (rule.collections or (collection,))


def _concerns(rule: RouteRule, subject: Subject) -> bool:
    policies = rule.data_policies or (subject.data_policy,)
    return is_about(rule, subject.tenant, subject.collection) and subject.data_policy in policies


def _is_in(rule: RouteRule, context: Context) -> bool:
    return any(holds_value(citation.passage.metadata, rule.field, rule.values) for citation in context.citations)
