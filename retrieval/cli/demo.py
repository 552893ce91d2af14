"""`headrace demo`: indexes documents that every CPython carries, serves them, and asks three questions over gRPC."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval.cli.ask import answer, answer_parts
from retrieval.cli.child import child_server
from retrieval.cli.index_report import index_progress
from retrieval.cli.output import note, print_json, show
from retrieval.cli.session import Session, with_session

if TYPE_CHECKING:
    from indexers.parsing.parsed import ParsedDocument
    from indexers.reports import IndexReport
    from retrieval.settings import Settings

COLLECTION = "python"
QUESTIONS = (
    "When is the else clause of a try statement executed?",
    "Why are default arguments shared between function calls?",
    "How can I run a shell command and capture its output?",
)
_FOLDER = Path(".cache/headrace-demo")  # kept, so that the second run has nothing to embed
_TENANT = "default"
_TOP_K = 8


@with_session("data", "json")
def demo(session: Session) -> None:
    """Index Python's own documentation, start a server, and ask it three questions."""
    import asyncio

    from indexers.demo_corpus import demo_documents

    folder = (session.data or _FOLDER).resolve()
    note("reading Python's language reference and the docstrings of its standard library")
    documents = list(demo_documents())
    result = asyncio.run(run_demo(folder, documents, session.surroundings.environ, streamed=not session.json))
    if session.json:
        print_json(result)


async def run_demo(
    folder: Path, documents: Sequence[ParsedDocument], environ: Mapping[str, str], *, streamed: bool
) -> dict[str, Any]:
    """Indexes the documents that have changed, serves them from a child process, asks, and returns all that came of it.

    Raises:
        WorkFailed: the server does not start, or an answer is not whole.
    """
    from retrieval.settings.load import PREFIX, load_settings

    begun = time.perf_counter()
    config = _own_config(folder)
    plain_environ = {name: value for name, value in environ.items() if not name.startswith(PREFIX)}
    report = await _index(load_settings(config, {}, {"data.folder": str(folder)}).settings, documents)
    counts = report.counts
    note(
        f"{counts.written:,} documents ({counts.chunks:,} chunks) indexed, {counts.unchanged:,} unchanged; serving them"
    )
    async with child_server(config, folder, plain_environ) as address:
        answers = await _ask_all(address, streamed=streamed)
    seconds = time.perf_counter() - begun
    note(f"done in {seconds:.1f} s; go on with `headrace serve --data {folder}`")
    return {"collection": COLLECTION, **asdict(counts), "answers": answers, "seconds": round(seconds, 3)}


def _own_config(folder: Path) -> Path:
    """Writes a settings file for the folder that sets nothing, so that what else is configured here does not matter."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "demo.toml"
    config.write_text("# The demo runs on the defaults.\n", encoding="utf-8")
    return config


async def _index(settings: Settings, documents: Sequence[ParsedDocument]) -> IndexReport:
    from indexers.demo_corpus import DEMO_FIELDS
    from retrieval.cli.index_job import IndexJob
    from retrieval.cli.index_local import index_local

    fields = {name: kind.value for name, kind in DEMO_FIELDS.items()}
    with index_progress(len(documents)) as progress:
        job = IndexJob(COLLECTION, fields, documents, ())
        return await index_local(settings, _TENANT, job, progress)


async def _ask_all(address: str, *, streamed: bool) -> list[dict[str, Any]]:
    from headrace.v1.retrieval_pb2 import GenerateRequest
    from retrieval.client import Client, retrieve_request

    answers = []
    async with Client(address) as client:
        for number, question in enumerate(QUESTIONS, 1):
            if streamed:
                show(f"\n{number}. {question}\n")
            request = GenerateRequest(retrieve=retrieve_request(COLLECTION, question, top_k=_TOP_K))
            answers.append(await answer(client, request, streamed=streamed))
            if streamed:
                show(*answer_parts(answers[-1]))
    return answers
