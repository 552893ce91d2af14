"""The measurements of `bench.late`, on a handful of sentences."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bench import late
from bench._common.late.coders import ByteCoder, FloatCoder, coder_of
from bench._common.late.curve import Quality, judge_set, summary
from bench._common.late.sets import Asked, Candidates, LateSet, best_of
from bench._common.late.states import codes_of, mean_tokens, passage_states, states_of
from bench._common.late.variants import DEFAULT, Arm, Variant, arms_of, full_precision, variants
from bench._common.pools import Pool
from encoders.dense import OnnxDenseEncoder
from encoders.late.fit import LateShape, fit_projection
from encoders.models import resolve
from encoders.sources import ModelSource
from encoders.types import TextKind
from rerank.calibrate import Mixture
from retrieval.settings import Settings

PASSAGES = (
    "The pump stops when the seal leaks. The pump is then closed.",
    "A valve leaks, and the valve is a part of the machine.",
    "Water flows through the pipe into the tank.",
    "The!",
    "A red engine drives the pump of the tank.",
)
SHAPES = (full_precision(384), Variant(64, 4), Variant(64, 8, pooled=False), Variant(64, 4, least_weight=0.5))


@pytest.fixture(scope="module")
def bundled() -> OnnxDenseEncoder:
    """The model that ships."""
    return OnnxDenseEncoder.open(resolve(ModelSource("bundled:minilm-l6")))


@pytest.fixture(scope="module")
def arms(bundled: OnnxDenseEncoder) -> list[Arm]:
    """A few variants, fitted to the passages themselves."""
    return arms_of(bundled, PASSAGES, SHAPES, None)


def unit_vectors(count: int, dim: int) -> NDArray[np.float32]:
    """Returns random directions."""
    drawn = np.random.default_rng(3).normal(size=(count, dim)).astype(np.float32)
    directions: NDArray[np.float32] = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return directions


def test_coders_keep_what_their_bits_allow() -> None:
    """32 bits lose nothing, 8 bits little; each says how many bytes it takes; others are the product's or refused."""
    vectors = unit_vectors(50, 96)
    exact, close = FloatCoder(96), ByteCoder(96)
    assert np.array_equal(exact.decode(exact.encode(vectors)), vectors)
    assert np.abs(close.decode(close.encode(vectors)) - vectors).max() < 0.01
    for bits in (2, 4, 8, 32):
        assert coder_of(96, bits).encode(vectors).shape == (50, 96 * bits // 8) == (50, coder_of(96, bits).code_bytes)
    with pytest.raises(ValueError, match="2 or 4 bits"):
        coder_of(96, 3)


@pytest.mark.parametrize("bits", [8, 32])
def test_coders_score_by_the_best_of_a_passage(bits: int) -> None:
    """The scores are those of the numbers themselves, but for what the coding loses."""
    query, tokens = unit_vectors(3, 32), unit_vectors(9, 32)[3:]
    coder = coder_of(32, bits)
    expected = [(query @ part.T).max(axis=1).sum() for part in (tokens[:2], tokens[2:])]
    scores = coder.scores(query, coder.encode(tokens), np.array([2, 6]))
    np.testing.assert_allclose(scores, expected, atol=0.05 if bits == 8 else 1e-5)


def test_variants_begin_with_full_precision_and_hold_the_default() -> None:
    """No two are the same or are called the same; a smaller model has no more dimensions than its own."""
    chosen = variants(384)
    assert chosen[0] == full_precision(384)
    assert DEFAULT in chosen
    assert len({variant.label for variant in chosen}) == len(set(chosen)) == len(chosen)
    assert variants(16) == [full_precision(16)]
    assert {variant.dim for variant in variants(128)} == {128, 96, 64, 32}


def test_one_run_over_the_passages_fits_every_shape_as_its_own_run_does(
    bundled: OnnxDenseEncoder, arms: list[Arm]
) -> None:
    """What is tried here is what a model would ship with."""
    alone = fit_projection(bundled, PASSAGES, LateShape(64, 4))
    np.testing.assert_allclose(arms[1].projection.projection, alone.projection, atol=1e-6)
    assert np.array_equal(arms[1].projection.token_weights, alone.token_weights)


def test_codes_are_those_that_the_product_writes(bundled: OnnxDenseEncoder, arms: list[Arm]) -> None:
    """Equal tokens are pooled as at indexing; 16-bit states may move a number that lies on a bound."""
    items = bundled.tokenize(PASSAGES, TextKind.PASSAGE)
    arm = arms[1]
    codec = coder_of(64, 4)
    found = codes_of(passage_states(bundled, items, arm.projection.token_weights), arm)
    ours = [found.of(np.array([place]))[0] for place in range(len(items))]
    theirs = [
        arm.projection.passage_codes(item, states)
        for item, states in zip(items, states_of(bundled, items), strict=True)
    ]
    assert [len(one) for one in ours] == [len(one) for one in theirs]
    assert len(ours[3]) == 0  # it says nothing
    np.testing.assert_allclose(codec.decode(np.concatenate(ours)), codec.decode(np.concatenate(theirs)), atol=0.1)


def test_fewer_tokens_are_counted_as_they_are_coded(bundled: OnnxDenseEncoder, arms: list[Arm]) -> None:
    """Pooling and pruning leave tokens out, in the codes and in the count of bytes alike."""
    items = bundled.tokenize(PASSAGES, TextKind.PASSAGE)
    states = passage_states(bundled, items, arms[0].projection.token_weights)
    counts = [codes_of(states, arm).ends[-1] for arm in arms]
    assert counts[0] == counts[2] > counts[1] > counts[3] > 0
    assert [mean_tokens(items, arm) for arm in arms] == [count / len(PASSAGES) for count in counts]


def test_best_of_a_pool_is_what_hybrid_search_gives() -> None:
    """By the fused score, as many as are reranked, with the documents of the chunks."""
    pool = Pool(
        "q",
        {"d": 1},
        ("2", "5", "7"),
        np.array([0.3, 0.9, 0.5], dtype=np.float32),
        np.array([9.0, 0.0, 6.0], dtype=np.float32),
        np.array([2, 0, 1], dtype=np.int32),
        np.array([0, -1, 1], dtype=np.int32),
        10.0,
    )
    settings = Settings.model_validate({"rerank": {"depth": 2}, "retrieval": {"dense_weight": 0.5, "top_k": 2}})
    best = best_of(pool, [f"d{chunk}" for chunk in range(8)], settings)
    assert best.passages.tolist() == [2, 7]
    np.testing.assert_allclose(best.first_stage, [0.6, 0.55])
    assert best.pool.documents == ("d2", "d7")


def test_judged_variants_find_the_passage_that_says_it(bundled: OnnxDenseEncoder, arms: list[Arm]) -> None:
    """Late interaction alone puts it first; with all weight on the first stage nothing changes."""
    items = bundled.tokenize(PASSAGES, TextKind.PASSAGE)
    questions = bundled.tokenize(["the pump stops when the seal leaks", "water in the pipe"], TextKind.QUERY)
    first = np.linspace(0.1, 0.5, len(PASSAGES))  # the last passage is best
    ranks = np.arange(len(PASSAGES), dtype=np.int32)[::-1].copy()
    scores = first.astype(np.float32)
    names = tuple("abcde")
    asked = [
        Asked(
            Candidates(Pool("q", {name: 1}, names, scores, scores, ranks, ranks, 1.0), first, np.arange(len(PASSAGES))),
            question,
            states,
        )
        for name, question, states in zip("ac", questions, states_of(bundled, questions), strict=True)
    ]
    source = LateSet("s", tuple(asked), passage_states(bundled, items, arms[0].projection.token_weights))
    judged = judge_set(source, arms, arms[1], Mixture(1.0, 0.0, 1.0))
    for quality in (*judged.variants.values(), *judged.weighings.values()):
        assert quality.late.tolist() == [1.0, 1.0]
        np.testing.assert_allclose(quality.combined, judged.hybrid)
    assert judged.variants[arms[1].variant].late.tolist() == judged.weighings["IDF"].late.tolist()
    assert (judged.hybrid < 1.0).all()


def test_summary_is_a_mean_over_sets_with_a_paired_difference() -> None:
    """A set of many questions counts no more than a set of few."""
    high = [Quality(np.full(10, 0.9), np.full(10, 0.8)), Quality(np.full(2, 0.7), np.full(2, 0.6))]
    low = [replace(one, combined=one.combined - 0.1) for one in high]
    found = summary(low, high)
    assert found.late == pytest.approx(0.8)
    assert found.combined == pytest.approx(0.6)
    assert found.difference.mean == pytest.approx(-0.1)
    assert found.difference.certain


def test_tool_reports_quality_bytes_and_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From files to tables, JSON and plot; every variant has its bytes, and the times belong to every question."""
    folder = tmp_path / "tiny"
    (folder / "qrels").mkdir(parents=True)
    rows = [{"_id": f"d{place}", "title": "", "text": text} for place, text in enumerate(PASSAGES)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "corpus.jsonl").write_text(lines, encoding="utf-8")
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "which seal leaks?"}) + "\n", "utf-8")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td0\t1\n", "utf-8")
    (tmp_path / "passages.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "bench.toml").write_text(
        '[rerank]\ndepth = 2\n[retrieval]\ntop_k = 2\n[index]\nkind = "edge"\n', "utf-8"
    )
    words = [str(folder), "--split", "all", "--passages", str(tmp_path / "passages.jsonl"), "--indexed", "3"]
    words += ["--fitted", "2", "--json", str(tmp_path / "late.json"), "--cache", str(tmp_path / "cache")]
    monkeypatch.setattr("sys.argv", ["late.py", *words, "--config", str(tmp_path / "bench.toml")])
    late.main()
    written = json.loads((tmp_path / "late.json").read_text("utf-8"))
    full, *others = written["points"]
    assert (full["label"], full["token_bytes"]) == ("384 x float32, all tokens", 1536)
    assert [one["label"] for one in others if one["default"]] == ["240 x 2 bits", "240 x 2 bits, shipped"]
    assert all(one["stored"] == pytest.approx(2 * one["one_copy"]) for one in others)
    assert written["scoring"]["late_scores"]["count"] == written["scoring"]["stage"]["count"] == 1
    assert set(written["sets"]["tiny"]) == {"hybrid", *(one["label"] for one in written["points"])}
    assert "hybrid alone" in capsys.readouterr().out
    assert (tmp_path / "late.png").stat().st_size > 1_000
