"""What retrieval finds for the queries of a set, by the parts that serve."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from encoders.dense import OnnxDenseEncoder
from encoders.models import resolve
from encoders.sources import ModelSource
from encoders.types import TextKind, TokenizedText
from indexers.chunking import Chunker, ChunkLimits
from indexers.types import Document, TextFormat
from rerank.training.errors import RunDiffers
from rerank.training.examples import Example, SourceText
from retrieval.training.encoding import BulkEncoder, TokenStates
from retrieval.training.late import max_similarity, token_weights
from retrieval.training.leaks import without_rephrasings
from retrieval.training.mining import Depths, make_pools, prepare
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


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> OnnxDenseEncoder:
    """Opens a tiny bi-encoder."""
    folder = make_tiny_bi_encoder(tmp_path_factory.mktemp("bi"))
    return OnnxDenseEncoder.open(resolve(ModelSource(str(folder))))


@pytest.fixture
def chunker(encoder: OnnxDenseEncoder) -> Chunker:
    """Cuts by that encoder's tokens."""
    return Chunker(encoder.tokenization, ChunkLimits(limit_tokens=32, target_tokens=24, overlap_tokens=0))


def _silent(what: str, done: int, total: int) -> None:
    pass


def _tokens(*ids: int) -> TokenizedText:
    array = np.array(ids, dtype=np.int64)
    return TokenizedText(array, np.zeros_like(array), len(array))


def test_pool_ranks_by_the_base_score_and_adds_what_was_missed(encoder: OnnxDenseEncoder, chunker: Chunker) -> None:
    """What was found comes first, best first; a relevant passage that was not found stands behind it."""
    bulk = BulkEncoder(encoder, _silent)
    searchable = prepare(_TEXTS, chunker, bulk)
    examples = [Example("q0", "pump seal", {"pump": 1}), Example("q1", "pump seal", {"soup": 1})]
    depths = Depths(pool=2)
    first, second = make_pools("s", examples, searchable, bulk, depths).pools
    assert first.text_ids[0] == "pump"
    assert (first.found_count, len(first.text_ids)) == (2, 2)
    assert (second.found_count, second.text_ids[-1], len(second.text_ids)) == (2, "soup", 3)
    assert np.all(np.diff(first.base(depths.base)) <= 0)
    assert first.labels().tolist() == [1.0, 0.0]


def test_pool_passages_are_what_is_embedded(encoder: OnnxDenseEncoder, chunker: Chunker) -> None:
    """The title is part of a passage, as it is when the service reranks."""
    bulk = BulkEncoder(encoder, _silent)
    pools = make_pools("s", [Example("q", "torque", {"torque": 1})], prepare(_TEXTS, chunker, bulk), bulk, Depths())
    assert pools.passages[pools.pools[0].passage_ids[0]] == "Torque\ntorque of the valve"


def test_bulk_encoder_gives_the_vectors_that_serve(encoder: OnnxDenseEncoder) -> None:
    """In order, bit for bit, and progress reaches the end."""
    seen: list[tuple[str, int, int]] = []
    bulk = BulkEncoder(encoder, lambda what, done, total: seen.append((what, done, total)))
    texts = [text.text for text in _TEXTS]
    np.testing.assert_array_equal(bulk.vectors(texts, TextKind.PASSAGE), encoder.encode_passages(texts))
    assert seen == [("passage vectors", 3, 3)]
    assert bulk.vectors([], TextKind.QUERY).shape == (0, encoder.dim)
    norms = np.linalg.norm(bulk.states(texts, TextKind.PASSAGE)[0].states.astype(np.float32), axis=1)
    np.testing.assert_allclose(norms, 1.0, atol=1e-3)


def test_token_weights_leave_out_what_most_passages_hold() -> None:
    """Special tokens and stop words weigh nothing; a token that was never seen weighs most."""
    weights = token_weights([_tokens(1, 5, 2), _tokens(1, 6, 2), _tokens(1, 6, 7, 2), _tokens(1, 5, 8, 2)])
    found = weights.of(np.array([1, 2, 7, 99]))
    assert found[:2].tolist() == [0.0, 0.0]
    assert found[2] == pytest.approx(math.log(1 + 3.5 / 1.5))
    assert found[3] > found[2]


def test_max_similarity_is_the_weighted_mean_of_the_best_cosines() -> None:
    """Each query token takes its best passage token; tokens without weight count on neither side."""
    weights = token_weights([_tokens(1, 5), _tokens(1, 6), _tokens(1, 7)])
    eye = np.eye(3, dtype=np.float16)
    query = TokenStates(np.array([1, 5, 6]), np.stack([eye[2], eye[0], eye[1]]))
    passage = TokenStates(np.array([1, 5, 7]), np.stack([eye[1], eye[0], eye[2]]))
    assert max_similarity(query, passage, weights) == pytest.approx(0.5)
    assert max_similarity(TokenStates(np.array([1]), eye[:1]), passage, weights) == 0.0


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
