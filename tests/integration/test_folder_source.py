"""Folders as a source: what is listed and what is not, within bounds, and watched."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from indexers.errors import ItemGone, ItemUnreadable, SourceUnavailable
from indexers.parsing.parsed import ParseFailure, SkippedFile
from indexers.sources.access import SourceAccess
from indexers.sources.folder import FolderSource
from indexers.sources.globs import Selection
from indexers.sources.source import ItemRef
from indexers.sources.spec import FolderSource as FolderSpec
from indexers.sources.watching import FolderWatch

WAIT_S = 60.0


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Is a folder with a few files."""
    docs = tmp_path / "docs"
    for name in ("a.md", "sub/b.md", "sub/deep/c.md", "sub/d.txt", ".hidden.md", ".git/e.md"):
        (docs / name).parent.mkdir(parents=True, exist_ok=True)
        (docs / name).write_text(name, encoding="utf-8")
    return docs


def folder(base: Path, path: str = "docs", access: SourceAccess | None = None, **changed: object) -> FolderSource:
    """Opens a folder as a source."""
    spec = FolderSpec.model_validate({"kind": "folder", "path": path, **changed})
    return FolderSource(spec, base, access or SourceAccess(), base / "scratch")


def names(source: FolderSource) -> list[str]:
    """Scans, and returns the names of the items."""
    return [one.name for one in source.scan() if isinstance(one, ItemRef)]


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        (["**/*"], [], ["a.md", "sub/b.md", "sub/d.txt", "sub/deep/c.md"]),
        (["*"], [], ["a.md"]),
        (["**/*.md"], ["**/deep"], ["a.md", "sub/b.md"]),
        (["sub/"], ["**/*.txt"], ["sub/b.md", "sub/deep/c.md"]),
        (["**/deep/**"], [], ["sub/deep/c.md"]),
        (["sub/?.*", "nothing"], ["sub/[!b].md"], ["sub/b.md", "sub/d.txt"]),
    ],
)
def test_globs_choose_what_is_read(
    docs: Path, tmp_path: Path, include: list[str], exclude: list[str], expected: list[str]
) -> None:
    """`**` stands for any number of folders, what is excluded takes all below it along, hidden files never come."""
    assert names(folder(tmp_path, include=include, exclude=exclude)) == expected


def test_glob_that_tries_to_be_slow_is_not() -> None:
    """Whoever writes it, it takes a step for each part at most."""
    slow = Selection(["**/" * 50 + "x", "*a" * 50 + "b"])
    assert not slow.reads("/".join("y" * 500))
    assert not slow.reads("a" * 10_000)


def test_one_file_is_a_source(docs: Path, tmp_path: Path) -> None:
    """Its name is that of the file."""
    assert docs.is_dir()
    assert names(folder(tmp_path, "docs/sub/b.md")) == ["b.md"]


