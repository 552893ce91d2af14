"""Indexes the first passages of a file and ends: the process whose memory `bench.indexing` watches from outside.

Run as `python -m bench._common.index_once FILE COUNT`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench._common.encodings import DEFAULT_FOLDER
from bench._common.engines import open_encoders
from bench._common.loops import run
from bench._common.passages import iterate_passages
from bench._common.pipelines import KEY, open_request_path
from indexers.ingest import Indexer
from indexers.parsing.parsed import ParsedDocument
from retrieval.settings import Settings


async def index_once(path: Path, count: int) -> None:
    """Indexes without keeping the passages, as `headrace index` does, and builds a generation."""
    settings = Settings()
    async with (
        open_encoders(settings, DEFAULT_FOLDER) as encoders,
        open_request_path(settings, encoders, encoders.dense) as opened,
    ):
        index = await opened.catalog.create(KEY, {}, "")
        indexer = Indexer(index, encoders.dense, encoders.chunker, encoders.scheduler.bulk_threads)
        await indexer.run(ParsedDocument(document) for document in iterate_passages(path, count))
        await index.build()


if __name__ == "__main__":
    run(index_once(Path(sys.argv[1]), int(sys.argv[2])))
