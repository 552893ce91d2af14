"""What is seen from outside: one log line a request, and metrics with bounded labels."""

from __future__ import annotations

import logging
import urllib.request
from collections.abc import Iterator

import pytest
import structlog
from structlog.testing import capture_logs

from retrieval.answers.facts.types import Kind
from retrieval.clock import CacheUse, LateReport, Ledger, RerankReport, Stage, StageCost
from retrieval.errors import ConfigError
from retrieval.reuse import Reuse, ReuseReport
from retrieval.scope import Identity
from retrieval.telemetry.endpoint import metrics_endpoint
from retrieval.telemetry.log import Format, configure_log
from retrieval.telemetry.metrics import Metrics
from retrieval.telemetry.requests import Ended, log_request

LEDGER = Ledger(
    stages=(StageCost(Stage.EMBED, 3_000_000, 500_000, 2_000_000), StageCost(Stage.OTHER, 1_000, 0, 0)),
    total_ns=3_001_000,
    degraded=("query_truncated", "rerank_" + "any words " * 20),
    caches=(CacheUse("query_embeddings", True, "memory"), CacheUse("results", False)),
    rerank=RerankReport("m", 12, 1500, "settled", cached_pairs=3, late=LateReport("d", 50, 2)),
)


@pytest.fixture
def restored_log() -> Iterator[None]:
    """Puts back what `configure_log` replaces."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:], root.level = handlers, level


def _ended(error: BaseException | None = None, reuse: ReuseReport | None = None) -> Ended:
    caller = Identity("a", frozenset(), "k")
    return Ended("r", "RetrievalService/Retrieve", caller, "OK", 5_000_000, {"hits": 2}, LEDGER, error, reuse)


def test_request_line_says_where_the_time_went() -> None:
    """One line holds who, what, how long, stages, queue and compute, caches, sizes and the outcome."""
    with capture_logs() as lines:
        log_request(_ended())
    [line] = lines
    assert (line["log_level"], line["request_id"], line["tenant"], line["key"]) == ("info", "r", "a", "k")
    assert (line["duration_ms"], line["hits"], line["stages_ms"]["embed"]) == (5.0, 2, 3.0)
    assert (line["queue_ms"], line["compute_ms"]) == ({"embed": 0.5}, {"embed": 2.0})
    assert line["caches"] == {"query_embeddings": "memory", "results": "miss"}
    assert "reuse" not in line
    assert line["rerank"] == {
        "stop": "settled", "pairs": 12, "cached_pairs": 3, "tokens": 1500, "late_passages": 50, "late_computed": 2,
    }  # fmt: skip


def test_request_line_of_an_answer_says_what_was_used_again() -> None:
    """Of an answer the line holds which gate decided and the answer's key, and never a question or an answer."""
    with capture_logs() as lines:
        log_request(_ended(reuse=ReuseReport(reason="evidence", key="ab", similarity=1.0, stored=True)))
    [line] = lines
    assert (line["reuse"], line["reuse_reason"], line["answer_key"]) == ("none", "evidence", "ab")
    assert (line["answer_stored"], line["answer_shadowed"]) == (True, False)


def test_request_line_of_an_unexpected_error_is_an_error() -> None:
    """The cause is in the same line, so nobody searches for it."""
    cause = ValueError("x")
    with capture_logs() as lines:
        log_request(_ended(cause))
    assert (lines[0]["log_level"], lines[0]["exc_info"]) == ("error", cause)


@pytest.mark.usefixtures("restored_log")
def test_log_writes_json_lines_for_us_and_libraries(capsys: pytest.CaptureFixture[str]) -> None:
    """Our lines and those of libraries come as JSON on standard error, from the level on."""
    configure_log("info", "json")
    structlog.get_logger("headrace").debug("hidden")
    structlog.get_logger("headrace").info("shown", number=1)
    logging.getLogger("grpc").warning("library")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert '"event": "shown"' in lines[0]
    assert '"event": "library"' in lines[1]
    configure_log("debug", "console")
    structlog.get_logger("headrace").debug("now shown")
    assert "now shown" in capsys.readouterr().err


