"""The arithmetic of the reach figures of generation, without processes."""

from __future__ import annotations

import random
import tomllib
from pathlib import Path

import pytest

from bench._common.generate.calls import Call
from bench._common.generate.figures import Cost, stream_figures, tail
from bench._common.generate.hedging import ARMS, p99_ratio
from bench._common.generate.settings import scripted_settings, settings_over
from bench._common.generate.slow import Arm, reading
from bench._common.generate.smollm2 import asked
from bench._common.generation.script import Script
from bench.generate import parsed
from headrace.v1 import common_pb2 as common
from retrieval.settings.load import load_settings

_MS = 1_000_000
_SENT = 10**12


def _ledger(retrieval_ms: int, inside_ms: int, model_ms: int, hedges: int = 0) -> common.Ledger:
    """A ledger whose retrieval takes so long, in two stages, beside stages that are our own share."""
    half = retrieval_ms * _MS // 2
    stages = [
        common.StageCost(stage=common.STAGE_ADMIT, wall_ns=5 * _MS),
        common.StageCost(stage=common.STAGE_SEARCH, wall_ns=half),
        common.StageCost(stage=common.STAGE_ASSEMBLE, wall_ns=half),
        common.StageCost(stage=common.STAGE_ROUTE, wall_ns=7 * _MS),
        common.StageCost(stage=common.STAGE_GENERATE, wall_ns=500 * _MS),
    ]
    attempts = [common.Attempt(), *(common.Attempt(hedge=True) for _ in range(hedges))]
    made = common.GenerationReport(first_token_ns=model_ms * _MS, attempts=attempts)
    whole_ms = retrieval_ms + inside_ms + model_ms
    return common.Ledger(stages=stages, first_delta_ns=whole_ms * _MS, generation=made)


def _call(first_ms: float, target: int = 0, code: str = "OK", hedges: int = 0) -> Call:
    return Call(target, 0, _SENT, _SENT + _MS, first_ns=_SENT + round(first_ms * _MS), code=code, hedges=hedges)


def _stamped(retrieval_ms: int = 4) -> Call:
    """A request that reaches the model server after 7 ms, and a token that is written after 50 and read after 53."""
    call = Call(0, 0, _SENT, _SENT, code="OK")
    call.read_piece(f"{_SENT + 7 * _MS}:{_SENT + 50 * _MS} ", _SENT + 53 * _MS)
    call.read_ledger(_ledger(retrieval_ms, inside_ms=1, model_ms=45))
    return call


def test_own_share_is_all_but_retrieval_and_the_model_server() -> None:
    """It is what lies around the stamps, without the stages of retrieval; its three parts are all of it."""
    call = _stamped()
    assert call.retrieval_ns == 4 * _MS
    assert call.own_ns == (7 - 4 + 3) * _MS
    assert (call.grpc_ns, call.inside_ns, call.upstream_ns) == (3 * _MS, 1 * _MS, 2 * _MS)
    assert call.grpc_ns + call.inside_ns + call.upstream_ns == call.own_ns


def test_every_stage_before_the_backend_is_either_retrieval_or_ours() -> None:
    """Stages that the issue calls retrieval are left out of our share, and no others."""
    counted = set[str]()
    for stage in common.Stage.values():
        call = Call(0, 0, 0, 0)
        call.read_ledger(common.Ledger(stages=[common.StageCost(stage=stage, wall_ns=1)]))
        if call.retrieval_ns:
            counted.add(common.Stage.Name(stage).removeprefix("STAGE_").lower())
    assert counted == {"rewrite", "lookup", "embed", "search", "fuse", "fetch", "rerank", "assemble"}


def test_stamps_are_read_from_pieces_that_were_put_together() -> None:
    """Each stamped token has a delay, however many came in one message; the first stamps stay."""
    call = Call(0, 0, 0, 0)
    call.read_piece("100:200 300 ", 1000)
    call.read_piece("[1]. 1400 1500 ", 2000)
    assert (call.came_ns, call.written_ns, call.first_ns) == (100, 200, 1000)
    assert call.delays_ns == [800, 700, 600, 500]
    assert (call.pieces, call.tokens) == (2, 5)


def test_pieces_without_stamps_are_counted_only() -> None:
    """An answer of plain words has no delays."""
    call = Call(0, 0, 0, 0)
    call.read_piece("word0 word1 [1].", 1000)
    assert (call.came_ns, call.written_ns, call.delays_ns) == (0, 0, [])
    assert (call.pieces, call.tokens, call.first_ns) == (1, 3, 1000)


def test_script_stamps_its_tokens() -> None:
    """What the scripted server writes is what the client reads; without stamps, tokens are words of a length."""
    script, call = Script(stamped=1), Call(0, 0, 0, 0)
    for number in range(3):
        call.read_piece(script.word(number, 2, 77, 10**17 + number), 10**18)
    assert call.came_ns == 77
    assert call.written_ns == 10**17
    assert call.delays_ns == [9 * 10**17 - number for number in range(3)]
    plain = Script(token_chars=40)
    assert len(plain.word(0, 2, 0, 0)) == 40
    assert [Script().word(number, 2, 0, 0) for number in range(3)] == ["word0 ", "word1 ", "[1]."]


