"""The settings of routing: the rules, and what a backend's time, price and capability weigh."""

from __future__ import annotations

from pydantic import Field, model_validator

from retrieval.settings.backends import Tier
from retrieval.settings.base import FieldName, Name, Section, live


class RouteRule(Section):
    """A hard constraint. All rules that apply to a request hold at once, whatever the load and whatever fails."""

    name: str = Field(min_length=1, max_length=64)
    """What ledgers call it."""

    tenants: tuple[Name, ...] = ()
    """The tenants that it applies to; empty for all."""

    collections: tuple[Name, ...] = ()
    """The collections that it applies to; empty for all."""

    data_policies: tuple[str, ...] = ()
    """The data policies of keys that it applies to, of which a configured key has each; empty for all."""

    field: FieldName = ""
    """A metadata field. With it the rule applies when a passage of the context has one of the values, and to every
    conversation, since nobody knows what its earlier turns were made from."""

    values: tuple[str, ...] = ()
    """The field's values, as text; empty for any value. Numbers, truth values and times are compared as such, a time
    without a zone as UTC; texts without regard to case, to spaces around them and to how accents are composed."""

    backends: tuple[str, ...] = ()
    """The backends that may answer; empty for all."""

    tiers: tuple[Tier, ...] = ()
    """The tiers that may answer; empty for all."""

    regions: tuple[str, ...] = ()
    """The regions that may answer; empty for all."""

    @model_validator(mode="after")
    def _restricts(self) -> RouteRule:
        if not (self.backends or self.tiers or self.regions):
            raise ValueError("a rule needs backends, tiers or regions; without them it forbids nothing")
        if self.values and not self.field:
            raise ValueError("values need a field")
        if not all((*self.tenants, *self.collections, *self.backends)):
            raise ValueError("tenants, collections and backends have names; leave the list empty for all of them")
        return self


class RoutingSettings(Section):
    """How the router chooses among the backends that the rules allow: the least weighted sum wins."""

    rules: tuple[RouteRule, ...] = live(())
    """Hard constraints. A change of them waits for the restart while `generation.backends` or `auth.keys` wait for it,
    so that no rule goes before the backend or the key that it was for."""

    latency_weight: float = live(1.0, ge=0.0, le=1000.0)
    """Weight of a second of predicted time, from queueing to the last token."""

    cost_weight: float = live(100.0, ge=0.0, le=1e6)
    """Weight of a unit of predicted price."""

    capability_weight: float = live(20.0, ge=0.0, le=1e6)
    """Weight of what the question's complexity is above the backend's capability."""

    max_cost: float = live(0.0, ge=0.0, le=1e6)
    """The most that a routed request may be predicted to cost; 0 for no ceiling."""

    expected_output_tokens: int = live(160, ge=1, le=1_000_000)
    """Tokens of an answer as predicted, until a backend has answered often enough to tell."""
