"""What of a page of a site is its content, and how its tables are read."""

from __future__ import annotations

import pytest

from indexers.parsing.html import page_text, render_html

_LONG = "A pump moves water from a low place to a high one. " * 6
_NAV = "<nav><ul><li><a href=/>Home</a><li><a href=/b>Blog</a></ul></nav>"
_FOOTER = "<footer>Imprint <a href=/p>Privacy</a></footer>"


def _read(source: str) -> str:
    return render_html(source)[1].strip()


def test_the_main_part_is_read_alone() -> None:
    """Menus, sidebars and footers around it are left out; notes and footers inside it are kept."""
    page = f"""<body>{_NAV}<aside>Advert</aside><main><h1>Pumps</h1><p>{_LONG}</p><nav>On this page</nav>
        <aside>Note: drain it first.</aside><footer>Written by Ann.</footer></main>{_FOOTER}</body>"""
    assert _read(page) == f"# Pumps\n\n{_LONG.strip()}\n\nNote: drain it first.\n\nWritten by Ann."


@pytest.mark.parametrize("mark", ["<div role=main>{}</div>", "<main>{}</main>", "<article>{}</article>"])
def test_the_heading_above_the_main_part_is_kept(mark: str) -> None:
    """A page's own heading stands before its text; one that links home names the site."""
    content = mark.format(f"<p>{_LONG}")
    assert _read(f"{_NAV}<header><h1>Pumps</h1></header>{content}{_FOOTER}") == f"# Pumps\n\n{_LONG.strip()}"
    assert _read(f"<header><h1><a href=/>Site</a></h1></header>{content}") == _LONG.strip()


def test_all_main_articles_are_read() -> None:
    """A page of several articles is all of them; teasers beside a longer text do not replace it."""
    article = "<article><h2>{}</h2><p>" + _LONG + "</article>"
    several = _read(f"{_NAV}{article.format('One')}{article.format('Two')}<div>Advert</div>")
    assert several.count("moves water") == 12
    assert "Advert" not in several
    beside = _read(f"<div><p>{_LONG}</p></div><article>Read on</article>{_FOOTER}")
    assert beside == f"{_LONG.strip()}\n\nRead on"


def test_pages_without_a_main_part_lose_menus_only() -> None:
    """What is named a menu and mostly links goes; text of such a name, and links of no name, stay."""
    links = "<a href=/a>First</a> <a href=/b>Second</a>"
    assert _read(f"<div class='site-nav'>{links}</div><p>Text {links}") == "Text First Second"
    assert _read(f"<div id=sidebar><p>{_LONG}</p></div><p>Text") == f"{_LONG.strip()}\n\nText"
    assert _read(f"<div>{links}</div><p>Text") == "First Second\n\nText"
    assert _read(f"<div role=navigation>{links}</div>{_FOOTER}<p>Text") == "Text"


def test_notices_about_cookies_are_left_out() -> None:
    """They are told by their names and something to press; a section about cookies is text."""
    notice = "<div class='cookie-banner'><p>We value your privacy.</p><button>Accept</button></div>"
    assert _read(f"{notice}<p>Text") == "Text"
    assert _read(f"<main><p>{_LONG}</p>{notice}</main>") == _LONG.strip()
    section = "<section id=cookies><h2>Cookies</h2><p>Set them <a href=#s>so</a>.</section>"
    assert _read(section) == "## Cookies\n\nSet them so."


def test_a_page_of_links_is_read() -> None:
    """Where nothing else is left, a menu is the content; a main part that says nothing is not believed."""
    assert _read(_NAV) == "- Home\n- Blog"
    assert _read(f"<main>Loading</main><div><p>{_LONG}</p></div>") == f"Loading\n\n{_LONG.strip()}"
    assert _read(f"<main hidden>{_LONG}</main><p>Text") == "Text"


def test_pages_in_other_formats_are_read_whole() -> None:
    """Books and mail have no menus of a site: what looks like one is theirs."""
    assert page_text("<aside>Note</aside><main>Text</main><footer>End</footer>", "a") == "Note\n\nText\n\nEnd\n"


def test_deep_articles_are_read_in_linear_time() -> None:
    """Each element is looked at a bounded number of times, however deep they nest."""
    assert _read("<article><div class=gdpr-nav>" * 2_000 + _LONG) == _LONG.strip()


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (
            "<tr><th>a<th>b<th>c<tr><td rowspan=2>1<td colspan=2>2<tr><td>3<td>4",
            "| a | b | c |\n|---|---|---|\n| 1 | 2 |  |\n|  | 3 | 4 |",
        ),
        ("<tr><td rowspan=x colspan=0>1<td rowspan=99999>2", "| 1 | 2 |\n|---|---|"),
        (
            "<tr><th>Part<th>Steps<tr><td>V7<td><ul><li>drain<li>open</ul>",
            "| Part | Steps |\n|---|---|\n| V7 | drain open |",
        ),
        ("<tr><th>x<td><h2>In</h2>y", "x\n\n## In\n\ny"),
    ],
)
def test_cells_keep_their_columns(table: str, expected: str) -> None:
    """Spans leave room, lists of cells stay in them, and a table that arranges blocks is none."""
    assert _read(f"<table>{table}</table>") == expected


def test_a_table_may_say_that_it_only_arranges() -> None:
    """Its cells are read one after the other."""
    assert _read("<table role=presentation><tr><td>a<td>b</table>") == "a\n\nb"


def test_spans_make_no_millions_of_cells() -> None:
    """A small page of cells that all span others is read for about what it says."""
    rows = "<tr><td rowspan=64 colspan=64>x<td rowspan=64 colspan=64>y" * 200
    assert len(render_html(f"<table>{rows}</table>")[1]) < 200_000
