"""The simulated prefix cache, and the arms that are compared on it."""

from __future__ import annotations

import pytest

from bench._common.prefix.arms import ARMS, PREFIX, RELEVANCE, Contexts, IdOrder, gold_share, least_uncached
from bench._common.prefix.questions import Asked, hottest
from bench._common.prefix.server_cache import SimulatedCache
from bench._common.prefix.simulating import ArmFigures, Server, holds_all, simulate
from bench._common.traces.events import Ask, Kind
from bench.prefix import ratios
from retrieval.settings import Settings
from retrieval.types import Arrangement, Hit, ScoreParts
from tests.fakes.contexts import TOKENS, context_of
from tests.fakes.counters import WordCounter


def asked(number: int, names: str, question: str = "q", documents: tuple[str, ...] = ()) -> Asked:
    """Returns a request that finds one passage a letter."""
    hits = tuple(
        Hit(citation.passage, 1.0 - 0.01 * rank, ScoreParts())
        for rank, citation in enumerate(context_of(names).citations)
    )
    return Asked(Ask(number, 0, number, f"who is {names}?", question, Kind.FIRST, documents=documents), hits)


def simulated(requests: list[Asked], capacity_tokens: int = 10_000) -> dict[str, ArmFigures]:
    """Returns the figures of each arm by its name."""
    counter = WordCounter()
    server, contexts = Server(capacity_tokens, counter, "Answer."), Contexts(Settings(), counter, 1_000)
    return {arm.name: simulate(arm, requests, contexts, server) for arm in ARMS}


def test_cache_counts_tokens_of_the_longest_shared_beginning() -> None:
    """Cached are the tokens up to the first that no earlier prompt has at that place."""
    cache = SimulatedCache(100)
    assert [cache.serve(prompt) for prompt in ("abcd", "abxd", "abxd", "bcd")] == [0, 2, 4, 0]


def test_cache_forgets_ends_of_old_prompts_first() -> None:
    """A full cache gives up the least recently used tokens, the last ones of a prompt before its first ones."""
    cache = SimulatedCache(5)
    cache.serve("abc")
    cache.serve("xyz")
    assert cache.serve("ab") == 2
    assert cache.serve("abc") == 2


def test_same_passages_in_other_orders_are_found_by_prefix_order() -> None:
    """Prefix order sends what relevance order would have computed again, and the passages are the same."""
    figures = simulated([asked(number, names) for number, names in enumerate(("abcd", "dcba", "badc"))])
    assert figures[PREFIX.name].uncached_tokens < figures[RELEVANCE.name].uncached_tokens
    assert all(one.same_passages for one in figures.values())
    compared = ratios(list(figures.values()))
    assert compared[RELEVANCE.name] == 1.0
    assert compared[PREFIX.name] < 1.0


def test_id_order_depends_on_the_passages_alone() -> None:
    """The same passages are sent in the same order whatever their ranks."""
    order = IdOrder()
    assert order.arrange("root", context_of("abc")).text == order.arrange("root", context_of("cab")).text


def test_least_uncached_counts_each_passage_that_is_not_held_once() -> None:
    """A passage costs when it comes first and when it was forgotten meanwhile."""
    contexts = [context_of(names) for names in ("ab", "ba", "cd", "ab")]
    assert least_uncached(contexts, 1_000) == TOKENS
    assert least_uncached(contexts, 2 * TOKENS) == 1.5 * TOKENS


def test_gold_share_leaves_out_requests_without_known_documents() -> None:
    """Only requests whose documents are known are judged."""
    requests = [asked(0, "ab", documents=("document-a",)), asked(1, "ab", documents=("document-z",)), asked(2, "ab")]
    assert gold_share([one.ask for one in requests], [context_of("ab")] * 3) == pytest.approx(0.5)


def test_missing_passage_is_noticed() -> None:
    """An arrangement that lacks a passage of its context is not the same."""
    whole, part = context_of("ab"), Arrangement.by_relevance(context_of("a"))
    assert holds_all(whole, Arrangement.by_relevance(whole))
    assert not holds_all(whole, part)


def test_sample_is_about_the_questions_asked_most() -> None:
    """Look-alikes count for the question that they resemble, and the order of the trace stays."""
    questions = ("q1", "q2", "q1~ab", "q3", "q2", "q1")
    requests = [asked(number, "a", question) for number, question in enumerate(questions)]
    assert [one.ask.number for one in hottest(requests, 2, 4)] == [0, 1, 2, 4]
