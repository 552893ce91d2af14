"""Repositories as a source: over HTTP and on this machine, bounded, and without a trace of the password."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from indexers.errors import ItemGone, ItemUnreadable, SourceUnavailable
from indexers.parsing.parsed import SkippedFile
from indexers.sources.access import SourceAccess
from indexers.sources.open import open_source
from indexers.sources.source import ItemRef, Source
from indexers.sources.spec import GitSource as GitSpec
from tests.fakes.git_server import GitServer, Repository, serving_git

OPEN: list[Source] = []


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    """Closes the sources that a test has opened."""
    yield
    while OPEN:
        OPEN.pop().close()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Is a repository with two files."""
    return Repository.made(tmp_path / "served" / "wiki", {"a.md": "one", "sub/b #1.md": "two"})


@pytest.fixture
def server(tmp_path: Path, repository: Repository) -> Iterator[GitServer]:
    """Serves the repository."""
    assert repository.path.is_dir()
    with serving_git(GitServer(tmp_path / "served")) as up:
        yield up


def git(folder: Path, url: str, access: SourceAccess | None = None, **changed: object) -> Source:
    """Opens a repository as a source."""
    spec = GitSpec.model_validate({"kind": "git", "url": url, "allow_private": True, **changed})
    OPEN.append(open_source(spec, folder, access or SourceAccess(), folder / "scratch"))
    return OPEN[-1]


def items(source: Source) -> dict[str, ItemRef]:
    """Scans, and returns the items by name."""
    return {one.name: one for one in source.scan() if isinstance(one, ItemRef)}


def text_of(source: Source, ref: ItemRef) -> str:
    """Reads an item."""
    with source.open(ref) as file:
        return file.path.read_text(encoding="utf-8")


def test_repository_over_http_is_fetched_and_followed(
    tmp_path: Path, server: GitServer, repository: Repository
) -> None:
    """The default branch is read; what is committed later comes with the next scan, the rest stays as it was."""
    source = git(tmp_path, server.url("wiki"))
    found = items(source)
    assert {name: text_of(source, ref) for name, ref in found.items()} == {"a.md": "one", "sub/b #1.md": "two"}
    assert found["sub/b #1.md"].uri == f"git+{server.url('wiki')}@HEAD/sub/b%20%231.md"
    assert found["a.md"].size_bytes == 3
    repository.write({"a.md": "changed"})
    again = items(source)
    assert [again[name] == found[name] for name in found] == [False, True]
    assert text_of(source, again["a.md"]) == "changed"


def test_branch_tag_and_commit_are_read(tmp_path: Path, server: GitServer, repository: Repository) -> None:
    """Each as it is now; a commit also when the server has moved on."""
    first = repository.git("rev-parse", "HEAD")
    repository.git("tag", "v1")
    repository.write({"a.md": "newer"})
    for ref, text in (("v1", "one"), (first, "one"), (first[:10], "one"), ("main", "newer")):
        source = git(tmp_path / ref, server.url("wiki"), ref=ref)
        assert text_of(source, items(source)["a.md"]) == text


def test_reference_that_is_not_there_is_unavailable(tmp_path: Path, server: GitServer, repository: Repository) -> None:
    """Over HTTP and on this machine: a branch that was renamed deletes nothing."""
    for url in (server.url("wiki"), str(repository.path)):
        with pytest.raises(SourceUnavailable):
            items(git(tmp_path, url, ref="gone"))
    with pytest.raises(ItemUnreadable):
        git(tmp_path, server.url("wiki"), ref="--upload-pack=touch")


