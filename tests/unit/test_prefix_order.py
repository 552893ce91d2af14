"""How sources are ordered for a server's prefix cache, and what is learned from what it reports."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from retrieval.prefix import PrefixOrder, RelevanceOrder
from retrieval.prefix.marks import Blocks, lasting_marks
from retrieval.prefix.tree import PrefixTree
from retrieval.speech import Usage
from retrieval.types import Arrangement
from tests.fakes.contexts import TOKENS, context_of
from tests.fakes.prefix_servers import PassageServer


def order_of(arrangement: Arrangement, names: str) -> str:
    """Returns the letters of the passages in the order of the text."""
    return "".join(names[number - 1] for _, number in arrangement.numbers)


def ever_other_orders() -> Iterator[str]:
    """Yields six letters in orders that begin alike by chance alone."""
    random = Random(1)
    while True:
        yield "".join(random.sample("abcdef", 6))


def mark_of(arrangement: Arrangement, number: int) -> int:
    """Returns the mark that stands for a citation number."""
    return next(mark for mark, each in arrangement.numbers if each == number)


def test_mark_stays_with_its_passage() -> None:
    """A passage has the same mark whatever its rank and whatever stands beside it."""
    order = PrefixOrder(10_000)
    first, second = order.arrange("root", context_of("abc")), order.arrange("root", context_of("xcb"))
    assert mark_of(first, 3) == mark_of(second, 2)
    assert mark_of(first, 2) == mark_of(second, 3)


def test_mark_goes_to_the_more_relevant_of_two() -> None:
    """Of two passages with one number the less relevant one gets the next free number, after 999 the first."""
    assert lasting_marks([41, 41 + 999, 42]) == [42, 43, 44]
    assert lasting_marks([998, 998 + 999]) == [999, 1]


def test_marks_suffice_for_more_passages_than_numbers() -> None:
    """A thousand passages still have marks of their own."""
    assert sorted(lasting_marks([7] * 1000)) == list(range(1, 1001))


def test_cached_beginning_goes_first() -> None:
    """What the server has of an earlier prompt goes first, in the order in which it was sent."""
    order, server = PrefixOrder(10_000), PassageServer(10)
    server.ask(order, context_of("abc"))
    assert order_of(order.arrange("root", context_of("dcba")), "dcba")[:3] == "abc"


def test_longest_of_several_beginnings_goes_first() -> None:
    """Among several cached paths the one with most tokens is taken."""
    order, server = PrefixOrder(10_000), PassageServer(10)
    for names in ("ab", "cde"):
        server.ask(order, context_of(names))
    assert order_of(order.arrange("root", context_of("abcde")), "abcde")[:3] == "cde"


def test_popular_passage_goes_first_without_a_cached_beginning() -> None:
    """Where nothing is cached the passage that was sent most often goes first, so that later prompts can share it."""
    order = PrefixOrder(1)  # a server that keeps nothing
    for names in ("xa", "ya", "za"):
        order.sent("root", context_of(names), order.arrange("root", context_of(names)))
    assert order_of(order.arrange("root", context_of("bca")), "bca") == "abc"


def test_ranking_is_left_out_when_sources_stand_by_relevance() -> None:
    """The first prompt of all is by relevance and needs no ranking."""
    arrangement = PrefixOrder(10_000).arrange("root", context_of("abc"))
    assert order_of(arrangement, "abc") == "abc"
    assert arrangement.ranking == ""


def test_empty_context_is_arranged_as_it_is() -> None:
    """A context without passages gives an empty arrangement, and sending it is no prompt with sources."""
    order, context = PrefixOrder(10_000), context_of("")
    arrangement = order.arrange("root", context)
    order.sent("root", context, arrangement)
    order.learn("root", context, arrangement, Usage())
    assert arrangement == Arrangement("", ())
    assert order.figures.prompts == 0


def test_relevance_order_never_changes() -> None:
    """The order by relevance is that of the citations, whatever was sent."""
    order, server = RelevanceOrder(), PassageServer(10)
    server.ask(order, context_of("cba"))
    assert order.arrange("root", context_of("abc")) == Arrangement.by_relevance(context_of("abc"))


def test_figures_count_what_was_predicted_and_reported() -> None:
    """Predictions are of sources alone, and so are reports, once it is known what the instructions take."""
    order, server = PrefixOrder(10_000), PassageServer(10)
    for names in ("ab", "cd", "abe"):
        server.ask(order, context_of(names))
    figures = order.figures
    assert (figures.prompts, figures.predicted_tokens, figures.reported_tokens) == (3, 2 * TOKENS, 2 * TOKENS)
    assert figures.active


def test_prompt_on_its_way_is_not_predicted() -> None:
    """A prompt that was sent and not answered promises nothing, so a server that lacks it has forgotten nothing."""
    order, server = PrefixOrder(10_000), PassageServer(10)
    server.ask(order, context_of("xy"))
    context = context_of("ab")
    first = order.arrange("root", context)
    order.sent("root", context, first)
    second = order.arrange("root", context)
    order.sent("root", context, second)
    order.learn("root", context, second, Usage(230, 5, 30))
    assert order.figures.predicted_tokens == 0
    assert order_of(order.arrange("root", context_of("yx")), "yx") == "xy"


def test_server_that_has_less_has_forgotten_older_prompts() -> None:
    """A block that was missing takes with it what was used before it, and the capacity falls to what is left."""
    order, server = PrefixOrder(10_000), PassageServer(2)
    for names in ("ab", "cd", "ef", "gh"):
        server.ask(order, context_of(names))
    server.ask(order, context_of("cd"))  # predicted, and gone
    assert order_of(order.arrange("root", context_of("ba")), "ba") == "ba"
    assert order_of(order.arrange("root", context_of("fe")), "fe") == "ef"
    assert order.figures.capacity_tokens < 10_000


def test_capacity_grows_back_while_predictions_hold() -> None:
    """What a restarted server lost says nothing about its size, so the capacity comes back."""
    order, server = PrefixOrder(10_000), PassageServer(100)
    server.ask(order, context_of("ab"))
    server.forget()
    server.ask(order, context_of("ab"))
    assert order.figures.capacity_tokens < 10_000
    for _ in range(100):
        server.ask(order, context_of("ab"))
    assert order.figures.capacity_tokens == 10_000


def test_order_that_no_report_confirms_is_given_up() -> None:
    """A server that never reports cached tokens gets the sources by relevance after a while."""
    order, server = PrefixOrder(10_000), PassageServer(10, reports=False)
    for _ in range(25):
        for names in ("abc", "cad"):
            server.ask(order, context_of(names))
    assert not order.figures.active
    assert order.arrange("root", context_of("cba")) == Arrangement.by_relevance(context_of("cba"))


def test_order_is_tried_again_and_kept_when_the_server_reports() -> None:
    """A server that begins to report is found out by a trial after at most a few hundred requests."""
    order, server = PrefixOrder(10_000), PassageServer(10, reports=False)
    turns = ever_other_orders()
    for _ in range(100):
        server.ask(order, context_of(next(turns)))
    assert not order.figures.active
    server.reports = True
    for _ in range(250):
        server.ask(order, context_of(next(turns)))
    assert order.figures.active


def test_order_is_given_up_when_nothing_is_shared() -> None:
    """Prompts without a common passage need no order, and no ranking in them."""
    order, server = PrefixOrder(10_000), PassageServer(10)
    letters = [chr(0x4E00 + number) for number in range(900)]
    for start in range(0, 900, 3):
        server.ask(order, context_of("".join(letters[start : start + 3])))
    assert not order.figures.active


def test_order_is_given_up_when_relevance_does_as_well() -> None:
    """Where the same questions come again in the same words, order by relevance shares as much and costs no ranking."""
    order, server = PrefixOrder(10_000), PassageServer(10)
    for number in range(300):
        server.ask(order, context_of(("abc", "def")[number % 2]))
    assert not order.figures.active


def test_order_stays_while_it_pays() -> None:
    """The same passages in ever other orders of relevance are what the order is for."""
    order, server = PrefixOrder(10_000), PassageServer(10)
    turns = ever_other_orders()
    cached = [server.ask(order, context_of(next(turns))) for _ in range(500)]
    assert order.figures.active
    assert cached[1:] == [6] * 499


def test_answer_that_nobody_sent_is_ignored() -> None:
    """Usage of a prompt that was not noted as sent changes nothing."""
    order, context = PrefixOrder(10_000), context_of("ab")
    order.learn("root", context, Arrangement.by_relevance(context), Usage(100, 5, 50))
    assert order.figures.reported_tokens == 0


@pytest.mark.parametrize("forgotten", [1, 2])
def test_tree_forgets_by_age(forgotten: int) -> None:
    """Forgetting up to a prompt leaves what later prompts used, and their common beginning."""
    tree = PrefixTree(10_000)
    prompts = [Blocks.of(context_of(names)).lasting for names in ("ab", "ac", "ad")]
    for blocks in prompts:
        tree.insert("root", blocks)
    tree.forget_older(forgotten)
    assert [len(tree.matched("root", blocks)) for blocks in prompts] == [1] * forgotten + [2] * (3 - forgotten)
