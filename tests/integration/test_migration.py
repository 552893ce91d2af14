"""An embedded collection moves to another model while it serves and is written, and back."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from indexers.catalog import EmbeddedCatalog
from indexers.errors import BuildFailed, CollectionMoved, CollectionNotFound, ModelMismatch
from indexers.homes import Homes, read_homes, write_homes
from indexers.index import Index
from indexers.migrating.following import Following
from indexers.migrating.migration import Built, Destination, Standing
from indexers.options import IndexOptions
from indexers.types import CollectionKey, Counts, Document, EncodedDocument, FieldType, SearchQuery
from tests.contract.index_places import MODEL
from tests.fakes.encoded import DIM, encoded, found_documents, word_vector
from tests.fakes.models import SomeModels

KEY = CollectionKey("acme", "docs")
OTHER = replace(MODEL, model_id="tests/more", dim=2 * DIM)
OPTIONS = IndexOptions(build_automatically=False)


class Encoder:
    """Encodes documents for a model, one chunk a line, and remembers them."""

    def __init__(self, dim: int, mark: str) -> None:
        self.dim = dim
        self.mark = mark
        self.encoded: list[str] = []
        self.then: list[Callable[[], Awaitable[object]]] = []  # what happens meanwhile

    async def __call__(self, documents: Sequence[Document]) -> list[EncodedDocument]:
        """Returns the documents encoded."""
        self.encoded += [one.document_id for one in documents]
        if self.then:
            await self.then.pop(0)()
        return [self._one(one) for one in documents]

    def _one(self, document: Document) -> EncodedDocument:
        made = encoded(document.document_id, document.text.split("\n"), fingerprint=self.mark, dim=self.dim)
        return replace(made, document=document)


def other(encoder: Encoder) -> Destination:
    """Returns the other model as a destination."""
    return Destination(OTHER, "tests/more", encoder, token_vectors=True)


def first(encoder: Encoder) -> Destination:
    """Returns the configured model as a destination."""
    return Destination(MODEL, "", encoder, token_vectors=True)


async def accept(built: Built) -> None:
    """Checks nothing."""


@pytest.fixture
async def catalog(tmp_path: Path) -> AsyncIterator[EmbeddedCatalog]:
    """Is an empty data folder."""
    opened = EmbeddedCatalog(tmp_path, SomeModels(MODEL, OTHER), OPTIONS)
    try:
        yield opened
    finally:
        await opened.close()


async def _filled(catalog: EmbeddedCatalog, count: int = 40) -> Index:
    index = await catalog.create(KEY, {}, "about things")
    await index.upsert([encoded(f"d{n}", ["shared words", f"w{n}"]) for n in range(count)])
    await index.build()
    return index


async def _found(index: Index) -> set[str]:
    return await found_documents(index, SearchQuery(word_vector("shared words", index.definition.dim), None, 400))


async def test_collection_moves_while_it_is_written(catalog: EmbeddedCatalog) -> None:
    """Everything is encoded once; what is written meanwhile is there too, and who began before goes on reading."""
    index = await _filled(catalog)
    more = Encoder(2 * DIM, "more")

    async def write() -> None:
        await index.upsert([encoded("late", ["shared late"]), encoded("d1", ["shared changed"])])
        await index.delete(["d2"])

    async def check(built: Built) -> None:
        await index.upsert([encoded("later", ["shared later"])])
        await index.delete(["d3"])
        vector = word_vector("shared words", 2 * DIM)
        exact, found = [await built.search(SearchQuery(vector, None, 20, one)) for one in (True, False)]
        assert exact.chunk_ids == found.chunk_ids
        assert "d5" in await built.documents_of((await built.search(SearchQuery(vector, None, 200))).chunk_ids)
        assert await _found(index) >= {"late", "d1"}  # the old one serves

    more.then = [write]
    seen: list[tuple[int, int]] = []
    before = index.epoch
    await catalog.migration(KEY).run(other(more), check, lambda total, done: seen.append((total, done)))
    assert seen[-1][0] == seen[-1][1] >= 40
    assert sorted(more.encoded) == sorted([*(f"d{n}" for n in range(40)), "d1", "late", "later"])

    moved = await catalog.open(KEY)
    expected = {f"d{n}" for n in range(40)} - {"d2", "d3"} | {"late", "later"}
    assert (moved.definition.dim, moved.definition.description) == (2 * DIM, "about things")
    assert moved.definition.dense_source == "tests/more"
    assert moved.definition.created_at == index.definition.created_at
    assert moved.epoch.write_sequence > index.epoch.write_sequence
    assert moved.epoch.generation > before.generation
    assert await _found(moved) == expected
    assert await _found(index) == expected  # for requests that began before
    with pytest.raises(CollectionMoved):
        await index.upsert([encoded("wrong", ["words"])])
    with pytest.raises(CollectionMoved):
        await index.delete(["d0"])


async def test_collection_goes_back_after_a_restart(tmp_path: Path, catalog: EmbeddedCatalog) -> None:
    """Only what has changed since is encoded again; afterwards what served in between can be forgotten."""
    await _filled(catalog)
    await catalog.migration(KEY).run(other(Encoder(2 * DIM, "more")), accept)
    moved = await catalog.open(KEY)
    await moved.upsert([encoded("d0", ["shared anew"], dim=2 * DIM)])
    await moved.delete(["d4"])
    expected = {f"d{n}" for n in range(40)} - {"d4"}
    await catalog.close()
    again = EmbeddedCatalog(tmp_path, SomeModels(MODEL, OTHER), OPTIONS)
    try:
        moved = await again.open(KEY)
        assert await _found(moved) == expected
        back = Encoder(DIM, "back")
        await again.migration(KEY).run(first(back), accept)
        assert back.encoded == ["d0"]
        returned = await again.open(KEY)
        assert (returned.definition.dim, returned.definition.dense_source) == (DIM, "")
        assert returned.epoch.write_sequence > moved.epoch.write_sequence
        assert returned.epoch.generation > moved.epoch.generation
        assert await _found(returned) == expected
        await again.migration(KEY).forget()
        assert (await again.migration(KEY).standing()).previous is None
        assert len(list(tmp_path.rglob("record.sqlite"))) == 1
        assert await _found(await again.open(KEY)) == expected
    finally:
        await again.close()


async def test_going_back_that_breaks_off_goes_on(tmp_path: Path, catalog: EmbeddedCatalog) -> None:
    """What served before stays the way back while it is brought up to date, whether that ends, stops or is given up."""
    index = await _filled(catalog)
    migration = catalog.migration(KEY)
    await migration.run(other(Encoder(2 * DIM, "more")), accept)
    index = await catalog.open(KEY)
    await index.upsert([encoded("new", ["shared new"], dim=2 * DIM)])

    async def refuse(built: Built) -> None:
        raise BuildFailed("docs", "recall is 0.5")

    for give_up in (False, True):
        with pytest.raises(BuildFailed, match="recall"):
            await migration.run(first(Encoder(DIM, "back")), refuse)
        standing = await migration.standing()
        assert standing.building == standing.previous
        if give_up:
            await migration.cancel()
    standing = await migration.standing()
    assert standing.building is None
    assert standing.previous is not None
    assert standing.previous.dim == DIM
    back = Encoder(DIM, "back")
    await migration.run(first(back), accept)
    assert back.encoded == []
    assert await _found(await catalog.open(KEY)) == {f"d{n}" for n in range(40)} | {"new"}
    with pytest.raises(BuildFailed, match="recall"):
        await migration.run(other(Encoder(2 * DIM, "more")), refuse)
    await migration.forget()
    assert await migration.standing() == Standing((await catalog.open(KEY)).definition)
    assert sorted(one.name for one in (tmp_path / "acme" / "docs" / "homes").iterdir()) == []


async def test_conditions_that_were_read_before_hold_after(catalog: EmbeddedCatalog) -> None:
    """A worker that read the write sequence before the move overwrites and deletes nothing that is newer."""
    index = await _filled(catalog)
    fence = index.epoch.write_sequence

    async def write() -> None:
        await index.upsert([encoded("late", ["shared late"]), encoded("d1", ["shared changed"])])
        await index.delete(["d2"])

    more = Encoder(2 * DIM, "more")
    more.then = [write]
    await catalog.migration(KEY).run(other(more), accept)
    moved = await catalog.open(KEY)
    old = [encoded(name, ["shared old"], dim=2 * DIM) for name in ("d0", "d1", "d2", "late")]
    assert (await moved.upsert(old, since=fence)).superseded == {"d1", "d2", "late"}
    assert await moved.delete(["d1", "d4"], since=fence) == 1
    assert "d1" in await moved.look_up(["d1", "d4"])


async def test_migration_that_breaks_off_goes_on(catalog: EmbeddedCatalog) -> None:
    """What was encoded is not encoded again; what has changed meanwhile is."""
    index = await _filled(catalog, 200)

    class Torn(Exception):
        """Is what breaks it off."""

    async def tear() -> None:
        raise Torn

    async def nothing() -> None:
        return None

    more = Encoder(2 * DIM, "more")
    more.then = [nothing, nothing, tear]
    with pytest.raises(Torn):
        await catalog.migration(KEY).run(other(more), accept)
    assert await _found(await catalog.open(KEY)) == {f"d{n}" for n in range(200)}
    standing = await catalog.migration(KEY).standing()
    assert standing.building is not None
    assert standing.building.dim == 2 * DIM
    await index.delete(["d0"])
    again = Encoder(2 * DIM, "more")
    await catalog.migration(KEY).run(other(again), accept)
    assert 0 < len(again.encoded) <= 200 - 64
    assert await _found(await catalog.open(KEY)) == {f"d{n}" for n in range(1, 200)}
    idle = Encoder(2 * DIM, "more")
    await catalog.migration(KEY).run(other(idle), accept)
    assert idle.encoded == []


async def test_migration_that_fails_its_check_changes_nothing(tmp_path: Path, catalog: EmbeddedCatalog) -> None:
    """The old one serves and is written on, and what was built can be given up."""
    index = await _filled(catalog)

    async def refuse(built: Built) -> None:
        raise BuildFailed("docs", "recall is 0.5")

    with pytest.raises(BuildFailed, match="recall"):
        await catalog.migration(KEY).run(other(Encoder(2 * DIM, "more")), refuse)
    assert await catalog.open(KEY) is index
    await index.upsert([encoded("after", ["shared after"])])
    await catalog.migration(KEY).cancel()
    assert read_homes(tmp_path / "acme" / "docs") == Homes()
    assert [one.name for one in (tmp_path / "acme" / "docs" / "homes").iterdir()] == []
    assert await index.count(None) == Counts(41, 81)


async def test_writes_wait_for_the_change_over_and_are_not_lost(catalog: EmbeddedCatalog) -> None:
    """Whoever writes again and again, opening anew when he is told to, finds all he was told was written."""
    await _filled(catalog)
    written: list[str] = []
    ended = asyncio.Event()

    async def write() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            index = await catalog.open(KEY)
            try:
                await index.upsert([encoded(f"n{number}", [f"shared n{number}"], dim=index.definition.dim)])
            except CollectionMoved:
                continue
            written.append(f"n{number}")
            await asyncio.sleep(0)

    writer = asyncio.create_task(write())
    await catalog.migration(KEY).run(other(Encoder(2 * DIM, "more")), accept)
    at_swap = len(written)
    while len(written) < at_swap + 3:
        await asyncio.sleep(0.01)
    ended.set()
    await writer
    found = await _found(await catalog.open(KEY))
    assert found == {f"d{n}" for n in range(40)} | set(written)


async def test_writes_do_not_wait_for_all_that_came_during_the_check(catalog: EmbeddedCatalog) -> None:
    """A check may take long; what was written in that time is encoded before writers have to wait."""
    index = await _filled(catalog, 3)
    more = Encoder(2 * DIM, "more")

    async def write() -> None:
        await asyncio.wait_for(index.upsert([encoded("meanwhile", ["shared"])]), 20)

    async def check(built: Built) -> None:
        await index.upsert([encoded(f"late{n}", ["shared"]) for n in range(100)])
        more.then = [write]

    await catalog.migration(KEY).run(other(more), check)
    assert "meanwhile" in await _found(await catalog.open(KEY))


async def test_write_between_two_rounds_is_not_lost(catalog: EmbeddedCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever a document changes, what is served afterwards is its last version."""
    index = await _filled(catalog, 3)
    touched, written = Following.touched, False

    async def then_write(self: Following, since: int) -> list[str]:
        nonlocal written
        found = await touched(self, since)
        if len(found) > 64 and not written:
            written = True
            await index.upsert([encoded("d1", ["shared news"])])
        return found

    async def check(built: Built) -> None:
        await index.upsert([encoded(f"late{n}", ["shared"]) for n in range(100)])
        monkeypatch.setattr(Following, "touched", then_write)

    await catalog.migration(KEY).run(other(Encoder(2 * DIM, "more")), check)
    document = await (await catalog.open(KEY)).get_document("d1")
    assert document is not None
    assert document.text == "shared news"


