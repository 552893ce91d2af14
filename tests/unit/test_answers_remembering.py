"""What was learned of similar questions outlives the process."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from indexers.types import CollectionKey
from retrieval.answers.remembering import LearnedFiles, saving
from retrieval.answers.risks import Risks
from retrieval.answers.similarity import FEATURES

DOCS = CollectionKey("acme", "docs")


def _teach(risks: Risks, collection: CollectionKey, count: int) -> None:
    features, control = np.ones(len(FEATURES)), risks.of(collection)
    for number in range(count):
        entry = number.to_bytes(32, "big")
        control.learn(entry, control.judge(entry, features, 0.01), features, correct=True)
        risks.count_label(collection, served=False, agree=True)


async def _labels(folder: Path, model: str, collection: CollectionKey = DOCS) -> int:
    risks = Risks(LearnedFiles(folder, model))
    await risks.prepare(collection)
    return risks.of(collection).figures.labels


async def test_learned_evidence_comes_back_for_its_collection_and_model(tmp_path: Path) -> None:
    """Another tenant, collection or model starts from nothing."""
    risks = Risks(LearnedFiles(tmp_path, "model@r1"))
    await risks.prepare(DOCS)
    async with saving(risks):
        _teach(risks, DOCS, 50)
    assert await _labels(tmp_path, "model@r1") == 50
    assert await _labels(tmp_path, "model@r2") == 0
    assert await _labels(tmp_path, "model@r1", CollectionKey("acme", "other")) == 0
    assert await _labels(tmp_path, "model@r1", CollectionKey("other", "docs")) == 0


async def test_learned_evidence_that_is_damaged_is_left_out(tmp_path: Path) -> None:
    """A cut or foreign file costs what was learned, and nothing else; the next save replaces it."""
    risks = Risks(LearnedFiles(tmp_path, "model@r1"))
    _teach(risks, DOCS, 50)
    await risks.save()
    [file] = tmp_path.iterdir()
    for damaged in (file.read_bytes()[:-7], b"", b"no such thing"):
        file.write_bytes(damaged)
        assert await _labels(tmp_path, "model@r1") == 0
    _teach(risks, DOCS, 1)
    await risks.save()
    assert await _labels(tmp_path, "model@r1") == 51


async def test_learned_evidence_is_not_written_when_nothing_changed(tmp_path: Path) -> None:
    """A save without news touches no file, and a folder that cannot be written costs no request."""
    risks = Risks(LearnedFiles(tmp_path / "file", "model@r1"))
    (tmp_path / "file").write_text("in the way")
    _teach(risks, DOCS, 1)
    await risks.save()
    fresh = Risks(LearnedFiles(tmp_path / "learned", "model@r1"))
    fresh.of(DOCS)
    await fresh.save()
    assert not (tmp_path / "learned").exists()
