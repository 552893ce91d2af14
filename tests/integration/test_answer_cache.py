"""The answer cache in the real request path: bundled encoder, embedded index, a backend that counts its calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from encoders.types import WorkClass
from indexers.index import Index
from indexers.types import CollectionKey, Document, FieldType
from retrieval.answers.guard import compare, read_facts
from retrieval.answers.similarity import features_of
from retrieval.clock import StageClock
from retrieval.deadline import Deadline
from retrieval.dispatch.open import dispatcher_over
from retrieval.errors import NotCached
from retrieval.live import LiveSettings
from retrieval.pipeline import Pipeline
from retrieval.reuse import Reuse
from retrieval.scope import VectorSpace
from retrieval.server.app import App, build
from retrieval.settings.load import Loaded, load_settings
from retrieval.speech import Delta, FinishReason
from retrieval.thresholds import Overrides, resolve
from retrieval.types import CacheControl, Completed, GenerateEvent, GenerateRequest, Prompt, RetrieveRequest
from tests.fakes.answering import ScriptedAnswers, quote_first

PLAIN = CacheControl()
KEY = CollectionKey("acme", "docs")
QUESTION = "How tight is valve 7?"
TEXTS = {
    "valve": ("Valve 7", "Valve 7 is tightened to 40 newton metres. Use a torque wrench."),
    "pump": ("Pump seal", "The pump seal is replaced every two years. Order part K16 in advance."),
    "soup": ("Soup", "Tomato soup is made of tomatoes, onions and a little salt."),
}


@dataclass(frozen=True, slots=True)
class Rig:
    """A built application whose answers are scripted."""

    app: App
    live: LiveSettings
    pipeline: Pipeline
    backend: ScriptedAnswers
    index: Index

    async def write(self, name: str, title: str, text: str, **metadata: str) -> None:
        """Adds or replaces a document."""
        document = Document(name, title, text, metadata=dict(metadata))
        await self.app.indexer_of(self.index).upsert([document], WorkClass.BULK)

    async def ask(
        self, question: str = QUESTION, control: CacheControl = PLAIN, **changed: object
    ) -> tuple[str, Completed]:
        """Runs one Generate to its end; returns the answer's text and how it ended."""
        events = await self.events(question, control, **changed)
        end = events[-1]
        assert isinstance(end, Completed)
        return "".join(event.text for event in events if isinstance(event, Delta)), end

    async def events(
        self, question: str = QUESTION, control: CacheControl = PLAIN, **changed: object
    ) -> list[GenerateEvent]:
        """Runs one Generate to its end."""
        thresholds = resolve(self.live.current, Overrides())
        asked = RetrieveRequest("r1", "acme", "docs", question, None, thresholds, control)
        wanted = GenerateRequest(replace(asked, **changed), "scripted", 200, 0.0)  # type: ignore[arg-type]
        return [event async for event in self.pipeline.generate(wanted, StageClock(), Deadline.after(10))]


@asynccontextmanager
async def opened(folder: Path, write: Callable[[Prompt], str] = quote_first, **settings: object) -> AsyncIterator[Rig]:
    """Builds an application on an empty folder, indexes the documents, and scripts its answers."""
    flags = {"data.folder": str(folder), "server.port": 0} | settings

    def load() -> Loaded:
        return load_settings(None, {}, flags)

    live = LiveSettings(load(), load)
    async with build(live) as app:
        index = await app.engines.catalog.create(KEY, {"kind": FieldType.KEYWORD}, "")
        backend = ScriptedAnswers(app.engines.counter, write)
        pipeline = Pipeline(
            replace(app.engines, dispatcher=dispatcher_over(backend)), app.pipeline._gate.admission, live
        )
        rig = Rig(app, live, pipeline, backend, index)
        for name, (title, text) in TEXTS.items():
            await rig.write(name, title, text)
        yield rig
        await pipeline.close()


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    """An application for one test."""
    async with opened(tmp_path / "data") as one:
        yield one


