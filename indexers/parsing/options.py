"""The bounds of parsing, and the canonical form of what comes out of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from indexers.documents import MAX_TEXT_CHARACTERS
from indexers.errors import ParseFailed
from indexers.types import TextFormat

_MIB = 1024 * 1024
_SURROGATES = re.compile("[\ud800-\udfff]")
_NO_TEXT = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\ufffd]")
_NO_TEXT_SHARE = 0.1  # of characters that no text has, from which on what was read is none
_NO_TEXT_ENOUGH = 16  # such characters below which a short text is not judged
_LOOKED_AT = 1_000_000  # characters


@dataclass(frozen=True, slots=True)
class ParseOptions:
    """How large a file may be; files of rows are streamed, so that only a row is bounded."""

    max_file_bytes: int = 50 * _MIB
    max_row_bytes: int = 50 * _MIB
    max_text_characters: int = MAX_TEXT_CHARACTERS
    id_field: str = "id"  # of rows; for `id` also `_id`
    title_field: str = "title"
    text_fields: tuple[str, ...] = ("text",)
    row_format: TextFormat = TextFormat.PLAIN  # how texts of rows show their structure


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read and the names it goes by."""

    path: Path
    name: str  # relative to the root, with slashes; the id of its document
    uri: str

    @property
    def stem(self) -> str:
        """The title of last resort."""
        name = PurePosixPath(self.name)  # the path may be that of a copy
        stem = name.stem.replace("_", " ").replace("-", " ").strip() or name.name
        return _SURROGATES.sub("\ufffd", stem)  # a name that is no valid UTF-8 has some


def read_bounded(file: SourceFile, options: ParseOptions) -> bytes:
    """Reads a whole file.

    Raises:
        ParseFailed: it is larger than allowed.
    """
    with file.path.open("rb") as opened:
        content = opened.read(options.max_file_bytes + 1)
    if len(content) > options.max_file_bytes:
        reason = f"is larger than {options.max_file_bytes} bytes; split it or raise the limit"
        raise ParseFailed(file.name, reason, "too_large")
    return content


def clean(text: str, keep_pages: bool = False) -> tuple[str, tuple[str, ...]]:
    """Returns the text with line feeds for all line ends, without what cannot be stored, and a warning for that.

    Form feeds separate pages; where a format has none they become line feeds.
    """
    warnings: list[str] = []
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not keep_pages:
        text = text.replace("\f", "\n")
    if nulls := text.count("\x00"):
        text = text.replace("\x00", "")
        warnings.append(f"{nulls} NUL characters were removed")
    text, lone = _SURROGATES.subn("\ufffd", text)
    if lone:
        warnings.append(f"{lone} lone surrogates were replaced by U+FFFD")
    return text, tuple(warnings)


def require_text(text: str, name: str, options: ParseOptions) -> str:
    """Returns the text when there is some, not too much of it, and it looks like text.

    Raises:
        ParseFailed: says which.
    """
    if not text or text.isspace():
        raise ParseFailed(name, "holds no text", "no_text")
    if len(text) > options.max_text_characters:
        reason = f"gives more than {options.max_text_characters} characters of text; split it"
        raise ParseFailed(name, reason, "too_large")
    strange = sum(1 for _ in _NO_TEXT.finditer(text, 0, _LOOKED_AT))
    if strange > max(_NO_TEXT_ENOUGH, _NO_TEXT_SHARE * min(len(text), _LOOKED_AT)):
        reason = "is no text in any encoding that was tried; save it as UTF-8, or leave it out"
        raise ParseFailed(name, reason, "bad_encoding")
    return text
