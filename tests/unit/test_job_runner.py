"""What a run of a job does: the index ends as the source is, whoever comes in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from indexers.errors import ItemUnreadable, LeaseLost, SourceUnavailable, TargetUnavailable
from indexers.jobs.report import report_from_json
from indexers.jobs.running.assisting import Assistant
from indexers.jobs.running.runner import JobRunner
from indexers.jobs.state import DocumentState, ItemState, RunRequest, RunState
from indexers.parsing.parsed import ParseFailure, SkippedFile
from indexers.types import Document
from tests.fakes.job_rigs import KEY, DictSource, Rig, rig_of, spec_of
from tests.fakes.job_store import MemoryJobStore


@pytest.fixture
async def rig(tmp_path) -> AsyncIterator[Rig]:
    """Is a job over an empty collection."""
    async with rig_of(tmp_path) as opened:
        yield opened


def files(count: int, word: str = "pumps") -> dict[str, bytes]:
    """Returns small text files."""
    return {f"f{number:02}.txt": f"{word} of file {number}".encode() for number in range(count)}


async def test_run_brings_every_document_into_the_index(rig: Rig) -> None:
    """All files are indexed, proven and counted, and the report says so."""
    rig.source.files = files(20)
    run = await rig.run()
    assert (run.state, run.reason) == (RunState.SUCCEEDED, "")
    assert run.documents == {DocumentState.VERIFIED: 20}
    assert run.items == {ItemState.DONE: 20}
    assert await rig.stored() == {name: content.decode() for name, content in rig.source.files.items()}
    report = report_from_json(run.report)
    assert (report.state, report.documents, sum(report.chunk_lengths.values())) == ("succeeded", {"verified": 20}, 20)
    assert rig.source.committed == 1
    assert (rig.folder / "job" / "reports" / f"{run.run_id}.html").is_file()


async def test_second_run_with_nothing_changed_reads_and_encodes_nothing(rig: Rig) -> None:
    """Unchanged items are neither opened nor parsed nor embedded, and are compared with the index all the same."""
    rig.source.files = files(5)
    await rig.run()
    rig.source.opened.clear()
    encoded, epoch = len(rig.encoder.work_classes), rig.index.epoch
    run = await rig.run()
    assert run.documents == {DocumentState.UNCHANGED: 5}
    assert rig.source.opened == []
    assert (len(rig.encoder.work_classes), rig.index.epoch) == (encoded, epoch)
    assert rig.target.finished == 1


async def test_unchanged_item_whose_document_was_deleted_by_hand_is_indexed_again(rig: Rig) -> None:
    """What is remembered is never believed against the index."""
    rig.source.files = files(3)
    await rig.run()
    await rig.index.delete(["f01.txt"])
    run = await rig.run()
    assert run.documents == {DocumentState.UNCHANGED: 2, DocumentState.VERIFIED: 1}
    assert set(await rig.stored()) == {"f00.txt", "f01.txt", "f02.txt"}


async def test_changed_job_makes_other_documents_of_the_same_files(rig: Rig) -> None:
    """An unchanged file is read again when the job says something else about it."""
    rig.source.files = files(2)
    await rig.run()
    rig.spec = spec_of(metadata={"set": {"team": "docs"}})
    run = await rig.run()
    assert run.documents == {DocumentState.VERIFIED: 2}
    document = await rig.index.get_document("f00.txt")
    assert document is not None
    assert document.metadata == {"team": "docs"}


async def test_changes_and_deletions_at_the_source_are_followed(rig: Rig) -> None:
    """What was added, changed and deleted is exactly what is indexed after the run."""
    rig.source.files = files(6)
    await rig.run()
    old = await rig.index.chunk_ids("f01.txt")
    del rig.source.files["f01.txt"]
    rig.source.files["f02.txt"] = b"other words"
    rig.source.files["new.txt"] = b"new words"
    run = await rig.run()
    assert run.documents == {DocumentState.UNCHANGED: 4, DocumentState.VERIFIED: 2, DocumentState.DELETED: 1}
    assert await rig.stored() == {name: content.decode() for name, content in rig.source.files.items()}
    assert await rig.index.fetch(old) == []


async def test_documents_of_others_are_never_touched(rig: Rig) -> None:
    """What callers and other jobs wrote is neither deleted nor replaced; a caller's document of an id is taken over."""
    rig.source.files = files(2)
    indexer_target = rig.target
    await indexer_target.write([Document("theirs", "", "words of a caller")], 1_000)
    await indexer_target.write([Document("f00.txt", "", "words of a caller")], 1_000)
    await indexer_target.write([Document("f01.txt", "", "words of a job", owner="wiki")], 1_000)
    run = await rig.run()
    assert run.state is RunState.PARTIAL
    assert run.documents == {DocumentState.VERIFIED: 1, DocumentState.FAILED: 1}
    assert set(await rig.index.look_up(["theirs", "f00.txt", "f01.txt"])) == {"theirs", "f00.txt", "f01.txt"}
    assert (await rig.index.look_up(["f01.txt"]))["f01.txt"].owner == "wiki"
    [failure] = await rig.store.failures(KEY)
    assert "id_prefix" in failure.reason


