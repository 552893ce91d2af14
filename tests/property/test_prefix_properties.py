"""What holds for every order of sources, whatever was sent before."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.assembly.template import BLOCK_SEPARATOR, source_block
from retrieval.prefix import PrefixOrder
from retrieval.prefix.marks import MOST_MARKS, Blocks, lasting_marks
from retrieval.prefix.tree import PrefixTree
from retrieval.types import Arrangement, Context
from tests.fakes.contexts import context_of
from tests.fakes.prefix_servers import PassageServer

NAMES = st.lists(st.sampled_from("abcdefghijkl"), unique=True, max_size=8).map("".join)
ROOTS = st.sampled_from(["one", "two"])
HISTORY = st.lists(st.tuples(ROOTS, NAMES), max_size=25)


def told(history: list[tuple[str, str]], capacity: int = 2_000, kept: int = 4) -> PrefixOrder:
    """Returns an order that has sent a history of prompts to a server, which keeps so many of them."""
    order, server = PrefixOrder(capacity), PassageServer(kept)
    for root, names in history:
        server.ask(order, context_of(names), root)
    return order


def rebuilt(context: Context, arrangement: Arrangement) -> str:
    """Returns the text that the numbers of an arrangement stand for."""
    passages = {citation.number: citation.passage for citation in context.citations}
    return BLOCK_SEPARATOR.join(source_block(mark, passages[number]) for mark, number in arrangement.numbers)


@settings(max_examples=150, deadline=None)
@given(HISTORY, NAMES)
def test_arrangement_has_each_passage_of_the_context_once(history: list[tuple[str, str]], names: str) -> None:
    """An arrangement consists of the passages of its context, each once, under marks of their own."""
    context = context_of(names)
    arrangement = told(history).arrange("one", context)
    assert sorted(number for _, number in arrangement.numbers) == list(range(1, len(names) + 1))
    assert len({mark for mark, _ in arrangement.numbers}) == len(names)
    assert arrangement.text == rebuilt(context, arrangement)


@settings(max_examples=100, deadline=None)
@given(HISTORY, NAMES)
def test_ranking_names_the_marks_by_relevance(history: list[tuple[str, str]], names: str) -> None:
    """The ranking has every mark, most relevant first, and is empty when the sources stand in that order."""
    arrangement = told(history).arrange("one", context_of(names))
    numbers = [number for _, number in arrangement.numbers]
    by_rank = [f"[{mark}]" for mark, _ in sorted(arrangement.numbers, key=lambda pair: pair[1])]
    assert arrangement.ranking.split(": ")[-1].split() == ([] if numbers == sorted(numbers) else by_rank)


@settings(max_examples=75, deadline=None)
@given(HISTORY, NAMES)
def test_arranging_is_deterministic_and_changes_nothing(history: list[tuple[str, str]], names: str) -> None:
    """The same history gives the same order, asked once or twice."""
    order, context = told(history), context_of(names)
    assert order.arrange("one", context) == order.arrange("one", context) == told(history).arrange("one", context)


@settings(max_examples=75, deadline=None)
@given(HISTORY, NAMES)
def test_roots_share_nothing(history: list[tuple[str, str]], names: str) -> None:
    """Prompts with another root change nothing, while there is room for all."""
    own = [(root, each) for root, each in history if root == "one"]
    context = context_of(names)
    beside, alone = told(history, 10**6, kept=100), told(own, 10**6, kept=100)
    assert beside.arrange("one", context) == alone.arrange("one", context)


@settings(max_examples=100, deadline=None)
@given(st.lists(NAMES, max_size=30), st.integers(1, 1_500))
def test_tree_holds_what_its_capacity_allows(prompts: list[str], capacity: int) -> None:
    """The tree counts its tokens right, keeps its bound, and knows the newest prompt as far as it fits."""
    tree = PrefixTree(capacity)
    for names in prompts:
        blocks = Blocks.of(context_of(names)).lasting
        tree.insert("root", blocks)
        assert tree.tokens <= capacity
        held = tree.matched("root", blocks)
        assert len(held) >= min(len(blocks), capacity // max((block.tokens for block in blocks), default=1))
        found = tree.longest("root", {block.key for block in blocks})
        assert found[: len(held)] == [block.key for block in blocks[: len(held)]] or len(found) >= len(held)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 2**64 - 1), max_size=60))
def test_marks_are_their_own_and_short(digests: list[int]) -> None:
    """Marks are from 1 to 999, none twice, and the most relevant passage always has the one of its digest."""
    marks = lasting_marks(digests)
    assert len(set(marks)) == len(digests)
    assert all(1 <= mark <= MOST_MARKS for mark in marks)
    if digests:
        assert marks[0] == digests[0] % MOST_MARKS + 1
