"""Hostile files through the real sandbox: each ends as documents or as one reasoned failure, in time and in bounds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from indexers.parsing.options import ParseOptions, SourceFile
from indexers.parsing.parsed import ParsedDocument, ParseFailure, SkippedFile, SourceItem
from indexers.sandbox.pool import ParserPool, SandboxLimits
from tests.fakes.good_files import docx
from tests.fakes.hostile import HostileFile, broken, crafted, hostile_files

LIMITS = SandboxLimits(timeout_s=10.0, max_memory_bytes=256 * 1024**2)
OPTIONS = ParseOptions(max_file_bytes=4_000_000, max_row_bytes=2_000_000, max_text_characters=1_000_000)
PDFS = Path(__file__).parents[1] / "unit" / "pdf"
_BROKEN = 90


@pytest.fixture(scope="module")
def pool() -> Iterator[ParserPool]:
    """Yields one process under tight limits, replaced as often as need be."""
    made = ParserPool(LIMITS, 1)
    yield made
    made.close()


def _parse(pool: ParserPool, folder: Path, hostile: HostileFile) -> list[SourceItem]:
    path = folder / hostile.name
    path.write_bytes(hostile.content)
    return list(pool.parse(SourceFile(path, hostile.name, path.as_uri()), OPTIONS))


def _check(name: str, items: list[SourceItem]) -> None:
    """Holds of every file: it gives something, each failure has a reason and a kind, the file as a whole fails once."""
    assert items
    for item in items:
        if isinstance(item, ParsedDocument):
            assert item.document.text.strip()
            assert item.document.text.encode()
        else:
            assert item.reason
    failures = [item for item in items if isinstance(item, ParseFailure)]
    assert all(failure.kind for failure in failures)
    whole = [failure for failure in failures if failure.path == name]
    assert len(whole) <= 1
    assert all(item is items[-1] for item in whole)


@pytest.mark.parametrize("hostile", list(crafted()), ids=lambda one: one.name)
def test_file_that_was_made_to_harm_fails_alone(pool: ParserPool, tmp_path: Path, hostile: HostileFile) -> None:
    """Case ING-08 among them: bombs, entities, slips, macros, nesting, encodings, endless lines, each by its kind."""
    items = _parse(pool, tmp_path, hostile)
    _check(hostile.name, items)
    if hostile.kind and not isinstance(items[-1], SkippedFile):
        assert isinstance(items[-1], ParseFailure)
        assert items[-1].kind == hostile.kind, items[-1].reason


def test_file_that_was_broken_by_chance_fails_alone(pool: ParserPool, tmp_path: Path) -> None:
    """Cut, shuffled, flipped, recoded: documents or one failure."""
    chance = broken(6)
    for _ in range(_BROKEN):
        hostile = next(chance)
        _check(hostile.name, _parse(pool, tmp_path, hostile))
    good = HostileFile("good.md", b"# Good\n\ntext", "")
    assert isinstance(_parse(pool, tmp_path, good)[0], ParsedDocument)


def test_large_bomb_fails_within_the_limits(pool: ParserPool, tmp_path: Path) -> None:
    """Case ING-08: 300 MB of text in a small document end as one failure that speaks of size."""
    bomb = HostileFile("bomb.docx", docx(f"<w:p><w:r><w:t>{'a' * 300_000_000}</w:t></w:r></w:p>"), "bomb")
    (item,) = _parse(pool, tmp_path, bomb)
    assert isinstance(item, ParseFailure)
    assert item.kind == "bomb"
    assert "unpacks" in item.reason


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("user.pdf", (PDFS / "user-password.pdf").read_bytes(), "encrypted"),
        ("owner.pdf", (PDFS / "owner-password.pdf").read_bytes(), ""),
        ("cut.pdf", (PDFS / "owner-password.pdf").read_bytes()[:100], "unparsable"),
        ("page.pdf", b"<!doctype html><title>t</title><p>text", "wrong_type"),
    ],
)
def test_pdf_that_is_encrypted_or_cut_fails_by_kind(
    pool: ParserPool, tmp_path: Path, name: str, content: bytes, kind: str
) -> None:
    """Case ING-15: three clear reasons; a password that only restricts changing is no obstacle to reading."""
    (item,) = _parse(pool, tmp_path, HostileFile(name, content, ""))
    if kind:
        assert isinstance(item, ParseFailure)
        assert item.kind == kind
    else:
        assert isinstance(item, ParsedDocument)


def test_line_of_a_gigabyte_is_not_read_whole(pool: ParserPool, tmp_path: Path) -> None:
    """A sparse file of one line fails as too large, in every format that reads lines or text."""
    for name in ("a.jsonl", "a.csv", "a.txt", "a.html"):
        path = tmp_path / name
        with path.open("wb") as file:
            start = b"text\n" if name == "a.csv" else b'{"id":"1","text":"ok"}\n'
            file.write(start + b"a" * 2_000)
            file.truncate(1_000_000_000)
        items = list(pool.parse(SourceFile(path, name, path.as_uri()), OPTIONS))
        assert isinstance(items[-1], ParseFailure)
        assert items[-1].kind == "too_large", items[-1].reason


def test_hostile_files_are_the_same_for_a_seed() -> None:
    """So that a failure can be looked at again."""
    assert list(hostile_files(100, 3)) == list(hostile_files(100, 3))
