"""XML under a guard."""

from __future__ import annotations

from xml.etree.ElementTree import tostring

import pytest

from indexers.errors import ParseFailed
from indexers.sandbox.xml import parse_xml

_LAUGHS = "<!DOCTYPE a [<!ENTITY b 'ha'><!ENTITY c '&b;&b;'>]><a>&c;</a>"


def test_xml_gives_a_tree_with_namespaces() -> None:
    """Names are written as the standard library does."""
    root = parse_xml(b'<a xmlns="u" xmlns:v="w" x="1" v:y="2">t<b/>u<!-- c --></a>', "n")
    assert root.tag == "{u}a"
    assert root.attrib == {"x": "1", "{w}y": "2"}
    assert (root.text, root[0].tag, root[0].tail) == ("t", "{u}b", "u")


def test_xml_reads_a_bare_document_type_and_the_names_of_html() -> None:
    """Books are written so; nothing is looked up for it."""
    root = parse_xml(b'<!DOCTYPE html PUBLIC "p" "http://example.org/x.dtd"><a>x&nbsp;y&unknown;</a>', "n")
    assert root.text == "x\xa0y&unknown;"


@pytest.mark.parametrize(
    "source",
    [
        _LAUGHS.encode(),
        ('<?xml version="1.0" encoding="utf-16"?>' + _LAUGHS).encode("utf-16"),
        b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
        b'<!DOCTYPE a [<!ENTITY % b SYSTEM "http://example.org/"> %b;]><a/>',
        b"<a>" * 300,
        b"<a>" + b"<b/>" * 101 + b"</a>",
        b"<a>" + b" " * 2_000 + b"</a>",
    ],
)
def test_xml_refuses_what_grows(source: bytes) -> None:
    """Entities of its own, files and addresses, depth, elements and bytes beyond the bounds."""
    with pytest.raises(ParseFailed) as failed:
        parse_xml(source, "n", max_bytes=1_500, max_elements=100)
    assert failed.value.kind == "bomb"


@pytest.mark.parametrize(
    "source",
    [b"", b"<a>", b"<a></b>", b"<a>&b;</a>", b"\x00\xff", b'<?xml version="1.0" encoding="klingon"?><a/>', b"<a:b/>"],
)
def test_xml_that_is_none_is_a_failure_in_words(source: bytes) -> None:
    """No exception of the library's own gets out."""
    with pytest.raises(ParseFailed, match="no well-formed XML") as failed:
        tostring(parse_xml(source, "n"))
    assert failed.value.kind == "unparsable"