async def test_fields_declared_meanwhile_come_along(catalog: EmbeddedCatalog) -> None:
    """What is stored is coerced on the other side too."""
    index = await catalog.create(KEY, {}, "")
    await index.upsert([encoded("d1", ["shared one"], {"year": "1999"})])

    async def declare(built: Built) -> None:
        await catalog.update(KEY, {"year": FieldType.INTEGER}, "newer")

    await catalog.migration(KEY).run(other(Encoder(2 * DIM, "more")), declare)
    moved = await catalog.open(KEY)
    assert (moved.definition.fields, moved.definition.description) == ({"year": FieldType.INTEGER}, "newer")
    document = await moved.get_document("d1")
    assert document is not None
    assert document.metadata == {"year": 1999}


async def test_collection_of_a_model_that_is_gone_can_be_moved(tmp_path: Path, catalog: EmbeddedCatalog) -> None:
    """It cannot be opened, and needs not to be: its texts are all that is wanted of it."""
    await _filled(catalog)
    await catalog.close()
    again = EmbeddedCatalog(tmp_path, SomeModels(OTHER), OPTIONS)
    try:
        with pytest.raises(ModelMismatch):
            await again.open(KEY)
        await again.migration(KEY).run(replace(other(Encoder(2 * DIM, "more")), source=""), accept)
        assert len(await _found(await again.open(KEY))) == 40
    finally:
        await again.close()


