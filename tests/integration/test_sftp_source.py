"""Files over SFTP, from asyncssh's own server and from OpenSSH: what is out of reach is never taken for deleted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from indexers.errors import ItemGone, ItemUnreadable, SourceUnavailable
from indexers.jobs.state import DocumentState, RunState
from indexers.parsing.parsed import ParseFailure, SkippedFile
from indexers.sources.access import SourceAccess
from indexers.sources.open import open_source
from indexers.sources.source import ItemRef, Scanned, Source
from indexers.sources.spec import FilesSource as FilesSpec
from tests.fakes.job_rigs import rig_of
from tests.fakes.openssh_server import missing, serving_openssh, user
from tests.fakes.sftp_server import PASSWORD, SftpPlace, serving_sftp, user_key


def _served(folder: Path) -> tuple[Path, str]:
    """Makes a folder with a file and a folder with another one, a password, and a key of the user."""
    root = folder / "served"
    (root / "docs" / "sub" / "deep").mkdir(parents=True)
    (root / "docs" / "a.txt").write_text("one", encoding="utf-8")
    (root / "docs" / "sub" / "b#1.txt").write_text("two", encoding="utf-8")
    (root / "docs" / "sub" / "deep" / "c.txt").write_text("three", encoding="utf-8")
    (folder / "password").write_text(PASSWORD, encoding="utf-8")
    return root, user_key(folder / "key")


@pytest.fixture
def sftp(tmp_path: Path) -> Iterator[SftpPlace]:
    """Is asyncssh's server, whose folders can be closed and whose connections can be cut."""
    with serving_sftp(*_served(tmp_path)) as place:
        (tmp_path / "hosts").write_text(place.known_hosts, encoding="utf-8")
        yield place


