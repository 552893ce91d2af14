"""Rows as JSON lines, and where a block of them ends.

A block ends before a row whose id says so by its hash: so a row that comes or goes changes its own block and no other,
and whoever reads a block anew finds its end without being told.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from indexers.errors import ItemUnreadable
from indexers.sources.spec import SqlSource as SqlSpec
from indexers.sources.sql_values import is_true, plain

_LONGEST = 4  # times the rows that a block has on average


@dataclass(slots=True)
class Block:
    """Rows one after the other, by id."""

    first: object
    last: object
    lines: list[str] = field(default_factory=list)
    rows: int = 0
    deleted: list[str] = field(default_factory=list)
    without_text: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)  # of rows that cannot be documents
    highest: Any = None  # watermark


class RowReader:
    """Makes documents' lines of the rows of one query."""

    def __init__(self, spec: SqlSpec, name: str) -> None:
        self._spec = spec
        self._name = name
        self._own = {spec.id_column, spec.title_column, spec.deleted_column, *spec.text_columns}

    def blocks(self, rows: Iterator[Mapping[str, Any]]) -> Iterator[Block]:
        """Yields the rows in blocks.

        Raises:
            ItemUnreadable: the query lacks a column, or a column holds what is no text (kind `wrong_query`).
        """
        block: Block | None = None
        for number, row in enumerate(rows):
            if number == 0:
                self._check_columns(row)
            identity = row[self._spec.id_column]
            if block is None or (identity != block.last and self._ends(block, identity)):
                if block is not None:
                    yield block
                block = Block(identity, identity)
            self._add(block, row, identity)
        if block is not None:
            yield block

    def begins(self, identity: object) -> bool:
        """Tells whether a block begins with this id, whatever comes before it."""
        digest = hashlib.blake2b(str(identity).encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self._spec.rows_per_read == 0

    def _ends(self, block: Block, identity: object) -> bool:
        return self.begins(identity) or block.rows >= _LONGEST * self._spec.rows_per_read

    def _add(self, block: Block, row: Mapping[str, Any], identity: object) -> None:
        twice = block.rows > 0 and identity == block.last
        block.rows, block.last = block.rows + 1, identity
        if identity is None or twice:
            block.faults.append("a row has no id" if identity is None else f"two rows have the id {identity}")
            return
        spec, shown = self._spec, str(identity)
        if spec.watermark_column and (mark := row[spec.watermark_column]) is not None:
            block.highest = mark if block.highest is None else self._higher(block.highest, mark)
        if spec.deleted_column and is_true(row[spec.deleted_column]):
            block.deleted.append(shown)
            return
        text = "\n\n".join(part for name in spec.text_columns if (part := self._text(row, name)).strip())
        if not text:
            block.without_text.append(shown)
            return
        title = self._text(row, spec.title_column) if spec.title_column else ""
        metadata = {str(name): self._plain(row, name) for name in row if name not in self._own}
        line = {
            "id": self._text(row, spec.id_column),
            "title": title,
            "text": text,
            "metadata": {name: value for name, value in metadata.items() if value is not None},
        }
        block.lines.append(json.dumps(line, ensure_ascii=False) + "\n")

    def _check_columns(self, row: Mapping[str, Any]) -> None:
        spec = self._spec
        named = (spec.id_column, *spec.text_columns, spec.title_column, spec.watermark_column, spec.deleted_column)
        for name in filter(None, named):
            if name not in row:
                raise self._wrong(f"gives no column {name!r}; it gives {', '.join(map(str, row))[:300]}")

    def _text(self, row: Mapping[str, Any], name: str) -> str:
        value = self._plain(row, name)
        if isinstance(value, list):
            raise self._wrong(f"gives lists in column {name!r}; make it text in the query")
        return "" if value is None else str(value)

    def _plain(self, row: Mapping[str, Any], name: str) -> Any:
        try:
            return plain(row[name])
        except TypeError as error:
            reason = f"gives {error} in column {name!r}; make it text in the query, or leave it out"
            raise self._wrong(reason) from None

    def _higher(self, one: Any, other: Any) -> Any:
        try:
            return max(one, other)
        except TypeError:
            reason = f"gives values in column {self._spec.watermark_column!r} that cannot be compared with each other"
            raise self._wrong(reason) from None

    def _wrong(self, reason: str) -> ItemUnreadable:
        return ItemUnreadable(self._name, f"the query {reason}", "wrong_query")
