"""Writes what is known about every setting: the reference for the docs, and an example file of commented defaults.

Both come from the tree alone (names, docstrings, bounds, defaults), so they cannot drift from the code; a test compares
the checked-in files with what these functions return.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from retrieval.settings import Settings
from retrieval.settings.load import PREFIX
from retrieval.settings.shown import toml_value

_WIDTH = 110
_SIGNS = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
_INTRODUCTION = f"""# Settings

Written by `headrace config reference` from the settings tree; change the docstrings there, not this file.

Values come from `headrace.toml`, then from variables, then from flags (`--set retrieval.top_k=20`); the later one wins.
The variable of a setting is `{PREFIX}` and its path in capitals with `__` for each dot, as in
`{PREFIX}RETRIEVAL__TOP_K`; lists are given as JSON. An unknown key or variable is an error. `headrace config check`
validates, `headrace config show` prints every value with its origin, and `headrace config example` prints a file with
all of them.

A setting marked *reload* takes effect at `headrace config reload` or SIGHUP; the others at the next start.
"""
_EXAMPLE_HEAD = f"""\
# Every setting of Headrace with its default. Copy this to headrace.toml and uncomment what you change.
# Written by `headrace config example`. "reload" marks what `headrace config reload` and SIGHUP take over.
# A variable is stronger than this file ({PREFIX}RETRIEVAL__TOP_K=20), and a flag than both (--set retrieval.top_k=20).
"""


def reference_markdown() -> str:
    """Returns the settings reference as Markdown, a table for each section."""
    return "\n".join([_INTRODUCTION, *_section_markdown(Settings, "")])


def example_toml() -> str:
    """Returns a settings file that sets nothing: each setting with its docstring and default, commented out."""
    return "\n".join([_EXAMPLE_HEAD, *_section_toml(Settings, "")])


def _section_markdown(section: type[BaseModel], path: str) -> Iterator[str]:
    fields = section.model_fields
    own = {name: field for name, field in fields.items() if _subsection(field) is None}
    if path:
        yield f"## `{path}`\n\n{_purpose(section)}\n"
    if own:
        yield "| setting | default | bounds | | what it does |\n|---|---|---|---|---|"
        yield from (_row(name, field) for name, field in own.items())
        yield ""
    for name, field in own.items():
        if (item := _item(field)) is not None:
            yield from _section_markdown(item, f"{path}.{name}[]")
    for name, field in fields.items():
        if (inner := _subsection(field)) is not None:
            yield from _section_markdown(inner, f"{path}.{name}".lstrip("."))


def _row(name: str, field: FieldInfo) -> str:
    cells = (
        f"`{name}`",
        "*required*" if field.is_required() else f"`{toml_value(field.default)}`" if field.default is not None else "",
        _bounds(field),
        "reload" if _reloadable(field) else "",
        _meaning(field),
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _section_toml(section: type[BaseModel], path: str) -> Iterator[str]:
    fields = section.model_fields
    if path:
        yield f"# {_purpose(section)}\n[{path}]"
    for name, field in fields.items():
        if (item := _item(field)) is not None:
            yield from _entries_toml(item, f"{path}.{name}", field)
        elif _subsection(field) is None:
            yield from _comment(_described(field))
            yield f"# {name} = {toml_value(field.default)}"
    if path:
        yield ""
    for name, field in fields.items():
        if (inner := _subsection(field)) is not None:
            yield from _section_toml(inner, f"{path}.{name}".lstrip("."))


def _entries_toml(item: type[BaseModel], path: str, field: FieldInfo) -> Iterator[str]:
    """Yields the default of a list of tables, or one entry with placeholders where a value is required."""
    yield from _comment(f"{_meaning(field)} Each is a table like this one:")
    for number, entry in enumerate(field.default or (None,)):
        yield f"# [[{path}]]"
        for name, part in item.model_fields.items():
            value = getattr(entry, name) if entry is not None else part.default
            if number == 0:
                yield from _comment(_described(part), "#   ")
            if value is None:
                yield f"#   ({name} is absent)"
            else:
                yield f"# {name} = {toml_value('...' if value is PydanticUndefined else value)}"


def _described(field: FieldInfo) -> str:
    notes = [note for note in (_bounds(field), "reload" if _reloadable(field) else "") if note]
    return _meaning(field) + (f" ({'; '.join(notes)})" if notes else "")


def _comment(text: str, mark: str = "# ") -> Iterator[str]:
    yield from (mark + line for line in textwrap.wrap(text, _WIDTH, break_on_hyphens=False))


def _meaning(field: FieldInfo) -> str:
    return " ".join((field.description or "").split())


def _purpose(section: type[BaseModel]) -> str:
    return " ".join(inspect.cleandoc(section.__doc__ or "").split())


def _bounds(field: FieldInfo) -> str:
    if get_origin(field.annotation) is Literal:
        return ", ".join(toml_value(choice) for choice in get_args(field.annotation))
    bounds = {name: getattr(bound, name) for bound in field.metadata for name in _SIGNS if hasattr(bound, name)}
    if {"ge", "le"} <= bounds.keys():
        return f"{bounds['ge']} to {bounds['le']}"
    return ", ".join(f"{_SIGNS[name]} {bound}" for name, bound in bounds.items())


def _reloadable(field: FieldInfo) -> bool:
    return isinstance(field.json_schema_extra, dict) and bool(field.json_schema_extra.get("reloadable"))


def _subsection(field: FieldInfo) -> type[BaseModel] | None:
    return _model(field.annotation)


def _item(field: FieldInfo) -> type[BaseModel] | None:
    """Returns what a list of tables holds; None for any other setting."""
    return _model(get_args(field.annotation)[0]) if get_origin(field.annotation) is tuple else None


def _model(annotation: Any) -> type[BaseModel] | None:
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None
