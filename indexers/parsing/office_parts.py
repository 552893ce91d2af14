"""What the Office formats share: the title of the package, its macros, and which part a relation leads to."""

from __future__ import annotations

import posixpath
from xml.etree.ElementTree import Element

from indexers.sandbox.archives import Archive
from indexers.sandbox.xml import parse_xml

_CORE = "docProps/core.xml"
_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_RELATION = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"


def core_title(archive: Archive, name: str) -> str:
    """Returns the title that the document's properties say; empty when they say none."""
    if _CORE not in archive:
        return ""
    found = parse_xml(archive.read(_CORE), name).find(_TITLE)
    return " ".join((found.text or "").split()) if found is not None else ""


def macro_warning(archive: Archive) -> tuple[str, ...]:
    """Returns a warning when there are macros; they are never read."""
    return ("macros were not read",) if any("vbaProject" in entry for entry in archive.namelist()) else ()


def relations(archive: Archive, part: str, name: str) -> dict[str, tuple[str, str]]:
    """Returns the relations of a part by id: the last word of their type, and the part that they lead to."""
    folder, _, file = part.rpartition("/")
    place = f"{folder}/_rels/{file}.rels"
    if place not in archive:
        return {}
    root: Element = parse_xml(archive.read(place), name)
    return {
        one.get("Id", ""): (one.get("Type", "").rpartition("/")[2], _target(folder, one.get("Target", "")))
        for one in root.iter(_RELATION)
        if one.get("TargetMode") != "External"
    }


def _target(folder: str, target: str) -> str:
    return target[1:] if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
