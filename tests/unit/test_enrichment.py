"""Steps of jobs that ask a model about documents: what they add, what they cost, and what they never do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import ValidationError

from indexers.errors import TargetUnavailable
from indexers.jobs.spec import EnrichmentSpec
from indexers.jobs.state import DocumentState
from indexers.types import Document, FieldType
from retrieval.dispatch.open import open_dispatcher
from retrieval.enrichment import tasks
from retrieval.enrichment.asking import TextModel, Unusable
from retrieval.enrichment.enricher import JobEnricher
from retrieval.errors import BackendUnavailable
from retrieval.routing.router import Router
from retrieval.settings.generation import GenerationSettings
from retrieval.speech import GenerationParams
from retrieval.types import Prompt
from tests.fakes.counters import WordCounter
from tests.fakes.job_rigs import KEY, rig_of, spec_of
from tests.fakes.job_store import MemoryJobStore
from tests.fakes.scripted_backends import says

TEXT = "# Pumps\n\nPumps move water through pipes.\n\n# Valves\n\nValves stop the water again."
FIELDS = {"year": FieldType.INTEGER}


def step(**values: object) -> EnrichmentSpec:
    """Returns a step."""
    return EnrichmentSpec.model_validate({"name": "said", "task": "summary", **values})


class PlainBackend:
    """Plays one script, the same each time, on the clock of the wall."""

    model = "m"
    context_window_tokens = 4096

    def __init__(self, script: Sequence[object], name: str = "model") -> None:
        self.script, self.name, self.counter = script, name, WordCounter()
        self.asked: list[Prompt] = []

    async def stream(self, prompt: Prompt, params: GenerationParams):
        self.asked.append(prompt)
        for one in self.script:
            if isinstance(one, Exception):
                raise one
            yield one

    async def close(self) -> None:
        pass


class Rig:
    """An enricher over one scripted backend."""

    def __init__(self, *scripts: Sequence[object], rules: Sequence[object] = (), store: MemoryJobStore | None = None):
        self.backend = PlainBackend(*scripts)
        self.settings = GenerationSettings.model_validate(
            {
                "default_backend": "model",
                "backends": [
                    {
                        "name": "model",
                        "kind": "openai",
                        "base_url": "http://localhost:1/v1",
                        "model": "m",
                        "capability": 1.0,
                        "input_price": 1.0,
                        "output_price": 10.0,
                    },
                    {"name": "other", "kind": "openai", "base_url": "http://localhost:2/v1", "model": "m"},
                ],
                "routing": {"rules": list(rules)},
            }
        )
        self.store = store or MemoryJobStore()

    def enricher(self, *steps: EnrichmentSpec) -> JobEnricher:
        """Returns a new enricher, as a new run has one."""
        other = PlainBackend(says("never asked"), "other")
        dispatcher = open_dispatcher({"model": [self.backend], "other": [other]}, lambda: self.settings)
        router = Router(dispatcher.services, lambda: self.settings)
        model = TextModel(router, dispatcher, lambda: self.settings, "default", "docs")
        return JobEnricher(steps, model, WordCounter(), (self.store, KEY), FIELDS)


async def test_summary_becomes_metadata() -> None:
    """What the model says of a document is stored under the step's name, and what it took is counted."""
    rig = Rig(says("It is about pumps."))
    enricher = rig.enricher(step())
    enriched = await enricher.enrich(Document("d", "", TEXT))
    assert enriched.document.metadata == {"said": "It is about pumps."}
    assert enriched.warnings == ()
    [use] = enricher.figures()
    assert (use.calls, use.tokens, use.failed) == (1, 13, 0)
    assert use.cost == pytest.approx((10 * 1.0 - 4 * 1.0 + 3 * 10.0) / 1e6)


async def test_result_is_remembered_over_runs() -> None:
    """The same text is asked about once, whatever run it is; another text, or another question, anew."""
    rig = Rig(says("It is about pumps."))
    await rig.enricher(step()).enrich(Document("d", "", TEXT))
    again = rig.enricher(step())
    await again.enrich(Document("other", "", TEXT))
    assert (again.figures()[0].calls, again.figures()[0].remembered) == (0, 1)
    await again.enrich(Document("d", "", TEXT + " More."))
    await rig.enricher(step(task="questions", into="search_text")).enrich(Document("d", "", TEXT))
    assert len(rig.backend.asked) == 3


async def test_labels_are_only_those_that_are_declared() -> None:
    """What the model makes up is no label."""
    rig = Rig(says('```json ["HOWTO", "made up", "howto"] ```'.replace(" ", " ")))
    enriched = await rig.enricher(step(task="labels", labels=["howto", "reference"])).enrich(Document("d", "", TEXT))
    assert enriched.document.metadata == {"said": ("howto",)}


