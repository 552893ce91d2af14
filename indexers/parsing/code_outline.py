"""What a syntax tree defines: functions, classes and their like, as spans of lines, each with what is defined inside.

One list of node types serves all grammars of tree-sitter, since they name the same things alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

_CONTAINERS = {  # node types, and what a heading calls them
    "class_definition": "class",
    "class_declaration": "class",
    "abstract_class_declaration": "class",
    "class_specifier": "class",
    "class": "class",
    "interface_declaration": "interface",
    "struct_specifier": "struct",
    "struct_declaration": "struct",
    "struct_item": "struct",
    "record_declaration": "record",
    "enum_specifier": "enum",
    "enum_declaration": "enum",
    "enum_item": "enum",
    "union_specifier": "union",
    "union_item": "union",
    "trait_item": "trait",
    "trait_declaration": "trait",
    "impl_item": "impl",
    "mod_item": "module",
    "module": "module",
    "internal_module": "namespace",
    "namespace_definition": "namespace",
    "namespace_declaration": "namespace",
}
_FUNCTIONS = {
    "function_definition": "function",
    "function_declaration": "function",
    "generator_function_declaration": "function",
    "function_item": "function",
    "method_definition": "method",
    "method_declaration": "method",
    "method": "method",
    "singleton_method": "method",
    "constructor_declaration": "constructor",
    "type_spec": "type",
    "type_alias_declaration": "type",
    "macro_definition": "macro",
}
_KINDS = {**_CONTAINERS, **_FUNCTIONS}
_ONLY_WITH_BODY = frozenset(
    {"class_specifier", "struct_specifier", "enum_specifier", "union_specifier", "namespace_definition"}
)
_WRAPPERS = frozenset(
    {"export_statement", "decorated_definition", "template_declaration", "type_declaration", "type_definition"}
    | {"declaration", "lexical_declaration", "variable_declaration", "expression_statement", "ambient_declaration"}
)
_ABOVE = ("comment", "attribute", "decorator", "annotation")  # words in the types of what belongs to what follows it
_FUNCTION_VALUES = frozenset({"arrow_function", "function_expression", "function"})
_DEEPEST = 60  # levels of the tree that are looked through for definitions, and then again inside of each
_MAX_INSIDE = 5  # definitions inside definitions, as deep as headings go
_TAKEN_APART = 400  # bytes from which on a container is, and five times as much for a function
_LONGEST_NAME = 120


@dataclass(frozen=True, slots=True)
class Definition:
    """Lines that define something."""

    start: int  # from 0
    end: int  # the line after the last
    heading: str
    inner: tuple[Definition, ...] = ()


def definitions_of(root: Any, inside: int = 0) -> tuple[Definition, ...]:
    """Returns the outermost definitions below a node, in order; they share no lines."""
    found: list[Definition] = []
    for start, node, outer in _found(root, 0, None):
        # The first of several in one line stands for all of them.
        if not found or start >= found[-1].end:
            found.append(_definition(start, node, outer, inside))
    return tuple(found)


def _definition(start: int, node: Any, outer: Any, inside: int) -> Definition:
    large = _TAKEN_APART if node.type in _CONTAINERS else 5 * _TAKEN_APART
    inner: Sequence[Definition] = ()
    if inside < _MAX_INSIDE and node.end_byte - node.start_byte > large:
        named = node.child_by_field_name("name") or node
        inner = [one for one in definitions_of(node, inside + 1) if one.start > named.start_point[0]]
    heading = f"{_KINDS.get(node.type, 'function')} {_name(node)}".strip()
    return Definition(start, outer.end_point[0] + 1, heading, tuple(inner))


def _found(root: Any, depth: int, above: tuple[int, int] | None) -> Iterator[tuple[int, Any, Any]]:
    """Yields definitions: the first line with the comments above it, the node, and the one that it is wrapped in.

    `above` are the lines of the comments that were just passed.
    """
    for child in root.children:
        first, last = child.start_point[0], child.end_point[0]
        if above is not None and first > above[1] + 1:
            above = None
        if any(word in child.type for word in _ABOVE):
            # The end of a comment may be counted to the start of the next line.
            last -= child.end_point[1] == 0 and last > first
            above = (above[0] if above is not None else first, last)
            continue
        node = _unwrapped(child)
        if node is not None:
            yield (above[0] if above is not None else first), node, child
        elif depth < _DEEPEST:
            yield from _found(child, depth + 1, above)
        above = None


def _unwrapped(node: Any, depth: int = 0) -> Any:
    """Returns the definition that a node is, or that it does nothing but hold; None when it is none."""
    if not node.is_named:
        return None
    if node.type in _KINDS:
        has_body = node.type not in _ONLY_WITH_BODY or node.child_by_field_name("body") is not None
        return node if has_body and _name(node) else None
    if node.type == "variable_declarator":
        value = node.child_by_field_name("value")
        return node if value is not None and value.type in _FUNCTION_VALUES else None
    if node.type in _WRAPPERS and depth < 3:
        return next((one for child in node.children if (one := _unwrapped(child, depth + 1)) is not None), None)
    return None


def _name(node: Any) -> str:
    if node.type == "impl_item":
        parts = [_text(node.child_by_field_name("trait")), _text(node.child_by_field_name("type"))]
        return " for ".join(part for part in parts if part)
    found = node.child_by_field_name("name")
    declarator = node.child_by_field_name("declarator")
    while found is None and declarator is not None:
        inner = declarator.child_by_field_name("declarator")
        found = declarator if inner is None else None
        declarator = inner
    receiver = _text(node.child_by_field_name("receiver")).strip("()").rpartition(" ")[2].lstrip("*")
    return f"{receiver}.{_text(found)}" if receiver else _text(found)


def _text(node: Any) -> str:
    return " ".join(node.text.decode("utf-8", "replace").split())[:_LONGEST_NAME] if node is not None else ""
