"""The adapter for LangChain, driven by LangChain itself, against a real server process."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import threading
import weakref
from collections.abc import Iterator

import pytest
from pydantic import SecretStr, ValidationError

from retrieval.adapters import HeadraceError, SearchOptions
from tests.fakes.frameworks import CHECKED, QUESTION, fill
from tests.integration.conftest import ServerProcess

pytest.importorskip("langchain_core")

from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from retrieval.adapters.langchain import HeadraceRetriever

COLLECTION = "for-langchain"


@pytest.fixture(scope="module")
def filled(server: ServerProcess) -> ServerProcess:
    """The server with the collection."""

    async def _fill() -> None:
        async with server.client("alice") as client:
            await fill(client, COLLECTION)

    asyncio.run(_fill())
    return server


@pytest.fixture
def retriever(filled: ServerProcess) -> Iterator[HeadraceRetriever]:
    """A retriever with alice's key, closed at the end."""
    found = HeadraceRetriever(collection=COLLECTION, target=filled.address, api_key=SecretStr("alice"), top_k=3)
    yield found
    found.close()


def _ids(documents: list[Document]) -> list[str]:
    return [document.metadata["document_id"] for document in documents]


def test_langchain_documents_say_where_they_are_from(retriever: HeadraceRetriever) -> None:
    """A document has the chunk's id and text, the document's metadata in plain values, and the facts of the hit."""
    [document, *_] = retriever.invoke(QUESTION)
    found = document.metadata
    assert document.id == found["chunk_id"]
    assert document.page_content.startswith("The penstock")
    assert (found["document_id"], found["title"]) == ("penstock", "Penstock")
    assert (found["start"], found["end"]) == (0, len(document.page_content))
    assert found["source_uri"] == "file:///plant/penstock.md"
    assert found["heading_path"] == []
    assert isinstance(found["score"], float)
    assert (found["kind"], found["year"], found["tags"]) == ("pipe", 1998, ["steel", "pressure"])
    assert found["checked"] == CHECKED.isoformat()


def test_langchain_metadata_hides_nothing(retriever: HeadraceRetriever) -> None:
    """A document's own `page` is not taken for the hit's, and is not lost."""
    [document, *_] = retriever.invoke(QUESTION)
    assert document.metadata["metadata.page"] == 7
    assert "page" not in document.metadata


async def test_langchain_sync_works_while_a_loop_runs(retriever: HeadraceRetriever) -> None:
    """A notebook calls `invoke` in the thread of its running loop; the same retriever serves `ainvoke` there."""
    waited = await retriever.ainvoke(QUESTION)
    assert _ids(retriever.invoke(QUESTION)) == _ids(waited)


def test_langchain_retriever_serves_many_loops_and_threads(retriever: HeadraceRetriever) -> None:
    """One loop after the other, and threads at once, over one connection."""

    async def ask() -> list[Document]:
        answers = await asyncio.gather(*(retriever.ainvoke(QUESTION) for _ in range(4)))
        return answers[0]

    first = [_ids(asyncio.run(ask()))[0] for _ in range(3)]
    answers: list[str] = []
    threads = [threading.Thread(target=lambda: answers.append(_ids(asyncio.run(ask()))[0])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert first + answers == ["penstock"] * 7


def test_langchain_batch_and_chain_work(retriever: HeadraceRetriever) -> None:
    """The retriever is a Runnable like others."""
    chain = retriever | RunnableLambda(lambda documents: documents[0].metadata["document_id"])
    assert chain.batch([QUESTION, "Where do eels pass?"]) == ["penstock", "fish"]


def test_langchain_filters_hold_together(retriever: HeadraceRetriever) -> None:
    """A filter of the call narrows the retriever's; top_k of the call goes before the retriever's."""
    narrowed = retriever.model_copy(update={"filter": 'kind IN ("pipe", "gate")'})
    assert set(_ids(narrowed.invoke(QUESTION))) == {"penstock", "gate"}
    assert _ids(narrowed.invoke(QUESTION, filter="year > 2000")) == ["gate"]
    assert _ids(narrowed.invoke(QUESTION, filter='kind = "ladder"')) == []
    assert len(narrowed.invoke(QUESTION, top_k=1)) == 1


async def test_langchain_options_reach_the_server(retriever: HeadraceRetriever) -> None:
    """BM25 alone finds no passage without a word of the question; a threshold leaves hits out."""
    sparse = retriever.model_copy(update={"options": SearchOptions(mode="sparse", rerank=False)})
    assert _ids(await sparse.ainvoke("penstock")) == ["penstock"]
    strict = retriever.model_copy(update={"options": SearchOptions(min_score=2.0)})
    assert await strict.ainvoke(QUESTION) == []


async def test_langchain_refusal_is_one_error(filled: ServerProcess, retriever: HeadraceRetriever) -> None:
    """The server's reason and facts come through, from threads and coroutines; nobody is shown a key."""
    wrong = HeadraceRetriever(collection=COLLECTION, target=filled.address, api_key=SecretStr("nobody"))
    with pytest.raises(HeadraceError) as refused:
        await wrong.ainvoke(QUESTION)
    assert (refused.value.code, refused.value.reason) == ("UNAUTHENTICATED", "UNAUTHENTICATED")
    assert "nobody" not in repr(wrong)
    wrong.close()
    with pytest.raises(HeadraceError) as unknown:
        retriever.invoke(QUESTION, filter='colour = "red"')
    assert unknown.value.code == "INVALID_ARGUMENT"
    assert "colour" in str(unknown.value)
    with pytest.raises(HeadraceError) as unread:
        retriever.invoke(QUESTION, filter="year >")
    assert (unread.value.reason, unread.value.facts["field"]) == ("INVALID_INPUT", "filter")


def test_langchain_closed_retriever_opens_again(retriever: HeadraceRetriever) -> None:
    """Closing ends a connection, not the retriever; closing twice is nothing."""
    retriever.close()
    retriever.close()
    assert _ids(retriever.invoke(QUESTION))[0] == "penstock"


def test_langchain_retriever_copies_and_pickles(retriever: HeadraceRetriever) -> None:
    """Copies for another thread, and for another process, have connections of their own."""
    retriever.invoke(QUESTION)
    for copied in (copy.deepcopy(retriever), pickle.loads(pickle.dumps(retriever))):
        assert _ids(copied.invoke(QUESTION))[0] == "penstock"
        copied.close()
    assert _ids(retriever.invoke(QUESTION))[0] == "penstock"


def test_langchain_forgotten_retriever_closes_its_channel(filled: ServerProcess) -> None:
    """A retriever that nobody holds any more takes its connection along."""
    retriever = HeadraceRetriever(collection=COLLECTION, target=filled.address, api_key=SecretStr("alice"))
    retriever.invoke(QUESTION)
    held, closing = weakref.ref(retriever), retriever._connection._closing
    assert closing is not None
    del retriever
    gc.collect()
    assert held() is None
    assert not closing.alive


def test_langchain_connection_fields_are_fixed(retriever: HeadraceRetriever) -> None:
    """A new target would go unheard, so it is refused."""
    with pytest.raises(ValidationError, match="frozen"):
        retriever.target = "elsewhere:1"
