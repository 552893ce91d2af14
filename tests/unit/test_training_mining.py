"""What retrieval finds for the queries of a set, by the parts that serve."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from encoders.dense import OnnxDenseEncoder
from encoders.late.codec import LevelCodec
from encoders.late.engines import PassageEngine, QueryEngine
from encoders.late.tokens import LATE_FILE, TokenProjection
from encoders.models import resolve
from encoders.sources import ModelSource
from encoders.types import TextKind
from indexers.chunking import Chunker, ChunkLimits
from indexers.types import Document, TextFormat
from rerank.calibrate import Mixture
from rerank.training.errors import RunDiffers
from rerank.training.examples import Example, SourceText
from retrieval.training.encoding import BulkEncoder
from retrieval.training.leaks import without_rephrasings
from retrieval.training.mining import FirstStage, make_pools, prepare
from retrieval.training.run import claim
from retrieval.training.sections import documents_of, sections
from tests.fakes.encoded import encoded
from tests.fakes.memory_index import MemoryIndex
from tests.fakes.tiny_models import make_tiny_bi_encoder

_TEXTS = [
    SourceText("pump", "", "pump seal valve"),
    SourceText("torque", "Torque", "torque of the valve"),
    SourceText("soup", "", "soup cats"),
]

_STAGE = FirstStage(dense_weight=0.65, branch=100, mixture=Mixture(0.6, 0.4, 0.0), pool=2)
_DIM = 16


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> OnnxDenseEncoder:
    """Opens a tiny bi-encoder."""
    folder = make_tiny_bi_encoder(tmp_path_factory.mktemp("bi"), dim=_DIM)
    return OnnxDenseEncoder.open(resolve(ModelSource(str(folder))))


@pytest.fixture(scope="module")
def late_encoder(encoder: OnnxDenseEncoder, tmp_path_factory: pytest.TempPathFactory) -> OnnxDenseEncoder:
    """Opens the same one with a token projection: special tokens are left out, all others count alike."""
    folder = make_tiny_bi_encoder(tmp_path_factory.mktemp("late"), dim=_DIM)
    weights = np.ones(encoder.tokenization.vocabulary_size, dtype=np.float32)
    weights[[encoder.tokenize([""], TextKind.QUERY)[0].ids]] = 0.0
    eye, center = np.eye(_DIM, dtype=np.float32), np.zeros(_DIM, dtype=np.float32)
    TokenProjection(eye, center, weights, LevelCodec(_DIM, 4)).save(folder / LATE_FILE)
    return OnnxDenseEncoder.open(resolve(ModelSource(str(folder))))


@pytest.fixture
def chunker(encoder: OnnxDenseEncoder) -> Chunker:
    """Cuts by that encoder's tokens."""
    return Chunker(encoder.tokenization, ChunkLimits(limit_tokens=32, target_tokens=24, overlap_tokens=0))


def _silent(what: str, done: int, total: int) -> None:
    pass


def test_pool_ranks_by_the_base_score_and_adds_what_was_missed(encoder: OnnxDenseEncoder, chunker: Chunker) -> None:
    """What was found comes first, best first; a relevant passage that was not found stands behind it."""
    bulk = BulkEncoder(encoder, _silent)
    searchable = prepare(_TEXTS, chunker, bulk)
    examples = [Example("q0", "pump seal", {"pump": 1}), Example("q1", "pump seal", {"soup": 1})]
    first, second = make_pools("s", examples, searchable, bulk, _STAGE).pools
    assert first.text_ids[0] == "pump"
    assert (first.found_count, len(first.text_ids)) == (2, 2)
    assert (second.found_count, second.text_ids[-1], len(second.text_ids)) == (2, "soup", 3)
    assert np.all(np.diff(first.base(_STAGE.mixture)) <= 0)
    assert first.labels().tolist() == [1.0, 0.0]


def test_pool_passages_are_what_is_embedded(encoder: OnnxDenseEncoder, chunker: Chunker) -> None:
    """The title is part of a passage, as it is when the service reranks."""
    bulk = BulkEncoder(encoder, _silent)
    pools = make_pools("s", [Example("q", "torque", {"torque": 1})], prepare(_TEXTS, chunker, bulk), bulk, _STAGE)
    assert pools.passages[pools.pools[0].passage_ids[0]] == "Torque\ntorque of the valve"


