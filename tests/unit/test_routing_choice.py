"""Given outlooks and the backend that is chosen: the tables that document the trade-off."""

from __future__ import annotations

from typing import Any

import pytest

from retrieval.dispatch.types import Outlook, Service, Ticket
from retrieval.errors import NoBackendAllowed
from retrieval.route import Priority, RouteReport
from retrieval.types import Found
from tests.fakes.routing import NOW_NS, UNKNOWN, S, asking, found, outlook, passage, router, service

EASY = found([passage(1), passage(2)], scores=[0.8, 0.4])
HARD = found([passage(1), passage(2)], scores=[0.4, 0.4])
# A small model nearby, a large one far away that costs money: 2 s and 4.3 s for an answer of 100 tokens.
EDGE = outlook(first_token_ms=100, token_ms=19)
CENTRAL = outlook(first_token_ms=300, token_ms=40)


def two(edge: Outlook = EDGE, central: Outlook = CENTRAL) -> list[Service]:
    """Returns the two backends."""
    return [
        service("edge", edge, capability=0.3),
        service("central", central, capability=0.9, input_price=2.0, output_price=10.0),
    ]


def report(services: list[Service], what: Found = EASY, **changed: Any) -> RouteReport:
    """Routes an ordinary question."""
    return router(services).route(asking(**changed), what).report


@pytest.mark.parametrize(
    ("edge", "central", "what", "chosen", "reason"),
    [
        (EDGE, CENTRAL, EASY, "edge", "latency"),
        (EDGE, CENTRAL, HARD, "central", "capability"),
        (outlook(wait_ms=1000, first_token_ms=100, token_ms=19), CENTRAL, EASY, "edge", "latency"),
        (outlook(wait_ms=4000, first_token_ms=100, token_ms=19), CENTRAL, EASY, "central", "latency"),
        (EDGE, outlook(wait_ms=20_000), HARD, "edge", "latency"),
        (CENTRAL, CENTRAL, EASY, "edge", "cost"),
        (EDGE, UNKNOWN, HARD, "central", "capability"),
        (outlook(first_token_ms=2000, token_ms=60), UNKNOWN, EASY, "central", "latency"),
    ],
    ids=[
        "an easy question goes to the quick one",
        "a hard question is worth the wait and the price of the large one",
        "a short queue is not worth leaving for",
        "a long queue sends easy questions to the large one",
        "a long queue at the large one keeps even hard questions at the small one",
        "of two that are equally quick the cheaper one answers",
        "one that is able and of which nothing is known gets a hard question",
        "one of which nothing is known is tried when the other is slow",
    ],
)
def test_choice_weighs_time_price_and_difficulty(
    edge: Outlook, central: Outlook, what: Found, chosen: str, reason: str
) -> None:
    """The least weighted sum wins, and the report names what weighed most."""
    seen = report(two(edge, central), what)
    assert (seen.backend, seen.reason) == (chosen, reason)


def test_score_is_the_documented_sum() -> None:
    """Seconds, price and missing capability are weighted and added, term by term."""
    services = [service("one", outlook(first_token_ms=500, wait_ms=500, token_ms=10), input_price=1e6, capability=0.0)]
    route = router(services, latency_weight=2.0, cost_weight=3.0, capability_weight=10.0).route(asking(), EASY)
    (candidate,) = route.report.candidates
    assert candidate.first_token_ms == pytest.approx(1000)
    assert candidate.total_ms == pytest.approx(2000)
    expected = 2.0 * 2.0 + 3.0 * candidate.cost + 10.0 * route.report.complexity
    assert candidate.score == pytest.approx(expected)
    assert candidate.cost > route.legs[0].context.token_count


