"""How replies become plain values, and stages a waterfall."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.v1 import admin_pb2, common_pb2, index_pb2, retrieval_pb2
from indexers.reports import IndexCounts, IndexReport, Problem
from indexers.types import Epoch
from retrieval.cli.ask import answer_parts
from retrieval.cli.cache import seconds, stats_parts
from retrieval.cli.exits import WrongUse
from retrieval.cli.index_report import report_json, show_report
from retrieval.cli.output import show
from retrieval.cli.retrieve import hit_table
from retrieval.cli.reuse import reuse_remarks
from retrieval.cli.waterfall import bar, remarks, waterfall
from retrieval.server.convert.plain import plain


def test_plain_keeps_every_key_and_numbers_as_numbers():
    """A message has all its keys, integers stay numbers, enums are words, and what is absent is None."""
    hit = retrieval_pb2.Hit(chunk_id="c", scores=retrieval_pb2.ScoreParts(dense=0.5))
    hit.metadata["year"].integer_value = 2**53
    hit.metadata["tags"].list_value.values.add(string_value="a")
    hit.metadata["none"].SetInParent()
    value = plain(hit)
    assert value["metadata"] == {"year": 2**53, "tags": ["a"], "none": None}
    assert value["scores"] == {"dense": 0.5, "sparse": None, "fused": None, "rerank": None, "late": None}
    assert value.keys() == {field.name for field in retrieval_pb2.Hit.DESCRIPTOR.fields}
    json.dumps(value)


def test_plain_writes_enums_maps_and_times():
    """Enums lose their prefix, inside maps too; times are in ISO 8601; unknown numbers stay numbers."""
    collection = index_pb2.Collection(fields={"year": common_pb2.FIELD_TYPE_INTEGER})
    collection.create_time.FromJsonString("2026-01-02T03:04:05Z")
    assert plain(collection)["fields"] == {"year": "integer"}
    assert plain(collection)["create_time"] == "2026-01-02T03:04:05Z"
    assert plain(index_pb2.Collection())["create_time"] is None
    assert plain(common_pb2.StageCost(stage=99))["stage"] == "99"


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=12))
def test_bars_stay_within_the_waterfall(walls):
    """Whatever the stages cost, what took time has a bar, and no bar leaves the picture by more than a cell."""
    total = max(sum(walls), 1)
    begun = 0
    for wall in walls:
        drawn = bar(begun, wall, total)
        assert len(drawn) <= 41
        assert bool(drawn.strip()) == bool(wall)
        begun += wall


def test_waterfall_shows_stages_and_total(capsys):
    """Each stage has a line with its times, and the total is there."""
    ledger = plain(
        common_pb2.Ledger(
            stages=[
                common_pb2.StageCost(stage=common_pb2.STAGE_EMBED, wall_ns=3_000_000, queue_ns=1_000_000),
                common_pb2.StageCost(stage=common_pb2.STAGE_OTHER, wall_ns=1_000_000),
            ],
            total_ns=4_000_000,
            degraded=["rerank_skipped"],
            caches=[common_pb2.CacheUse(cache="query_embeddings", hit=True)],
            query_truncated=True,
            query_tokens=256,
            first_delta_ns=2_000_000,
        )
    )
    show(waterfall(ledger), *remarks(ledger))
    out = capsys.readouterr().out
    for said in (
        "embed",
        "3.00",
        "1.00",
        "4.00",
        "rerank_skipped",
        "query_embeddings: hit",
        "256 tokens",
        "after 2.00 ms",
    ):
        assert said in out


def test_remarks_say_what_reranking_did():
    """Both steps are named, with their cost and why they ended or took no part."""
    report = common_pb2.RerankReport(
        model="cross", pairs=12, tokens=1500, stop=common_pb2.RERANK_STOP_SETTLED, cached_pairs=3
    )
    report.late.CopyFrom(common_pb2.LateReport(model="dense", passages=50, computed=2))
    [late, cross] = remarks(plain(common_pb2.Ledger(rerank=report)))
    assert late == "late interaction: 50 passages, 2 of them with token vectors computed now"
    assert cross == "cross-encoder cross: 12 pairs, 1,500 tokens, 3 more were known; stopped: settled"
    skipped = common_pb2.RerankReport(late=common_pb2.LateReport(skipped="sparse_mode"))
    assert remarks(plain(common_pb2.Ledger(rerank=skipped))) == ["late interaction: left out (sparse mode)"]


def test_hits_show_where_they_stand(capsys):
    """A hit shows its scores, title, headings and page; the text is shortened; markup in it is just text."""
    hit = retrieval_pb2.Hit(
        title="Git [bold]", heading_path=["Git [bold]", "B"], page=3, score=0.25, text="[red]word[/red] " * 40
    )
    hit.scores.dense = 0.5
    show(hit_table([plain(hit)]))
    out = " ".join(capsys.readouterr().out.split())
    for said in ("0.250", "0.500", "Git [bold] > B, page 3", "[red]word[/red]", "…"):
        assert said in out
    show(hit_table([]))
    assert "nothing was found" in capsys.readouterr().out


def test_answer_without_sources_shows_its_stages(capsys):
    """An answer from nothing still shows where the time went."""
    show(*answer_parts({"citations": [], "sources": [], "ledger": plain(common_pb2.Ledger()), "reuse": None}))
    assert "total" in capsys.readouterr().out


def test_index_summary_names_problems_up_to_a_bound(capsys):
    """The summary counts everything and names the first problems; JSON names all that the report lists."""
    failures = tuple(Problem(f"file-{n}", "is encrypted") for n in range(30))
    report = IndexReport(
        IndexCounts(written=2, failed=30, chunks=9), failures, (), (Problem("a", "note it"),), Epoch(1, 2)
    )
    show_report(report, "notes", 3.0)
    out = capsys.readouterr().out
    for said in ("notes", "9 chunks in 3.0 s (3 chunks/s)", "file-0", "and 10 more", "note it"):
        assert said in out
    assert "file-25" not in out
    value = report_json(report, "notes", 3.0)
    assert len(value["failures"]) == 30
    assert value["epoch"] == {"generation": 1, "write_sequence": 2}


def _printed(code: str, *arguments: str) -> str:
    """Runs code in a process whose streams hold ASCII only; returns its standard output."""
    environ = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout


def test_narrow_streams_do_not_break_json():
    """What ASCII lacks is escaped as JSON does it, so that a program reads the same object."""
    code = "from retrieval.cli.output import print_json; print_json({'a': '\\xe4\\u20ac\\U0001f600'})"
    assert json.loads(_printed(code)) == {"a": "\xe4\u20ac\U0001f600"}


def test_narrow_streams_get_escapes_and_grpc_is_silent():
    """The entry point lets no character fail, and asks gRPC for no lines of its own unless the environment does."""
    code = """
