"""What is read off the calls of an overload run, and what its arms are."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench._common.overload.asking import Load, parsed
from bench._common.overload.calls import REFUSED, Call, LoadFigures, figures_of
from bench._common.overload.serving import ARMS, settings_text
from bench.overload import goodput_share
from retrieval.settings.load import load_settings

_S = 1_000_000_000


def _call(planned_s: float, ended_s: float, code: str = "OK") -> Call:
    return Call(int(planned_s * _S), 0, _S // 10, int(ended_s * _S), code, 0)


def _figures(rate: float, in_time: int) -> LoadFigures:
    return figures_of([_call(1, 1)] * in_time, rate, deadline_s=2, warm_s=0, seconds=10)


def test_figures_count_only_whole_answers_in_time() -> None:
    """Refused calls are told from those that were admitted in vain; the warm-up and what comes after are left out."""
    calls = [
        _call(1, 1.0),  # while it warms up
        _call(11, 1.9),
        _call(12, 2.05),  # too late, within 5 %
        _call(13, 2.5),  # far too late
        _call(14, 2.0, "DEADLINE_EXCEEDED"),
        _call(15, 0.1, REFUSED),
        _call(16, 0.1, "UNAVAILABLE"),
        _call(21, 1.0),  # after the end
    ]
    found = figures_of(calls, 1.0, deadline_s=2, warm_s=10, seconds=10)
    assert (found.calls, found.refused, found.missed, found.overran) == (6, 1, 4, 1)
    assert found.goodput == pytest.approx(0.1)
    assert found.codes == {"DEADLINE_EXCEEDED": 1, "OK": 3, REFUSED: 1, "UNAVAILABLE": 1}
    assert found.refusal.count == found.answered.count == 1


def test_goodput_share_is_that_of_the_highest_load() -> None:
    """However the loads are ordered, the highest one is compared with the best."""
    assert goodput_share({"4": _figures(4, 50), "1": _figures(1, 100), "2": _figures(2, 80)}) == 0.5
    assert goodput_share({"1": _figures(1, 0)}) != goodput_share({"1": _figures(1, 0)})


@pytest.mark.parametrize("arm", ARMS)
def test_settings_of_each_arm_can_be_used(tmp_path: Path, arm: str) -> None:
    """They name the scripted server; only the unlimited arm sends everything on."""
    (tmp_path / "headrace.toml").write_text(settings_text(arm, "http://127.0.0.1:1", 6.0), encoding="utf-8")
    found = load_settings(tmp_path / "headrace.toml", {}, {}).settings.generation
    assert (found.default_backend, found.timeout_ms) == ("scripted", 6000)
    unlimited = arm == "unlimited"
    assert (found.backends[0].max_concurrent > 10_000) is (found.queue.initial_concurrent > 10_000) is unlimited


def test_load_is_made_again_from_its_command_line() -> None:
    """The child process gets what was meant for it."""
    load = Load("127.0.0.1:1", "python", 12.5, 30.0, 6.0, seed=3)
    assert parsed(load.arguments()) == load
