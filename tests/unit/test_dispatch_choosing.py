"""Which server of a backend gets a request, and which are left out."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from retrieval.dispatch.ejection import ejected
from retrieval.dispatch.service import BackendService
from retrieval.settings.generation import ResilienceSettings
from tests.fakes.scripted_backends import ScriptedBackend, job, service_of
from tests.fakes.virtual_time import run_virtual

SETTINGS = ResilienceSettings()
SESSIONS = [f"session {number}" for number in range(300)]


def service(servers: int, **changed: object) -> BackendService:
    """Returns a backend with so many servers."""
    return service_of([ScriptedBackend([]) for _ in range(servers)], lambda: SETTINGS, **changed)


def chosen(of: BackendService, affinity: str) -> int:
    """Returns the server that a session's request goes to."""
    endpoint = of.choose(job(affinity), (), ())
    assert endpoint is not None
    return endpoint.server


def test_choose_keeps_sessions_on_their_server() -> None:
    """The same server each time, and each server gets its part of the sessions."""
    four = service(4)
    first = [chosen(four, session) for session in SESSIONS]
    assert [chosen(four, session) for session in SESSIONS] == first
    assert min(Counter(first).values()) > len(SESSIONS) / 4 * 0.7


def test_choose_moves_only_the_sessions_of_a_server_that_fails() -> None:
    """When one is left alone the others keep theirs."""
    four = service(4)
    first = [chosen(four, session) for session in SESSIONS]
    breaker = four.endpoints[2].breaker
    while (permit := breaker.enter()) is not None:
        breaker.fail(permit)
    second = [chosen(four, session) for session in SESSIONS]
    assert all(old in (new, 2) for old, new in zip(first, second, strict=True))
    assert 2 not in second


def test_choose_sends_requests_without_a_session_by_their_beginning() -> None:
    """Prompts that begin alike go to the server that has read that."""
    four = service(4)
    assert chosen(four, "") == chosen(four, "root")


def test_choose_spreads_one_session_when_its_server_has_too_much() -> None:
    """No server gets much more than its share, whatever the sessions."""
    four = service(4)

    async def main() -> list[int]:
        loads = [0] * 4
        for _ in range(40):
            endpoint = four.choose(job("one"), (), ())
            assert endpoint is not None
            await endpoint.lane.acquire(job().ticket)
            loads[endpoint.server] += 1
        return loads

    assert max(run_virtual(main())) <= 16


def test_choose_passes_over_a_server_that_makes_it_wait() -> None:
    """Its queue is worse than reading the beginning again."""
    two = service(2, max_concurrent=1)

    async def main() -> None:
        home = chosen(two, "one")
        place = await two.endpoints[home].lane.acquire(job().ticket)
        await asyncio.sleep(1.0)
        place.release()
        assert chosen(two, "one") == home
        await two.endpoints[home].lane.acquire(job().ticket)
        assert chosen(two, "one") != home

    run_virtual(main())


def test_choose_passes_over_a_full_server_of_which_nothing_is_known() -> None:
    """A wait that cannot be predicted is worse than reading the beginning again."""
    two = service(2, max_concurrent=1)

    async def main() -> None:
        home = chosen(two, "one")
        await two.endpoints[home].lane.acquire(job().ticket)
        assert chosen(two, "one") != home

    run_virtual(main())


def test_choose_has_nothing_when_all_refuse() -> None:
    """A server that refused is not asked again; one that failed is, when no other takes the request."""
    two = service(2)
    first, second = two.endpoints
    assert two.choose(job(), (), two.endpoints) is None
    assert two.choose(job(), (first, second), (second,)) is first
    assert two.choose(job(), (first,), ()) is second


def test_ejected_are_servers_that_fail_too_often() -> None:
    """Most of the last results failed, though never enough in a row."""
    three = service(3)
    for number, endpoint in enumerate(three.endpoints):
        endpoint.sending(hedge=False, retry=False)
        for result in range(20):
            endpoint.failures.add(int(number == 1 and result % 3 > 0))
    assert ejected(three.endpoints) == {three.endpoints[1]}
    assert all(chosen(three, session) != 1 for session in SESSIONS)
    assert [stats.ejected for stats in three.stats()] == [False, True, False]


@pytest.mark.parametrize(("slow_ms", "out"), [(5000, True), (1600, True), (900, False)])
def test_ejected_are_servers_that_are_much_slower(slow_ms: int, out: bool) -> None:
    """Three times the fastest sibling, and more than a second."""
    two = service(2)
    for number, endpoint in enumerate(two.endpoints):
        endpoint.sending(hedge=False, retry=False)
        for _ in range(10):
            endpoint.figures.began((slow_ms if number else 200) * 10**6)
    assert (two.endpoints[1] in ejected(two.endpoints)) is out


def test_ejected_are_half_at_most_and_the_only_server_never() -> None:
    """The worst of them; the others answer, however badly."""
    for servers in (1, 2, 3, 4):
        some = service(servers)
        for number, endpoint in enumerate(some.endpoints):
            endpoint.sending(hedge=False, retry=False)
            for result in range(20):
                endpoint.failures.add(int(result < 12 + number))
        out = ejected(some.endpoints)
        assert out == set(some.endpoints[servers - servers // 2 :])


def test_ejected_server_is_tried_again_after_a_while() -> None:
    """One that has had nothing for as long as a breaker opens gets a request, and is out again until that is judged."""
    two = service(2)

    async def main() -> None:
        bad = two.endpoints[0]
        bad.sending(hedge=False, retry=False)
        for _ in range(20):
            bad.failures.add(1)
        assert ejected(two.endpoints) == {bad}
        await asyncio.sleep(5.0)
        assert not ejected(two.endpoints)
        bad.sending(hedge=False, retry=False)
        assert ejected(two.endpoints) == {bad}

    run_virtual(main())


def test_outlook_shows_what_a_request_may_expect() -> None:
    """The mean of the servers' medians, and nothing where nothing is known."""
    two = service(2)
    empty = two.outlook(job().ticket)
    assert (empty.healthy, empty.first_token_ns, empty.token_ns, empty.output_tokens) == (True, 0, 0, 0.0)
    first, second = two.endpoints
    for value in (100, 200, 900):
        first.figures.began(value)
        first.figures.ended(value // 10, 50)
    second.figures.began(400)
    known = two.outlook(job().ticket)
    assert (known.first_token_ns, known.token_ns, known.output_tokens) == (300, 20, 50.0)


def test_choose_takes_a_busy_server_rather_than_a_full_one() -> None:
    """The bound on loads yields when the other servers have no room at all."""
    busy, full = service(1).endpoints[0], service(1, max_concurrent=1).endpoints[0]
    both = BackendService(service(1).settings, [busy, full])

    async def main() -> None:
        await full.lane.acquire(job().ticket)
        for _ in range(10):
            await busy.lane.acquire(job().ticket)
        assert all(both.choose(job(session), (), ()) is busy for session in SESSIONS[:20])

    run_virtual(main())
