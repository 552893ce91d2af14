"""Whether ordering by prefix pays at a server, by what the server says it had cached.

Three figures, each a mean over requests in which old ones fade: what prefix order would have found cached, what order
by relevance would have found, both by trees that are kept as if every prompt had been sent in that order; and what the
ranking costs that stands in the prompt besides. A fourth one, trust, is what the server reports as a share of what was
predicted for the prompts that were really sent. Prefix order pays while

    trust x (found by prefix order - found by relevance) > cost of the ranking

It is on at the start. It goes off when it has not paid over the last requests, of which at least 20 had a prefix
predicted, or when nothing worth it was predicted at all in 200 requests. It goes on again as soon as it would pay by a
margin of a fiftieth of the sources' tokens: order by relevance shows too whether the server keeps what it was sent. And
since a server that keeps nothing may be restarted with other options, trust is measured anew every 200 requests while
nothing else is missing: prefix order is tried until four prompts with a predicted prefix have been answered, for 40
requests at most.
"""

from __future__ import annotations

from dataclasses import dataclass

_FADE = 0.99  # of a mean, with each request
_TRUST_FADE = 0.95  # with each request that had a prefix predicted
_LEAST_PREDICTED = 20
_LEAST_REQUESTS = 200
_PROBE_EVERY = 200
_PROBE_PREDICTED = 4
_PROBE_REQUESTS = 40
_MARGIN = 0.02


@dataclass(frozen=True, slots=True)
class Forecast:
    """What was predicted for one request, in tokens of sources."""

    by_prefix: int  # cached, had all been sent in prefix order
    by_relevance: int  # cached, had all been sent by relevance
    sources: int
    ranking: int  # tokens of the ranking in prefix order


class Worth:
    """Judges after each request whether prefix order pays."""

    def __init__(self) -> None:
        self.active = True
        self._by_prefix = _Mean()
        self._by_relevance = _Mean()
        self._sources = _Mean()
        self._ranking = _Mean()
        self._believed = _Faded()
        self._needed = _LEAST_PREDICTED  # requests with a predicted prefix until the next judgement
        self._patience = _LEAST_REQUESTS  # requests after which it is judged without
        self._since = 0  # requests since it was switched on or off

    def sent(self, forecast: Forecast) -> None:
        """Counts a prompt that goes out."""
        self._since += 1
        self._by_prefix.add(forecast.by_prefix)
        self._by_relevance.add(forecast.by_relevance)
        self._sources.add(forecast.sources)
        self._ranking.add(forecast.ranking)
        if not self.active and self._since >= _PROBE_EVERY and self._gain(1.0) > self._margin:
            self._believed = _Faded()
            self._switch(on=True, needed=_PROBE_PREDICTED, patience=_PROBE_REQUESTS)

    def answered(self, predicted: int, reported: int) -> None:
        """Compares what was predicted with what the server says, and switches if the balance has changed."""
        if predicted > 0:
            self._needed -= 1
            self._believed.add(min(predicted, reported), predicted)
        gain = self._gain(self._believed.share)
        if self.active and (self._needed <= 0 or self._since >= self._patience) and gain <= 0.0:
            self._switch(on=False)
        elif not self.active and gain > self._margin:
            self._switch(on=True, needed=_LEAST_PREDICTED, patience=_LEAST_REQUESTS)

    @property
    def _margin(self) -> float:
        return _MARGIN * self._sources.value

    def _gain(self, trust: float) -> float:
        return trust * (self._by_prefix.value - self._by_relevance.value) - self._ranking.value

    def _switch(self, *, on: bool, needed: int = 0, patience: int = 0) -> None:
        self.active, self._needed, self._patience, self._since = on, needed, patience, 0


class _Mean:
    """A mean in which old values fade."""

    def __init__(self) -> None:
        self._sum = self._weight = 0.0

    def add(self, value: float) -> None:
        self._sum, self._weight = self._sum * _FADE + value, self._weight * _FADE + 1.0

    @property
    def value(self) -> float:
        return self._sum / self._weight if self._weight else 0.0


class _Faded:
    """A share of sums in which old values fade; 0 before the first."""

    def __init__(self) -> None:
        self._part = self._whole = 0.0

    def add(self, part: float, whole: float) -> None:
        self._part, self._whole = self._part * _TRUST_FADE + part, self._whole * _TRUST_FADE + whole

    @property
    def share(self) -> float:
        return self._part / self._whole if self._whole else 0.0
