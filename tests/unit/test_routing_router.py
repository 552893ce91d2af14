"""Rules, named backends, windows, and what the context is assembled for."""

from __future__ import annotations

import pytest

from retrieval.assembly.template import BLOCK_SEPARATOR, source_block, source_mark
from retrieval.errors import BackendForbidden, BackendUnknown, InvalidRequest, NoBackendAllowed
from retrieval.generation.messages import chat_messages
from retrieval.routing import Subject
from retrieval.settings.generation import RouteRule
from retrieval.speech import Conversation, Speaker, Tools, Turn
from retrieval.token_counters import open_counter
from retrieval.types import Arrangement, Context, Prompt
from tests.fakes.counters import WordCounter
from tests.fakes.routing import SUBJECT, asking, found, outlook, passage, router, service

CLOUD = service("cloud", outlook(first_token_ms=1, token_ms=1), tier="central", region="us")
HOUSE = service("house", outlook(healthy=False, wait_ms=60_000), tier="private", region="eu")
SENSITIVE = RouteRule(name="sensitive", field="class", values=("secret",), tiers=("private",))
SECRET = found([passage(1), passage(2, metadata={"class": ("open", "Secret")})])
OPEN = found([passage(1), passage(2, metadata={"class": "open"})])


class OtherWords(WordCounter):
    """Counts as `WordCounter` does, under another name."""

    name = "other"


def words(count: int) -> str:
    """Returns a text of so many tokens."""
    return " ".join(["word"] * count)


def test_sensitive_passages_stay_at_home_even_when_home_is_down() -> None:
    """With a sensitive passage in the context the private backend is the only leg, unhealthy and slow as it is."""
    route = router([CLOUD, HOUSE], [SENSITIVE]).route(asking(), SECRET)
    assert [leg.service.settings.name for leg in route.legs] == ["house"]
    assert route.report.rules == ("sensitive",)
    assert [(each.backend, each.excluded) for each in route.report.candidates] == [
        ("house", ""),
        ("cloud", "rule:sensitive"),
    ]
    assert router([CLOUD, HOUSE], [SENSITIVE]).route(asking(), OPEN).report.backend == "cloud"


def test_rule_on_a_field_holds_for_every_conversation() -> None:
    """Nobody knows what earlier turns were made from, so they count as sensitive, before anything is found."""
    spoken = Subject("acme", "docs", "", in_conversation=True)
    it = router([CLOUD, HOUSE], [SENSITIVE])
    assert it.allowed("auto", SUBJECT) == ("cloud", "house")
    assert it.allowed("auto", spoken) == ("house",)
    assert it.route(asking(subject=spoken), OPEN).report.backend == "house"
    turns = Conversation((Turn(Speaker.USER, "what of it"),))
    assert it.route(asking(subject=SUBJECT, conversation=turns), OPEN).report.backend == "house"


def test_rule_concerns_whom_it_names() -> None:
    """Tenant, collection and data policy must all match; empty ones match all."""
    rule = RouteRule(name="r", tenants=("acme",), data_policies=("strict",), collections=("mail",), regions=("eu",))
    it = router([CLOUD, HOUSE], [rule])
    assert it.allowed("auto", Subject("acme", "mail", "strict", in_conversation=False)) == ("house",)
    for other in (("globex", "mail", "strict"), ("acme", "docs", "strict"), ("acme", "mail", "")):
        assert it.allowed("auto", Subject(*other, in_conversation=False)) == ("cloud", "house")


def test_rules_intersect() -> None:
    """Two rules that each leave one backend leave none together, and the refusal names a rule for each."""
    rules = [RouteRule(name="eu", regions=("eu",)), RouteRule(name="us", regions=("us",))]
    with pytest.raises(NoBackendAllowed) as caught:
        router([CLOUD, HOUSE], rules).allowed("auto", SUBJECT)
    assert caught.value.excluded == (("cloud", "rule:eu"), ("house", "rule:us"))


