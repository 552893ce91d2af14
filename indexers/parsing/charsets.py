"""Bytes to text: byte order marks first, then UTF-8, then what the file declares, then a guess that is owned up to.

UTF-8 goes before the declaration because text that is UTF-8 by accident is rare, and a wrong declaration is not.
"""

from __future__ import annotations

import codecs
from pathlib import Path

from charset_normalizer import from_bytes

_MARKS = (  # UTF-32 before UTF-16, whose mark it starts with
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_GUESSED = 65_536  # bytes that a guess looks at
_ENOUGH = 24  # bytes above 127 that a guess by statistics needs
_FALLBACK = "cp1252"
_BLOCK = 1 << 20


def decode(content: bytes, declared: str = "") -> tuple[str, tuple[str, ...]]:
    """Returns the text and a warning when its encoding was guessed or some bytes could not be decoded."""
    encoding = marked_encoding(content)
    if not encoding:
        try:
            return content.decode("utf-8"), ()
        except UnicodeDecodeError as error:
            encoding = _declared(declared)
            if not encoding:
                return _guess(content, error.start)
    return _lenient(content, encoding, ())


def marked_encoding(start: bytes) -> str:
    """Returns the encoding that the first bytes name by a byte order mark; empty when there is none."""
    return next((encoding for mark, encoding in _MARKS if start.startswith(mark)), "")


def stream_encoding(path: Path) -> tuple[str, tuple[str, ...]]:
    """Returns the encoding to stream a file with, and a warning when it is a guess. Reads the file once."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        previous, block = b"", file.read(_BLOCK)
        if encoding := marked_encoding(block):
            return encoding, ()
        while True:
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                sample = previous + block
                encoding = _guessed_encoding(sample, len(previous) + error.start)
                return encoding, (_guess_warning(encoding),)
            if not block:
                return "utf-8", ()
            previous, block = block, file.read(_BLOCK)


def _declared(name: str) -> str:
    """Returns the codec of a declared charset; empty when there is none or it is not a text encoding."""
    if not name:
        return ""
    try:
        "x".encode(name)
    except (LookupError, UnicodeError):
        return ""
    # What the web calls Latin-1 is Windows-1252 (WHATWG Encoding).
    return _FALLBACK if codecs.lookup(name).name in ("iso8859-1", "ascii") else name


def _guess(content: bytes, failed_at: int) -> tuple[str, tuple[str, ...]]:
    encoding = _guessed_encoding(content, failed_at)
    return _lenient(content, encoding, (_guess_warning(encoding),))


def _guessed_encoding(content: bytes, failed_at: int) -> str:
    start = max(0, failed_at - _GUESSED // 2)
    sample = content[start : start + _GUESSED]
    if sum(byte > 127 for byte in sample) < _ENOUGH:
        return _FALLBACK
    best = from_bytes(sample).best()
    return best.encoding if best else _FALLBACK


def _guess_warning(encoding: str) -> str:
    return f"is not UTF-8 and declares no charset; read as {encoding}"


def _lenient(content: bytes, encoding: str, warnings: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    text = content.decode(encoding, errors="replace")
    if "\ufffd" in text:
        warnings += (f"some bytes are not valid {encoding} and were replaced by U+FFFD",)
    return text.removeprefix("\ufeff"), warnings
