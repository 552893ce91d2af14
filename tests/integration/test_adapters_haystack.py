"""The adapter for Haystack, driven by Haystack's own pipelines, against a real server process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from retrieval.adapters import HeadraceError, SearchOptions
from tests.fakes.frameworks import CHECKED, QUESTION, fill
from tests.integration.conftest import ServerProcess

pytest.importorskip("haystack")

from haystack import Document, Pipeline
from haystack.components.builders import PromptBuilder
from haystack.utils import Secret
from haystack.utils.filters import document_matches_filter

from retrieval.adapters.haystack import HeadraceRetriever

COLLECTION = "for-haystack"


@pytest.fixture(scope="module")
def address(server: ServerProcess) -> str:
    """Where the server listens, with the collection filled."""

    async def _fill() -> None:
        async with server.client("alice") as client:
            await fill(client, COLLECTION)

    asyncio.run(_fill())
    return server.address


@pytest.fixture
def retriever(address: str) -> Iterator[HeadraceRetriever]:
    """A component with alice's key, closed at the end."""
    found = HeadraceRetriever(COLLECTION, target=address, api_key=Secret.from_token("alice"), top_k=3)
    yield found
    found.close()


def _ids(documents: list[Document]) -> list[str]:
    return [document.meta["document_id"] for document in documents]


def test_haystack_sends_nothing_home() -> None:
    """In the tests' process there is no telemetry to send with."""
    from haystack.telemetry import _telemetry

    assert _telemetry.telemetry is None


def test_haystack_documents_say_where_they_are_from(retriever: HeadraceRetriever) -> None:
    """A document has the chunk's id, its score, and the metadata in plain values."""
    [document, *_] = retriever.run(QUESTION)["documents"]
    assert document.content is not None
    assert document.content.startswith("The penstock")
    assert document.id == document.meta["chunk_id"]
    assert document.score == document.meta["score"]
    assert document.meta["checked"] == CHECKED.isoformat()


async def test_haystack_async_and_sync_agree(retriever: HeadraceRetriever) -> None:
    """`run_async` in a loop and `run` in the thread of that loop give the same."""
    waited = await retriever.run_async(QUESTION)
    assert _ids(waited["documents"]) == _ids(retriever.run(QUESTION)["documents"])
    assert _ids(waited["documents"])[0] == "penstock"


def test_haystack_options_reach_the_server(address: str) -> None:
    """BM25 alone finds no passage without a word of the question."""
    options, key = SearchOptions(mode="sparse", rerank=False), Secret.from_token("alice")
    retriever = HeadraceRetriever(COLLECTION, target=address, api_key=key, options=options)
    assert _ids(retriever.run("penstock")["documents"]) == ["penstock"]
    retriever.close()