def test_named_backend_is_the_only_leg() -> None:
    """A request's own choice is not changed for another, however slow it is or whatever it costs."""
    route = router([CLOUD, HOUSE], max_cost=1e-9).route(asking("house"), OPEN)
    assert [leg.service.settings.name for leg in route.legs] == ["house"]
    assert route.report.reason == "named"


def test_named_backend_is_held_to_the_rules() -> None:
    """A rule that only what is found brings in forbids a named backend too, and the error says who may answer."""
    it = router([CLOUD, HOUSE], [SENSITIVE])
    assert it.allowed("cloud", SUBJECT) == ("cloud",)
    with pytest.raises(BackendForbidden) as caught:
        it.route(asking("cloud"), SECRET)
    assert (caught.value.backend, caught.value.rule, caught.value.allowed) == ("cloud", "sensitive", ("house",))


def test_unknown_backend_is_refused_with_the_known_ones() -> None:
    """A name that is not configured is an error that lists those that are."""
    with pytest.raises(BackendUnknown) as caught:
        router([CLOUD, HOUSE]).allowed("nobody", SUBJECT)
    assert caught.value.known == ("cloud", "house")


def test_reading_is_the_widest_among_the_allowed() -> None:
    """The context is assembled for the roomiest backend that may answer, as its tokenizer counts."""
    small = service("small", context_window_tokens=512, tier="private")
    large = service("large", context_window_tokens=4096, counter=OtherWords())
    everywhere = router([small, large]).reading(asking(asked_context_tokens=1500))
    assert (everywhere.counter.name, everywhere.context_tokens) == ("other", 1500)
    rule = RouteRule(name="r", tiers=("private",))
    at_home = router([small, large], [rule]).reading(asking(asked_context_tokens=1500))
    assert at_home.counter.name == "words"
    assert 200 < at_home.context_tokens < 512


def test_conversation_and_tools_take_room_from_the_context() -> None:
    """Earlier turns, their summary and the definitions of tools are counted beside instructions and question."""
    it = router([service("one", context_window_tokens=2048)])
    plain = it.reading(asking(asked_context_tokens=5000)).context_tokens
    spoken = Conversation((Turn(Speaker.USER, words(100)), Turn(Speaker.ASSISTANT, words(100))), summary=words(50))
    with_turns = it.reading(asking(asked_context_tokens=5000, conversation=spoken)).context_tokens
    assert plain - 300 <= with_turns <= plain - 250
    with_tools = it.reading(asking(asked_context_tokens=5000, tools=Tools(words(5000)[:5000]))).context_tokens
    assert with_tools <= plain - 1000


def test_room_for_marks_never_takes_all_of_a_small_window() -> None:
    """A backend that orders its sources for prefix reuse keeps half of a small room for the sources themselves."""
    plain = router([service("one", context_window_tokens=300)]).reading(asking()).context_tokens
    ordered = router([service("one", order="prefix", context_window_tokens=300)]).reading(asking()).context_tokens
    assert ordered == plain - plain // 2
    roomy = router([service("one", order="prefix")]).reading(asking())
    assert roomy.context_tokens == 1500


def test_question_that_fits_nowhere_is_refused_and_one_that_fits_somewhere_is_not() -> None:
    """Only when no allowed backend has the room is the request refused, with the bound of the roomiest."""
    small, large = service("small", context_window_tokens=256), service("large", context_window_tokens=1024)
    it = router([small, large])
    assert it.reading(asking(question=words(500))).context_tokens > 0
    with pytest.raises(InvalidRequest) as caught:
        it.reading(asking(question=words(2000)))
    assert caught.value.field == "query"
    assert int(caught.value.bound.split()[2]) > 500


def test_tools_that_leave_no_room_are_named() -> None:
    """What is too long is named: not the question when it is the tools."""
    with pytest.raises(InvalidRequest) as caught:
        router([service("one", context_window_tokens=1024)]).reading(asking(tools=Tools(words(2000))))
    assert caught.value.field == "tools"


