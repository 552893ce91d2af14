"""What the tool for offsets counts."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from unittest.mock import ANY

from bench.offsets import check, lost_characters, wrong_offsets
from indexers.chunking import Chunker
from indexers.types import Document
from tests.fakes.encoders import PieceCounter

ROWS = b'{"id": "1", "text": "Pumps move water."}\n{"id": "2", "text": "a\\r\\nb"}\n{"id": "3"}\n'


def test_a_set_is_counted(tmp_path: Path) -> None:
    """Documents, rows that gave none, and texts that are not the field they were read from; packed or not."""
    plain, packed = tmp_path / "corpus.jsonl", tmp_path / "rows.jsonl.gz"
    plain.write_bytes(ROWS)
    packed.write_bytes(gzip.compress(ROWS))
    found = check(plain, 0, Chunker(PieceCounter()))
    assert (found.documents, found.chunks, found.failures, found.altered) == (2, 2, 1, 1)
    assert (found.wrong_offsets, found.lost, found.faults) == (0, 0, ())
    assert check(tmp_path, 0, Chunker(PieceCounter())) == replace(found, name=tmp_path.name, seconds=ANY)
    assert check(packed, 1, Chunker(PieceCounter())).documents == 1


def test_folders_are_read_file_by_file(tmp_path: Path) -> None:
    """Every format that a job reads, under its own name."""
    (tmp_path / "a.md").write_text("# Pumps\n\nThey move water.\n")
    (tmp_path / "b.csv").write_text("id,text\n1,Seals.\n")
    assert check(tmp_path, 0, Chunker(PieceCounter())).documents == 2


def test_faults_are_found() -> None:
    """A chunk that says something else than its span, and text that no chunk holds."""
    document = Document("d", "", "Pumps move.\n\nSeals hold.")
    [chunk] = Chunker(PieceCounter()).chunk(document)
    assert wrong_offsets(document, [replace(chunk, start=1)]) == 1
    assert lost_characters(document, [replace(chunk, end=11)]) == len("Sealshold.")
    assert lost_characters(document, []) == len("Pumpsmove.Sealshold.")
