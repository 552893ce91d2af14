"""What holds of the chunks of any file of any format: exact offsets, and no visible character lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from email.message import EmailMessage
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.offsets import lost_characters, wrong_offsets
from indexers.chunking import Chunker, ChunkLimits
from indexers.parsing.dispatch import SUFFIXES, parse_file
from indexers.parsing.options import SourceFile
from indexers.parsing.parsed import ParsedDocument
from indexers.types import Document
from tests.fakes.encoders import PieceCounter
from tests.fakes.good_files import docx, epub, good_files, pptx, xlsx
from tests.property.test_parsing_properties import CONTENTS

CHUNKER = Chunker(PieceCounter(), ChunkLimits(limit_tokens=40, target_tokens=16, overlap_tokens=4))
GOOD = good_files()
WORDS = st.lists(
    st.text(st.characters(categories=("Lu", "Ll", "Lo", "Nd")), min_size=1, max_size=8), min_size=1, max_size=40
)


def _checked(name: str, content: bytes) -> list[Document]:
    """Returns the documents of a file, after holding their chunks against them."""
    found: list[Document] = []
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(content)
        for item in parse_file(SourceFile(path, name, path.as_uri())):
            if isinstance(item, ParsedDocument):
                chunks = CHUNKER.chunk(item.document)
                assert wrong_offsets(item.document, chunks) == 0
                assert lost_characters(item.document, chunks) == 0
                found.append(item.document)
    return found


@pytest.mark.parametrize("name", sorted(GOOD))
def test_good_files_of_every_format_give_true_offsets(name: str) -> None:
    """Each has documents, and their chunks hold all of their text."""
    assert _checked(name, GOOD[name])


@settings(max_examples=200, deadline=None)
@given(suffix=st.sampled_from(sorted(SUFFIXES)), content=CONTENTS)
def test_any_content_gives_true_offsets(suffix: str, content: bytes) -> None:
    """Whatever a file holds, chunks are spans of what was read from it."""
    _checked(f"a{suffix}", content)


@settings(max_examples=200, deadline=None)
@given(name=st.sampled_from(sorted(GOOD)), start=st.integers(0, 2_000), noise=st.binary(max_size=12))
def test_damaged_files_give_true_offsets(name: str, start: int, noise: bytes) -> None:
    """Bytes that were changed anywhere do not matter either."""
    content = GOOD[name]
    at = start % len(content)
    _checked(name, content[:at] + noise + content[at + len(noise) :])


def _runs(words: list[str]) -> str:
    return "".join(f"<w:p><w:r><w:t>{escape(word)}</w:t></w:r></w:p>" for word in words)


def _mail(words: list[str]) -> bytes:
    message = EmailMessage()
    message["Subject"] = "Pumps"
    message.set_content("\n".join(words))
    return message.as_bytes()


WRITERS: Mapping[str, Callable[[list[str]], bytes]] = {
    "a.html": lambda words: "".join(f"<p>{escape(word)}" for word in words).encode(),
    "b.html": lambda words: f"<main><p>{'<br>'.join(map(escape, words))}</main>".encode(),
    "a.docx": lambda words: docx(_runs(words)),
    "b.docx": lambda words: docx(f"<w:tbl><w:tr><w:tc>{_runs(words)}</w:tc></w:tr></w:tbl>"),
    "a.pptx": lambda words: pptx(escape(" ".join(words))),
    "a.xlsx": lambda words: xlsx(escape(" ".join(words))),
    "a.epub": lambda words: epub(f"<ul><li>{'</li><li>'.join(map(escape, words))}</li></ul>"),
    "a.eml": _mail,
    "a.xml": lambda words: f"<a>{''.join(f'<b>{escape(word)}</b>' for word in words)}</a>".encode(),
    "a.tsv": lambda words: f"id\ttext\n1\t{' '.join(words)}\n".encode(),
    "a.py": lambda words: "\n\n".join(f"def f():\n    # {word}\n    return 1" for word in words).encode(),
}


@settings(max_examples=150, deadline=None)
@given(name=st.sampled_from(sorted(WRITERS)), words=WORDS)
def test_every_word_of_a_file_is_in_some_chunk(name: str, words: list[str]) -> None:
    """What a reader of the file sees can be found, in all formats, in the order in which it stands."""
    [document] = _checked(name, WRITERS[name](words))
    position = 0
    for word in words:
        position = document.text.index(word, position) + len(word)