async def test_lost_job_store_loses_no_deletion(rig: Rig) -> None:
    """What is gone is found by asking the index, so a queue without memory deletes it too."""
    rig.source.files = files(4)
    await rig.run()
    del rig.source.files["f03.txt"]
    rig.store = MemoryJobStore()
    run = await rig.run()
    assert run.documents[DocumentState.DELETED] == 1
    assert set(await rig.stored()) == set(rig.source.files)


async def test_source_that_shrinks_stops_and_asks(tmp_path) -> None:
    """Much fewer documents than before are deleted only when somebody says so; the rest of the run is done."""
    async with rig_of(tmp_path, spec_of(limits={"backoff_s": 0.0, "shrink_documents": 2})) as rig:
        rig.source.files = files(10)
        await rig.run()
        rig.source.files = {"f00.txt": b"pumps of file 0", "new.txt": b"new words"}
        run = await rig.run()
        assert run.state is RunState.WAITING
        assert "9 of 11" in run.reason
        assert "--allow-shrink" in run.reason
        assert len(await rig.stored()) == 11
        run = await rig.run(RunRequest(allow_shrink=True))
        assert run.state is RunState.SUCCEEDED
        assert set(await rig.stored()) == {"f00.txt", "new.txt"}


async def test_what_cannot_be_read_keeps_what_was_indexed_from_it(rig: Rig) -> None:
    """A failed file, an unreadable folder and a bad row are named, and delete nothing."""
    rows = b'{"id": "r1", "text": "one"}\n{"id": "r2", "text": "two"}\n'
    rig.source.files = {**files(2), "sub/a.txt": b"words below", "rows.jsonl": rows}
    await rig.run()
    del rig.source.files["sub/a.txt"]
    rig.source.extra = [ParseFailure("sub", "memory:///sub/", "cannot be listed"), SkippedFile("x.bin", "is not read")]
    rig.source.files["rows.jsonl"] = b'{"id": "r1", "text": "changed"}\n{"id": "r2", bad\n'
    rig.source.files["f01.txt"] = b"\x00\x00\x00broken"
    run = await rig.run()
    assert run.state is RunState.PARTIAL
    assert set(await rig.stored()) == {"f00.txt", "f01.txt", "sub/a.txt", "r1", "r2"}
    assert (await rig.stored())["r1"] == "changed"
    assert run.documents[DocumentState.FAILED] == 1
    assert run.items[ItemState.FAILED] == 2
    assert run.items[ItemState.SKIPPED] == 1


async def test_transient_errors_are_tried_again(rig: Rig) -> None:
    """An item that cannot be read for a while is indexed in the end, without anybody noticing."""
    rig.source.files = files(3)
    tries: list[str] = []

    def twice(name: str) -> None:
        tries.append(name)
        if name == "f01.txt" and tries.count(name) < 3:
            raise SourceUnavailable(name, "is busy")

    rig.source.on_open = twice
    run = await rig.run()
    assert run.state is RunState.SUCCEEDED
    assert tries.count("f01.txt") == 3