def test_tools_of_a_megabyte_are_refused_without_counting_them_all() -> None:
    """What is far too long for every window is measured by a sample of it."""
    counter = WordCounter()
    it = router([service("one", context_window_tokens=1024, counter=counter)])
    with pytest.raises(InvalidRequest) as caught:
        it.reading(asking(tools=Tools(words(200_000))))
    assert caught.value.field == "tools"
    assert counter.counted_chars < 20_000


def test_each_leg_gets_what_fits_its_own_window() -> None:
    """The larger backend gets all passages, the smaller one the best of them, counted by its own tokenizer."""
    what = found([passage(number, 40) for number in range(1, 6)])
    small = service("small", outlook(first_token_ms=1, token_ms=1), OtherWords(), context_window_tokens=420)
    route = router([service("large"), small]).route(asking(), what)
    by_name = {leg.service.settings.name: leg.context for leg in route.legs}
    assert by_name["large"] is what.context
    assert 2 <= len(by_name["small"].citations) < 5
    assert by_name["small"].tokenizer == "other"


def test_backend_that_takes_less_than_a_third_is_left_out_while_another_takes_all() -> None:
    """One passage of five is another question; but it is better than nothing when no other backend may answer."""
    what = found([passage(number, 40) for number in range(1, 6)])
    small = service("small", outlook(first_token_ms=1, token_ms=1), context_window_tokens=280)
    both = router([service("large"), small]).route(asking(), what)
    assert [(each.backend, each.excluded) for each in both.report.candidates] == [("large", ""), ("small", "window")]
    alone = router([small]).route(asking(), what)
    assert [len(leg.context.citations) for leg in alone.legs] == [1]


def test_context_of_which_nothing_fits_is_refused() -> None:
    """An answer without any of the evidence would be made up, so nobody gives it."""
    with pytest.raises(NoBackendAllowed) as caught:
        router([service("small", context_window_tokens=256)]).route(asking(), found([passage(1, 200)]))
    assert caught.value.excluded == (("small", "window"),)


def test_nothing_found_is_routed_all_the_same() -> None:
    """An empty context fits everywhere."""
    assert router([CLOUD]).route(asking(), found([])).report.reason == "only"


def in_lasting_marks(context: Context) -> Arrangement:
    """Returns the sources in reverse order under marks of three digits, with their ranking."""
    cited = context.citations[::-1]
    marks = [900 + citation.number for citation in cited]
    blocks = [source_block(mark, citation.passage) for mark, citation in zip(marks, cited, strict=True)]
    ranking = "Most relevant first: " + " ".join(source_mark(mark) for mark in marks[::-1])
    numbers = tuple((mark, citation.number) for mark, citation in zip(marks, cited, strict=True))
    return Arrangement(BLOCK_SEPARATOR.join(blocks), numbers, ranking)


@pytest.mark.parametrize("window", [700, 900, 1200, 2048])
def test_whole_prompt_of_a_leg_fits_its_window(window: int) -> None:
    """CTX-01: messages with conversation, summary, marks and ranking stay within the window by the model's count."""
    counter = open_counter("bundled")
    turns = tuple(Turn(speaker, f"What of the {number} seals?") for number in range(6) for speaker in Speaker)
    spoken = Conversation(turns, summary="They spoke of pumps.")
    who = asking(conversation=spoken)
    what = found([passage(number, 12) for number in range(1, 16)], counter)
    backend = service("one", counter=counter, context_window_tokens=window, order="prefix")
    (leg,) = router([backend]).route(who, what).legs
    prompt = Prompt(who.instructions, leg.context, who.question, in_lasting_marks(leg.context), spoken)
    used = sum(counter.count(message.content) for message in chat_messages(prompt))
    assert leg.context.citations
    assert used + who.max_output_tokens <= window