async def test_crash_around_the_change_leaves_one_of_the_two(tmp_path: Path, catalog: EmbeddedCatalog) -> None:
    """Whichever home the file names serves, whole; homes that nobody names are swept."""
    await _filled(catalog)
    await catalog.migration(KEY).run(other(Encoder(2 * DIM, "more")), accept)
    await catalog.close()
    folder = tmp_path / "acme" / "docs"
    homes = read_homes(folder)
    assert homes == Homes("homes/1", "", ".")
    (folder / "homes" / "7").mkdir()
    write_homes(folder, Homes(".", "homes/1", ""))  # as if the file had not been replaced
    again = EmbeddedCatalog(tmp_path, SomeModels(MODEL, OTHER), OPTIONS)
    try:
        assert not (folder / "homes" / "7").exists()
        assert (await again.open(KEY)).definition.dim == DIM
        encoder = Encoder(2 * DIM, "more")
        await again.migration(KEY).run(other(encoder), accept)
        assert encoder.encoded == []
        assert len(await _found(await again.open(KEY))) == 40
    finally:
        await again.close()


async def test_deleted_collection_ends_its_migration(tmp_path: Path, catalog: EmbeddedCatalog) -> None:
    """A collection made again under the name has nothing of it."""
    await _filled(catalog)

    async def delete(built: Built) -> None:
        await catalog.delete(KEY)

    with pytest.raises(CollectionNotFound):
        await catalog.migration(KEY).run(other(Encoder(2 * DIM, "more")), delete)
    assert not (tmp_path / "acme" / "docs").exists()

    await _filled(catalog, 3)

    async def make_again(built: Built) -> None:
        await catalog.delete(KEY)
        await _filled(catalog, 2)

    with pytest.raises(BuildFailed, match="deleted meanwhile"):
        await catalog.migration(KEY).run(other(Encoder(2 * DIM, "more")), make_again)
    index = await catalog.open(KEY)
    assert (index.definition.dim, await index.count(None)) == (DIM, Counts(2, 4))