def test_bulk_encoder_gives_what_serves(late_encoder: OnnxDenseEncoder) -> None:
    """Vectors and codes of passages, vectors and token vectors of queries: in order, bit for bit, to the end."""
    seen: list[tuple[str, int, int]] = []
    bulk = BulkEncoder(late_encoder, lambda what, done, total: seen.append((what, done, total)))
    texts = [text.text for text in _TEXTS]
    passages, queries = bulk.passages(texts), bulk.queries(texts)
    np.testing.assert_array_equal(bulk.matrix(passages), late_encoder.encode_passages(texts))
    served = PassageEngine(late_encoder.engine, late_encoder.projection).run(
        late_encoder.tokenize(texts, TextKind.PASSAGE)
    )
    for ours, theirs in zip(passages, served, strict=True):
        np.testing.assert_array_equal(ours.codes, theirs.codes)
    assert [one.tokens is not None and len(one.tokens) for one in queries] == [3, 4, 2]
    assert seen == [("encoding: passage", 3, 3), ("encoding: query", 3, 3)]
    assert bulk.matrix(bulk.queries([])).shape == (0, _DIM)


def test_late_interaction_of_a_pool_is_what_is_served(late_encoder: OnnxDenseEncoder, chunker: Chunker) -> None:
    """Scores come from the codes of the passages by the model's codec; each passage is encoded once."""
    runs: list[tuple[str, int, int]] = []
    bulk = BulkEncoder(late_encoder, lambda what, done, total: runs.append((what, done, total)))
    [pool] = make_pools(
        "s", [Example("q", "pump seal", {"soup": 1})], prepare(_TEXTS, chunker, bulk), bulk, _STAGE
    ).pools
    projection = late_encoder.projection
    assert projection is not None
    [query] = QueryEngine(late_encoder.engine, projection).run(late_encoder.tokenize(["pump seal"], TextKind.QUERY))
    texts = {text.text_id: f"{text.title}\n{text.text}".strip() for text in _TEXTS}
    items = late_encoder.tokenize([texts[text_id] for text_id in pool.text_ids], TextKind.PASSAGE)
    codes = [one.codes for one in PassageEngine(late_encoder.engine, projection).run(items) if one.codes is not None]
    assert query.tokens is not None
    expected = projection.codec.scores(query.tokens, np.concatenate(codes), np.cumsum([len(one) for one in codes]))
    np.testing.assert_array_equal(pool.late, expected)
    assert sum(total for what, _, total in runs if what == "encoding: passage") == len(_TEXTS)


def test_pool_without_late_interaction_is_ordered_by_fusion(
    encoder: OnnxDenseEncoder, late_encoder: OnnxDenseEncoder, chunker: Chunker
) -> None:
    """A model without token vectors, late interaction that is off, and a query without tokens that count."""
    cases = [(encoder, True, "pump seal"), (late_encoder, False, "pump seal"), (late_encoder, True, "")]
    for opened, on, query in cases:
        bulk = BulkEncoder(opened, _silent, late=on)
        [pool] = make_pools("s", [Example("q", query, {})], prepare(_TEXTS, chunker, bulk), bulk, _STAGE).pools
        assert pool.late is None
        np.testing.assert_array_equal(pool.base(_STAGE.mixture), pool.hybrid)


async def test_collection_gives_all_of_its_documents() -> None:
    """Every page of the listing is read."""
    index = MemoryIndex()
    await index.upsert([encoded(name, ["pump seal"]) for name in "abcde"])
    assert [document.document_id async for document in documents_of(index)] == list("abcde")


def test_rephrasings_of_held_out_queries_do_not_train(encoder: OnnxDenseEncoder) -> None:
    """The same words under another id are left out, other questions stay."""
    examples = [Example("a", "seal of the pump", {"t": 1}), Example("b", "soup cats", {"t": 1})]
    bulk = BulkEncoder(encoder, _silent)
    assert [one.query_id for one in without_rephrasings(examples, ["the seal of the pump"], bulk)] == ["b"]
    assert without_rephrasings(examples, [], bulk) == examples
    assert without_rephrasings([], ["pump"], bulk) == []


def test_work_folder_belongs_to_one_plan(tmp_path: Path) -> None:
    """The same plan goes on in its folder; another one would mix what was made for two."""
    claim(tmp_path / "work", "plan a")
    claim(tmp_path / "work", "plan a")
    with pytest.raises(RunDiffers, match="another plan"):
        claim(tmp_path / "work", "plan b")


def test_sections_carry_their_headings_as_title(chunker: Chunker) -> None:
    """A document is cut at its headings; text before the first has the document's title."""
    markdown = "before\n\n# Pump\n\nabout pumps\n\n## Seal\n\nabout seals\n"
    document = Document("d", "Manual", markdown, TextFormat.MARKDOWN, {"product": "pump"})
    found = list(sections([document], chunker))
    assert [text.title for text in found] == ["Manual", "Pump", "Pump > Seal"]
    assert "about seals" in found[2].text
    assert found[2].metadata == {"product": "pump"}
    assert len({text.text_id for text in found}) == 3