import os, sys
from retrieval.cli import main

def execute(arguments, environ):
    print("\\u20ac", environ["GRPC_ENABLE_FORK_SUPPORT"], environ["GRPC_VERBOSITY"])
    print("\\u20ac", file=sys.stderr)
    return 0

os.environ.pop("GRPC_ENABLE_FORK_SUPPORT", None)
os.environ["GRPC_VERBOSITY"] = "DEBUG"
main.execute = execute
main.run()
"""
    assert _printed(code) == "\\u20ac 0 DEBUG\n"


def _reuse(**fields):
    """The lines for a report with these fields."""
    return reuse_remarks(plain(retrieval_pb2.AnswerReuse(**fields)))


def test_reuse_says_what_served_and_why():
    """A served answer shows whose question it was, where it lay, how old it is, and what each gate saw."""
    evidence = retrieval_pb2.EvidenceCheck(cited=2, found=2, weakest_rank=3)
    risk = retrieval_pb2.RiskCheck(error_bound=0.0075, max_error_rate=0.01, labels=431)
    line, key = _reuse(
        kind=retrieval_pb2.REUSE_KIND_SIMILAR, tier=common_pb2.CACHE_TIER_SHARED, age_ms=5_400_000, similarity=0.913,
        evidence=evidence, risk=risk, key="ab", shadowed=True,
    )  # fmt: skip
    assert line == (
        "answer cache: served the answer to a question in other words in the shared tier, 1.5 h old; similarity 0.913; "
        "2 of 2 cited passages found unchanged; risk of an error 0.8% of at most 1.0%, after 431 comparisons; "
        "a new answer is made besides, to compare"
    )
    assert key == "answer key: ab"
    [line] = _reuse(kind=retrieval_pb2.REUSE_KIND_EQUAL, similarity=1.0, evidence={"trusted": True}, age_ms=800)
    assert line == "answer cache: served the answer to the same question, 0.8 s old; evidence checked a moment ago"


def test_reuse_says_why_nothing_served():
    """Otherwise the reason stands there in words, and whether the new answer is kept."""
    assert _reuse(reason="unknown", stored=True) == [
        "answer cache: nothing served, no answer to such a question is known; the new answer is kept"
    ]
    [line] = _reuse(reason="evidence", similarity=1.0, evidence={"cited": 2, "found": 1, "newcomers": 1})
    assert "1 of 2 cited passages found unchanged, 1 new passages above them" in line
    assert _reuse(reason="number", similarity=0.9) == [
        "answer cache: nothing served, the known question differs in: number; similarity 0.900"
    ]
    assert reuse_remarks(None) == []


def test_cache_uses_say_where_the_value_was():
    """A hit in this process is just a hit; other tiers are named."""
    tiers = ("UNSPECIFIED", "MEMORY", "SHARED", "FLIGHT")
    uses = [
        common_pb2.CacheUse(cache="results", hit=number > 0, tier=common_pb2.CacheTier.Value(f"CACHE_TIER_{name}"))
        for number, name in enumerate(tiers)
    ]
    assert remarks(plain(common_pb2.Ledger(caches=uses))) == [
        "cache results: miss",
        "cache results: hit",
        "cache results: hit, in the shared tier",
        "cache results: hit, made for another request meanwhile",
    ]


def test_cache_stats_show_every_cache_and_tier(capsys):
    """Bytes are shown in MiB; the shared tier and what was learned appear when there is any."""
    reply = admin_pb2.GetCacheStatsResponse(
        caches=[admin_pb2.CacheStats(cache="answers", entries=3, used_bytes=3 << 20, capacity_bytes=64 << 20, hits=7)],
        shared=admin_pb2.SharedTierStats(kind="redis", lookups=5, dropped_writes=2),
        risks=[admin_pb2.RiskStats(collection="docs", labels=40, errors=1, served=9, serving=True, evidence=55)],
    )
    show(*stats_parts(plain(reply)))
    out = " ".join(capsys.readouterr().out.split())
    for said in ("answers 3 3.0 64.0 7 0 0", "shared tier redis: unavailable; 5 lookups", "2 dropped writes"):
        assert said in out
    assert "docs 9 40 1 55 yes" in out
    assert len(stats_parts(plain(admin_pb2.GetCacheStatsResponse()))) == 1


@pytest.mark.parametrize(
    ("text", "expected"), [("90", 90.0), ("90s", 90.0), ("1.5m", 90.0), ("2h", 7200.0), ("1D", 86400.0)]
)
def test_ages_have_units(text, expected):
    """An age is a number with a unit; without one it is in seconds."""
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "m", "-1s", "nan", "1e400", "two days", "5y"])
def test_ages_are_checked(text):
    """What is no age is refused, with an example of one."""
    with pytest.raises(WrongUse, match="2h or 7d"):
        seconds(text)
