"""The client is thin: what it loads, and how it cuts an import into messages."""

from __future__ import annotations

import subprocess
import sys

import pytest

from headrace.v1 import common_pb2, index_pb2, retrieval_pb2
from retrieval.client import Client, document, retrieve_request
from retrieval.client.messages import import_messages

_HEAVY = ("onnxruntime", "qdrant_client", "qdrant_edge", "numpy", "tokenizers", "pydantic", "openai")


def test_client_import_loads_no_engine() -> None:
    """`from headrace import Client` loads neither models nor stores, nor numpy."""
    program = f"import sys; from headrace import Client; print([name for name in {_HEAVY!r} if name in sys.modules])"
    paths = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=paths)
    assert found.stdout.strip() == "[]"


async def test_client_import_messages_are_bounded() -> None:
    """An import is cut by number and by bytes, names its collection once, and is never empty."""
    small = [document(str(number), "x") for number in range(150)]
    messages = [message async for message in import_messages("docs", small)]
    assert [len(message.documents) for message in messages] == [64, 64, 22]
    assert [message.collection for message in messages] == ["docs", "", ""]
    large = [document(str(number), "x" * 700_000) for number in range(3)]
    assert [len(message.documents) async for message in import_messages("docs", large)] == [1, 1, 1]
    assert [message.collection async for message in import_messages("docs", [])] == ["docs"]


async def test_client_import_messages_take_async_iterables() -> None:
    """Documents may come as they are made."""

    async def documents() -> object:
        yield document("a", "x")

    [message] = [message async for message in import_messages("docs", documents())]  # type: ignore[arg-type]
    assert message == index_pb2.ImportDocumentsRequest(collection="docs", documents=[document("a", "x")])


def test_client_builds_requests_without_defaults() -> None:
    """What is not given is absent on the wire, so that the server's settings hold."""
    request = retrieve_request("docs", "q")
    assert not request.HasField("top_k")
    assert not request.HasField("filter")
    assert not request.HasField("cache_control")
    assert retrieve_request("docs", "q", filter=common_pb2.Filter()).HasField("filter")
    fresh = retrieval_pb2.CacheControl(no_cache=True)
    assert retrieve_request("docs", "q", cache_control=fresh).cache_control == fresh


async def test_client_delete_needs_exactly_one_selection() -> None:
    """Ids and a filter together, or neither, are a mistake of the program."""
    async with Client("127.0.0.1:1") as client:
        with pytest.raises(ValueError, match="either"):
            await client.delete_documents("docs")