@pytest.mark.usefixtures("restored_log")
@pytest.mark.parametrize("form", ["json", "console"])
def test_log_shows_no_local_variables(form: Format, capsys: pytest.CaptureFixture[str]) -> None:
    """A traceback says where and why, and not what was in the variables: questions, passages, keys."""
    configure_log("info", form)
    question = "sword" + "fish"
    try:
        int(question[:0])
    except ValueError:
        structlog.get_logger("headrace").exception("failed")
        logging.getLogger("grpc").exception("failed too")
    said = capsys.readouterr().err
    assert said.count("ValueError: invalid literal") == 2
    assert "swordfish" not in said


def test_metrics_add_up_the_ledger() -> None:
    """The histograms hold the ledger's own figures; labels are bounded whatever a step is called."""
    metrics = Metrics()
    metrics.ledger(LEDGER)
    metrics.request("m", "OK", 0.005)
    value = metrics.registry.get_sample_value
    for part, seconds in (("wall", 0.003), ("queue", 0.0005), ("compute", 0.002)):
        assert value("headrace_stage_seconds_sum", {"stage": "embed", "part": part}) == pytest.approx(seconds)
    assert value("headrace_requests_total", {"method": "m", "code": "OK"}) == 1
    hit = {"cache": "query_embeddings", "result": "hit", "tier": "memory"}
    assert value("headrace_cache_lookups_total", hit) == 1
    assert value("headrace_cache_lookups_total", {"cache": "results", "result": "miss", "tier": "none"}) == 1
    assert value("headrace_degraded_total", {"step": "query_truncated"}) == 1
    assert value("headrace_degraded_total", {"step": "other"}) == 1
    assert value("headrace_reranks_total", {"stop": "settled"}) == 1
    assert value("headrace_rerank_pairs_total", {"source": "run"}) == 12
    assert value("headrace_rerank_pairs_total", {"source": "cache"}) == 3
    assert value("headrace_rerank_tokens_total") == 1500
    assert value("headrace_late_passages_total", {"source": "stored"}) == 48
    assert value("headrace_late_passages_total", {"source": "computed"}) == 2


def test_metrics_count_answers_by_what_served() -> None:
    """Answers are counted by kind and reason; a reason that is not one of ours is called other."""
    metrics = Metrics()
    for report in (ReuseReport(Reuse.EQUAL), ReuseReport(reason="risk"), ReuseReport(reason="a question's words")):
        metrics.answer(report)
    value = metrics.registry.get_sample_value
    assert value("headrace_answers_total", {"reuse": "equal", "reason": "none"}) == 1
    assert value("headrace_answers_total", {"reuse": "none", "reason": "risk"}) == 1
    assert value("headrace_answers_total", {"reuse": "none", "reason": "other"}) == 1


def test_metrics_know_every_reason_of_the_guard() -> None:
    """Whatever two questions may differ in has a label of its own."""
    kinds = {kind.value for kind in Kind} - {"stop", "comma"}
    metrics = Metrics()
    for reason in kinds:
        metrics.answer(ReuseReport(reason=reason))
    assert metrics.registry.get_sample_value("headrace_answers_total", {"reuse": "none", "reason": "other"}) is None


def test_metrics_count_what_runs() -> None:
    """The gauge holds the calls of this moment."""
    metrics = Metrics()

    def running() -> float | None:
        return metrics.registry.get_sample_value("headrace_in_flight", {"method": "m"})

    with metrics.in_flight("m"):
        assert running() == 1
    assert running() == 0


def test_metrics_endpoint_refuses_a_taken_port() -> None:
    """A port that is in use is a fault of the configuration, and says which one."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match="metrics_port"), metrics_endpoint(Metrics().registry, "127.0.0.1", port):
            pass


def test_metrics_endpoint_serves_and_closes() -> None:
    """The registry is served while the body runs; port 0 serves nothing."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    metrics = Metrics()
    metrics.request("m", "OK", 0.1)
    with metrics_endpoint(metrics.registry, "127.0.0.1", port):
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
    assert 'headrace_requests_total{code="OK",method="m"} 1.0' in text
    with metrics_endpoint(metrics.registry, "127.0.0.1", 0):
        pass