def test_modified_tells_by_size_and_time(docs: Path, tmp_path: Path) -> None:
    """Without reading: the same size and time is the same to it."""
    source = folder(tmp_path, detect="modified", include=["a.md"])
    [before] = source.scan()
    status = (docs / "a.md").stat()
    (docs / "a.md").write_text("A.MD", encoding="utf-8")
    os.utime(docs / "a.md", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert list(source.scan()) == [before]
    os.utime(docs / "a.md", ns=(0, 0))
    assert list(source.scan()) != [before]


def test_names_that_are_no_utf_8_are_shown_by_their_bytes(docs: Path, tmp_path: Path) -> None:
    """And are read like others, as are names with signs that URIs use."""
    Path(os.fsdecode(os.fsencode(docs) + b"/caf\xe9.txt")).write_text("three", encoding="utf-8")
    (docs / "x #1?%41.txt").write_text("four", encoding="utf-8")
    source = folder(tmp_path, include=["*.txt"])
    texts = {}
    for ref in source.scan():
        assert isinstance(ref, ItemRef)
        assert "#" not in ref.uri
        with source.open(ref) as file:
            texts[ref.name] = file.path.read_text(encoding="utf-8")
    assert texts == {"caf%E9.txt": "three", "x #1?%41.txt": "four"}


def test_what_is_no_file_has_its_reason(docs: Path, tmp_path: Path) -> None:
    """Links to files are read; links to folders, pipes and links that lead nowhere are named."""
    (docs / "link.md").symlink_to("sub/b.md")
    (docs / "folder").symlink_to("sub")
    (docs / "nowhere.md").symlink_to("gone.md")
    os.mkfifo(docs / "pipe.md")
    found = list(folder(tmp_path, include=["*"]).scan())
    assert [one.name for one in found if isinstance(one, ItemRef)] == ["a.md", "link.md"]
    assert [one.path for one in found if isinstance(one, SkippedFile)] == ["folder", "pipe.md"]
    assert [one.path for one in found if isinstance(one, ParseFailure)] == ["nowhere.md"]


def test_folder_that_cannot_be_listed_covers_what_is_below(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its failure ends with a slash, so that nothing below it is taken for deleted; the root is no such failure."""
    system = os.scandir

    def refusing(path: str | Path) -> Iterator[os.DirEntry[str]]:
        if Path(path).name in closed:
            raise PermissionError(13, "Permission denied", str(path))
        return system(path)

    monkeypatch.setattr("indexers.sources.folder.os.scandir", refusing)
    closed = {"sub"}
    [failure] = [one for one in folder(tmp_path).scan() if isinstance(one, ParseFailure)]
    assert (failure.path, failure.source_uri) == ("sub/", f"{(docs / 'sub').as_uri()}/")
    closed = {"docs"}
    with pytest.raises(SourceUnavailable):
        names(folder(tmp_path))


def test_root_that_goes_away_while_it_is_scanned_is_unavailable(docs: Path, tmp_path: Path) -> None:
    """As a network drive does: what was not listed by then is not deleted."""
    scan = folder(tmp_path).scan()
    next(scan)
    docs.rename(tmp_path / "elsewhere")
    with pytest.raises(SourceUnavailable):
        list(scan)


def test_links_do_not_lead_out_of_bounds(docs: Path, tmp_path: Path) -> None:
    """Neither when they are listed nor when one comes between listing and reading; what is read is a copy."""
    (tmp_path / "secret.md").write_text("secret", encoding="utf-8")
    (docs / "link.md").symlink_to(tmp_path / "secret.md")
    source = folder(tmp_path, "docs", SourceAccess((docs,)), include=["*.md"])
    found = list(source.scan())
    assert [one.path for one in found if isinstance(one, ParseFailure)] == ["link.md"]
    [ref] = [one for one in found if isinstance(one, ItemRef)]
    with source.open(ref) as file:
        assert not file.path.is_relative_to(docs)
        assert file.path.read_text(encoding="utf-8") == "a.md"
    (docs / "a.md").unlink()
    (docs / "a.md").symlink_to(tmp_path / "secret.md")
    with pytest.raises(ItemUnreadable), source.open(ref):
        pass
    outside = ItemRef((tmp_path / "secret.md").as_uri(), "secret.md", "")
    with pytest.raises(ItemUnreadable), source.open(outside):
        pass
    up = ItemRef(f"{docs.as_uri()}/../secret.md", "secret.md", "")
    with pytest.raises(ItemUnreadable), source.open(up):
        pass


def test_item_of_a_root_that_is_gone_is_not_gone_itself(docs: Path, tmp_path: Path) -> None:
    """A drive that is not mounted now says nothing of its files."""
    source = folder(tmp_path)
    ref = next(one for one in source.scan() if isinstance(one, ItemRef))
    docs.rename(tmp_path / "elsewhere")
    with pytest.raises(SourceUnavailable), source.open(ref):
        pass
    docs.mkdir()
    with pytest.raises(ItemGone), source.open(ref):
        pass


@pytest.mark.parametrize("change", ["write", "new", "delete", "move_in", "move_out"])
def test_change_ends_the_waiting_once(docs: Path, tmp_path: Path, change: str) -> None:
    """Also that of a whole folder; what is told is not told again, and nothing that is left out is told."""
    (tmp_path / "other" / "deep").mkdir(parents=True)
    (tmp_path / "other" / "deep" / "z.md").write_text("z", encoding="utf-8")
    source = folder(tmp_path, include=["**/*.md"], exclude=["sub/d*.md"])
    changes: dict[str, Callable[[], object]] = {
        "write": lambda: (docs / "a.md").write_text("changed", encoding="utf-8"),
        "new": (docs / "new.md").touch,
        "delete": (docs / "sub" / "b.md").unlink,
        "move_in": lambda: (tmp_path / "other").rename(docs / "other"),
        "move_out": lambda: (docs / "sub").rename(tmp_path / "sub"),
    }
    try:
        assert not source.wait(0.0)
        (docs / ".git" / "e.md").write_text("changed", encoding="utf-8")
        (docs / "sub" / "d.md").touch()
        (docs / "sub" / "d.txt").touch()
        assert not source.wait(0.0)
        done = threading.Thread(target=changes[change])
        done.start()
        assert source.wait(WAIT_S)
        done.join()
        while source.wait(0.0):
            continue
        assert not source.wait(0.1)
    finally:
        source.close()


def test_change_after_a_scan_is_told_by_the_first_wait(docs: Path, tmp_path: Path) -> None:
    """Nobody listened then, but files have times."""
    source = folder(tmp_path)
    try:
        names(source)
        (docs / "sub" / "b.md").unlink()
        assert source.wait(0.0)
        names(source)
        assert not source.wait(0.0)
    finally:
        source.close()


def test_looking_around_finds_what_no_notice_tells(docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Network drives give none, and the system may have none left."""

    def refused(*_: object, **__: object) -> Iterator[object]:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr("indexers.sources.watching.watch", refused)
    watching = FolderWatch(docs, Selection(["**/*"]), look_around_s=0.01)
    assert not watching.wait(0.0)
    (docs / "a.md").write_text("changed", encoding="utf-8")
    assert watching.wait(WAIT_S)
    watching.close()


def test_one_file_is_watched_through_its_replacement(docs: Path, tmp_path: Path) -> None:
    """Editors put a new file in its place."""
    source = folder(tmp_path, "docs/a.md")
    try:
        assert not source.wait(0.0)
        (docs / "a.md.new").write_text("changed", encoding="utf-8")
        (docs / "a.md.new").replace(docs / "a.md")
        assert source.wait(WAIT_S)
    finally:
        source.close()