def test_script_draws_the_time_to_the_first_token() -> None:
    """It is in proportion to the prompt, spread when told, and late for a share of requests."""
    draw = random.Random(1)
    assert Script(prompt_ms_per_1k=100.0).first_token_s(draw, 500) == pytest.approx(0.05)
    spread = {Script(prompt_ms_per_1k=100.0, prompt_spread=0.5).first_token_s(draw, 500) for _ in range(10)}
    assert len(spread) == 10
    stalling = Script(prompt_ms_per_1k=0.0, stall_share=0.02, stall_s=2.0)
    late = [stalling.first_token_s(draw, 500) for _ in range(5000)]
    assert set(late) == {0.0, 2.0}
    assert sum(late) / 2.0 == pytest.approx(100, abs=40)


def test_stream_figures_leave_out_calls_that_failed() -> None:
    """They are counted by their code."""
    found = stream_figures([_stamped(), _stamped(), _call(5, code="UNAVAILABLE")])
    assert (found.requests, found.codes) == (2, {"UNAVAILABLE": 1})
    assert found.own.p50_ms == pytest.approx(6.0)
    assert found.asking.p50_ms == pytest.approx(3.0)
    assert found.answering.p99_ms == pytest.approx(3.0)
    assert found.token_delay.count == 2


def test_stream_figures_of_nothing_are_zero() -> None:
    """A run in which every call failed is still reported."""
    assert stream_figures([_call(1, code="CUT")]).own.count == 0


def test_cost_is_in_shares_of_a_core() -> None:
    """3 s of computing in 10 s for 20,000 tokens are 150 us a token, and 15 % of a core at 1,000 tokens/s."""
    cost = Cost(seconds=10.0, requests=0, tokens=20_000, cpu_s=3.0)
    assert cost.core_share == pytest.approx(0.3)
    assert cost.token_us == pytest.approx(150.0)
    assert cost.core_share_per_1k == pytest.approx(0.15)


def test_tail_counts_from_when_a_call_was_due() -> None:
    """What the client was late is in it; second requests count as the model servers saw them."""
    calls = [_call(10.0 + number / 100) for number in range(1000)] + [_call(1, code="CANCELLED"), _call(2000, hedges=1)]
    found = tail(calls, requests=1050, asked=1002)
    assert found.calls == 1002
    assert found.codes == {"CANCELLED": 1}
    assert found.p50_ms == pytest.approx(15.0)
    assert found.p99_ms == pytest.approx(19.9, abs=0.1)
    assert found.p999_ms == pytest.approx(19.99, abs=2)
    assert found.hedged_share == pytest.approx(1 / 1001)
    assert found.extra_share == pytest.approx(1050 / 1002 - 1)


def test_p99_ratio_compares_the_arms() -> None:
    """It says how many times lower hedging makes it."""
    arms = {"alone": tail([_call(300)] * 10, 10, 10), "hedged": tail([_call(60)] * 10, 11, 10)}
    assert p99_ratio(arms) == pytest.approx(5.0)
    assert set(arms) == set(ARMS)


def test_reading_tells_messages_from_tokens() -> None:
    """What was meant follows from how long the streams were open."""
    call = Call(0, 0, 0, 0, ended_ns=11_000 * _MS, pieces=100, tokens=400, first_ns=1000 * _MS)
    found = reading([call, call], Arm(50.0, 10.0, 100), sent=1500, before=10, peak=20)
    assert (found.pieces, found.tokens_read, found.tokens_sent, found.tokens_meant) == (200, 800, 1500, 2000)
    assert found.tokens_a_piece == 4.0
    assert found.chars_meant == 200_000


def test_asked_means_are_of_all_calls() -> None:
    """Tokens are means; the model's part and the rest are the time to the first piece."""
    calls = [_stamped(), _stamped()]
    calls[0].prompt_tokens, calls[1].prompt_tokens = 100, 200
    found = asked(calls)
    assert (found.calls, found.prompt_tokens) == (2, 150)
    assert found.model.p50_ms + found.rest.p50_ms == pytest.approx(found.first_piece.p50_ms)


@pytest.mark.parametrize("hedge", ["true", "false"])
def test_settings_can_be_used(tmp_path: Path, hedge: str) -> None:
    """They name both replicas, cache no answers, and hedge as told."""
    more = f"[generation.resilience]\nhedge = {hedge}\n"
    file = tmp_path / "headrace.toml"
    file.write_text(scripted_settings(["http://127.0.0.1:1", "http://127.0.0.1:2"], more), encoding="utf-8")
    found = load_settings(file, {}, {}).settings
    assert found.generation.backends[0].replicas == ("http://127.0.0.1:2/v1",)
    assert found.generation.resilience.hedge is (hedge == "true")
    assert not found.cache.answers.enabled


def test_settings_over_a_model_are_toml() -> None:
    """The backend is the default one."""
    found = tomllib.loads(settings_over('kind = "llama"\nmodel = "smollm2"\n'))
    assert found["generation"]["default_backend"] == found["generation"]["backends"][0]["name"]


@pytest.mark.parametrize("figures", ["streams", "hedging", "slow", "smollm2"])
def test_each_measurement_takes_the_options_of_all_tools(figures: str) -> None:
    """Options come after its name."""
    found = parsed([figures, "--json", "out.json", "--seconds", "3"])
    assert (found.figures, found.json, found.seconds) == (figures, Path("out.json"), 3.0)