@pytest.fixture(params=["asyncssh", "openssh"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SftpPlace]:
    """Is either server."""
    if request.param == "asyncssh":
        yield request.getfixturevalue("sftp")
        return
    if reason := missing():
        pytest.skip(reason)
    with serving_openssh(*_served(tmp_path), tmp_path) as found:
        (tmp_path / "hosts").write_text(found.known_hosts, encoding="utf-8")
        yield found


OPEN: list[Source] = []


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    """Closes the sources that a test has opened."""
    yield
    while OPEN:
        OPEN.pop().close()


def by_key(folder: Path, place: SftpPlace, path: str = "/docs", **changed: object) -> Source:
    """Opens the served folder with the user's key."""
    tree = {
        "kind": "files",
        "url": f"sftp://127.0.0.1:{place.port}{place.above}{path}",
        "username": user(),
        "key_file": "key",
        "known_hosts_file": "hosts",
        "allow_private": True,
        **changed,
    }
    OPEN.append(open_source(FilesSpec.model_validate(tree), folder, SourceAccess(), folder / "scratch"))
    return OPEN[-1]


def by_password(folder: Path, place: SftpPlace) -> Source:
    """Opens the served folder with a password."""
    return by_key(folder, place, key_file="", password_ref=f"file:{folder / 'password'}")


def items(found: list[Scanned]) -> dict[str, ItemRef]:
    """Returns the items by name."""
    return {one.name: one for one in found if isinstance(one, ItemRef)}


def text_of(source: Source, ref: ItemRef) -> str:
    """Reads an item."""
    with source.open(ref) as file:
        return file.path.read_text(encoding="utf-8")


def test_sftp_lists_and_reads(tmp_path: Path, place: SftpPlace) -> None:
    """Files come with their path, also below folders below folders, with a URI that names no user."""
    source = by_key(tmp_path, place)
    found = items(list(source.scan()))
    assert list(found) == ["a.txt", "sub/b#1.txt", "sub/deep/c.txt"]
    assert found["sub/b#1.txt"].uri == f"sftp://127.0.0.1:{place.port}{place.above}/docs/sub/b%231.txt"
    assert [text_of(source, ref) for ref in found.values()] == ["one", "two", "three"]


def test_sftp_reads_files_of_many_blocks(tmp_path: Path, place: SftpPlace) -> None:
    """A file that takes many requests comes whole."""
    content = os.urandom(3_000_001)
    (place.root / "docs" / "big.bin").write_bytes(content)
    source = by_key(tmp_path, place)
    ref = items(list(source.scan()))["big.bin"]
    with source.open(ref) as file:
        assert file.path.read_bytes() == content
    assert ref.size_bytes == len(content)


def test_sftp_tells_what_changed_and_what_is_gone(tmp_path: Path, place: SftpPlace) -> None:
    """A changed file has another fingerprint, a deleted one is not listed, and the others stay as they were."""
    source = by_key(tmp_path, place)
    before = items(list(source.scan()))
    (place.root / "docs" / "a.txt").write_text("longer", encoding="utf-8")
    (place.root / "docs" / "sub" / "b#1.txt").unlink()
    after = items(list(source.scan()))
    assert list(after) == ["a.txt", "sub/deep/c.txt"]
    assert [after[name].fingerprint == before[name].fingerprint for name in after] == [False, True]
    with pytest.raises(ItemGone):
        text_of(source, before["sub/b#1.txt"])


def test_sftp_reads_one_file_or_a_glob(tmp_path: Path, place: SftpPlace) -> None:
    """A URL may name a file, or files by a pattern; include and exclude hold below it."""
    assert list(items(list(by_key(tmp_path, place, "/docs/a.txt").scan()))) == ["a.txt"]
    assert list(items(list(by_key(tmp_path, place, "/docs/*/b*.txt").scan()))) == ["sub/b#1.txt"]
    assert list(items(list(by_key(tmp_path, place, include=["**/c.txt"]).scan()))) == ["sub/deep/c.txt"]
    assert list(items(list(by_key(tmp_path, place, exclude=["sub"]).scan()))) == ["a.txt"]


def test_sftp_takes_names_that_are_no_utf_8_and_leaves_links(tmp_path: Path, place: SftpPlace) -> None:
    """Such a name is shown with its bytes as percent signs; a link, also of a folder, is named and not followed."""
    Path(os.fsdecode(os.fsencode(place.root / "docs") + b"/caf\xe9.txt")).write_text("four", encoding="utf-8")
    (place.root / "docs" / "link.txt").symlink_to("a.txt")
    (place.root / "docs" / "sub" / "up").symlink_to("..")
    source = by_key(tmp_path, place)
    found = list(source.scan())
    assert list(items(found)) == ["a.txt", "caf%E9.txt", "sub/b#1.txt", "sub/deep/c.txt"]
    assert text_of(source, items(found)["caf%E9.txt"]) == "four"
    assert [one.path for one in found if isinstance(one, SkippedFile)] == ["link.txt", "sub/up"]


def test_sftp_of_a_path_with_nothing_there_is_unavailable(tmp_path: Path, place: SftpPlace) -> None:
    """A folder that was renamed or not mounted is no empty one."""
    with pytest.raises(SourceUnavailable, match="nothing at this address"):
        list(by_key(tmp_path, place, "/elsewhere").scan())


def test_sftp_server_with_another_host_key_is_not_talked_to(tmp_path: Path, place: SftpPlace) -> None:
    """An unknown host key ends the scan, before anything is sent, and the reason names the field."""
    other = user_key(tmp_path / "other")
    for hosts in ("", f"[127.0.0.1]:{place.port} {other}"):
        (tmp_path / "hosts").write_text(hosts, encoding="utf-8")
        with pytest.raises(SourceUnavailable, match=r"Host key is not trusted.*source\.known_hosts_file"):
            list(by_key(tmp_path, place).scan())


def test_sftp_key_that_is_wrong_is_refused(tmp_path: Path, place: SftpPlace) -> None:
    """The reason names the fields that hold the credentials."""
    user_key(tmp_path / "other")
    with pytest.raises(SourceUnavailable, match=r"refuses the credentials.*source\.key_file"):
        list(by_key(tmp_path, place, key_file="other").scan())


def test_sftp_server_that_dies_ends_the_scan(tmp_path: Path, place: SftpPlace) -> None:
    """What was listed before stands; the scan says that the rest is not known instead of coming to an end."""
    source = by_key(tmp_path, place)
    scan = iter(source.scan())
    first = next(scan)
    assert isinstance(first, ItemRef)
    place.stop()
    with pytest.raises(SourceUnavailable):
        list(scan)
    with pytest.raises(SourceUnavailable):
        text_of(source, first)


def test_sftp_needs_host_keys_and_the_key_that_it_names(tmp_path: Path, sftp: SftpPlace) -> None:
    """Without them nothing is connected to, and the error names the field."""
    for field in ("known_hosts_file", "key_file"):
        with pytest.raises(ItemUnreadable, match="is not there") as refused:
            by_key(tmp_path, sftp, **{field: "nowhere"})
        assert refused.value.name == f"source.{field}"


def test_sftp_host_of_a_private_network_is_refused(tmp_path: Path, sftp: SftpPlace) -> None:
    """Unless the job asks for it and may; a name is looked up before it is connected to."""
    with pytest.raises(ItemUnreadable, match="private"):
        by_key(tmp_path, sftp, allow_private=False)
    source = by_key(tmp_path, sftp, url=f"sftp://localhost:{sftp.port}/docs", allow_private=False)
    with pytest.raises(ItemUnreadable, match="private"):
        list(source.scan())


def test_sftp_takes_a_password(tmp_path: Path, sftp: SftpPlace) -> None:
    """A server may want one instead of a key; it is shown nowhere."""
    source = by_password(tmp_path, sftp)
    found = items(list(source.scan()))
    assert text_of(source, found["a.txt"]) == "one"
    assert PASSWORD not in repr([found, source])


def test_sftp_password_that_is_wrong_is_not_shown(tmp_path: Path, sftp: SftpPlace) -> None:
    """The reason says that the credentials are refused and where they come from, not what they are."""
    (tmp_path / "password").write_text("mistaken", encoding="utf-8")
    with pytest.raises(SourceUnavailable, match=r"refuses the credentials.*source\.password_ref") as refused:
        list(by_password(tmp_path, sftp).scan())
    assert "mistaken" not in str(refused.value)


def test_sftp_password_that_is_wrong_makes_no_item_unreadable(tmp_path: Path, sftp: SftpPlace) -> None:
    """A worker that only reads items cannot connect either: that says nothing of the item, which is tried again."""
    ref = items(list(by_password(tmp_path, sftp).scan()))["a.txt"]
    (tmp_path / "password").write_text("mistaken", encoding="utf-8")
    with pytest.raises(SourceUnavailable):
        text_of(by_password(tmp_path, sftp), ref)
    reading = by_key(tmp_path, sftp)
    (tmp_path / "key").unlink()
    with pytest.raises(SourceUnavailable):
        text_of(reading, ref)


def test_sftp_folder_that_may_not_be_listed_keeps_what_is_below(tmp_path: Path, sftp: SftpPlace) -> None:
    """The failure names the folder with a slash at its end, which covers all documents of it."""
    sftp.closed.add(b"/docs/sub")
    found = list(by_key(tmp_path, sftp).scan())
    assert list(items(found)) == ["a.txt"]
    [failure] = [one for one in found if isinstance(one, ParseFailure)]
    assert failure.source_uri == f"sftp://127.0.0.1:{sftp.port}/docs/sub/"


def test_sftp_start_that_may_not_be_listed_is_unavailable(tmp_path: Path, sftp: SftpPlace) -> None:
    """Nothing is known of the source as a whole."""
    sftp.closed.add(b"/docs")
    with pytest.raises(SourceUnavailable):
        list(by_key(tmp_path, sftp).scan())


@pytest.mark.parametrize("channel", [False, True])
def test_sftp_connects_anew_when_the_connection_is_lost(tmp_path: Path, sftp: SftpPlace, channel: bool) -> None:
    """A connection, or its channel alone, that is cut costs a scan nothing, and an item one more try."""
    source = by_key(tmp_path, sftp)
    sftp.cutting, sftp.cuts_channels = {b"/docs/sub": 1, b"/docs/a.txt": 1}, channel
    found = items(list(source.scan()))
    assert list(found) == ["a.txt", "sub/b#1.txt", "sub/deep/c.txt"]
    with pytest.raises(SourceUnavailable):
        text_of(source, found["a.txt"])
    assert text_of(source, found["a.txt"]) == "one"
    assert len(sftp.connections) == 3


@pytest.mark.parametrize("channel", [False, True])
async def test_sftp_connection_that_is_cut_deletes_nothing(tmp_path: Path, sftp: SftpPlace, channel: bool) -> None:
    """A run whose scan was broken off fails with the reason; what is gone at the source is deleted by the next one."""
    async with rig_of(tmp_path) as rig:
        rig.source = by_key(tmp_path, sftp)  # type: ignore[assignment]
        assert (await rig.run()).documents == {DocumentState.VERIFIED: 3}
        (sftp.root / "docs" / "a.txt").unlink()
        sftp.cutting, sftp.cuts_channels = {b"/docs/sub": 99}, channel
        run = await rig.run()
        assert run.state is RunState.FAILED
        assert "/docs/sub" in run.reason
        assert len(await rig.stored()) == 3
        sftp.cutting = {}
        assert (await rig.run()).documents[DocumentState.DELETED] == 1
        assert len(await rig.stored()) == 2


def test_sftp_server_that_falls_silent_is_waited_for_so_long(tmp_path: Path, sftp: SftpPlace) -> None:
    """A file that is never opened, though the connection stands, is out of reach; the next ones are read."""
    source = by_key(tmp_path, sftp, timeout_s=2.0)
    found = items(list(source.scan()))
    sftp.silent.add(b"/docs/a.txt")
    with pytest.raises(SourceUnavailable, match="does not answer within 2 s"):
        text_of(source, found["a.txt"])
    assert text_of(source, found["sub/b#1.txt"]) == "two"