async def test_equal_question_is_answered_without_the_model(rig: Rig) -> None:
    """The same events and text, the gates' values in the report, and no tokens spent."""
    fresh, first = await rig.ask()
    again, second = await rig.ask("  how tight is   valve 7 ")
    assert again == fresh
    assert second.citations == first.citations
    assert rig.backend.asked == [QUESTION]
    assert first.reuse.stored
    assert (first.reuse.reuse, second.reuse.reuse) == (Reuse.NONE, Reuse.EQUAL)
    assert second.reuse.evidence is not None
    assert second.reuse.evidence.holds
    assert (second.usage.output_tokens, second.finish_reason) == (0, FinishReason.STOP)
    assert second.reuse.key == first.reuse.key


async def test_answer_ends_with_the_document_it_cites(rig: Rig) -> None:
    """A changed text is answered anew at once; a deleted one is quoted by no answer (case SEM-09)."""
    await rig.ask()
    await rig.write("valve", "Valve 7", "Valve 7 is tightened to 55 newton metres. Use a torque wrench.")
    changed, end = await rig.ask()
    assert "55" in changed
    assert end.reuse.reason == "evidence"
    await rig.index.delete(["valve"])
    gone, end = await rig.ask()
    assert "55" not in gone
    assert "40" not in gone
    assert end.reuse.reuse is Reuse.NONE


async def test_answer_ends_when_something_better_comes(rig: Rig) -> None:
    """A new passage above the cited one may change the answer, so the model is asked."""
    await rig.ask()
    await rig.write("valve7", "How tight is valve 7?", "How tight is valve 7? It is tightened to 60 newton metres.")
    better, end = await rig.ask()
    assert "60" in better
    assert end.reuse.evidence is not None
    assert end.reuse.evidence.newcomers > 0


async def test_answer_outlives_a_write_that_does_not_concern_it(rig: Rig) -> None:
    """A write elsewhere moves the epoch; retrieval runs again and still finds the evidence."""
    await rig.ask()
    await rig.write("cats", "Cats", "Cats sleep for most of the day.")
    _, end = await rig.ask()
    assert end.reuse.reuse is Reuse.EQUAL
    assert len(rig.backend.asked) == 1


async def test_answer_of_another_tenant_policy_or_setting_is_not_served(rig: Rig) -> None:
    """Gate 1: everything in the scope but the state must agree exactly."""
    await rig.ask()
    _, policy = await rig.ask(data_policy="eu")
    thresholds = resolve(rig.live.current, Overrides(top_k=3))
    _, shallow = await rig.ask(thresholds=thresholds)
    assert (policy.reuse.reuse, shallow.reuse.reuse) == (Reuse.NONE, Reuse.NONE)
    assert len(rig.backend.asked) == 3


@pytest.mark.parametrize("other", ["How tight is valve 17?", "How tight is valve 7 not?", "What's valve 7 made of?"])
async def test_look_alike_question_asks_the_model(rig: Rig, other: str) -> None:
    """Another number, a negation or another matter is another question (case SEM-02)."""
    await rig.ask()
    _, end = await rig.ask(other)
    assert end.reuse.reuse is Reuse.NONE
    assert len(rig.backend.asked) == 2


async def test_similar_question_is_not_served_before_there_is_evidence(rig: Rig) -> None:
    """The first rewrite is answered by the model, and the cache learns from the comparison."""
    await rig.ask()
    _, end = await rig.ask("Please tell me how tight valve 7 is")
    assert end.reuse.reason
    assert end.reuse.reuse is Reuse.NONE
    assert len(rig.backend.asked) == 2


SIMILAR = "Please tell me how tight valve 7 is"


def space(rig: Rig) -> VectorSpace:
    """Returns the collection as the rig's encoder has it."""
    return VectorSpace(KEY, f"{rig.app.encoder.model_id}@{rig.app.encoder.revision}")