def test_context_that_does_not_fit_counts_as_missing_capability() -> None:
    """Of two equal backends the one that takes all passages wins; a lost one weighs less the further down it stands."""
    what = found([passage(number, 40) for number in range(1, 6)])
    small = service("small", context_window_tokens=420)
    less = service("less", context_window_tokens=370)
    route = router([less, small, service("large")]).route(asking(), what)
    assert [leg.service.settings.name for leg in route.legs] == ["large", "small", "less"]
    assert [len(leg.context.citations) for leg in route.legs] == [5, 4, 3]
    assert route.report.reason == "capability"
    scores = [each.score for each in route.report.candidates]
    whole = sum(1 / rank for rank in range(1, 6))
    assert scores[1] - scores[0] == pytest.approx(20 * (1 / 5) / whole)
    assert scores[2] - scores[0] == pytest.approx(20 * (1 / 4 + 1 / 5) / whole)


def test_expected_output_is_the_backends_own_and_never_above_the_limit() -> None:
    """Backends that write long answers are predicted to take longer, up to what the request allows."""
    talker = service("talker", outlook(first_token_ms=100, token_ms=10, output_tokens=5000))
    unknown = service("new", UNKNOWN)
    seen = {each.backend: each for each in report([talker, unknown], max_output_tokens=200).candidates}
    assert seen["talker"].total_ms == pytest.approx(100 + 200 * 10)
    assert seen["new"].total_ms == pytest.approx(150 + 160 * 10)


def test_backend_whose_first_answer_still_runs_is_not_taken_to_write_at_once() -> None:
    """A known first token says nothing of later ones; answers that came at once do."""
    running = service("running", outlook(first_token_ms=100, token_ms=0, output_tokens=0))
    at_once = service("at_once", outlook(first_token_ms=100, token_ms=0, output_tokens=50))
    seen = {each.backend: each.total_ms for each in report([running, at_once]).candidates}
    assert seen["running"] == pytest.approx(100 + 128 * 10)
    assert seen["at_once"] == pytest.approx(100)


def test_backend_that_would_miss_the_deadline_comes_last() -> None:
    """It is kept, as what is predicted may not come true, behind one that keeps the deadline at a worse score."""
    soon = Ticket("acme", Priority.INTERACTIVE, NOW_NS + 3 * S)
    route = router(two()).route(asking(ticket=soon), HARD)
    assert [leg.service.settings.name for leg in route.legs] == ["edge", "central"]
    assert route.report.reason == "latency"
    assert route.report.candidates[0].score > route.report.candidates[1].score


def test_equal_backends_keep_their_configured_order() -> None:
    """Ties are broken by the order of the configuration, each time."""
    names = ["c", "a", "b"]
    route = router([service(name) for name in names]).route(asking(), EASY)
    assert [leg.service.settings.name for leg in route.legs] == names


def test_unhealthy_backend_is_left_out_while_another_is_well() -> None:
    """A backend that is down gets nothing, whatever it would score."""
    seen = report(two(edge=outlook(healthy=False, first_token_ms=1, token_ms=1)))
    assert (seen.backend, seen.reason) == ("central", "only")
    assert [(each.backend, each.excluded) for each in seen.candidates][1] == ("edge", "unhealthy")


def test_unhealthy_backends_stay_when_no_other_is_left() -> None:
    """With all of them down they stay as legs, so that the error says what failed and a probe may succeed."""
    down = outlook(healthy=False)
    route = router(two(down, down)).route(asking(), EASY)
    assert len(route.legs) == 2
    dear = router(two(down)).route(asking(max_cost=1e-9), EASY)
    assert [leg.service.settings.name for leg in dear.legs] == ["edge"]


@pytest.mark.parametrize(
    ("asked", "configured", "chosen"),
    [(0.0, 0.0, "central"), (1e-4, 0.0, "edge"), (0.0, 1e-4, "edge"), (1.0, 1e-4, "edge"), (1e-4, 1.0, "edge")],
)
def test_lower_cost_ceiling_holds(asked: float, configured: float, chosen: str) -> None:
    """The request's ceiling and the configured one both hold; 0 is none."""
    route = router(two(), max_cost=configured).route(asking(max_cost=asked), HARD)
    assert route.report.backend == chosen


def test_ceiling_that_nobody_keeps_is_refused_with_reasons() -> None:
    """When all are too dear the refusal says so for each."""
    with pytest.raises(NoBackendAllowed) as caught:
        router(two()[1:]).route(asking(max_cost=1e-9), EASY)
    assert caught.value.excluded == (("central", "cost"),)
