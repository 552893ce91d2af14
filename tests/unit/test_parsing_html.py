"""HTML to canonical Markdown."""

from __future__ import annotations

from pathlib import Path

import pytest

from indexers.chunking import Chunker
from indexers.parsing.dispatch import parse_file
from indexers.parsing.html import render_html
from indexers.parsing.html_tree import MAX_ATTRIBUTES, most_attributes
from indexers.parsing.options import SourceFile
from indexers.parsing.parsed import ParseFailure
from indexers.types import Document, TextFormat
from tests.fakes.encoders import PieceCounter


def _markdown(source: str) -> str:
    return render_html(source)[1]


def test_words_stay_apart_and_markup_stays_out() -> None:
    """ING-09: blocks are not glued, cells stand under their headers, what a reader does not see is left out."""
    source = (
        "<title>T</title><style>.q{}</style><script>var z='JS-1'</script><div>Lead<p>Body</p></div><table><tr><th>Part"
        "</th><th>Nm</th></tr><tr><td>V7</td><td>40</td></tr></table><ul><li>x<ul><li>y</li></ul></li></ul>"
        "<p hidden>HID-2</p><template>TPL-3</template>"
    )
    title, text = render_html(source)
    assert title == "T"
    assert text == "Lead\n\nBody\n\n| Part | Nm |\n|---|---|\n| V7 | 40 |\n\n- x\n  - y\n"
    (chunk,) = Chunker(PieceCounter()).chunk(Document("d", title, text, TextFormat.MARKDOWN))
    assert "| V7 | 40 |" in chunk.text
    assert "| Part | Nm |" in chunk.text


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<h1>A <code>b</code><a class=headerlink href='#a'>¶</a></h1><h3>C</h3>", "# A b\n\n### C\n"),
        ("<p>Some <b>bold</b>, <i>it</i>\n and <code>x  y</code>", "Some bold, it and `x y`\n"),
        ("a<br>b<br/>\nc", "a\nb\nc\n"),
        ("<p># no heading<p>```", "\\# no heading\n\n\\```\n"),
        ("a<br>---<br>b<br>=", "a\n\\---\nb\n\\=\n"),
        ("<ol start=3><li><p>one<p>two<li>b</ol>after", "3. one\n\n   two\n4. b\n\nafter\n"),
        ("<ol start=-x><li>a</ol>", "1. a\n"),
        ("<pre><span>a</span>\n  b ```</pre>", "````\na\n  b ```\n````\n"),
        ("a<hr>b", "a\n\n---\n\nb\n"),
        (
            "<table><caption>Cap</caption><tr><td>a|b<td>c<tr><td>d</table>",
            "Cap\n\n| a\\|b | c |\n|---|---|\n| d |  |\n",
        ),
        ("<table><tr><td><h2>In</h2>x<td>other</table>", "## In\n\nx\n\nother\n"),
        ("<dl><dt>term<dd>meaning</dl>", "term\n\nmeaning\n"),
        ("<img alt='A pump'> <img src=x>", "A pump\n"),
        ("<p style='display: none'>x<p>y<div style='visibility:hidden'>z</div>", "y\n"),
        ("<p>x &lt;b&gt; &amp;amp; &nbsp;y", "x <b> &amp; y\n"),
        ("<details><summary>S</summary>body</details>", "S\n\nbody\n"),
        ("<p>yes</p><noscript>no</noscript><svg><text>no</text></svg><!-- no -->", "yes\n"),
        ("<ul><li><h4>In item</h4>text</ul>", "- In item\n\n  text\n"),
        ("<table></table><pre> </pre><h1> </h1>", ""),
    ],
)
def test_elements_become_markdown(source: str, expected: str) -> None:
    """Structure is kept where the canonical form has it, text everywhere."""
    assert _markdown(source) == expected


def test_the_first_heading_is_the_title_of_last_resort() -> None:
    """A page without a title element is named by its heading."""
    assert render_html("<h2>Pumps</h2>")[0] == "Pumps"
    assert render_html("<p>x")[0] == ""


def test_deep_pages_are_refused_or_read(tmp_path: Path) -> None:
    """Nesting that browsers would cut is a failure with a reason; what is below the bound is read whole."""
    path = tmp_path / "a.html"
    path.write_text("<div>" * 6000 + "x", encoding="utf-8")
    (item,) = parse_file(SourceFile(path, "a.html", ""))
    assert item == ParseFailure("a.html", "", "nests elements deeper than 5000 levels", "bomb")
    assert _markdown("<div>" * 1000 + "KEEP") == "KEEP\n"
    assert _markdown("<ul><li>" * 300 + "KEEP").endswith("- KEEP\n")
    assert _markdown("<p>x" * 6000).count("x") == 6000


def test_the_name_of_a_drawing_is_not_that_of_the_page() -> None:
    """A title in an SVG is passed over, whether the page has one of its own or not."""
    drawing = "<svg><g><title>Drawing</title></g></svg>"
    assert render_html(f"<body>{drawing}<p>x</p>")[0] == ""
    assert render_html(f"<body>{drawing}<h1>Head</h1>")[0] == "Head"
    assert render_html(f"<head><title>Page</title></head><body>{drawing}<p>x</p>")[0] == "Page"


def test_html_of_endless_attributes_is_refused() -> None:
    """The parser takes quadratic time in them; a long value, as of an inline picture, is no such thing."""
    assert most_attributes("<p " + "a=1 " * 30_000 + ">") > MAX_ATTRIBUTES
    assert most_attributes('<img alt="" src="' + "a b " * 50_000 + '">') < 5
    assert most_attributes("<p>" + "a b " * 50_000) == 0
