"""What no load, failure, price or deadline can change: rules hold."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from indexers.types import Metadata, Passage
from retrieval.dispatch.types import Outlook, Route, Service, Ticket
from retrieval.errors import BackendError, BackendForbidden, InvalidRequest
from retrieval.route import Priority
from retrieval.routing import Asking, Subject
from retrieval.settings.generation import AUTO, BackendSettings, RouteRule
from retrieval.speech import Conversation, Speaker, Turn
from retrieval.types import Found
from tests.fakes.counters import SurchargeCounter, WordCounter
from tests.fakes.routing import NOW_NS, S, asking, found, passage, router, service

TENANTS, COLLECTIONS, POLICIES = ("acme", "globex"), ("docs", "mail"), ("", "strict")
TIERS, REGIONS = ("edge", "regional", "central", "private"), ("", "eu", "us")
NAMES = ("a", "b", "c", "d", "e")
VALUES = ("secret", "Open", "7", "true")

outlooks = st.builds(
    Outlook,
    healthy=st.booleans(),
    wait_ns=st.integers(0, 100 * S),
    first_token_ns=st.integers(0, 30 * S),
    token_ns=st.integers(0, S),
    output_tokens=st.floats(0, 2000),
    running=st.just(0),
    waiting=st.just(0),
)
some = st.sampled_from


def few(values: Sequence[str]) -> st.SearchStrategy[tuple[str, ...]]:
    """Draws none, one or more of the values."""
    return st.lists(st.sampled_from(values), unique=True, max_size=2).map(tuple)


@st.composite
def services(draw: st.DrawFn) -> list[Service]:
    """Draws backends of any tier, region, window, price and state."""
    return [
        service(
            name,
            draw(outlooks),
            draw(some([WordCounter(), SurchargeCounter()])),
            tier=draw(some(TIERS)),
            region=draw(some(REGIONS)),
            context_window_tokens=draw(some([256, 300, 400, 8192])),
            input_price=draw(some([0.0, 1.0, 30.0])),
            output_price=draw(some([0.0, 5.0])),
            capability=draw(st.floats(0, 1)),
        )
        for name in NAMES[: draw(st.integers(1, 5))]
    ]


@st.composite
def rules(draw: st.DrawFn) -> RouteRule:
    """Draws a rule that restricts something."""
    limits = {"backends": draw(few(NAMES)), "tiers": draw(few(TIERS)), "regions": draw(few(REGIONS[1:]))}
    if not any(limits.values()):
        limits["tiers"] = ("private",)
    field = draw(some(["", "class"]))
    return RouteRule.model_validate(
        {
            "name": draw(some(["one", "two", "three"])),
            "tenants": draw(few(TENANTS)),
            "collections": draw(few(COLLECTIONS)),
            "data_policies": draw(few(POLICIES)),
            "field": field,
            "values": draw(few(VALUES)) if field else (),
            **limits,
        }
    )


@st.composite
def finds(draw: st.DrawFn) -> Found:
    """Draws passages, some with the field that rules look at, as one value or several, of any type."""
    metadata: st.SearchStrategy[Metadata] = st.one_of(
        st.just({}),
        some(["SECRET", "open", 7, True, "other"]).map(lambda value: {"class": value}),
        st.lists(some(["secret", "open"]), max_size=2).map(lambda values: {"class": tuple(values)}),
    )
    return found(
        [passage(number, draw(st.integers(1, 60)), draw(metadata)) for number in range(draw(st.integers(0, 5)))]
    )


@st.composite
def askings(draw: st.DrawFn) -> Asking:
    """Draws requests of anybody, for a backend or for any, with or without a conversation."""
    spoken = draw(st.booleans())
    return asking(
        draw(some([AUTO, *NAMES])),
        subject=Subject(draw(some(TENANTS)), draw(some(COLLECTIONS)), draw(some(POLICIES)), spoken),
        conversation=Conversation((Turn(Speaker.USER, "what of it"),)) if spoken else Conversation(),
        max_cost=draw(some([0.0, 1e-6, 1e-3])),
        ticket=Ticket("acme", Priority.INTERACTIVE, NOW_NS + draw(st.integers(-S, 100 * S))),
    )


def violates(backend: BackendSettings, rule: RouteRule, who: Asking, what: Found) -> bool:
    """Tells whether the backend may not have the request by this rule, in the words of the settings."""
    subject = who.subject
    if rule.tenants and subject.tenant not in rule.tenants:
        return False
    if rule.collections and subject.collection not in rule.collections:
        return False
    if rule.data_policies and subject.data_policy not in rule.data_policies:
        return False
    passages = [citation.passage for citation in what.context.citations]
    if rule.field and not subject.in_conversation and not any(has(each, rule) for each in passages):
        return False
    allowed = [(rule.backends, backend.name), (rule.tiers, backend.tier), (rule.regions, backend.region)]
    return any(choice and value not in choice for choice, value in allowed)


def has(found_: Passage, rule: RouteRule) -> bool:
    """Tells whether a passage has one of the rule's values."""
    value = found_.metadata.get(rule.field, ())
    texts = {str(one).lower() for one in (value if isinstance(value, tuple) else (value,))}
    return bool(texts & {each.lower() for each in rule.values} if rule.values else texts)


