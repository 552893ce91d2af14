"""What every source promises: the same refs for the same content, the bytes, and never an empty scan for an outage."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from indexers.errors import ItemGone, ItemUnreadable, SourceUnavailable
from indexers.sources.access import SourceAccess
from indexers.sources.open import open_source
from indexers.sources.source import ItemRef, Source
from indexers.sources.spec import SourceSpec
from tests.fakes.git_server import Repository
from tests.fakes.sftp_server import PASSWORD, serving_sftp
from tests.fakes.site_server import Page, SiteServer, serving

_SPEC: TypeAdapter[SourceSpec] = TypeAdapter(SourceSpec)


def opened(folder: Path, access: SourceAccess | None = None, **spec: object) -> Source:
    """Opens a source as a job names it."""
    return open_source(_SPEC.validate_python(spec), folder, access or SourceAccess(), folder / "scratch")


def refs(source: Source) -> dict[str, ItemRef]:
    """Scans and returns the items by name."""
    return {one.name: one for one in source.scan() if isinstance(one, ItemRef)}


@dataclass
class Place:
    """A source with two documents, and ways to change what is there."""

    source: Source
    change: Callable[[], None]  # the second one says something else
    vanish: Callable[[], None]  # the second one is gone


@pytest.fixture(params=["folder", "memory", "git", "sql", "s3", "sftp", "site"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Is each kind of source in turn."""
    made = globals()[f"_{request.param}"](tmp_path)
    place = next(made)
    yield place
    place.source.close()
    next(made, None)


def _folder(folder: Path) -> Iterator[Place]:
    docs = folder / "docs"
    docs.mkdir()
    (docs / "a.txt").write_text("one", encoding="utf-8")
    (docs / "b.txt").write_text("two", encoding="utf-8")
    second = docs / "b.txt"
    yield Place(opened(folder, kind="folder", path="docs"), lambda: _write(second, "changed"), second.unlink)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _memory(folder: Path) -> Iterator[Place]:
    import fsspec

    files = fsspec.filesystem("memory")
    files.pipe({"/docs/a.txt": b"one", "/docs/b.txt": b"two"})
    source = opened(folder, kind="files", url="memory://docs", allow_private=True)
    yield Place(source, lambda: files.pipe({"/docs/b.txt": b"changed"}), lambda: files.rm("/docs/b.txt"))
    files.rm("/docs", recursive=True)


def _sftp(folder: Path) -> Iterator[Place]:
    docs = folder / "served" / "docs"
    docs.mkdir(parents=True)
    (docs / "a.txt").write_text("one", encoding="utf-8")
    (docs / "b.txt").write_text("two", encoding="utf-8")
    second = docs / "b.txt"
    with serving_sftp(docs.parent) as server:
        (folder / "hosts").write_text(server.known_hosts, encoding="utf-8")
        (folder / "secret").write_text(PASSWORD, encoding="utf-8")
        source = opened(
            folder,
            kind="files",
            url=f"sftp://127.0.0.1:{server.port}/docs",
            username="me",
            password_ref=f"file:{folder / 'secret'}",
            known_hosts_file="hosts",
            allow_private=True,
        )
        yield Place(source, lambda: _write(second, "changed"), second.unlink)


def _git(folder: Path) -> Iterator[Place]:
    repository = Repository.made(folder / "repo", {"a.txt": "one", "b.txt": "two"})

    def vanish() -> None:
        (repository.path / "b.txt").unlink()
        repository.commit()

    source = opened(folder, kind="git", url="repo")
    yield Place(source, lambda: _changed(repository), vanish)


def _changed(repository: Repository) -> None:
    repository.write({"b.txt": "changed"})


def _sql(folder: Path) -> Iterator[Place]:
    database = folder / "pages.sqlite"

    def run(*statements: str) -> None:
        with closing(sqlite3.connect(database)) as connection, connection:
            for statement in statements:
                connection.execute(statement)

    run("CREATE TABLE pages (id TEXT, text TEXT)", "INSERT INTO pages VALUES ('a', 'one'), ('b', 'two')")
    source = opened(
        folder, kind="sql", url=f"sqlite:///{database.name}", query="SELECT id, text FROM pages", rows_per_read=1
    )
    yield Place(
        source,
        lambda: run("UPDATE pages SET text = 'changed' WHERE id = 'b'"),
        lambda: run("DELETE FROM pages WHERE id = 'b'"),
    )


