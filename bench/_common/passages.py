"""Reads passages and questions that are not a set: lines of JSON, packed or not, or plain lines."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import IO, Any

from bench._common.beir import document_of
from encoders.types import TokenCounter
from indexers.types import Document


def read_passages(path: Path, limit: int) -> list[Document]:
    """Returns the first `limit` documents of a file in the layout of a BEIR corpus; `.gz` is unpacked."""
    return list(iterate_passages(path, limit))


def iterate_passages(path: Path, limit: int) -> Iterator[Document]:
    """Does the same without holding them all."""
    return map(document_of, islice(_rows(path), limit))


def read_questions(path: Path, limit: int = 0) -> list[str]:
    """Returns questions: the texts of JSON lines, or the lines themselves; the first `limit` if that is not 0."""
    with _open(path) as file:
        texts = (_question(line.strip()) for line in file)
        found = [text for text in texts if text]
    return found[:limit] if limit else found


def cut_to_tokens(text: str, counter: TokenCounter, tokens: int) -> str:
    """Returns the beginning of a text that has at most so many tokens."""
    spans = counter.offsets(text[: tokens * 16])
    return text[: spans[tokens - 1][1]] if len(spans) > tokens else text


def _question(line: str) -> str:
    return str(json.loads(line)["text"]) if line.startswith("{") else line


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    with _open(path) as file:
        for line in file:
            if line.strip():
                yield json.loads(line)


def _open(path: Path) -> IO[str]:
    return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")
