"""Collections of different models in one process, and moving one while it is asked and written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from encoders.types import WorkClass
from indexers.index import Index
from indexers.jobs.spec import ChunkingSpec, JobSpec
from indexers.jobs.state import Job, JobKey
from indexers.migrating.following import Following
from indexers.migrating.migration import Standing
from indexers.types import CollectionDefinition, CollectionKey, Document
from retrieval.clock import StageClock
from retrieval.deadline import Deadline
from retrieval.errors import MigrationActive, MigrationRefused
from retrieval.live import LiveSettings
from retrieval.migrating.types import Bounds, LabelledQuestion, MigrationState, Step, Wanted
from retrieval.server.app import App, build
from retrieval.server.engines import Chunking
from retrieval.settings.load import Loaded, load_settings
from retrieval.thresholds import Overrides, resolve
from retrieval.types import Retrieved, RetrieveRequest
from tests.fakes.tiny_models import make_tiny_bi_encoder

KEY = CollectionKey("acme", "docs")
TEXTS = {
    "valve": "the valve is tightened to forty newton metres with a wrench",
    "pump": "the pump seal is replaced every two years in advance",
    "soup": "the soup is made of tomatoes and onions and a little salt",
}


class Rig:
    """A built application, and the names of two models of different sizes."""

    def __init__(self, folder: Path, app: App, live: LiveSettings) -> None:
        self.folder = folder
        self.app = app
        self.live = live

    @property
    def other(self) -> str:
        """The model that is not the configured one."""
        return str(self.folder / "other")

    async def fill(self, name: str = "docs", count: int = 0) -> Index:
        """Makes a collection with three documents, and so many more."""
        index = await self.app.engines.catalog.create(CollectionKey("acme", name), {}, "")
        texts = TEXTS | {f"n{number}": f"number {number} of many" for number in range(count)}
        await self.write(index, texts)
        return index

    async def write(self, index: Index, texts: dict[str, str], owner: str = "") -> None:
        """Writes documents."""
        documents = [Document(one, "", text, owner=owner) for one, text in texts.items()]
        await self.app.indexer_of(index).upsert(documents, WorkClass.BULK)

    async def ask(self, query: str, collection: str = "docs") -> Retrieved:
        """Retrieves, by the dense branch alone."""
        thresholds = resolve(self.live.current, Overrides(top_k=3))
        request = RetrieveRequest("r", "acme", collection, query, None, thresholds)
        return await self.app.pipeline.retrieve(request, StageClock(), Deadline.after(60))

    async def migrate(self, wanted: Wanted) -> list[MigrationState]:
        """Migrates and returns all that was told."""
        return [state async for state in self.app.migrations.migrate(KEY, wanted)]

    async def standing(self) -> Standing:
        """Returns where the collection stands."""
        return (await self.app.migrations.standing(KEY))[0]


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Rig]:
    """Builds the application over the folder's data."""
    flags = {
        "data.folder": str(folder / "data"),
        "server.port": 0,
        "encoders.dense.model": str(folder / "first"),
        "retrieval.mode": "dense",
    }

    def load() -> Loaded:
        return load_settings(None, {}, flags)

    live = LiveSettings(load(), load)
    async with build(live) as app:
        yield Rig(folder, app, live)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Holds two models."""
    make_tiny_bi_encoder(tmp_path / "first", dim=16, seed=3)
    make_tiny_bi_encoder(tmp_path / "other", dim=24, seed=5)
    return tmp_path


async def test_each_collection_is_searched_with_the_vectors_it_is_of(folder: Path) -> None:
    """The same question to two collections: two vectors, each kept for its own; after a restart it is the same."""
    async with opened(folder) as rig:
        await rig.fill("notes")
        await rig.fill()
        question = TEXTS["pump"]
        before = await rig.ask(question)
        states = await rig.migrate(Wanted(rig.other))
        assert [states[-1].step, states[-1].documents, states[-1].encoded] == [Step.DONE, 3, 3]
        for _ in range(2):
            moved, stayed = await rig.ask(question), await rig.ask(question, "notes")
            for found in (moved, stayed):
                assert found.hits[0].passage.document_id == "pump"
                assert found.hits[0].parts.dense == pytest.approx(1.0, abs=2e-3)
        assert moved.epoch != before.epoch
        assert moved.ledger.caches  # the second time it was known
    async with opened(folder) as rig:
        index = await rig.app.engines.catalog.open(KEY)
        assert index.definition.dim == 24
        assert (await rig.ask(TEXTS["soup"])).hits[0].passage.document_id == "soup"
        await rig.write(index, {"late": "a late word about gears"})
        assert (await rig.ask("a late word about gears")).hits[0].passage.document_id == "late"
        assert [one.dim for one in rig.app.engines.encoders.opened] == [16, 24]


async def test_what_is_worse_does_not_serve_unless_it_is_accepted(folder: Path) -> None:
    """Labelled questions decide; what was encoded is kept for the next time, and one can go back."""
    async with opened(folder) as rig:
        await rig.fill()
        # No question is answered by these documents, so nDCG cannot fall; but by one that only the first model finds.
        best = (await rig.ask("gears and levers")).hits[0].passage.document_id
        questions = (LabelledQuestion("gears and levers", {best: 1}), LabelledQuestion(TEXTS["soup"], {"soup": 2}))
        impossible = Wanted(rig.other, bounds=Bounds(1.0, 0.0), questions=questions)
        states: list[MigrationState] = []
        try:
            async for state in rig.app.migrations.migrate(KEY, impossible):
                states.append(state)  # noqa: PERF401 - it may raise at the end
            refused = False
        except MigrationRefused:
            refused = True
        check = states[-1].check
        assert check is not None
        assert check.ndcg_before == 1.0
        assert check.ndcg_after is not None
        assert refused == (check.ndcg_after < 1.0)
        assert states[-1].step is (Step.FAILED if refused else Step.DONE)
        if refused:
            assert (await rig.standing()).building is not None
            accepted = await rig.migrate(Wanted(rig.other, bounds=Bounds(0.0, 1.0), questions=questions))
            assert (accepted[-1].step, accepted[-1].encoded) == (Step.DONE, 0)
        back = await rig.migrate(Wanted(back=True))
        assert (back[-1].step, back[-1].encoded) == (Step.DONE, 0)
        assert (await rig.standing()).serving.dim == 16
        await rig.app.migrations.forget(KEY)
        with pytest.raises(MigrationRefused, match="nothing to go back to"):
            await rig.migrate(Wanted(back=True))


async def test_graph_that_finds_too_little_is_refused(folder: Path) -> None:
    """The bound on recall holds; no search can find more than all."""
    async with opened(folder) as rig:
        await rig.fill()
        with pytest.raises(MigrationRefused, match="of the ten nearest"):
            await rig.migrate(Wanted(rig.other, bounds=Bounds(min_recall=1.01)))
        assert (await rig.standing()).serving.dim == 16


async def test_documents_of_jobs_are_cut_as_their_jobs_ask(folder: Path) -> None:
    """A run of the job afterwards finds every document as it would write it."""
    long = " ".join(f"word{number} of the chapter." for number in range(40))
    async with opened(folder) as rig:
        index = await rig.fill()
        spec = JobSpec.model_validate(
            {"name": "books", "collection": "docs", "source": {"kind": "folder", "path": "books"}}
        ).model_copy(update={"chunking": ChunkingSpec(limit_tokens=32)})
        await rig.app.jobs.store.put_job(Job(JobKey("acme", "books"), spec, "", datetime.now(UTC)))
        mine, chunking = Document("book", "", long, owner="books"), Chunking(limit_tokens=32)
        await rig.app.indexer_of(index, chunking).upsert([mine], WorkClass.BULK)
        await rig.migrate(Wanted(rig.other))
        moved = await rig.app.engines.catalog.open(KEY)
        again = await rig.app.indexer_of(moved, chunking).upsert([mine], WorkClass.BULK)
        others = [Document(one, "", text) for one, text in TEXTS.items()]
        rest = await rig.app.indexer_of(moved).upsert(others, WorkClass.BULK)
        assert {one.status.value for one in (*again.outcomes, *rest.outcomes)} == {"unchanged"}


async def test_migration_belongs_to_nobody_who_watches(folder: Path) -> None:
    """Who leaves leaves it running; who asks for the same joins; who asks for another one is told."""
    async with opened(folder) as rig:
        await rig.fill(count=300)
        states = rig.app.migrations.migrate(KEY, Wanted(rig.other))
        assert (await anext(states)).step is Step.ENCODING
        await states.aclose()
        with pytest.raises(MigrationActive):
            await rig.migrate(Wanted(rig.other, token_vectors=False))
        joined = await rig.migrate(Wanted(rig.other))
        assert (joined[-1].step, joined[-1].encoded) == (Step.DONE, 303)
        assert (await rig.standing()).serving.dim == 24


async def test_stopped_migration_goes_on_in_the_next_process(folder: Path) -> None:
    """What was encoded before is not encoded again; cancelling removes it."""
    async with opened(folder) as rig:
        await rig.fill(count=600)
        states = rig.app.migrations.migrate(KEY, Wanted(rig.other))
        async for state in states:
            if state.documents_done >= 64:
                break
        await states.aclose()
    async with opened(folder) as rig:
        standing = await rig.standing()
        assert standing.building is not None
        last = (await rig.migrate(Wanted(rig.other)))[-1]
        assert 0 < last.encoded <= 603 - 64
        assert (await rig.standing()).serving.dim == 24
        states = rig.app.migrations.migrate(KEY, Wanted(""))
        await anext(states)
        await states.aclose()
        await rig.app.migrations.cancel(KEY)
        assert (await rig.standing()).building is None
        assert (await rig.ask(TEXTS["valve"])).hits[0].passage.document_id == "valve"


async def test_cancelling_what_has_begun_to_change_over_comes_too_late(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change goes to its end, and whoever watches is told that it is done, not that it was stopped."""
    async with opened(folder) as rig:
        await rig.fill()
        take_over, cancelling = Following.take_over, list[asyncio.Task[None]]()

        async def cancelled(self: Following, definition: CollectionDefinition, since: int) -> None:
            if since:  # the last steps
                cancelling.append(asyncio.create_task(rig.app.migrations.cancel(KEY)))
                await asyncio.sleep(0)
            await take_over(self, definition, since)

        monkeypatch.setattr(Following, "take_over", cancelled)
        states = await rig.migrate(Wanted(rig.other))
        await asyncio.gather(*cancelling)
        assert len(cancelling) == 1
        assert states[-1].step is Step.DONE
        standing = await rig.standing()
        assert (standing.serving.dim, standing.building) == (24, None)
        assert standing.previous is not None


async def test_deleting_a_collection_ends_its_migration(folder: Path) -> None:
    """A new one of the same name knows nothing of it, and can be moved itself."""
    async with opened(folder) as rig:
        await rig.fill(count=600)
        states = rig.app.migrations.migrate(KEY, Wanted(rig.other))
        await anext(states)
        await states.aclose()
        await rig.app.migrations.abandon(KEY)
        await rig.app.engines.catalog.delete(KEY)
        await rig.fill()
        standing, state = await rig.app.migrations.standing(KEY)
        assert (standing.building, state) == (None, None)
        last = (await rig.migrate(Wanted(rig.other)))[-1]
        assert (last.step, last.encoded) == (Step.DONE, 3)
