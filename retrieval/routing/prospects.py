"""What may be expected of a backend for one request: when it ends, what it costs, what it is worth.

All of it comes from the live figures, so the choice follows load: a backend whose queue grows is predicted to end later
and loses requests to others. One that nothing is known of yet is taken to be quick, so that it gets a request and
something becomes known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from retrieval.dispatch.types import Outlook, Service
from retrieval.route import Candidate
from retrieval.routing.asking import Asking
from retrieval.routing.fits import Fit
from retrieval.settings.generation import BackendSettings, RoutingSettings

_NS = 1e9
_PER_PRICE_TOKENS = 1e6
# Of a backend that has not answered yet; a server with a GPU nearby takes about twice as long.
_UNKNOWN_FIRST_TOKEN_NS = 150_000_000
_UNKNOWN_TOKEN_NS = 10_000_000


@dataclass(frozen=True, slots=True)
class Prospect:
    """A backend that the rules allow, as it looks for one request."""

    service: Service
    fit: Fit | None  # None when not even a prompt without context fits
    healthy: bool
    first_token_ns: float  # predicted, the wait included
    total_ns: float  # predicted, to the last token
    cost: float  # predicted
    late: bool  # whether it is predicted to end after the deadline
    latency: float  # weighted, as are the next two
    price: float
    incapability: float  # what the question asks above what it can, and what of the context it cannot take
    excluded: str = ""

    @property
    def name(self) -> str:
        """The backend's name."""
        return self.service.settings.name

    @property
    def score(self) -> float:
        """The weighted sum; the least wins."""
        return self.latency + self.price + self.incapability

    def without(self, reason: str) -> Prospect:
        """Returns it as excluded."""
        return replace(self, excluded=reason)

    def candidate(self) -> Candidate:
        """Returns what the ledger shows."""
        return Candidate(
            backend=self.name,
            excluded=self.excluded,
            score=self.score,
            first_token_ms=self.first_token_ns / 1e6,
            total_ms=self.total_ns / 1e6,
            cost=self.cost,
            context_tokens=self.fit.context.token_count if self.fit else 0,
        )


@dataclass(frozen=True, slots=True)
class Forecast:
    """Predicts for one request."""

    asking: Asking
    settings: RoutingSettings
    complexity: float
    now_ns: int  # on the clock of the ticket's deadline

    def prospect(self, service: Service, fit: Fit | None) -> Prospect:
        """Reads the backend's outlook and weighs it."""
        outlook, weights = service.outlook(self.asking.ticket), self.settings
        output_tokens = min(outlook.output_tokens or weights.expected_output_tokens, self.asking.max_output_tokens)
        first_token_ns = float(outlook.wait_ns + (outlook.first_token_ns or _UNKNOWN_FIRST_TOKEN_NS))
        total_ns = first_token_ns + _token_ns(outlook) * output_tokens
        cost = _cost(service.settings, fit.prompt_tokens if fit else 0, output_tokens)
        above = max(0.0, self.complexity - service.settings.capability)
        return Prospect(
            service=service,
            fit=fit,
            healthy=outlook.healthy,
            first_token_ns=first_token_ns,
            total_ns=total_ns,
            cost=cost,
            late=self.now_ns + total_ns > self.asking.ticket.deadline_ns,
            latency=weights.latency_weight * total_ns / _NS,
            price=weights.cost_weight * cost,
            incapability=weights.capability_weight * (above + (fit.lost if fit else 1.0)),
        )


def _token_ns(outlook: Outlook) -> float:
    """Returns the time between tokens: none where answers come at once, as those of `extractive` do."""
    return float(outlook.token_ns or (0 if outlook.output_tokens else _UNKNOWN_TOKEN_NS))


def _cost(backend: BackendSettings, prompt_tokens: int, output_tokens: float) -> float:
    return (prompt_tokens * backend.input_price + output_tokens * backend.output_price) / _PER_PRICE_TOKENS
