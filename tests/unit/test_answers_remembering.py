"""What was learned of similar questions outlives the process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from indexers.types import CollectionKey
from retrieval.answers.remembering import LearnedFiles, saving
from retrieval.answers.risks import Risks
from retrieval.answers.similarity import FEATURES
from retrieval.scope import VectorSpace

DOCS = VectorSpace(CollectionKey("acme", "docs"), "model@r1")


def _teach(risks: Risks, space: VectorSpace, count: int) -> None:
    features, control = np.ones(len(FEATURES)), risks.of(space)
    for number in range(count):
        entry = number.to_bytes(32, "big")
        control.learn(entry, control.judge(entry, features, 0.01), features, correct=True)
        risks.count_label(space, served=False, agree=True)


async def _labels(folder: Path, space: VectorSpace = DOCS) -> int:
    risks = Risks(LearnedFiles(folder))
    await risks.prepare(space)
    return risks.of(space).figures.labels


async def test_learned_evidence_comes_back_for_its_collection_and_model(tmp_path: Path) -> None:
    """Another tenant, collection or model starts from nothing."""
    risks = Risks(LearnedFiles(tmp_path))
    await risks.prepare(DOCS)
    async with saving(risks):
        _teach(risks, DOCS, 50)
    assert await _labels(tmp_path) == 50
    assert await _labels(tmp_path, replace(DOCS, model="model@r2")) == 0
    assert await _labels(tmp_path, replace(DOCS, collection=CollectionKey("acme", "other"))) == 0
    assert await _labels(tmp_path, replace(DOCS, collection=CollectionKey("other", "docs"))) == 0


async def test_learned_evidence_that_is_damaged_is_left_out(tmp_path: Path) -> None:
    """A cut or foreign file costs what was learned, and nothing else; the next save replaces it."""
    risks = Risks(LearnedFiles(tmp_path))
    _teach(risks, DOCS, 50)
    await risks.save()
    [file] = tmp_path.iterdir()
    for damaged in (file.read_bytes()[:-7], b"", b"no such thing"):
        file.write_bytes(damaged)
        assert await _labels(tmp_path) == 0
    _teach(risks, DOCS, 1)
    await risks.save()
    assert await _labels(tmp_path) == 51


async def test_learned_evidence_is_not_written_when_nothing_changed(tmp_path: Path) -> None:
    """A save without news touches no file, and a folder that cannot be written costs no request."""
    risks = Risks(LearnedFiles(tmp_path / "file"))
    (tmp_path / "file").write_text("in the way")
    _teach(risks, DOCS, 1)
    await risks.save()
    fresh = Risks(LearnedFiles(tmp_path / "learned"))
    fresh.of(DOCS)
    await fresh.save()
    assert not (tmp_path / "learned").exists()