def test_password_goes_to_the_server_and_nowhere_else(
    tmp_path: Path, server: GitServer, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It opens the repository, and is in no ref, no reason and no file."""
    server.login = "reader:hush-hush"
    monkeypatch.setenv("WIKI_TOKEN", "hush-hush")
    credentials = {"username": "reader", "password_ref": "env:WIKI_TOKEN"}
    source = git(tmp_path, server.url("wiki"), None, **credentials)
    found = items(source)
    assert text_of(source, found["a.md"]) == "one"
    server.login = "reader:changed"
    with pytest.raises(SourceUnavailable) as refused:
        items(source)
    assert "hush" not in repr([found, source]) + str(refused.value)
    kept = [path.read_bytes() for path in (tmp_path / "scratch").rglob("*") if path.is_file()]
    assert kept
    assert not any(b"hush" in content or b"aHVza" in content for content in kept)


def test_redirect_is_not_followed(tmp_path: Path, server: GitServer, repository: Repository) -> None:
    """It could lead to an address that was not checked."""
    with serving_git(GitServer(tmp_path / "served", redirect=server.url("")[:-1])) as first:
        with pytest.raises(SourceUnavailable):
            items(git(tmp_path, first.url("wiki")))
        assert server.asked == []


def test_private_address_is_refused_unless_it_may_be_read(tmp_path: Path, server: GitServer) -> None:
    """Before anything is asked there."""
    for access in (SourceAccess(), SourceAccess((tmp_path,), frozenset(), private_addresses=False)):
        with pytest.raises(ItemUnreadable, match="private"):
            items(git(tmp_path, server.url("wiki"), access, allow_private=access.private_addresses is False))
    assert server.asked == []


@pytest.mark.parametrize(
    "url",
    [
        "https://me:hush@git.example/wiki",
        "ssh://git@git.example/wiki",
        "git@git.example:wiki",
        "ext::sh -c touch% /tmp/x",
        "git://git.example/wiki",
        "ftp://git.example/wiki",
    ],
)
def test_submitted_job_reads_by_https_alone(tmp_path: Path, url: str) -> None:
    """SSH would use the server's keys, other schemes programs or addresses that nobody checks."""
    with pytest.raises(ItemUnreadable) as refused:
        git(tmp_path, url, SourceAccess((tmp_path,), frozenset()))
    assert "hush" not in str(refused.value)


def test_links_submodules_and_hidden_files_are_left_out(tmp_path: Path, repository: Repository) -> None:
    """The first two by name, hidden ones silently."""
    (repository.path / "link.md").symlink_to("a.md")
    (repository.path / ".hidden.md").write_text("no", encoding="utf-8")
    repository.git("update-index", "--add", "--cacheinfo", "160000", repository.git("rev-parse", "HEAD"), "module")
    repository.git("add", "link.md", ".hidden.md")
    repository.git("commit", "--quiet", "--message", "more")
    found = list(git(tmp_path, str(repository.path)).scan())
    skipped = {one.path: one.reason for one in found if isinstance(one, SkippedFile)}
    assert skipped == {"link.md": "is a link", "module": "is a submodule"}
    assert [one.name for one in found if isinstance(one, ItemRef)] == ["a.md", "sub/b #1.md"]


def test_file_kept_by_lfs_and_one_that_is_gone_have_their_reasons(tmp_path: Path, repository: Repository) -> None:
    """Neither gives a pointer's text as a document."""
    repository.write({"big.md": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"})
    source = git(tmp_path, str(repository.path))
    found = items(source)
    with pytest.raises(ItemUnreadable, match="LFS"):
        text_of(source, found["big.md"])
    with pytest.raises(ItemGone):
        text_of(source, ItemRef(found["a.md"].uri, "a.md", "blob:" + "0" * 40))
    assert text_of(source, found["a.md"]) == "one"


def test_names_that_are_no_utf_8_are_shown_by_their_bytes(tmp_path: Path, repository: Repository) -> None:
    """And are read like others."""
    Path(os.fsdecode(os.fsencode(repository.path) + b"/caf\xe9.md")).write_text("three", encoding="utf-8")
    repository.commit()
    source = git(tmp_path, str(repository.path))
    assert text_of(source, items(source)["caf%E9.md"]) == "three"


def test_copy_that_was_left_locked_is_made_anew(tmp_path: Path, server: GitServer, repository: Repository) -> None:
    """A fetch that was killed leaves a lock, which nobody else would remove."""
    assert items(git(tmp_path, server.url("wiki")))
    (tmp_path / "scratch" / "repository.git" / "shallow.lock").touch()
    repository.write({"a.md": "newer"})
    source = git(tmp_path, server.url("wiki"))
    assert text_of(source, items(source)["a.md"]) == "newer"


def test_item_is_read_by_a_source_that_has_not_scanned(tmp_path: Path, server: GitServer) -> None:
    """Workers that help with a run only open."""
    ref = items(git(tmp_path / "leads", server.url("wiki")))["a.md"]
    assert text_of(git(tmp_path / "helps", server.url("wiki")), ref) == "one"


def test_local_repository_of_a_submitted_job_borrows_nothing(tmp_path: Path, repository: Repository) -> None:
    """Neither objects of a repository out of bounds nor links may lead there."""
    inside = tmp_path / "theirs"
    access = SourceAccess((inside,), frozenset())
    Repository.made(inside / "own", {"x.md": "theirs"})
    assert list(items(git(tmp_path, str(inside / "own"), access))) == ["x.md"]
    with pytest.raises(ItemUnreadable):
        git(tmp_path, str(repository.path), access)
    alternates = inside / "own" / ".git" / "objects" / "info" / "alternates"
    alternates.write_text(f"{repository.path}/.git/objects\n", encoding="utf-8")
    with pytest.raises(ItemUnreadable, match="borrows"):
        items(git(tmp_path, str(inside / "own"), access))
    alternates.unlink()
    (inside / "own" / ".git" / "refs" / "heads" / "link").symlink_to(repository.path / ".git" / "HEAD")
    with pytest.raises(ItemUnreadable, match="links"):
        items(git(tmp_path, str(inside / "own"), access))
    (inside / "linked").mkdir()
    (inside / "linked" / ".git").write_text(f"gitdir: {repository.path}/.git\n", encoding="utf-8")
    with pytest.raises(ItemUnreadable, match="outside"):
        items(git(tmp_path, str(inside / "linked"), access))


def test_repository_runs_nothing_of_its_own(tmp_path: Path, repository: Repository) -> None:
    """Programs that its configuration names are never started, also not to fetch what is missing."""
    mark = tmp_path / "ran"
    for key in ("core.fsmonitor", "core.sshCommand", "remote.origin.uploadpack", "core.pager", "diff.external"):
        repository.git("config", key, f"touch {mark};")
    repository.git("config", "remote.origin.url", f"ext::touch {mark}")
    repository.git("config", "remote.origin.promisor", "true")
    repository.git("config", "extensions.partialClone", "origin")
    source = git(tmp_path, str(repository.path))
    found = items(source)
    [missing] = (repository.path / ".git" / "objects" / found["a.md"].fingerprint[5:7]).iterdir()
    missing.unlink()
    with pytest.raises((ItemGone, SourceUnavailable)):
        text_of(git(tmp_path, str(repository.path)), found["a.md"])
    assert not mark.exists()
