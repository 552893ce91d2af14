"""reStructuredText to canonical Markdown."""

from __future__ import annotations

from pathlib import Path

import pytest

from indexers.parsing.dispatch import parse_file
from indexers.parsing.options import SourceFile
from indexers.parsing.parsed import ParsedDocument
from indexers.parsing.rst import render_rst
from indexers.types import TextFormat


def _parsed(folder: Path, source: str) -> ParsedDocument:
    path = folder / "a.rst"
    path.write_text(source, encoding="utf-8")
    (item,) = parse_file(SourceFile(path, "a.rst", ""))
    assert isinstance(item, ParsedDocument)
    return item


def test_sections_become_headings() -> None:
    """The levels follow the underlines; the first title is the document's."""
    title, text = render_rst("Pumps ``x``\n===========\n\nintro\n\nSeals\n-----\n\ntext\n\nFans\n====\n\nend\n")
    assert title == "Pumps x"
    assert text == "# Pumps `x`\n\nintro\n\n## Seals\n\ntext\n\n# Fans\n\nend\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("*a* **b** ``c d`` `link <http://x.org>`_", "a b `c d` link\n"),
        (":ref:`see here <target>` :class:`~io.File` :unknown:`!x`", "see here io.File x\n"),
        (".. |v| replace:: 3.2\n\nSince |v|.", "Since 3.2.\n"),
        ("Literal::\n\n   # x\n   y", "Literal:\n\n```\n# x\ny\n```\n"),
        (".. code-block:: python\n\n   # x", "```python\n# x\n```\n"),
        (">>> f()\n1", "```\n>>> f()\n1\n```\n"),
        ("* a\n* b\n\n  c\n\n3. x\n4. y", "- a\n- b\n\n  c\n\n3. x\n4. y\n"),
        ("| one\n| two", "one\ntwo\n"),
        ("term\n   meaning", "term\n\nmeaning\n"),
        ("====  ==\nPart  Nm\n====  ==\nV7    40\n====  ==", "| Part | Nm |\n|---|---|\n| V7 | 40 |\n"),
        (".. note:: Take care\n   of it.", "Take care\nof it.\n"),
        (".. comment\n\n.. _label:\n\ntext", "text\n"),
        ("Note [1]_.\n\n.. [1] The note.", "Note 1.\n\n1\n\nThe note.\n"),
        ("a\n\n----\n\nb", "a\n\n---\n\nb\n"),
        ("Broken `text and **bold", "Broken `text and **bold\n"),
    ],
)
def test_markup_becomes_markdown(source: str, expected: str) -> None:
    """Structure is kept where the canonical form has it; unknown roles leave their text."""
    assert render_rst(source)[1] == expected


def test_unknown_directives_keep_their_content() -> None:
    """What only Sphinx knows is parsed in its place: signatures, versions, notes inside each other."""
    source = """
.. function:: run(*args, mode='r')
   :noindex:

   Runs :mod:`it`.

   .. versionadded:: 3.2
      The *new* KEEP-1.

   .. mystery:: word

      KEEP-2
"""
    assert render_rst(source)[1] == "`run(*args, mode='r')`\n\nRuns it.\n\n3.2\nThe new KEEP-1.\n\n`word`\n\nKEEP-2\n"


def test_instructions_to_the_builder_are_left_out() -> None:
    """A table of contents and an index entry are no text."""
    assert render_rst(".. toctree::\n   :maxdepth: 2\n\n   a\n\n.. index:: pump\n\ntext")[1] == "text\n"


def test_no_other_file_is_read(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Inclusion is shut in all its forms, and nothing is said on the terminal."""
    (tmp_path / "secret").write_text("SECRET-1", encoding="utf-8")
    place = tmp_path / "secret"
    source = (
        f".. include:: {place}\n\n.. csv-table:: T\n   :file: {place}\n\n.. raw:: html\n   :file: {place}\n\n"
        f".. literalinclude:: {place}\n\n.. code-block:: sh\n   :bad-option:\n\n   x\n\nKEEP"
    )
    text = render_rst(source)[1]
    assert "SECRET-1" not in text
    assert "KEEP" in text
    assert capfd.readouterr() == ("", "")


def test_odd_sources_are_read_as_plain_text(tmp_path: Path) -> None:
    """What docutils would take minutes for, or cannot nest, is kept as it stands, with a warning."""
    for source in ("`a " * 20_000, "\n".join(" " * depth + "x" for depth in range(200)) * 5, "KEEP " * 10_000):
        parsed = _parsed(tmp_path, source)
        assert parsed.document.format is TextFormat.PLAIN
        assert parsed.document.text == source
        assert "read as plain text" in parsed.warnings[0]
    deep = "\n\n".join(" " * depth + "x" for depth in range(1200))
    assert "nests too deep" in _parsed(tmp_path, deep).warnings[0]
