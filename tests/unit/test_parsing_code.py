"""Source code under headings of what it defines."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexers.chunking import Chunker
from indexers.parsing.code import code_markdown
from indexers.parsing.code_outline import Definition
from indexers.parsing.dispatch import parse_file
from indexers.parsing.options import SourceFile
from indexers.parsing.parsed import ParsedDocument
from indexers.types import Document
from tests.fakes.encoders import PieceCounter

_LONG = "    # " + "long " * 90 + "\n"  # enough for a class to be taken apart
PYTHON = f"""import os

# Moves water.
@dataclass
class Pump:
    size = 1

    # Starts it.
    def run(self):
        return 1

{_LONG}
    last = 2


LIMIT = 3


def main():
    pass
"""


def _read(folder: Path, name: str, source: str) -> Document:
    path = folder / name
    path.write_text(source, encoding="utf-8")
    [item] = parse_file(SourceFile(path, name, path.as_uri()))
    assert isinstance(item, ParsedDocument), item
    return item.document


def test_definitions_are_headings_with_their_comments(tmp_path: Path) -> None:
    """A class and its methods, comments and decorators with them; what goes on after one is named anew."""
    document = _read(tmp_path, "pump.py", PYTHON)
    parts = document.text.split("\n\n```python\n")
    assert parts[0].startswith("```python\nimport os\n```\n\n# class Pump")
    assert parts[1].startswith("# Moves water.\n@dataclass\nclass Pump:\n    size = 1\n")
    assert parts[2].startswith("    # Starts it.\n    def run(self):")
    assert "# class Pump\n\n```python\n    # long" in document.text
    assert "# pump.py\n\n```python\nLIMIT = 3\n```\n\n# function main\n" in document.text


def test_chunks_are_named_by_their_function(tmp_path: Path) -> None:
    """The headings of a chunk say where in the file it is from, in code after a class as well."""
    document = _read(tmp_path, "pump.py", PYTHON)
    chunks = Chunker(PieceCounter()).chunk(document)
    paths = {
        line: next(c.heading_path for c in chunks if line in c.text) for line in ("# Starts it.", "LIMIT", "main()")
    }
    assert paths == {
        "# Starts it.": ("class Pump", "function run"),
        "LIMIT": ("pump.py",),
        "main()": ("function main",),
    }


@pytest.mark.parametrize(
    ("name", "source", "headings"),
    [
        ("a.go", "package a\n\nfunc (p *Pump) Run() {\n}\n\ntype Pump struct {\n}\n", ["method Pump.Run", "type Pump"]),
        ("a.java", "class A {\n  void m() { n(); }\n}\ninterface B {\n}\n", ["class A", "interface B"]),
        ("a.ts", "export class A {\n}\nexport const f = () => {\n  return 1;\n};\n", ["class A", "function f"]),
        ("a.js", "function f() {\n}\nfoo(function () {\n  bar();\n});\n", ["function f"]),
        ("a.rs", "impl Show for A {\n}\npub fn b() {\n  A { x: 1 }\n}\n", ["impl Show for A", "function b"]),
        ("a.c", "struct s x;\nint *f(int a)\n{\n}\nstruct s {\n  int a;\n};\n", ["function f", "struct s"]),
        ("a.cpp", "template <class T>\nclass A {\n};\nint A::f() {\n}\n", ["class A", "function A::f"]),
        ("a.cs", "namespace N {\n}\nclass A {\n}\n", ["namespace N", "class A"]),
        ("a.rb", "module M\n  def self.x\n  end\nend\nclass A\nend\n", ["module M", "class A"]),
        ("a.php", "<?php\nnamespace X;\nclass A {\n}\nfunction f() {\n}\n", ["class A", "function f"]),
        ("a.sh", "f() {\n  x\n}\n", ["function f"]),
        ("a.lua", "function f()\nend\n", []),
        ("b.py", "x = 1\n", []),
        ("c.py", "def f(:\n  ((\nclass\n", []),
    ],
)
def test_every_language_names_what_it_defines(tmp_path: Path, name: str, source: str, headings: list[str]) -> None:
    """Definitions of each are found, uses of the same words are none; where there are none, the file is one block."""
    document = _read(tmp_path, name, source)
    found = [
        line.removeprefix("# ") for line in document.text.split("\n") if line.startswith("# ") and line[2:] != name
    ]
    assert found == headings


def test_definitions_in_one_line_are_one(tmp_path: Path) -> None:
    """Nothing is cut in the middle of a line."""
    document = _read(tmp_path, "a.java", "class A { } class B { }\n")
    assert document.text == "# class A\n\n```java\nclass A { } class B { }\n```\n"


PIECES = [
    "def f():\n",
    "    return 1\n",
    "class A:\n",
    "  # c\n",
    "@d\n",
    "\n",
    "x = (\n",
    ")\n",
    "    def g(self): pass\n",
    "é;",
]
PIECES += [
    "{\n",
    "}\n",
    "int f(int a) {\n",
    "struct s {\n",
    "function f() {\n",
    "export ",
    "/* c\n",
    "*/\n",
    "namespace n {\n",
]


@settings(max_examples=200, deadline=None)
@given(suffix=st.sampled_from([".py", ".c", ".cpp", ".ts", ".rs", ".java"]), pieces=st.lists(st.sampled_from(PIECES)))
def test_every_line_stands_once_and_in_order(
    suffix: str, pieces: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever the code, its lines are those between the fences, unchanged."""
    source = "x\n" + "".join(pieces)
    document = _read(tmp_path_factory.getbasetemp(), f"a{suffix}", source)
    lines = document.text.split("\n")
    kept = [line for line in lines if line.strip() and not line.startswith(("#", "```"))]
    assert kept == [line for line in source.split("\n") if line.strip()]


def test_code_without_the_extra_is_one_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read even so, and can be found."""
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    assert _read(tmp_path, "a.py", "def f():\n    pass\n").text == "```python\ndef f():\n    pass\n```\n"


def test_code_without_a_grammar_is_one_block() -> None:
    """So it is for languages that have none; what stands between definitions is named after the file."""
    assert code_markdown("a\n\nb\n", "kotlin", (), "a.kt") == "```kotlin\na\n\nb\n```\n"
    one = Definition(1, 2, "function b")
    assert (
        code_markdown("a\nb\nc", "", (one,), "x")
        == "```\na\n```\n\n# function b\n\n```\nb\n```\n\n# x\n\n```\nc\n```\n"
    )
