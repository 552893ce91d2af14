"""The replay of traces: what is right when, what the oracle says, what one threshold serves, what it comes to."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace

import numpy as np
import pytest

from bench._common.cache.figures import Share
from bench._common.cache.fixed import THRESHOLDS, Cosines, false_share, replay_fixed, tuned_threshold, verdicts_of
from bench._common.cache.oracle import Oracle, answer_to
from bench._common.cache.standing import Standing, Writes, needed_part
from bench._common.cache.times import Timed, latency_report
from bench._common.cache.verdicts import Requests, without_marks
from bench._common.traces.events import Add, Ask, Delete, Kind, Law, Trace, Update, What
from bench._common.traces.judging import Verdict
from headrace.v1 import common_pb2
from headrace.v1 import retrieval_pb2 as wire
from indexers.types import Document, Passage
from retrieval.speech import BackendEnd, Delta, GenerationParams
from retrieval.types import Arrangement, Citation, Context, Prompt
from tests.fakes.counters import WordCounter


def _ask(text: str, question_id: str, answers: tuple[str, ...] = (), documents: tuple[str, ...] = ("d1",)) -> Ask:
    return Ask(0, 0, 0, text, question_id, Kind.FIRST, answers, 0, documents)


def _documents() -> list[Document]:
    return [Document(f"d{n}", "", f"Pump {n} was built in {1900 + n}.") for n in range(1, 5)]


def _trace(*events: Ask | Update | Delete | Add, held_back: tuple[str, ...] = ()) -> Trace:
    return Trace("pumps", 1, Law(), held_back, events)


def test_standing_numbers_the_states_of_an_answer() -> None:
    """A changed fact gives another number, an added sentence none; what is right again has its old number again."""
    standing, ask = Standing(_documents()), _ask("when?", "q", ("1901",))
    standing.start(_trace())
    first = standing.stamped(ask).answer_version
    assert standing.stamped(replace(ask, answer_version=7)).answer_version == first
    assert standing.stamped(replace(ask, answers=("1950",))).answer_version != first
    unknown = _ask("what of it?", "u")
    before = standing.stamped(unknown).answer_version
    standing.apply(Update("d1", "Pump 1 was built in 1901. It is red.", What.TOUCHED))
    assert standing.stamped(unknown).answer_version == before
    standing.apply(Update("d1", "Pump 1 was built in 1950.", What.FACT))
    assert standing.stamped(unknown).answer_version != before
    standing.start(_trace())
    assert standing.stamped(unknown).answer_version == before


def test_standing_brings_the_documents_back_for_the_next_trace() -> None:
    """What was changed, deleted or not held back any more is written again; what is held back now is deleted."""
    standing = Standing(_documents())
    assert standing.start(_trace(held_back=("d4",))) == Writes([], ["d4"])
    assert standing.apply(Delete("d2")).deletes == ("d2",)
    [added] = standing.apply(Add("d4", "Pump 4.")).upserts
    assert (added.document_id, added.text) == ("d4", "Pump 4.")
    again = standing.start(_trace(held_back=("d1",)))
    assert {one.document_id: one.text[:8] for one in again.upserts} == {"d2": "Pump 2 w", "d4": "Pump 4 w"}
    assert again.deletes == ["d1"]


def test_needed_part_keeps_what_the_traces_name_and_some_others() -> None:
    """In the order of the set."""
    trace = _trace(_ask("when?", "q", documents=("d3",)), Delete("d4"))
    assert [one.document_id for one in needed_part(_documents(), [trace], 1)] == ["d1", "d3", "d4"]


def _context(*texts: str) -> Context:
    passages = [Passage(f"c{n}", f"d{n}", "", (), text, 0, len(text), 0, 0, {}) for n, text in enumerate(texts, 1)]
    return Context("", 10, 100, "words", tuple(Citation(n, one, (one.chunk_id,)) for n, one in enumerate(passages, 1)))


def test_oracle_says_what_the_prompt_holds_and_cites_it() -> None:
    """The passage must be of the right document and hold the answer; else nothing is cited, and nothing is kept."""
    ask = _ask("when?", "q", ("1902", "in 1902"), ("d2",))
    assert answer_to(ask, _context("Built in 1902.", "Built in 1902.")) == "1902 [2]"
    assert "[" not in answer_to(ask, _context("Built in 1902.", "Built long ago."))
    assert answer_to(replace(ask, answers=()), _context("a", "It is [so].")) == "It is (so). [2]"


def test_oracle_answers_a_made_look_alike_for_itself_alone() -> None:
    """Two look-alikes never get the same answer."""
    one, other = (answer_to(_ask("?", name, documents=()), _context("a")) for name in ("q~1", "q~2"))
    assert one != other
    assert one.endswith("[1]")


async def test_oracle_counts_its_calls_and_is_idle_after_each() -> None:
    """What it is told last about a text holds."""
    oracle = Oracle(WordCounter())
    oracle.expect(_ask("when?", "q", ("1901",)))
    context = _context("Built in 1901.")
    prompt, params = Prompt("", context, "when?", Arrangement.by_relevance(context)), GenerationParams(10, 0.0, 0)
    async with aclosing(oracle.stream(prompt, params)) as stream:
        pieces = [piece async for piece in stream]
    await asyncio.wait_for(oracle.idle(), 1.0)
    assert isinstance(pieces[0], Delta)
    assert pieces[0].text == "1901 [1]"
    assert isinstance(pieces[1], BackendEnd)
    assert (oracle.calls, oracle.output_tokens) == (1, pieces[1].usage.output_tokens)


def _cosines(*vectors: tuple[float, float]) -> Cosines:
    return Cosines([f"t{n}" for n in range(len(vectors))], np.array(vectors, dtype=np.float32))


def test_fixed_threshold_serves_the_nearest_and_keeps_what_it_missed() -> None:
    """A false hit, a right one and a stale one are told apart; a hit is not kept."""
    cosines = _cosines((1.0, 0.0), (0.96, 0.28), (0.0, 1.0))
    asks = [
        _ask("t0", "a", ("1",)), _ask("t1", "b", ("2",)), _ask("t0", "a", ("1",)), _ask("t2", "c"),
        replace(_ask("t0", "a", ("9",)), answer_version=1),
    ]  # fmt: skip
    served = replay_fixed(asks, cosines, 0.9)
    verdicts = verdicts_of(Requests(asks), served)
    assert verdicts == [None, Verdict.WRONG, Verdict.RIGHT, None, Verdict.STALE]
    assert [one.equal for one in served] == [False, False, True, False, True]
    assert false_share(verdicts) == pytest.approx(1 / 3)
    assert replay_fixed(asks, cosines, 0.97)[1].made_for is None


def test_tuned_threshold_is_the_lowest_that_stays_within_the_target() -> None:
    """Two questions at a cosine of 0.965 must not serve each other; without errors the lowest of all is taken."""
    cosines = _cosines((1.0, 0.0), (0.965, 0.262))
    asks = [_ask("t0", "a", ("1",)), _ask("t1", "b", ("2",))]
    assert tuned_threshold(asks, cosines, 0.0) == 0.97
    assert tuned_threshold([_ask("t0", "a"), _ask("t1", "a")], cosines, 0.0) == min(THRESHOLDS)


def test_answer_that_the_model_would_give_again_is_not_stale() -> None:
    """Where no strings are known a document may change in a part that the answer does not rest on."""
    before = _ask("what of it?", "u")
    after, known = replace(before, answer_version=1), _ask("when?", "q", ("1901",))
    asks = [before, after, after, known, replace(known, answers=("1950",), answer_version=1)]
    requests = Requests(asks, ["it is so", "it is so", "not any more", "1901", "1901"])
    assert requests.verdict(1, 0) is Verdict.RIGHT
    assert requests.verdict(2, 0) is Verdict.STALE
    assert requests.verdict(4, 3) is Verdict.STALE
    assert without_marks("It is so [1], and more [12].") == "It is so, and more."


def test_share_has_the_score_interval() -> None:
    """None of 100 is below 3.7 % with 95 % confidence (Wilson, 1927); nothing measured says nothing."""
    share = Share.measured(0, 100)
    assert (share.value, share.low) == (0.0, 0.0)
    assert share.high == pytest.approx(0.0370, abs=1e-4)
    assert Share.measured(5, 10).low == pytest.approx(0.2366, abs=1e-4)
    assert (Share.measured(0, 0).low, Share.measured(0, 0).high) == (0.0, 1.0)


def test_latency_report_compares_each_way_with_the_echo() -> None:
    """Medians of the calls, the stages of the server's ledger, and the targets of the issue."""
    ledger = common_pb2.Ledger(
        total_ns=500_000, stages=[common_pb2.StageCost(stage=common_pb2.STAGE_MATCH, wall_ns=20_000)]
    )
    end = wire.Completed(ledger=ledger)
    milliseconds = {"echo": 1, "evidence": 3, "result": 2, "trusted": 2, "shared": 3}
    timed = {name: [Timed("q", ms * 1_000_000, end)] for name, ms in milliseconds.items()}
    report = latency_report(timed, {"shared": 2}, 1)
    assert report.ways["evidence"].beyond_echo_p50_ms == pytest.approx(2.0)
    assert report.ways["trusted"].ratio_to_echo == pytest.approx(2.0)
    assert report.ways["trusted"].stages_p50_ms == {"match": 0.02}
    assert report.ways["shared"].left_out == 2
    assert [round(value, 6) for _, value, _ in report.targets] == [2.0, 2.0, 1.0]
