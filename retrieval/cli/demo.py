"""`headrace demo`: indexes documents that every CPython carries, serves them, and asks three questions over gRPC."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval.cli.ask import answer, answer_parts
from retrieval.cli.child import child_server
from retrieval.cli.index_report import index_progress
from retrieval.cli.output import note, print_json, show
from retrieval.cli.session import Session, with_session

if TYPE_CHECKING:
    from indexers.reports import IndexReport
    from retrieval.settings import Settings

_FOLDER = Path(".cache/headrace-demo")  # kept, so that the second run has nothing to embed
_COLLECTION = "python"
_TENANT = "default"
_TOP_K = 8
_QUESTIONS = (
    "How are default parameter values evaluated?",
    "What does the nonlocal statement do?",
    "How can I run a shell command and capture its output?",
)


@with_session("data", "json")
def demo(session: Session) -> None:
    """Index Python's own documentation, start a server, and ask it three questions."""
    import asyncio

    result = asyncio.run(_demo(session))
    if session.json:
        print_json(result)


async def _demo(session: Session) -> dict[str, Any]:
    from retrieval.settings.load import PREFIX, load_settings

    begun = time.perf_counter()
    folder = (session.data or _FOLDER).resolve()
    config = _own_config(folder)
    environ = {name: value for name, value in session.surroundings.environ.items() if not name.startswith(PREFIX)}
    note("reading Python's language reference and the docstrings of its standard library")
    report = await _index(load_settings(config, environ, {"data.folder": str(folder)}).settings)
    counts = report.counts
    note(f"{counts.written:,} documents indexed, {counts.unchanged:,} unchanged; starting the server")
    async with child_server(config, folder, environ) as address:
        answers = await _ask_all(address, streamed=not session.json)
    seconds = time.perf_counter() - begun
    note(f"done in {seconds:.1f} s; go on with `headrace serve --data {folder}`")
    return {"collection": _COLLECTION, **asdict(counts), "answers": answers, "seconds": round(seconds, 3)}


def _own_config(folder: Path) -> Path:
    """Writes a settings file for the folder that sets nothing, so that what else is configured here does not matter."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "demo.toml"
    config.write_text("# The demo runs on the defaults.\n", encoding="utf-8")
    return config


async def _index(settings: Settings) -> IndexReport:
    from indexers.demo_corpus import demo_documents

    from retrieval.cli.index_files import IndexJob
    from retrieval.cli.index_local import index_local

    documents = list(demo_documents())
    sizes = [len(document.document.text) for document in documents]
    with index_progress(sum(sizes)) as progress:
        job = IndexJob(_COLLECTION, {"kind": "keyword"}, documents, ())
        return await index_local(settings, _TENANT, job, progress)


async def _ask_all(address: str, *, streamed: bool) -> list[dict[str, Any]]:
    from headrace.v1.retrieval_pb2 import GenerateRequest

    from retrieval.client import Client, retrieve_request

    answers = []
    async with Client(address) as client:
        for number, question in enumerate(_QUESTIONS, 1):
            if streamed:
                show(f"\n{number}. {question}\n")
            request = GenerateRequest(retrieve=retrieve_request(_COLLECTION, question, top_k=_TOP_K))
            answers.append(await answer(client, request, streamed=streamed))
            if streamed:
                show(*answer_parts(answers[-1]))
    return answers
