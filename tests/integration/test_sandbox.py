"""Child processes that parse: what they give, how they end, and what they cannot reach."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from indexers.errors import SourceUnavailable
from indexers.parsing.dispatch import parse_file
from indexers.parsing.options import ParseOptions, SourceFile
from indexers.parsing.parsed import ParsedDocument, ParseFailure, SourceItem
from indexers.sandbox.pool import ParserPool, SandboxLimits
from indexers.sandbox.process import Child, ChildLost
from tests.fakes.good_files import good_files

OPTIONS = ParseOptions()
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def _file(folder: Path, name: str, content: bytes) -> SourceFile:
    path = folder / name
    path.write_bytes(content)
    return SourceFile(path, name, path.as_uri())


def _rows(count: int) -> bytes:
    return b"".join(json.dumps({"id": str(n), "text": f"row {n} " * 100}).encode() + b"\n" for n in range(count))


def _failure(items: list[SourceItem]) -> ParseFailure:
    (failure,) = [item for item in items if isinstance(item, ParseFailure)]
    assert items[-1] is failure
    return failure


@pytest.fixture(scope="module")
def shared() -> Iterator[ParserPool]:
    """Yields two processes that wait."""
    pool = ParserPool(SandboxLimits(timeout_s=20.0, max_memory_bytes=256 * 1024**2), 2)
    pool.warm()
    yield pool
    pool.close()


@pytest.fixture
def closed_after() -> Iterator[ExitStack]:
    """Closes what a test opens."""
    with ExitStack() as stack:
        yield stack


def _pool(stack: ExitStack, timeout_s: float = 20.0, memory_mib: int = 256) -> ParserPool:
    pool = ParserPool(SandboxLimits(timeout_s, memory_mib * 1024**2), 1)
    stack.callback(pool.close)
    return pool


def test_sandbox_gives_what_parsing_here_gives(shared: ParserPool, tmp_path: Path) -> None:
    """For a good file of every suffix, and for rows by the hundred."""
    files = [_file(tmp_path, name, content) for name, content in {**good_files(), "rows.jsonl": _rows(500)}.items()]
    for file in files:
        assert list(shared.parse(file, OPTIONS)) == list(parse_file(file, OPTIONS)), file.name


def test_sandbox_reads_names_that_are_no_utf_8(shared: ParserPool, tmp_path: Path) -> None:
    """They are shown with U+FFFD."""
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.md"))
    path.write_bytes(b"text")
    (item,) = shared.parse(SourceFile(path, path.name, "file:///x"), OPTIONS)
    assert isinstance(item, ParsedDocument)
    assert item.document.document_id == "\ufffd.md"


def test_sandbox_is_shared_by_threads(shared: ParserPool, tmp_path: Path) -> None:
    """More threads than processes wait for each other, and each gets its own file."""
    files = [_file(tmp_path, f"{n}.md", b"# Title %d\n\ntext" % n) for n in range(40)]
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda file: list(shared.parse(file, OPTIONS)), files))
    titles = [item.document.title for items in found for item in items if isinstance(item, ParsedDocument)]
    assert titles == [f"Title {n}" for n in range(40)]


def test_sandbox_ends_a_file_that_takes_too_long(closed_after: ExitStack, tmp_path: Path) -> None:
    """One failure of kind timeout; the next file is read."""
    pool = _pool(closed_after, timeout_s=0.5)
    slow = _file(tmp_path, "a.html", b"<p " + b"".join(b"a%d='>' " % n for n in range(100_000)) + b">x")
    failure = _failure(list(pool.parse(slow, OPTIONS)))
    assert failure.kind == "timeout"
    assert "0.5 s" in failure.reason
    assert isinstance(next(pool.parse(_file(tmp_path, "b.md", b"text"), OPTIONS)), ParsedDocument)


def test_sandbox_does_not_count_the_time_of_whoever_reads(closed_after: ExitStack, tmp_path: Path) -> None:
    """A consumer may be slower than the limit; only what the parser takes for a row counts."""
    pool = _pool(closed_after, timeout_s=0.3)
    rows = pool.parse(_file(tmp_path, "a.jsonl", _rows(1_000)), OPTIONS)
    next(rows)
    until = time.monotonic() + 0.5  # longer than the limit, while the process waits for room in the pipe
    while time.monotonic() < until:
        list(parse_file(_file(tmp_path, "b.jsonl", _rows(100))))
    assert len([row for row in rows if isinstance(row, ParsedDocument)]) == 999


@linux_only
def test_sandbox_ends_a_file_that_takes_too_much_memory(closed_after: ExitStack, tmp_path: Path) -> None:
    """What it gave before stays, then one failure of kind memory; the next file is read."""
    pool = _pool(closed_after, memory_mib=48)
    options = ParseOptions(max_file_bytes=1_000_000)
    greedy = b'{"id":"1","text":"ok"}\n{"text":[' + b"[]," * 1_500_000 + b"1]}\n"
    items = list(pool.parse(_file(tmp_path, "a.jsonl", greedy), options))
    assert isinstance(items[0], ParsedDocument)
    assert _failure(items).kind == "memory"
    assert len(items) == 2
    assert isinstance(next(pool.parse(_file(tmp_path, "b.md", b"text"), options)), ParsedDocument)


def test_sandbox_outlives_a_process_that_dies_in_a_file(closed_after: ExitStack, tmp_path: Path) -> None:
    """What it gave before stays, in order, then one failure of kind crashed; the next file is read."""
    pool = _pool(closed_after)
    file = _file(tmp_path, "a.jsonl", _rows(3_000))
    rows = pool.parse(file, OPTIONS)
    items = [next(rows)]
    os.kill(pool.pids()[0], signal.SIGKILL)
    items += rows
    assert _failure(items).kind == "crashed"
    assert items[:-1] == list(parse_file(file, OPTIONS))[: len(items) - 1]
    assert isinstance(next(pool.parse(_file(tmp_path, "b.md", b"text"), OPTIONS)), ParsedDocument)


def test_sandbox_replaces_a_process_that_died_between_files(shared: ParserPool, tmp_path: Path) -> None:
    """Nobody notices."""
    for pid in shared.pids():
        os.kill(pid, signal.SIGKILL)
    for n in range(3):
        assert isinstance(next(shared.parse(_file(tmp_path, f"{n}.md", b"text"), OPTIONS)), ParsedDocument)


def test_sandbox_ends_the_process_of_a_file_that_nobody_reads_on(shared: ParserPool, tmp_path: Path) -> None:
    """The place is free again at once."""
    for n in range(4):
        rows = shared.parse(_file(tmp_path, f"{n}.jsonl", _rows(2_000)), OPTIONS)
        next(rows)
        rows.close()  # type: ignore[attr-defined]  # a generator
    assert len(list(shared.parse(_file(tmp_path, "b.jsonl", _rows(3)), OPTIONS))) == 3


def test_sandbox_that_is_closed_says_so_rather_than_blame_the_file(closed_after: ExitStack, tmp_path: Path) -> None:
    """Whoever reads gets SourceUnavailable, so that the item is tried again elsewhere; no process is left."""
    pool = _pool(closed_after)
    rows = pool.parse(_file(tmp_path, "a.jsonl", _rows(3_000)), OPTIONS)
    next(rows)
    pool.close()
    with pytest.raises(SourceUnavailable):
        list(rows)
    with pytest.raises(SourceUnavailable):
        next(pool.parse(_file(tmp_path, "b.md", b"text"), OPTIONS))
    assert not pool.pids()
    pool.close()


_ORPHANER = """
import sys
from pathlib import Path
from indexers.parsing.options import ParseOptions, SourceFile
from indexers.sandbox.pool import ParserPool, SandboxLimits
pool = ParserPool(SandboxLimits(), 2)
pool.warm()
rows = pool.parse(SourceFile(Path(sys.argv[1]), "a.jsonl", ""), ParseOptions())
next(rows)
print(*pool.pids(), flush=True)
sys.stdin.read()
"""


@linux_only
def test_child_does_not_outlive_its_parent(tmp_path: Path) -> None:
    """Neither one that waits for a file nor one that waits for its rows to be read."""
    file = _file(tmp_path, "a.jsonl", _rows(3_000))
    command = [sys.executable, "-c", _ORPHANER, str(file.path)]
    environ = {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry), "TMPDIR": str(tmp_path)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environ) as parent, ExitStack() as stack:
        assert parent.stdout is not None
        children = [os.pidfd_open(int(pid)) for pid in parent.stdout.readline().split()]
        for child in children:
            stack.callback(os.close, child)
        parent.kill()
        for child in children:
            assert select.select([child], [], [], 20.0)[0]
    assert len(children) == 2


_FORGER = """
import os, struct, sys
def frame(body): os.write(1, struct.pack(">I", len(body)) + body)
os.read(0, 65536)
frame(b'{"taken":true}')
os.write(1, bytes.fromhex(sys.argv[1]))
os.read(0, 65536)
"""


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"\xff\xff\xff\xff", "too_large"),
        (b"\x00\x00\x00\x02[]", "crashed"),
        (b"\x00\x00\x00\x01{", "crashed"),
        (b'\x00\x00\x00\x12{"id":1,"text":""}', "crashed"),
        (b'\x00\x00\x00\x15{"broken":"KeyError"}', "crashed"),
        (b"\x00\x00", "timeout"),
        (b"", "timeout"),
    ],
)
def test_answer_of_a_child_that_was_taken_over_is_not_believed(tmp_path: Path, answer: bytes, kind: str) -> None:
    """Lengths beyond bounds, what is no JSON or no document, half a frame and silence end the child."""
    limits = SandboxLimits(timeout_s=0.3)
    child = Child(limits, tmp_path, (sys.executable, "-c", _FORGER, answer.hex()))
    with pytest.raises(ChildLost) as lost:
        list(child.parse(SourceFile(tmp_path / "a.md", "a.md", "file:///a.md"), OPTIONS))
    assert lost.value.kind == kind
    assert not child.pid


def test_child_that_cannot_be_started_is_no_fault_of_the_file(tmp_path: Path) -> None:
    """SourceUnavailable, so that the item is tried again."""
    for program in ((str(tmp_path / "nothing"),), (sys.executable, "-c", "raise SystemExit(3)")):
        child = Child(SandboxLimits(), tmp_path, program)
        with pytest.raises(SourceUnavailable):
            list(child.parse(SourceFile(tmp_path / "a.md", "a.md", ""), OPTIONS))


@linux_only
def test_child_gets_nothing_of_ours(closed_after: ExitStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No environment, no open files but its pipes, its own session, nowhere to write."""
    monkeypatch.setenv("WIKI_TOKEN", "secret-token")
    pool = _pool(closed_after)
    pool.warm()
    process = Path(f"/proc/{pool.pids()[0]}")
    assert b"secret-token" not in (process / "environ").read_bytes()
    opened = {str(entry.readlink()) for entry in (process / "fd").iterdir()}
    assert all(name.startswith("pipe:") or name == os.devnull for name in opened), opened
    assert os.getsid(pool.pids()[0]) == pool.pids()[0]
    limits = {line[:25].strip(): line[25:].split()[:2] for line in (process / "limits").read_text().splitlines()}
    assert limits["Max file size"] == limits["Max core file size"] == ["0", "0"]
    assert limits["Max open files"] == ["64", "64"]
    status = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines())
    assert int(status["CapEff"], 16) in (0, 1 << 2)  # but for reading files of others, where we may
    assert not list((process / "cwd").iterdir())


_ATTEMPTS = """
import os, socket, subprocess
from indexers.sandbox.confining import confine
confine(2**30)
for attempt in (
    lambda: open("written", "w"), lambda: os.open("made", os.O_CREAT | os.O_WRONLY), lambda: os.remove("there"),
    lambda: socket.create_connection(("127.0.0.1", 9)), lambda: socket.getaddrinfo("localhost", 80),
    lambda: os.kill(os.getppid(), 0), lambda: os.fork(), lambda: os.system("true"), lambda: subprocess.run(["true"]),
    lambda: os.mkdir("folder"), lambda: os.rename("there", "elsewhere"), lambda: bytearray(2**32),
):
    try:
        attempt()
    except (OSError, MemoryError):
        continue
    print("was not refused:", attempt.__code__.co_firstlineno, attempt.__code__.co_names)
print(open("there").read())
"""


@linux_only
def test_confined_process_can_read_and_nothing_else(tmp_path: Path) -> None:
    """No writing, no network, no other process, no memory beyond the limit."""
    (tmp_path / "there").write_text("read", encoding="utf-8")
    environ = {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    command = [sys.executable, "-c", _ATTEMPTS]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "read\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["there"]
