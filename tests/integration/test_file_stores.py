"""Files of object stores, web servers and local URLs: what is out of reach is never taken for deleted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from indexers.errors import ItemGone, ItemUnreadable, SourceUnavailable
from indexers.sources.access import SourceAccess
from indexers.sources.open import open_source
from indexers.sources.source import ItemRef, Scanned, Source
from indexers.sources.spec import FilesSource as FilesSpec
from tests.fakes.site_server import Page, SiteServer, serving

SUBMITTED = frozenset({"env:NONE"})


OPEN: list[Source] = []


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    """Closes the sources that a test has opened."""
    yield
    while OPEN:
        OPEN.pop().close()


def files(folder: Path, url: str, access: SourceAccess | None = None, **changed: object) -> Source:
    """Opens a source of files."""
    spec = FilesSpec.model_validate({"kind": "files", "url": url, "allow_private": True, **changed})
    OPEN.append(open_source(spec, folder, access or SourceAccess(), folder / "scratch"))
    return OPEN[-1]


def items(found: list[Scanned]) -> dict[str, ItemRef]:
    """Returns the items by name."""
    return {one.name: one for one in found if isinstance(one, ItemRef)}


def text_of(source: Source, ref: ItemRef) -> str:
    """Reads an item."""
    with source.open(ref) as file:
        return file.path.read_text(encoding="utf-8")


@pytest.mark.parametrize("url", ["s3://docs/in", "gs://docs/in", "az://docs/in"])
def test_submitted_job_never_uses_credentials_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """Whatever the environment holds, a job that was submitted must refer to credentials of its own."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "the-servers")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    with pytest.raises(ItemUnreadable, match="server's own"):
        files(tmp_path, url, SourceAccess((tmp_path,), SUBMITTED))


def test_object_store_out_of_reach_is_unavailable(tmp_path: Path) -> None:
    """A connection that is refused is no empty bucket, and the reason shows no secret."""
    (tmp_path / "secret").write_text("hush", encoding="utf-8")
    source = files(
        tmp_path,
        "s3://docs/in",
        username="id",
        password_ref=f"file:{tmp_path / 'secret'}",
        endpoint_url="http://127.0.0.1:1",
        region="us-east-1",
    )
    with pytest.raises(SourceUnavailable, match="Could not connect") as failed:
        list(source.scan())
    assert "hush" not in str(failed.value)


@pytest.mark.parametrize(
    "url", ["https://me:hush@files.example/a.md", "sftp://me:hush@files.example/a", "s3://id:hush@docs/in"]
)
def test_credentials_in_a_url_are_refused_and_not_repeated(tmp_path: Path, url: str) -> None:
    """They belong behind a reference."""
    with pytest.raises(ItemUnreadable, match="holds credentials") as refused:
        files(tmp_path, url)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize("url", ["zip://a.md::file:///etc/passwd", "ftp://files.example/a", "reference://x"])
def test_chained_and_other_schemes_are_refused(tmp_path: Path, url: str) -> None:
    """They could reach files of this machine, or addresses that are not checked."""
    with pytest.raises(ItemUnreadable):
        files(tmp_path, url)


def test_local_url_is_a_folder(tmp_path: Path) -> None:
    """It is read as the folder it is, with a glob or without."""
    (tmp_path / "my docs").mkdir()
    (tmp_path / "my docs" / "a.md").write_text("one", encoding="utf-8")
    (tmp_path / "my docs" / "b.txt").write_text("two", encoding="utf-8")
    assert list(items(list(files(tmp_path, f"file://{tmp_path}/my%20docs").scan()))) == ["a.md", "b.txt"]
    assert list(items(list(files(tmp_path, f"file://{tmp_path}/my docs/*.md").scan()))) == ["a.md"]
    with pytest.raises(ItemUnreadable, match="beside a glob"):
        files(tmp_path, f"file://{tmp_path}/*.md", include=["*.txt"])


def test_web_file_is_read_and_its_outages_are_none_of_its_deletion(tmp_path: Path) -> None:
    """Its fingerprint is that of its content; any other answer than 200 says nothing of the file while scanning."""
    site = SiteServer({"/a.txt?token=hush": Page(b"one")})
    with serving(site):
        source = files(tmp_path, f"{site.url}/a.txt?token=hush")
        [ref] = items(list(source.scan())).values()
        assert (ref.name, ref.uri, text_of(source, ref)) == ("a.txt", f"{site.url}/a.txt", "one")
        site.pages["/a.txt?token=hush"] = Page(b"two")
        [changed] = items(list(source.scan())).values()
        assert changed.fingerprint != ref.fingerprint
        site.pages["/a.txt?token=hush"] = Page(b"", status=503)
        with pytest.raises(SourceUnavailable) as failed:
            list(source.scan())
        assert "hush" not in str(failed.value)
        del site.pages["/a.txt?token=hush"]
        with pytest.raises(SourceUnavailable):
            list(source.scan())
        with pytest.raises(ItemGone):
            text_of(source, ref)
