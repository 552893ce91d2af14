"""Chooses the backend: hard rules first, then the least weighted sum among those that they leave.

No path leads around the rules: each begins with the backends that they permit and only ever takes some away. So load,
failures, prices and deadlines can reorder and remove legs of a route, and never add one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from retrieval.dispatch.types import Leg, Route, Service
from retrieval.errors import BackendForbidden, BackendUnknown, InvalidRequest, NoBackendAllowed
from retrieval.route import Candidate, RouteReport
from retrieval.routing.asking import Asking, Reading, Subject
from retrieval.routing.choice import most_wanted, narrowed, ranked, reason
from retrieval.routing.complexity import complexity
from retrieval.routing.fits import Fit, Measure
from retrieval.routing.prospects import Forecast, Prospect
from retrieval.routing.rules import applying, forbidding, known_before
from retrieval.settings.generation import AUTO, GenerationSettings, RouteRule
from retrieval.types import Context, Found


class Router:
    """Decides who may answer and who should. Holds no state: it reads settings and outlooks anew for each request."""

    def __init__(
        self,
        services: Mapping[str, Service],
        settings: Callable[[], GenerationSettings],
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Takes the services by name in configured order, and the clock of tickets' deadlines."""
        self._services = services
        self._settings = settings
        self._clock = clock

    def allowed(self, backend: str, subject: Subject) -> tuple[str, ...]:
        """Returns the backends that the rules known before retrieval allow, in configured order; one if it is named.

        Raises:
            BackendUnknown: no backend has the name.
            BackendForbidden: a rule forbids the named one.
            NoBackendAllowed: the rules leave none.
        """
        rules = known_before(self._settings().routing.rules, subject)
        return self._permitted(backend, rules)

    def reading(self, asking: Asking) -> Reading:
        """Returns the widest context that any allowed backend can take, counted as that one counts.

        Raises:
            InvalidRequest: the prompt fits none of them even without context; says what would fit the roomiest.
            BackendError: as `allowed`.
        """
        measure = Measure(asking)
        names = self.allowed(asking.backend, asking.who)
        roomy_first = sorted((self._services[name] for name in names), key=_window_tokens, reverse=True)
        readings = [_reading(measure, service) for service in roomy_first]
        open_ = [each for each in readings if isinstance(each, Reading)]
        if open_:
            return max(open_, key=lambda each: each.context_tokens)
        raise next(each for each in readings if isinstance(each, InvalidRequest))

    def route(self, asking: Asking, found: Found) -> Route:
        """Returns the backends that may answer, best first, each with what it can take of the context.

        Raises:
            InvalidRequest: the prompt does not fit the named backend even without context.
            BackendError: as `allowed`, by the rules that what was found brings in; and NoBackendAllowed also when
                windows or prices leave none.
        """
        settings = self._settings().routing
        rules = applying(settings.rules, asking.who, found.context)
        services = [self._services[name] for name in self._permitted(asking.backend, rules)]
        hardness = complexity(asking.question, found, in_conversation=asking.who.in_conversation)
        forecast = Forecast(asking, settings, hardness, self._clock())
        measure = Measure(asking)
        if asking.backend != AUTO:
            best_first = [forecast.prospect(services[0], measure.fit(services[0], found.context))]
            return _route("named", best_first, [], forecast, rules)
        prospects = [forecast.prospect(each, _fit(measure, each, found.context)) for each in services]
        prospects = narrowed(prospects, self.ceiling(asking.max_cost))
        best_first = ranked(prospects)
        excluded = [each.candidate() for each in prospects if each.excluded] + self._forbidden(rules)
        if not best_first:
            raise NoBackendAllowed(tuple((each.backend, each.excluded) for each in excluded))
        return _route(reason(best_first), best_first, excluded, forecast, rules, most_wanted(prospects))

    def ceiling(self, asked: float) -> float:
        """Returns the lower of the request's and the configured ceiling of price, of which 0 is none."""
        return min((each for each in (asked, self._settings().routing.max_cost) if each > 0.0), default=0.0)

    def permits(self, asking: Asking, found: Found, backend: str) -> bool:
        """Tells whether the rules in force now let a backend see the request and what was found."""
        service = self._services.get(backend)
        rules = applying(self._settings().routing.rules, asking.who, found.context)
        return service is not None and not forbidding(rules, service.settings)

    def _permitted(self, backend: str, rules: Sequence[RouteRule]) -> tuple[str, ...]:
        if backend != AUTO and backend not in self._services:
            raise BackendUnknown(backend, tuple(self._services))
        broken = {name: forbidding(rules, service.settings) for name, service in self._services.items()}
        free = tuple(name for name, rule in broken.items() if not rule)
        if backend != AUTO:
            if broken[backend]:
                raise BackendForbidden(backend, broken[backend], free)
            return (backend,)
        if not free:
            raise NoBackendAllowed(tuple((name, f"rule:{rule}") for name, rule in broken.items()))
        return free

    def _forbidden(self, rules: Sequence[RouteRule]) -> list[Candidate]:
        broken = ((name, forbidding(rules, service.settings)) for name, service in self._services.items())
        return [Candidate(name, excluded=f"rule:{rule}") for name, rule in broken if rule]


def _window_tokens(service: Service) -> int:
    return service.settings.context_window_tokens


def _reading(measure: Measure, service: Service) -> Reading | InvalidRequest:
    try:
        return Reading(service.counter, measure.budget(service))
    except InvalidRequest as refusal:
        return refusal


def _fit(measure: Measure, service: Service, context: Context) -> Fit | None:
    try:
        return measure.fit(service, context)
    except InvalidRequest:
        return None  # another backend may have the room


def _route(
    why: str,
    best_first: Sequence[Prospect],
    excluded: Sequence[Candidate],
    forecast: Forecast,
    rules: Sequence[RouteRule],
    wanted: str = "",
) -> Route:
    report = RouteReport(
        backend=best_first[0].name,
        reason=why,
        complexity=forecast.complexity,
        rules=tuple(rule.name for rule in rules),
        candidates=(*(each.candidate() for each in best_first), *excluded),
    )
    return Route(tuple(Leg(each.service, each.fit.context) for each in best_first if each.fit), report, wanted)