async def teach(rig: Rig, label_count: int = 900) -> None:
    """Gives the collection's risk control the evidence that answers to such questions serve well."""
    encoder = rig.app.encoder
    asked, stored = [(await encoder.encode_query(text, None)).value for text in (SIMILAR, QUESTION)]
    assert asked is not None
    assert stored is not None
    features = features_of(asked, stored, compare(read_facts(SIMILAR), read_facts(QUESTION)))
    control = rig.app.engines.caches.answers._risks.of(space(rig))
    for number in range(label_count):
        entry = number.to_bytes(32, "big")
        control.learn(entry, control.judge(entry, features, 0.01), features, correct=True)


async def test_similar_question_is_served_once_there_is_evidence(tmp_path: Path) -> None:
    """Its gates are reported; it is compared in the shadow, and what is learned counts."""
    async with opened(tmp_path / "data", **{"cache.answers.shadow_share": 1.0}) as rig:
        fresh, _ = await rig.ask()
        await rig.ask(SIMILAR, CacheControl(no_store=True))
        await teach(rig)
        control = rig.app.engines.caches.answers._risks.of(space(rig))
        before = control.figures.served_labels
        served, end = await rig.ask(SIMILAR)
        assert served == fresh
        assert (end.reuse.reuse, end.reuse.shadowed) == (Reuse.SIMILAR, True)
        assert end.reuse.risk is not None
        assert end.reuse.risk.error_bound <= end.reuse.risk.max_error_rate == 0.01
        assert 0.7 <= end.reuse.similarity < 1.0
        await rig.pipeline._writer.settle()
        assert rig.backend.asked == [QUESTION, SIMILAR, SIMILAR]
        assert control.figures.served_labels == before + 1
        _, other = await rig.ask("Please tell me how tight valve 8 is")
        assert other.reuse.reason == "number"


@pytest.mark.parametrize("setting", [{"similar": False}, {"max_error_rate": 0.0}, {"min_similarity": 1.0}])
async def test_similar_questions_can_be_left_out(tmp_path: Path, setting: dict[str, object]) -> None:
    """Switched off, at no accepted error, or at identity alone, evidence changes nothing; equal ones serve (SEM-04)."""
    flags = {f"cache.answers.{name}": value for name, value in setting.items()}
    async with opened(tmp_path / "data", **flags) as rig:
        await rig.ask()
        await teach(rig)
        _, end = await rig.ask(SIMILAR)
        _, equal = await rig.ask()
        assert (end.reuse.reuse, equal.reuse.reuse) == (Reuse.NONE, Reuse.EQUAL)


async def test_long_question_is_neither_looked_up_nor_stored(rig: Rig) -> None:
    """Two questions that are equal as far as the encoder reads meet no answer of one another (case SEM-03)."""
    long = "context " * 600
    _, first = await rig.ask(f"{long}Who signs the permit?")
    _, second = await rig.ask(f"{long}When is the pump replaced?")
    assert (first.reuse.stored, second.reuse.stored) == (False, False)
    assert second.reuse.reason == "truncated"
    assert len(rig.backend.asked) == 2


@pytest.mark.parametrize(
    ("write", "finish"),
    [
        (quote_first, FinishReason.LENGTH),
        (quote_first, FinishReason.CONTENT_FILTER),
        (lambda prompt: "I do not know.", FinishReason.STOP),
        (lambda prompt: "See [1] and [99].", FinishReason.STOP),
        (lambda prompt: "", FinishReason.STOP),
    ],
)
async def test_answer_that_is_not_whole_is_not_kept(
    tmp_path: Path, write: Callable[[Prompt], str], finish: FinishReason
) -> None:
    """Cut, filtered, empty, citing nothing or what is not there: the next one is asked for again."""
    async with opened(tmp_path / "data", write) as rig:
        rig.backend.finish = finish
        _, first = await rig.ask()
        await rig.ask()
        assert not first.reuse.stored
        assert len(rig.backend.asked) == 2