async def test_second_migration_at_a_time_is_refused(catalog: EmbeddedCatalog) -> None:
    """One process, one migration of a collection."""
    await _filled(catalog)

    async def again(built: Built) -> None:
        with pytest.raises(BuildFailed, match="under way"):
            await catalog.migration(KEY).run(other(Encoder(2 * DIM, "more")), accept)

    await catalog.migration(KEY).run(other(Encoder(2 * DIM, "more")), again)
    assert (await catalog.open(KEY)).definition.dim == 2 * DIM


async def test_full_disk_does_not_keep_what_was_begun(
    tmp_path: Path, catalog: EmbeddedCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Giving up takes no room: what can be built again goes before the file that says so is written."""
    await _filled(catalog)

    async def refuse(built: Built) -> None:
        raise BuildFailed("docs", "recall is 0.5")

    with pytest.raises(BuildFailed, match="recall"):
        await catalog.migration(KEY).run(other(Encoder(2 * DIM, "more")), refuse)

    def write(folder: Path, homes: Homes) -> None:
        if (folder / "homes" / "1" / "generations").exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        write_homes(folder, homes)

    monkeypatch.setattr("indexers.migrating.embedded.write_homes", write)
    await catalog.migration(KEY).cancel()
    assert read_homes(tmp_path / "acme" / "docs") == Homes()
    assert not (tmp_path / "acme" / "docs" / "homes" / "1").exists()


async def test_fields_declared_during_the_check_are_in_the_generation(catalog: EmbeddedCatalog) -> None:
    """What serves afterwards was built, not only loaded."""
    await _filled(catalog)

    async def declare(built: Built) -> None:
        await catalog.update(KEY, {"lang": FieldType.KEYWORD}, None)

    await catalog.migration(KEY).run(other(Encoder(2 * DIM, "more")), declare)
    index = await catalog.open(KEY)
    assert set(index.definition.fields) == {"lang"}
    assert index.statistics.document_count == 80
