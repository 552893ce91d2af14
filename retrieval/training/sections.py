"""Documents cut at their headings, so that each section can be asked for by its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import groupby

from indexers.chunking import Chunker
from indexers.index import Index
from indexers.types import Document
from rerank.training.examples import SourceText

_PAGE = 200
_SEPARATOR = " > "


def sections(documents: Iterable[Document], chunker: Chunker) -> Iterator[SourceText]:
    """Yields each run of chunks under the same headings; its title is the path of headings, or the document's own."""
    for document in documents:
        runs = groupby(chunker.chunk(document), key=lambda chunk: chunk.heading_path)
        for number, (path, chunks) in enumerate(runs):
            run = list(chunks)
            title = _SEPARATOR.join(path) or document.title
            text = document.text[run[0].start : run[-1].end]
            yield SourceText(f"{document.document_id}#{number}", title, text, document.metadata)


def document_of(text: SourceText) -> Document:
    """Returns a line of a corpus as a document."""
    return Document(text.text_id, text.title, text.text, metadata=text.metadata)


async def documents_of(index: Index) -> AsyncIterator[Document]:
    """Yields every document of a collection."""
    token = ""
    while True:
        page = await index.list_documents(_PAGE, token)
        for summary in page.documents:
            document = await index.get_document(summary.document_id)
            if document is not None:
                yield document
        token = page.next_page_token
        if not token:
            return