def _s3(folder: Path) -> Iterator[Place]:
    import boto3  # type: ignore[import-untyped]
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    keys = {"aws_access_key_id": "id", "aws_secret_access_key": "hush", "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=endpoint, **keys)
    client.create_bucket(Bucket="docs")
    for name, text in (("a.txt", b"one"), ("b.txt", b"two")):
        client.put_object(Bucket="docs", Key=f"in/{name}", Body=text)
    (folder / "secret").write_text("hush\n", encoding="utf-8")
    source = opened(
        folder,
        kind="files",
        url="s3://docs/in",
        username="id",
        password_ref=f"file:{folder / 'secret'}",
        endpoint_url=endpoint,
        region="us-east-1",
        allow_private=True,
    )
    yield Place(
        source,
        lambda: client.put_object(Bucket="docs", Key="in/b.txt", Body=b"changed"),
        lambda: client.delete_object(Bucket="docs", Key="in/b.txt"),
    )
    server.stop()


def _site(folder: Path) -> Iterator[Place]:
    site = SiteServer({"/": Page(b"<a href=/a>a</a><a href=/b>b</a>"), "/a": Page(b"<p>one"), "/b": Page(b"<p>two")})
    with serving(site):
        source = opened(folder, kind="site", start=[f"{site.url}/"], allow_private=True, requests_per_second=1000.0)
        yield Place(source, lambda: site.pages.update({"/b": Page(b"<p>changed")}), lambda: _forget(site, "/b"))


def _forget(site: SiteServer, path: str) -> None:
    del site.pages[path]


def test_scan_gives_the_same_refs_for_the_same_content(place: Place) -> None:
    """Nothing has changed: every ref is the same, in the same order."""
    first = list(place.source.scan())
    assert list(place.source.scan()) == first
    assert len(first) >= 2


def test_fingerprint_tells_what_has_changed(place: Place) -> None:
    """Only what says something else has another fingerprint."""
    before = refs(place.source)
    place.change()
    after = refs(place.source)
    assert before.keys() == after.keys()
    assert sum(before[name].fingerprint != after[name].fingerprint for name in before) == 1


def test_open_gives_the_content(place: Place) -> None:
    """Each item is a local file while it is open."""
    texts = []
    for ref in refs(place.source).values():
        with place.source.open(ref) as file:
            assert (file.name, file.uri) == (ref.name, ref.uri)
            assert file.path.suffix == Path(ref.name).suffix
            texts.append(file.path.read_bytes())
    assert any(b"one" in text for text in texts)
    assert any(b"two" in text for text in texts)


def test_what_vanishes_is_no_longer_listed(place: Place) -> None:
    """A document that is gone at the source is gone from the scan."""
    before = refs(place.source)
    place.vanish()
    after = refs(place.source)
    assert len(after) == len(before) - 1
    assert place.source.complete


def test_no_secret_comes_out(place: Place) -> None:
    """What is shown, logged or stored of a source never holds a credential."""
    assert "hush" not in repr([*place.source.scan(), place.source])


@pytest.mark.parametrize(
    "spec",
    [
        {"kind": "folder", "path": "nowhere"},
        {"kind": "files", "url": "memory://nowhere"},
        {"kind": "git", "url": "nowhere"},
        {"kind": "sql", "url": "sqlite:///nowhere.sqlite", "query": "SELECT id, text FROM pages"},
        {"kind": "site", "start": ["http://127.0.0.1:1/"], "allow_private": True, "timeout_s": 2.0},
    ],
)
def test_source_out_of_reach_is_never_an_empty_scan(tmp_path: Path, spec: dict[str, object]) -> None:
    """Nothing is known of it, so nothing may be taken for deleted."""
    with pytest.raises(SourceUnavailable):
        list(opened(tmp_path, None, **spec).scan())


@pytest.mark.parametrize(
    "spec",
    [
        {"kind": "folder", "path": "/etc"},
        {"kind": "files", "url": "file:///etc"},
        {"kind": "git", "url": "/etc"},
        {"kind": "sql", "url": "sqlite:////etc/passwd", "query": "SELECT 1"},
        {"kind": "site", "start": ["http://127.0.0.1:1/"], "allow_private": True},
        {"kind": "site", "start": ["http://2130706433/"]},
        {"kind": "files", "url": "http://169.254.169.254/latest"},
        {"kind": "files", "url": "s3://docs", "endpoint_url": "http://127.0.0.1:1"},
    ],
)
def test_submitted_job_reads_nothing_out_of_bounds(tmp_path: Path, spec: dict[str, object]) -> None:
    """Files, addresses and stores of the server's own are refused, whatever the job asks for."""
    bounded = SourceAccess((tmp_path,), frozenset(), private_addresses=False)
    with pytest.raises(ItemUnreadable):
        list(opened(tmp_path, bounded, **spec).scan())


def test_item_that_vanished_after_the_scan_is_gone(tmp_path: Path) -> None:
    """What was listed and is no longer there is told apart from what cannot be read."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.txt").write_text("one", encoding="utf-8")
    source = opened(tmp_path, kind="folder", path="docs")
    [ref] = refs(source).values()
    (docs / "a.txt").unlink()
    with pytest.raises(ItemGone), source.open(ref):
        pass
