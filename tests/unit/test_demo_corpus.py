"""The documents that every CPython carries."""

from __future__ import annotations

from pathlib import Path

from indexers.chunking import Chunker
from indexers.chunking.blocks import find_blocks
from indexers.demo_corpus import DEMO_FIELDS, demo_documents
from indexers.documents import check_document
from indexers.types import Document, TextFormat
from tests.fakes.encoders import PieceCounter

LONG = "Says much about pumps and their seals. " * 6

MODULE = f'''"""{LONG}

Usage
-----
# no heading
"""
raise SystemExit("imported")


class Pump:
    """{LONG}"""

    def start(self, *, speed: int = 1) -> None:
        """{LONG}"""

    def _hidden(self):
        """HIDDEN-1 {LONG}"""


def short():
    """SHORT-1"""
'''


def _library(folder: Path) -> list[Document]:
    return [item.document for item in demo_documents(folder) if item.document.metadata["kind"] == "library"]


def _write(folder: Path, name: str, content: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")


def test_a_module_becomes_a_document_without_being_imported(tmp_path: Path) -> None:
    """Qualified names are headings, signatures stand above the docstrings, what is private or short is left out."""
    _write(tmp_path, "pumps/__init__.py", MODULE)
    (document,) = _library(tmp_path)
    assert (document.document_id, document.title, document.metadata["module"]) == ("library/pumps", "pumps", "pumps")
    paths = {block.heading_path for block in find_blocks(document.text, TextFormat.MARKDOWN)}
    assert paths == {("pumps",), ("pumps", "pumps.Pump"), ("pumps", "pumps.Pump", "pumps.Pump.start")}
    assert "`start(self, *, speed: int=1)`" in document.text
    assert "Usage\n    -----\n    # no heading" in document.text
    assert "HIDDEN-1" not in document.text
    assert "SHORT-1" not in document.text


def test_tests_private_and_broken_modules_are_left_out(tmp_path: Path) -> None:
    """Only what people read the documentation of is there."""
    for name in (
        "test/a.py",
        "_private.py",
        "x/_y.py",
        "_z/a.py",
        "site-packages/a.py",
        "config-3.11/a.py",
        "a/tests/b.py",
    ):
        _write(tmp_path, name, MODULE)
    _write(tmp_path, "broken.py", "def (")
    _write(tmp_path, "nul.py", "\x00")
    _write(tmp_path, "quiet.py", "x = '\\d'\n")
    assert _library(tmp_path) == []


def test_reference_topics_have_headings(tmp_path: Path) -> None:
    """The underlined titles of `help()` become Markdown headings, and the first is the document's title."""
    topics = {item.document.document_id: item.document for item in demo_documents(tmp_path)}
    document = topics["reference/with"]
    assert document.title == 'The "with" statement'
    assert document.text.startswith('# The "with" statement\n\n')
    assert document.metadata["kind"] == "reference"
    assert len(topics) > 60


def test_the_running_library_gives_about_three_thousand_chunks() -> None:
    """The real sources of this Python make valid documents with unique ids."""
    documents = [check_document(item.document, DEMO_FIELDS) for item in demo_documents()]
    assert len({document.document_id for document in documents}) == len(documents) > 250
    chunker = Chunker(PieceCounter())
    count = sum(len(chunker.chunk(document)) for document in documents)
    assert 2_000 < count < 5_000
    by_id = {document.document_id: document.text for document in documents}
    assert "## subprocess.run\n" in by_id["library/subprocess"]
