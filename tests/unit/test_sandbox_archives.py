"""The guard before zip archives: what it lets through, and what it refuses for which reason."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from indexers.errors import ParseFailed
from indexers.sandbox.archives import Archive, open_archive
from tests.fakes.good_files import docx, zipped
from tests.fakes.hostile import HostileFile, crafted, lying

_GUARDED = [
    one
    for one in crafted()
    if one.kind in ("bomb", "unsafe_path", "encrypted") and one.content[:2] in (b"PK", b"\xd0\xcf")
]


def _kind(content: bytes | Path, entry: str = "", **bounds: float) -> str:
    with pytest.raises(ParseFailed) as failed, open_archive(content, "a.docx", **bounds) as archive:  # type: ignore[arg-type]
        archive.read(entry) if entry else archive.verify()
    assert failed.value.reason
    assert failed.value.path == "a.docx"
    return failed.value.kind


def test_archive_gives_its_parts(tmp_path: Path) -> None:
    """From a file or its content, without folders."""
    path = tmp_path / "a.zip"
    path.write_bytes(zipped({"a/": "", "a/b.txt": "text", "c": b"\x00"}))
    with open_archive(path, "a.zip") as archive:
        assert archive.namelist() == ["a/b.txt", "c"]
        assert "c" in archive
        assert "a/" not in archive
        assert archive.read("a/b.txt") == b"text"
        assert archive.open("c").read() == b"\x00"
        archive.verify()
    assert isinstance(open_archive(path.read_bytes(), "a.zip"), Archive)


@pytest.mark.parametrize(
    "hostile",
    [one for one in _GUARDED if "laughs" not in one.name and "outside" not in one.name],
    ids=lambda one: one.name,
)
def test_archive_refuses_what_was_made_to_harm(hostile: HostileFile) -> None:
    """Bombs, too many parts, paths that lead outside and encrypted parts, each by its kind."""
    if hostile.kind in ("bomb", "unsafe_path", "encrypted"):
        assert _kind(hostile.content) == hostile.kind


def test_archive_counts_what_comes_out_rather_than_what_is_declared() -> None:
    """A part that declares a kilobyte never gives more, whatever its packed bytes hold."""
    assert _kind(lying(zipped({"a": b"a" * 20_000_000})), "a") == "unparsable"


def test_archive_bounds_all_parts_together() -> None:
    """Reading again counts again; a whole check starts the count anew."""
    content = zipped({"a": bytes(range(250)) * 4, "b": "x" * 10})
    with open_archive(content, "a", max_total_bytes=1_500) as archive:
        archive.verify()
        archive.read("a")
        with pytest.raises(ParseFailed, match="more than 1500 bytes") as failed:
            archive.read("a")
    assert failed.value.kind == "bomb"


def test_archive_refuses_overlapping_parts() -> None:
    """Two entries of the directory that share packed bytes are the trick of the densest bombs."""
    content = zipped({"a": bytes(range(256)), "b": bytes(range(256))})
    first, second = content.find(b"PK\x01\x02"), content.rfind(b"PK\x01\x02")
    assert _kind(content[: second + 42] + content[first + 42 : first + 46] + content[second + 46 :]) == "bomb"


@pytest.mark.parametrize("cut", [0, 1, 30, 60, -1, -10, -22])
def test_archive_that_is_cut_off_is_a_failure_in_words(cut: int) -> None:
    """No exception of the library's own gets out."""
    assert _kind(docx("<w:p/>")[:cut]) == "unparsable"


def test_archive_names_the_part_that_is_missing() -> None:
    """A document without its main part is damaged, or of another format."""
    with open_archive(zipped({"a": "x"}), "a") as archive, pytest.raises(ParseFailed, match="lacks its part 'b'"):
        archive.read("b")


def test_archive_refuses_a_large_bomb_without_unpacking_it() -> None:
    """Case ING-08: a part of 300 MB costs next to no memory."""
    content = docx(f"<w:p><w:r><w:t>{'a' * 300_000_000}</w:t></w:r></w:p>")
    tracemalloc.start()
    assert _kind(content) == "bomb"
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000