async def test_haystack_pipeline_runs_it(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written down as YAML and read again, the component feeds a prompt, in threads and in the loop."""
    monkeypatch.setenv("HEADRACE_API_KEY", "alice")
    key, options = Secret.from_env_var("HEADRACE_API_KEY"), SearchOptions(rerank=False)
    filters = _where("meta.kind", "!=", "ladder")
    retriever = HeadraceRetriever(
        COLLECTION, target=address, api_key=key, top_k=2, filters=filters, options=options, timeout_s=20.0
    )
    written = Pipeline()
    written.add_component("retriever", retriever)
    text = written.dumps()
    assert "alice" not in text
    pipeline = Pipeline.loads(text, allowed_modules=["retrieval.adapters.haystack"])
    assert pipeline.dumps() == text
    template = "{% for d in documents %}{{ d.meta.document_id }} {% endfor %}"
    pipeline.add_component("prompt", PromptBuilder(template, required_variables=["documents"]))
    pipeline.connect("retriever.documents", "prompt.documents")
    asked: dict[str, Any] = {"retriever": {"query": QUESTION}}
    answers = [await asyncio.to_thread(pipeline.run, asked), await pipeline.run_async(asked)]
    assert [answer["prompt"]["prompt"].split() for answer in answers] == [["penstock", "gate"]] * 2
    pipeline.close()


def test_haystack_key_by_value_is_not_written_down(retriever: HeadraceRetriever) -> None:
    """A key that was given as text stays out of a written pipeline."""
    with pytest.raises(ValueError, match="serialize"):
        retriever.to_dict()


def test_haystack_missing_key_is_told_at_warm_up(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable is read when the component is warmed up, not when it is built."""
    monkeypatch.delenv("HEADRACE_API_KEY", raising=False)
    retriever = HeadraceRetriever(COLLECTION, target=address, api_key=Secret.from_env_var("HEADRACE_API_KEY"))
    with pytest.raises(ValueError, match="HEADRACE_API_KEY"):
        retriever.warm_up()


def _where(field: str, operator: str, value: object) -> dict[str, Any]:
    return {"field": field, "operator": operator, "value": value}


def _joined(operator: str, *conditions: dict[str, Any]) -> dict[str, Any]:
    return {"operator": operator, "conditions": list(conditions)}


_STEEL = _where("meta.tags", "in", ["steel"])
_OLD = _where("meta.year", "<", 2000)
_GATE = _where("meta.kind", "==", "gate")
_FILTERS = [
    (_where("meta.kind", "==", "pipe"), {"penstock"}),
    (_where("meta.kind", "!=", "pipe"), {"gate", "fish"}),
    (_where("meta.year", ">", 1998), {"gate"}),
    (_where("meta.year", ">=", 1998), {"penstock", "gate"}),
    (_where("meta.year", "<", 2011.0), {"penstock"}),
    (_where("meta.checked", "<=", "2021-01-01T00:00:00+00:00"), {"gate"}),
    (_where("meta.checked", ">", CHECKED.replace(year=2021)), {"penstock"}),
    (_where("meta.kind", "in", ["pipe", "ladder"]), {"penstock", "fish"}),
    (_where("meta.kind", "not in", ["pipe", "ladder"]), {"gate"}),
    (_where("meta.kind", "in", []), set()),
    (_where("meta.year", "==", None), {"fish"}),
    (_where("meta.year", "!=", None), {"penstock", "gate"}),
    (_where("kind", "==", "pipe"), {"penstock"}),
    (_joined("AND", _OLD, _where("meta.kind", "!=", "gate")), {"penstock"}),
    (_joined("OR", _OLD, _where("meta.year", "==", None)), {"penstock", "fish"}),
    (_joined("NOT", _OLD), {"gate", "fish"}),
    (_joined("NOT", _OLD, _GATE), {"penstock", "gate", "fish"}),
    (_joined("AND", _joined("OR", _GATE, _joined("NOT", _OLD))), {"gate", "fish"}),
]


@pytest.mark.parametrize(("filters", "expected"), _FILTERS)
def test_haystack_filters_mean_the_same(
    retriever: HeadraceRetriever, filters: dict[str, Any], expected: set[str]
) -> None:
    """A filter finds what Haystack itself lets through."""
    documents = retriever.run(QUESTION)["documents"]
    assert {each.meta["document_id"] for each in documents if document_matches_filter(filters, each)} == expected
    assert set(_ids(retriever.run(QUESTION, filters=filters)["documents"])) == expected


def test_haystack_several_values_need_one_that_fits(retriever: HeadraceRetriever) -> None:
    """On a field with several values one that fits is enough."""
    assert set(_ids(retriever.run(QUESTION, filters=_STEEL)["documents"])) == {"penstock", "gate"}


def test_haystack_filters_of_a_run_narrow(address: str) -> None:
    """A restriction of the component cannot be lifted by a run; top_k of a run goes first."""
    retriever = HeadraceRetriever(
        COLLECTION, target=address, api_key=Secret.from_token("alice"), top_k=3, filters=_STEEL
    )
    lifted = _joined("OR", _where("meta.kind", "!=", "x"))
    assert set(_ids(retriever.run(QUESTION, filters=lifted)["documents"])) == {"penstock", "gate"}
    assert _ids(retriever.run(QUESTION, filters=_OLD)["documents"]) == ["penstock"]
    assert len(retriever.run(QUESTION, top_k=1)["documents"]) == 1
    retriever.close()


def test_haystack_refusal_is_one_error(address: str) -> None:
    """The server's reason comes through."""
    retriever = HeadraceRetriever(COLLECTION, target=address)
    with pytest.raises(HeadraceError) as refused:
        retriever.run(QUESTION)
    assert refused.value.code == "UNAUTHENTICATED"
    retriever.close()
