"""Parses XML that nobody vouches for, by expat under a guard: no entities of its own, nothing loaded, bounded.

The standard library's parsers expand the entities that a document declares, which is how a kilobyte becomes gigabytes.
Here a document that declares anything is refused whole; a bare document type, as EPUBs carry, is allowed and not
looked up. The names that HTML gives to characters stand for them even so, since such documents use them.
"""

from __future__ import annotations

from html.entities import html5
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from indexers.errors import ParseFailed

MAX_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 256
MAX_ELEMENTS = 2_000_000


def parse_xml(
    source: bytes, name: str, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH, max_elements: int = MAX_ELEMENTS
) -> Element:
    """Returns the root element, names as `{namespace}local`; comments and processing instructions are left out.

    Raises:
        ParseFailed: no well-formed XML (kind `unparsable`), or too large, too deep, or declaring entities (`bomb`).
    """
    if len(source) > max_bytes:
        raise ParseFailed(name, f"has a part of XML larger than {max_bytes} bytes", "bomb")
    guard = _Guard(name, max_depth, max_elements)
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    parser.StartElementHandler = guard.start
    parser.EndElementHandler = guard.end
    parser.CharacterDataHandler = guard.text
    parser.StartDoctypeDeclHandler = guard.doctype
    parser.EntityDeclHandler = guard.entity
    parser.SkippedEntityHandler = guard.skipped
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    try:
        parser.Parse(source, True)
        return guard.close()
    except (expat.ExpatError, LookupError, ValueError) as error:
        raise ParseFailed(name, f"has a part that is no well-formed XML ({str(error)[:200]})") from error


class _Guard:
    """Builds the tree, and stops as soon as a bound is passed."""

    def __init__(self, name: str, max_depth: int, max_elements: int) -> None:
        self._name = name
        self._tree = TreeBuilder()
        self._names: dict[str, str] = {}
        self._depth = 0
        self._max_depth = max_depth
        self._left = max_elements

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._left -= 1
        if self._depth > self._max_depth:
            raise ParseFailed(self._name, f"has XML nested deeper than {self._max_depth} levels", "bomb")
        if self._left < 0:
            raise ParseFailed(self._name, "has more elements of XML than are allowed", "bomb")
        self._tree.start(self._full(tag), {self._full(key): value for key, value in attributes.items()})

    def end(self, tag: str) -> None:
        self._depth -= 1
        self._tree.end(self._full(tag))

    def text(self, text: str) -> None:
        self._tree.data(text)

    def doctype(self, root: str, system: str | None, public: str | None, has_declarations: int) -> None:
        if has_declarations:
            raise ParseFailed(self._name, "has XML with declarations of its own, as entity bombs do", "bomb")

    def entity(self, *declaration: object) -> None:
        raise ParseFailed(self._name, "has XML that declares entities, as entity bombs do", "bomb")

    def skipped(self, entity: str, is_parameter: bool) -> None:
        if not is_parameter:
            self._tree.data(html5.get(f"{entity};", f"&{entity};"))

    def close(self) -> Element:
        return self._tree.close()

    def _full(self, name: str) -> str:
        full = self._names.get(name)
        if full is None:
            full = self._names[name] = f"{{{name}" if "}" in name else name
        return full