def routed(backends: list[Service], given_rules: list[RouteRule], who: Asking, what: Found) -> Route | None:
    """Returns the route; None when there is none."""
    try:
        return router(backends, given_rules).route(who, what)
    except (BackendError, InvalidRequest):
        return None


@settings(max_examples=200, deadline=None)
@given(services(), st.lists(rules(), max_size=4), askings(), finds())
def test_no_leg_of_any_route_breaks_a_rule(
    backends: list[Service], given_rules: list[RouteRule], who: Asking, what: Found
) -> None:
    """Whatever is down, slow, dear or late, no backend that a rule forbids is in a route, not even as the last one."""
    route = routed(backends, given_rules, who, what)
    for leg in route.legs if route else ():
        assert not any(violates(leg.service.settings, rule, who, what) for rule in given_rules)


@settings(max_examples=120, deadline=None)
@given(services(), st.lists(rules(), max_size=4), askings(), finds())
def test_route_stays_within_what_was_allowed_before(
    backends: list[Service], given_rules: list[RouteRule], who: Asking, what: Found
) -> None:
    """What is found can only take backends away; a named one is the only leg; the report tells of every backend."""
    route = routed(backends, given_rules, who, what)
    if route is None:
        return
    legs = [leg.service.settings.name for leg in route.legs]
    assert legs
    assert set(legs) <= set(router(backends, given_rules).allowed(who.backend, who.subject))
    assert route.report.backend == legs[0]
    open_ = [each.backend for each in route.report.candidates if not each.excluded]
    assert open_ == legs
    if who.backend == AUTO:
        assert sorted(each.backend for each in route.report.candidates) == sorted(
            each.settings.name for each in backends
        )
    else:
        assert (legs, route.report.reason) == ([who.backend], "named")


@settings(max_examples=100, deadline=None)
@given(services(), st.lists(rules(), max_size=4), askings(), finds(), st.lists(outlooks, min_size=5, max_size=5))
def test_load_never_relaxes_a_rule(
    backends: list[Service],
    given_rules: list[RouteRule],
    who: Asking,
    what: Found,
    others: list[Outlook],
) -> None:
    """The candidates that rules exclude are the same under any load, and so is the refusal of a named backend."""
    busy = [
        service(each.settings.name, expected, each.counter, **each.settings.model_dump(exclude={"name", "kind"}))
        for each, expected in zip(backends, others, strict=False)
    ]

    def by_rules(them: list[Service]) -> list[str] | str | None:
        try:
            report = router(them, given_rules).route(who, what).report
        except BackendForbidden as error:
            return error.rule
        except (BackendError, InvalidRequest):
            return None
        return sorted(f"{each.backend} {each.excluded}" for each in report.candidates if "rule:" in each.excluded)

    still, loaded = by_rules(backends), by_rules(busy)
    assert still == loaded or None in (still, loaded)


@settings(max_examples=100, deadline=None)
@given(services(), askings(), finds())
def test_every_leg_gets_what_fits_its_window(backends: list[Service], who: Asking, what: Found) -> None:
    """Prompt and reserved output stay within each leg's window, and its passages are the best ones."""
    route = routed(backends, [], who, what)
    for leg in route.legs if route else ():
        counter = leg.service.counter
        turns = " ".join(turn.text for turn in who.conversation.turns)
        texts = (who.instructions, who.question, turns, leg.context.text)
        used = sum(counter.count(text) for text in texts) + who.max_output_tokens
        assert used <= leg.service.settings.context_window_tokens
        assert leg.context.citations == what.context.citations[: len(leg.context.citations)]