async def test_failures_are_dead_letters_that_can_be_tried_again(rig: Rig) -> None:
    """What is given up is listed with its reason, and a run over the failures alone makes it good (case JOB-07)."""
    rig.source.files = files(5)

    def broken(name: str) -> None:
        if name == "f02.txt":
            raise SourceUnavailable(name, "is away")
        if name == "f03.txt":
            raise ItemUnreadable(name, "is forbidden", "forbidden")

    rig.source.on_open = broken
    run = await rig.run()
    assert run.state is RunState.PARTIAL
    assert run.documents == {DocumentState.VERIFIED: 3}
    failures = {one.name: (one.kind, one.attempt) for one in await rig.store.failures(KEY)}
    assert failures == {"f02.txt": ("unavailable", 4), "f03.txt": ("forbidden", 1)}
    rig.source.on_open = lambda name: None
    rig.source.opened.clear()
    run = await rig.run(RunRequest(only_failures=True))
    assert run.state is RunState.SUCCEEDED
    assert sorted(rig.source.opened) == ["f02.txt", "f03.txt"]
    assert await rig.store.failures(KEY) == []
    assert len(await rig.stored()) == 5


async def test_unreachable_source_deletes_nothing(rig: Rig) -> None:
    """A source of which nothing is known ends the run as failed, with everything as it was."""
    rig.source.files = files(3)
    await rig.run()

    class Away(DictSource):
        def scan(self):
            raise SourceUnavailable("the share", "is not mounted")

    rig.source = Away({})
    run = await rig.run()
    assert (run.state, "not mounted" in run.reason) == (RunState.FAILED, True)
    assert len(await rig.stored()) == 3


@pytest.mark.parametrize("before", [True, False])
async def test_deletion_while_a_document_is_indexed_wins(rig: Rig, before: bool) -> None:
    """A document that a caller deletes meanwhile stays deleted, new or changed (case JOB-04)."""
    rig.source.files = files(2)
    if before:
        await rig.run()
        rig.source.files = files(2, "valves")

    async def deletes(documents: Sequence[Document]) -> None:
        rig.target.before_write = lambda documents: None
        await rig.index.delete(["f01.txt"])

    rig.target.before_write = deletes
    run = await rig.run()
    assert run.documents[DocumentState.SKIPPED] == 1
    assert set(await rig.stored()) == {"f00.txt"}


async def test_newer_write_of_another_worker_is_not_overwritten(rig: Rig) -> None:
    """A worker whose state of the source is older reads it again, and the newest state is what stays."""
    rig.source.files = files(2)

    async def newer(documents: Sequence[Document]) -> None:
        rig.target.before_write = lambda documents: None
        rig.source.files["f01.txt"] = b"newest words"
        other = Document("f01.txt", "", "newer words", owner=KEY.name)
        await rig.target.write([other], rig.index.epoch.write_sequence)

    rig.target.before_write = newer
    run = await rig.run()
    assert run.state is RunState.SUCCEEDED
    assert (await rig.stored())["f01.txt"] == "newest words"
    assert rig.source.opened.count("f01.txt") == 2


async def test_cancelled_run_stops_and_keeps_what_it_wrote(rig: Rig) -> None:
    """A wish to stop ends the run as cancelled, and nothing that was indexed is undone (case JOB-09)."""
    rig.source.files = files(3)
    await rig.run()
    rig.source.files = files(3, "valves")
    waiting = asyncio.Event()

    async def wait(documents: Sequence[Document]) -> None:
        waiting.set()
        await asyncio.Event().wait()

    rig.target.before_write = wait
    run = await rig.submit()
    running = asyncio.create_task(JobRunner(rig.parts(), await rig.claim()).run())
    await waiting.wait()
    await rig.store.cancel_run(KEY.tenant, run.run_id)
    ended = await running
    assert ended.state is RunState.CANCELLED
    assert set((await rig.stored()).values()) == {f"pumps of file {number}" for number in range(3)}


async def test_run_whose_claim_is_lost_ends_nothing(rig: Rig) -> None:
    """A worker that was silent for too long stops, and the one that has the run brings it to its end."""
    rig.source.files = files(3)
    await rig.submit()
    claim = await rig.claim(lease_s=0.0)
    second = await rig.claim("other")
    with pytest.raises(LeaseLost):
        await JobRunner(rig.parts(), claim).run()
    run = await JobRunner(rig.parts("other"), second).run()
    assert run.state is RunState.SUCCEEDED
    assert len(await rig.stored()) == 3