async def test_directives_hold(rig: Rig) -> None:
    """no_cache asks the model and keeps its answer, no_store keeps nothing, only_if_cached fails, max_age_s bounds."""
    with pytest.raises(NotCached):
        await rig.ask(control=CacheControl(only_if_cached=True))
    _, unkept = await rig.ask(control=CacheControl(no_store=True))
    _, kept = await rig.ask(control=CacheControl(no_cache=True))
    _, served = await rig.ask(control=CacheControl(only_if_cached=True))
    _, fresh = await rig.ask(control=CacheControl(max_age_s=0.0))
    assert (unkept.reuse.stored, kept.reuse.stored) == (False, True)
    assert (served.reuse.reuse, fresh.reuse.reuse) == (Reuse.EQUAL, Reuse.NONE)
    assert len(rig.backend.asked) == 3


async def test_cache_off_for_a_request_shares_nothing(rig: Rig) -> None:
    """`cache: false` neither reads nor writes, and joins nobody's work."""
    await rig.ask()
    thresholds = resolve(rig.live.current, Overrides(cache=False))
    _, end = await rig.ask(thresholds=thresholds)
    assert end.reuse.reason == "off"
    assert len(rig.backend.asked) == 2


async def test_policy_forbids_answers_made_from_a_class_of_documents(tmp_path: Path) -> None:
    """A result or an answer that saw such a document is not kept; others are."""
    policies = [{"field": "kind", "value": "secret"}]
    async with opened(tmp_path / "data", **{"cache.policies": policies}) as rig:
        await rig.write("valve", "Valve 7", TEXTS["valve"][1], kind="secret")
        _, end = await rig.ask()
        await rig.ask()
        assert not end.reuse.stored
        assert len(rig.backend.asked) == 2


async def test_policy_holds_for_what_was_kept_before_it(tmp_path: Path) -> None:
    """A reload that forbids a class ends the service of answers and results made from it, trusted ones too."""
    async with opened(tmp_path / "data", **{"cache.answers.trust_ms": 60_000}) as rig:
        await rig.write("valve", "Valve 7", TEXTS["valve"][1], kind="secret")
        await rig.ask()
        _, before = await rig.ask()
        forbidding = {"data.folder": str(tmp_path / "data"), "server.port": 0, "cache.answers.trust_ms": 60_000}
        forbidding["cache.policies"] = [{"field": "kind", "value": "secret"}]
        rig.live._load = lambda: load_settings(None, {}, forbidding)
        assert rig.live.reload().changed == ("cache.policies",)
        _, after = await rig.ask()
        assert (before.reuse.reuse, after.reuse.reuse) == (Reuse.EQUAL, Reuse.NONE)
        assert len(rig.backend.asked) == 2


async def test_trusted_answer_skips_retrieval_for_a_moment(tmp_path: Path) -> None:
    """Within `trust_ms` of its check the same question is served as it was; the report says so."""
    async with opened(tmp_path / "data", **{"cache.answers.trust_ms": 60_000}) as rig:
        first = await rig.events()
        await rig.write("cats", "Cats", "Cats sleep for most of the day.")
        again = await rig.events()
        end = again[-1]
        assert isinstance(end, Completed)
        assert end.reuse.evidence is not None
        assert end.reuse.evidence.trusted
        assert len(rig.backend.asked) == 1
        assert [type(event) for event in again][:1] == [type(event) for event in first][:1]


async def test_identical_answers_are_written_once(rig: Rig) -> None:
    """Many callers at once, the first of which leaves: one stream, all others get the whole text."""
    rig.backend.gate = asyncio.Event()
    callers = [asyncio.create_task(rig.ask()) for _ in range(40)]
    while not rig.backend.asked:
        await asyncio.sleep(0)
    callers[0].cancel()
    rig.backend.gate.set()
    ended = await asyncio.gather(*callers, return_exceptions=True)
    assert isinstance(ended[0], asyncio.CancelledError)
    texts = {one[0] for one in ended[1:] if isinstance(one, tuple)}
    assert len(texts) == 1
    assert len(rig.backend.asked) == 1
