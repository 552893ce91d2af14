"""The settings of generation: the backends, how one is chosen, how requests queue, what happens when one fails."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from retrieval.settings.agreement import generation_faults
from retrieval.settings.backends import AUTO, BackendSettings, Tier
from retrieval.settings.base import NAME, Section, live
from retrieval.settings.routing import RouteRule, RoutingSettings

__all__ = ["AUTO", "BackendSettings", "GenerationSettings", "RouteRule", "RoutingSettings", "Tier"]


class TenantWeight(Section):
    """A tenant's share of a server while requests wait."""

    tenant: str = Field(pattern=NAME)
    """The tenant."""

    weight: float = Field(gt=0.0, le=1000.0)
    """Its share; that of a tenant that is not named is 1."""


class QueueSettings(Section):
    """How requests wait for a backend's server. Each has a limit of its own, which follows its latency."""

    max_wait_ms: int = live(2000, ge=0, le=600_000)
    """How long a request may wait; one that would wait longer is refused at once."""

    initial_concurrent: int = Field(default=8, ge=1, le=100_000)
    """The limit of a server that nothing is known of yet."""

    latency_tolerance: float = live(2.0, gt=1.0, le=100.0)
    """How many times its time to first token when idle a server may take before its limit is lowered."""

    tenants: tuple[TenantWeight, ...] = live(())
    """Tenants whose share of a server is not that of the others while requests wait."""

    @field_validator("tenants")
    @classmethod
    def _no_doubles(cls, tenants: tuple[TenantWeight, ...]) -> tuple[TenantWeight, ...]:
        if len({each.tenant for each in tenants}) != len(tenants):
            raise ValueError("a tenant has two weights")
        return tenants


class ResilienceSettings(Section):
    """What happens when a backend fails. Nothing is ever sent again once a part of the answer has gone out."""

    retry_share: float = live(0.1, ge=0.0, le=1.0)
    """Requests sent to a backend again as a share of all at most; what is above goes to the next backend or fails at
    once, so that a backend that is down is not asked twice as often."""

    backoff_ms: int = live(100, ge=1, le=60_000)
    """The pause before the first retry, give or take half of it; each further one doubles."""

    failures_to_open: int = live(5, ge=1, le=1000)
    """Failures in a row after which a server gets nothing more."""

    open_ms: int = live(5000, ge=10, le=600_000)
    """How long it then gets nothing; a single request tries it afterwards, and each failure doubles the time."""

    eject_error_share: float = live(0.5, gt=0.0, le=1.0)
    """Share of its last requests that must have failed for a server to be left out while others can answer."""

    hedge: bool = live(False)
    """Whether a second server or backend is asked when the first has sent nothing for `hedge_quantile` of the usual
    time to first token; who sends first answers, the other is cancelled."""

    hedge_quantile: float = live(0.95, ge=0.5, le=0.999)
    """The quantile of the live time to first token after which a second one is asked."""

    hedge_share: float = live(0.05, ge=0.0, le=0.5)
    """Second requests as a share of all at most."""

    @model_validator(mode="after")
    def _may_hedge(self) -> ResilienceSettings:
        if self.hedge and not self.hedge_share:
            raise ValueError("hedge needs a hedge_share above 0")
        return self


class ConversationSettings(Section):
    """What becomes of the earlier turns of a conversation."""

    rewrite: Literal["rules", "model", "off"] = live("rules")
    """How a follow-up question is made self-contained for retrieval; `model` asks `rewrite_backend` when the rules say
    that it leans on what came before, and takes the rules' words when that fails."""

    rewrite_backend: str = live("")
    """The backend that rewrites; empty lets the router choose."""

    rewrite_timeout_ms: int = live(1500, ge=10, le=60_000)
    """How long rewriting by a model may take."""

    history_tokens: int = live(800, ge=0, le=1_000_000)
    """Tokens of earlier turns in a prompt at most, as the model counts them; the oldest are left out first."""

    summarise: bool = live(False)
    """Whether turns that were left out are summarised by a model, beside the request, for the turns to come."""

    summary_tokens: int = live(160, ge=16, le=10_000)
    """Tokens of such a summary at most; it counts among `history_tokens`."""

    @model_validator(mode="after")
    def _summary_fits(self) -> ConversationSettings:
        if self.summarise and self.summary_tokens > self.history_tokens:
            raise ValueError("summary_tokens must not be above history_tokens")
        return self


class GenerationSettings(Section):
    """How answers are made."""

    timeout_ms: int = live(120_000, ge=1, le=3_600_000)
    """The longest that Generate may take; a caller's shorter deadline holds instead."""

    default_backend: str = live("extractive")
    """The backend of requests that name none; `auto` lets the router choose."""

    backends: tuple[BackendSettings, ...] = (BackendSettings(name="extractive", kind="extractive"),)
    """The backends. While those in the file are not those that run, a change of what names or restrains them waits for
    the restart too: rules, `default_backend`, `max_output_tokens`, and who rewrites and sums up."""

    max_output_tokens: int = live(512, ge=1, le=1_000_000)
    """Tokens of output at most, unless a request says otherwise."""

    temperature: float = live(0.0, ge=0.0, le=2.0)
    """Sampling temperature, unless a request says otherwise."""

    extractive_sentences: int = live(3, ge=1, le=20)
    """Sentences of an extractive answer at most."""

    instructions: str = live(
        "Answer the question from the numbered sources only. Cite each statement with its source's number in square "
        "brackets, like [1]. If the sources do not hold the answer, say so.",
        min_length=1,
        max_length=20_000,
    )
    """The system prompt."""

    routing: RoutingSettings = RoutingSettings()
    """How a backend is chosen."""

    queue: QueueSettings = QueueSettings()
    """How requests wait for it."""

    resilience: ResilienceSettings = ResilienceSettings()
    """What happens when it fails."""

    conversation: ConversationSettings = ConversationSettings()
    """What becomes of earlier turns."""

    @model_validator(mode="after")
    def _agrees(self) -> GenerationSettings:
        if faults := list(generation_faults(self)):
            raise ValueError("; ".join(faults))
        return self