async def test_fields_are_coerced_to_the_schema() -> None:
    """A value of the declared type is stored, another one is left out with a warning."""
    wanted = step(task="fields", fields={"year": "the year", "author": "who wrote it"})
    good = await Rig(says('{"year": "2021", "author": "Ann"}')).enricher(wanted).enrich(Document("d", "", TEXT))
    assert good.document.metadata == {"year": 2021, "author": "Ann"}
    bad = await Rig(says('{"year": "last year"}')).enricher(wanted).enrich(Document("d", "", TEXT))
    assert bad.document.metadata == {}
    assert "year" in bad.warnings[0]


async def test_questions_of_each_part_become_notes_at_their_spans() -> None:
    """Text for the search goes with the span that it is about, all of which is asked about."""
    rig = Rig(says("1. What moves water?"))
    asked = step(task="questions", over="chunk", into="search_text", input_tokens=32)
    document = Document("d", "", TEXT * 6)
    enriched = await rig.enricher(asked).enrich(document)
    assert len(enriched.document.notes) > 1
    assert len(rig.backend.asked) > 1
    assert all(note.text.startswith("What moves") for note in enriched.document.notes)
    assert enriched.document.notes[0].start == 0
    assert enriched.document.notes[-1].end == len(document.text)
    assert enriched.document.text == document.text


async def test_budget_ends_the_asking_and_says_so() -> None:
    """Beyond the tokens of a run documents go without, with a warning, and the report counts them."""
    rig = Rig(says("It is about pumps."))
    enricher = rig.enricher(step(input_tokens=32, output_tokens=10, max_tokens=60))
    first = await enricher.enrich(Document("a", "", "One text."))
    second = await enricher.enrich(Document("b", "", "Two texts."))
    third = await enricher.enrich(Document("c", "", "Three texts."))
    assert first.document.metadata
    assert second.document.metadata
    assert third.document.metadata == {}
    assert "budget" in third.warnings[0]
    assert enricher.figures()[0].left_out == 1


async def test_rule_on_a_documents_metadata_keeps_it_from_a_backend() -> None:
    """A document of a class that a backend may not read goes to another one."""
    rule = {"name": "internal", "field": "policy_class", "values": ["internal"], "backends": ["other"]}
    rig = Rig(says("It is about pumps."), rules=[rule])
    other = PlainBackend(says("no"), "other")
    dispatcher = open_dispatcher({"model": [rig.backend], "other": [other]}, lambda: rig.settings)
    model = TextModel(
        Router(dispatcher.services, lambda: rig.settings), dispatcher, lambda: rig.settings, "default", "docs"
    )
    enricher = JobEnricher([step()], model, WordCounter(), (rig.store, KEY), FIELDS)
    secret = await enricher.enrich(Document("d", "", TEXT, metadata={"policy_class": "internal"}))
    assert secret.document.metadata == {"policy_class": "internal", "said": "no"}
    assert rig.backend.asked == []
    await rig.enricher(step(backend="model")).enrich(Document("d", "", TEXT))
    assert len(rig.backend.asked) == 1


async def test_backend_that_is_away_is_for_later() -> None:
    """An outage is no answer: the document is tried again instead of going without."""
    rig = Rig([BackendUnavailable("model", "is away", transient=True)])
    with pytest.raises(TargetUnavailable):
        await rig.enricher(step(backend="model")).enrich(Document("d", "", TEXT))


async def test_run_with_steps_writes_what_they_add_and_asks_once(tmp_path: Path) -> None:
    """Metadata and search text reach the index, a second run asks nothing, and offsets stay true."""
    steps = [step(), step(name="asked", task="questions", into="search_text")]
    spec = spec_of(enrich=[one.model_dump() for one in steps])
    async with rig_of(tmp_path, spec) as job:
        model = Rig(says("What moves water?"), store=job.store)  # type: ignore[arg-type]
        job.source.files = {"a.txt": b"Pumps move water.", "b.txt": b"Valves stop it."}
        run = await job.run(enricher=model.enricher(*steps))
        assert run.documents == {DocumentState.VERIFIED: 2}
        document = await job.index.get_document("a.txt")
        assert document is not None
        assert document.metadata["said"] == "What moves water?"
        assert [note.text for note in document.notes] == ["What moves water?"]
        assert json.loads(run.report)["enrichments"][0]["calls"] == 2
        asked = len(model.backend.asked)
        again = await job.run(enricher=model.enricher(*steps))
        assert again.documents == {DocumentState.UNCHANGED: 2}
        assert len(model.backend.asked) == asked == 4


@pytest.mark.parametrize("said", ["", "no list", '{"a": 1}'])
def test_answer_that_is_no_list_of_labels_is_unusable(said: str) -> None:
    """Whatever a model says instead, nothing is made of it."""
    with pytest.raises(Unusable):
        tasks.read(step(task="labels", labels=["a"]), said)


@pytest.mark.parametrize(
    "values",
    [
        {"task": "labels"},
        {"task": "fields"},
        {"over": "chunk"},
        {"task": "labels", "labels": ["a"], "into": "search_text"},
    ],
)
def test_step_that_cannot_be_meant_is_refused(values: dict[str, object]) -> None:
    """A step without what it needs, or into a place where its result makes no sense, is an error of the job file."""
    with pytest.raises(ValidationError):
        step(**values)
