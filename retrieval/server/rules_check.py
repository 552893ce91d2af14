"""Says in the log which rules can match nothing that is served, since a rule that is misspelt protects nothing."""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from indexers.index import Catalog
from retrieval.identity import DEFAULT_TENANT
from retrieval.routing.rules import is_about
from retrieval.settings import Settings

_log = structlog.get_logger("headrace")


async def tell_idle_rules(catalog: Catalog, settings: Settings) -> None:
    """Warns of each rule whose collection does not exist, or whose field no collection declares, for any tenant."""
    rules = settings.generation.routing.rules
    if not rules:
        return
    tenants = {key.tenant for key in settings.auth.keys} or {DEFAULT_TENANT}
    served = [each.definition for tenant in sorted(tenants) for each in await catalog.list(tenant)]
    for rule in rules:
        fields = [each.fields for each in served if is_about(rule, each.key.tenant, each.key.collection)]
        if not fields:
            _log.warning("rule_concerns_nothing", rule=rule.name, collections=list(rule.collections))
        elif rule.field and not any(rule.field in declared for declared in fields):
            _log.warning("rule_field_unknown", rule=rule.name, field=rule.field, known=sorted(_names(fields)))


def _names(fields: Iterable[Iterable[str]]) -> set[str]:
    return {name for declared in fields for name in declared}
