"""Parquet files: each row a document, as in CSV. Streamed by batches; needs the extra `parquet` (pyarrow)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from indexers.errors import ParseFailed
from indexers.parsing.options import ParseOptions, SourceFile
from indexers.parsing.parsed import ParsedDocument, ParseFailure
from indexers.parsing.rows import require_text_field, row_document

_ROWS = 256


def parse_parquet(file: SourceFile, options: ParseOptions) -> Iterator[ParsedDocument | ParseFailure]:
    """Yields what each row gives; empty values are absent.

    Raises:
        ParseFailed: the extra is not installed, it is no Parquet file, or no column holds text.
    """
    try:
        from pyarrow import ArrowException, parquet  # noqa: PLC0415 - of the extra `parquet`
    except ImportError as error:
        reason = "needs the extra `parquet`: pip install 'headrace[parquet]'"
        raise ParseFailed(file.name, reason, "extra_missing") from error
    try:
        with parquet.ParquetFile(file.path) as opened:
            require_text_field(file, opened.schema_arrow.names, options)
            number = 0
            for batch in opened.iter_batches(_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    values = {str(name): _plain(value) for name, value in row.items() if value is not None}
                    yield row_document(file, number, values, options)
    except (ArrowException, OSError, ValueError) as error:
        raise ParseFailed(file.name, f"is no Parquet file that can be read: {str(error)[:200]}") from error


def _plain(value: Any) -> Any:
    """Returns a value as rows hold them: dates with a zone, exact numbers as text."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=value.tzinfo or UTC).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value
