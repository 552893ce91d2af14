"""Files of SFTP servers, object stores and web servers: what is out of reach is never taken for deleted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from indexers.errors import ItemGone, ItemUnreadable, SourceUnavailable
from indexers.parsing.parsed import ParseFailure, SkippedFile
from indexers.sources.access import SourceAccess
from indexers.sources.open import open_source
from indexers.sources.source import ItemRef, Scanned, Source
from indexers.sources.spec import FilesSource as FilesSpec
from tests.fakes.sftp_server import PASSWORD, SftpPlace, serving_sftp
from tests.fakes.site_server import Page, SiteServer, serving

SUBMITTED = frozenset({"env:NONE"})


@pytest.fixture
def sftp(tmp_path: Path) -> Iterator[SftpPlace]:
    """Serves a folder with a file and a folder with another one."""
    root = tmp_path / "served"
    (root / "docs" / "sub").mkdir(parents=True)
    (root / "docs" / "a.txt").write_text("one", encoding="utf-8")
    (root / "docs" / "sub" / "b#1.txt").write_text("two", encoding="utf-8")
    with serving_sftp(root) as place:
        (tmp_path / "hosts").write_text(place.known_hosts, encoding="utf-8")
        (tmp_path / "password").write_text(PASSWORD, encoding="utf-8")
        yield place


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


def over_sftp(folder: Path, place: SftpPlace, path: str = "/docs", **changed: object) -> Source:
    """Opens the served folder with the right password and host key."""
    credentials = {"username": "me", "password_ref": f"file:{folder / 'password'}", "known_hosts_file": "hosts"}
    return files(folder, f"sftp://127.0.0.1:{place.port}{path}", None, **{**credentials, **changed})


def items(found: list[Scanned]) -> dict[str, ItemRef]:
    """Returns the items by name."""
    return {one.name: one for one in found if isinstance(one, ItemRef)}


def text_of(source: Source, ref: ItemRef) -> str:
    """Reads an item."""
    with source.open(ref) as file:
        return file.path.read_text(encoding="utf-8")


def test_sftp_lists_and_reads(tmp_path: Path, sftp: SftpPlace) -> None:
    """Files come with their path, also below folders, and change their fingerprint with what is in them."""
    source = over_sftp(tmp_path, sftp)
    found = items(list(source.scan()))
    assert list(found) == ["a.txt", "sub/b#1.txt"]
    assert found["sub/b#1.txt"].uri == f"sftp://127.0.0.1:{sftp.port}/docs/sub/b%231.txt"
    assert [text_of(source, ref) for ref in found.values()] == ["one", "two"]
    (sftp.root / "docs" / "a.txt").write_text("longer", encoding="utf-8")
    again = items(list(source.scan()))
    assert [again[name].fingerprint == found[name].fingerprint for name in found] == [False, True]
    assert PASSWORD not in repr([found, source])


def test_sftp_folder_that_may_not_be_listed_keeps_what_is_below(tmp_path: Path, sftp: SftpPlace) -> None:
    """The failure names the folder with a slash at its end, which covers all documents of it."""
    sftp.closed.add(b"/docs/sub")
    found = list(over_sftp(tmp_path, sftp).scan())
    assert list(items(found)) == ["a.txt"]
    [failure] = [one for one in found if isinstance(one, ParseFailure)]
    assert failure.source_uri == f"sftp://127.0.0.1:{sftp.port}/docs/sub/"


def test_sftp_start_that_may_not_be_listed_is_unavailable(tmp_path: Path, sftp: SftpPlace) -> None:
    """Nothing is known of the source as a whole."""
    sftp.closed.add(b"/docs")
    with pytest.raises(SourceUnavailable):
        list(over_sftp(tmp_path, sftp).scan())


def test_sftp_reads_one_file_or_a_glob(tmp_path: Path, sftp: SftpPlace) -> None:
    """A URL may name a file, or files by a pattern."""
    assert list(items(list(over_sftp(tmp_path, sftp, "/docs/a.txt").scan()))) == ["a.txt"]
    assert list(items(list(over_sftp(tmp_path, sftp, "/docs/*/b*.txt").scan()))) == ["sub/b#1.txt"]
    assert list(items(list(over_sftp(tmp_path, sftp, exclude=["sub"]).scan()))) == ["a.txt"]


def test_sftp_takes_names_that_are_no_utf_8_and_leaves_links(tmp_path: Path, sftp: SftpPlace) -> None:
    """Such a name is shown with its bytes as percent signs; a link is named and not followed."""
    Path(os.fsdecode(os.fsencode(sftp.root / "docs") + b"/caf\xe9.txt")).write_text("three", encoding="utf-8")
    (sftp.root / "docs" / "link.txt").symlink_to("a.txt")
    source = over_sftp(tmp_path, sftp)
    found = list(source.scan())
    assert text_of(source, items(found)["caf%E9.txt"]) == "three"
    assert [one.path for one in found if isinstance(one, SkippedFile)] == ["link.txt"]


def test_sftp_item_that_vanished_is_gone(tmp_path: Path, sftp: SftpPlace) -> None:
    """It was listed, and then deleted."""
    source = over_sftp(tmp_path, sftp)
    ref = items(list(source.scan()))["a.txt"]
    (sftp.root / "docs" / "a.txt").unlink()
    with pytest.raises(ItemGone):
        text_of(source, ref)


def test_sftp_server_with_another_host_key_is_not_talked_to(tmp_path: Path, sftp: SftpPlace) -> None:
    """An unknown host key ends the scan, before the password is sent."""
    (tmp_path / "hosts").write_text("", encoding="utf-8")
    with pytest.raises(SourceUnavailable, match="Host key is not trusted"):
        list(over_sftp(tmp_path, sftp).scan())


def test_sftp_password_that_is_wrong_is_not_shown(tmp_path: Path, sftp: SftpPlace) -> None:
    """The reason says that the credentials are refused, not what they are."""
    (tmp_path / "password").write_text("mistaken", encoding="utf-8")
    with pytest.raises(SourceUnavailable, match="credentials") as refused:
        list(over_sftp(tmp_path, sftp).scan())
    assert "mistaken" not in str(refused.value)


def test_sftp_needs_host_keys(tmp_path: Path, sftp: SftpPlace) -> None:
    """Without a file of them nothing is connected to."""
    with pytest.raises(ItemUnreadable, match="host key"):
        over_sftp(tmp_path, sftp, known_hosts_file="nowhere")


def test_sftp_host_of_a_private_network_is_refused(tmp_path: Path, sftp: SftpPlace) -> None:
    """Unless the job asks for it and may."""
    with pytest.raises(ItemUnreadable, match="private"):
        over_sftp(tmp_path, sftp, allow_private=False)


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