async def test_run_is_taken_up_where_a_worker_left_it(rig: Rig) -> None:
    """After a worker is gone in the middle, another ends the same run; nothing is written twice."""
    rig.source.files = files(90)
    written: list[str] = []

    async def dies(documents: Sequence[Document]) -> None:
        if written:
            await asyncio.Event().wait()
        written.extend(document.document_id for document in documents)

    rig.target.before_write = dies
    await rig.submit()
    running = asyncio.create_task(JobRunner(rig.parts("first", lease_s=0.2), await rig.claim("first", 0.2)).run())
    while not written:
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await rig.store.release("first")
    again: list[str] = []
    rig.target.before_write = lambda documents: again.extend(document.document_id for document in documents)
    run = await JobRunner(rig.parts("second"), await rig.claim("second")).run()
    assert run.state is RunState.SUCCEEDED
    assert len(await rig.stored()) == 90
    assert run.documents[DocumentState.VERIFIED] + run.documents.get(DocumentState.UNCHANGED, 0) == 90


async def test_two_workers_share_the_items_of_a_run(rig: Rig) -> None:
    """A second process works on the same run; every document is indexed once and the counts are right."""
    rig.source.files = files(60)
    run = await rig.submit()
    runner = JobRunner(rig.parts("leads", items_per_lease=2), await rig.claim("leads"))
    helper = Assistant(rig.parts("helps", items_per_lease=2, folder=rig.folder / "other"), run)
    ended, _ = await asyncio.gather(runner.run(), helper.run())
    assert ended.documents == {DocumentState.VERIFIED: 60}
    assert len(await rig.stored()) == 60


async def test_target_that_is_away_for_a_while_costs_time_only(rig: Rig) -> None:
    """A server that restarts in the middle of a run is waited for."""
    rig.source.files = files(3)
    refusals = iter([1, 1, 1])

    def away(documents: object = None) -> None:
        if next(refusals, None):
            raise TargetUnavailable("the server", "is not there")

    rig.target.before_write = away
    rig.target.before_look = away
    run = await rig.run()
    assert run.state is RunState.SUCCEEDED
    assert len(await rig.stored()) == 3


async def test_target_that_stays_away_ends_the_run(rig: Rig) -> None:
    """After all patience the run has failed, and says what could not be reached."""
    rig.source.files = files(3)

    def away(documents: object = None) -> None:
        raise TargetUnavailable("the server", "is not there")

    rig.target.before_write = away
    run = await rig.run(patience_s=0.0)
    assert (run.state, "the server" in run.reason) == (RunState.FAILED, True)


async def test_same_id_from_two_items_fails_the_second(rig: Rig) -> None:
    """Two files that give one document do not take turns with it, run after run."""
    rig.source.files = {
        "a.jsonl": b'{"id": "x", "text": "from a"}\n',
        "b.jsonl": b'{"id": "x", "text": "from b"}\n',
    }
    run = await rig.run(readers=1)
    assert run.state is RunState.PARTIAL
    assert await rig.stored() == {"x": "from a"}
    [failure] = await rig.store.failures(KEY)
    assert failure.kind == "same_id"


async def test_incremental_source_deletes_only_what_it_names(rig: Rig) -> None:
    """A source that lists changes deletes nothing that it does not list, only what it says is deleted."""
    rig.source.files = files(4)
    await rig.run()
    rig.source.files = {"f00.txt": b"changed words"}
    rig.source.complete, rig.source.deleted = False, ["f03.txt"]
    run = await rig.run()
    assert run.state is RunState.SUCCEEDED
    assert set(await rig.stored()) == {"f00.txt", "f01.txt", "f02.txt"}


async def test_metadata_is_mapped_and_coerced(tmp_path) -> None:
    """Renamed, kept, set and taken from the path: what a job says is what is stored, with its declared types."""
    spec = spec_of(
        metadata={
            "fields": {"product": "keyword", "year": "integer"},
            "from_path": r"^(?P<product>[^/]+)/(?P<year>\d+)/",
            "rename": {"lang": "locale"},
            "keep": ["locale"],
            "set": {"team": "docs"},
            "id_prefix": "kb/",
        },
        policy_class="internal",
    )
    async with rig_of(tmp_path, spec) as rig:
        rig.source.files = {"git/2024/a.jsonl": b'{"id": "1", "text": "words", "lang": "en", "other": "x"}\n'}
        await rig.run()
        document = await rig.index.get_document("kb/1")
        assert document is not None
        assert document.metadata == {
            "locale": "en",
            "product": "git",
            "year": 2024,
            "team": "docs",
            "policy_class": "internal",
        }
