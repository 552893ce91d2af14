"""Opens the zip archives that Office documents and EPUBs are, and refuses those made to do harm.

What an archive says of itself is checked before anything is unpacked, and what comes out is counted while it is
unpacked, since a header may lie. Nothing is ever written to a path that an archive names; such names are refused all
the same, since an archive that has one was made by nobody's word processor. Archives inside an archive stay bytes.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from indexers.errors import ParseFailed

MAX_TOTAL_BYTES = 256 * 1024 * 1024
MAX_ENTRIES = 10_000
MAX_RATIO = 200.0

_RATIO_FROM_BYTES = 4 * 1024 * 1024  # small parts may well be blank space that shrinks to nothing
_BLOCK = 256 * 1024
_ENTRY_DIRECTORY_BYTES = 1_024  # of the directory, for one entry: a name and its fields are far shorter
_END_RECORD = struct.Struct("<4s4H2LH")
_OLE_START = b"\xd0\xcf\x11\xe0"
_OLE_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # all that Office and EPUB allow; others can ask for gigabytes
_ENCRYPTED_FLAGS = 0x1 | 0x40


class Archive:
    """An archive whose directory was found harmless. It counts what it unpacks; closed as a context manager."""

    def __init__(self, opened: zipfile.ZipFile, name: str, max_total_bytes: int, max_ratio: float) -> None:
        self._zip = opened
        self._name = name
        self._left = max_total_bytes
        self._max_total_bytes = max_total_bytes
        self._max_ratio = max_ratio
        self._entries = {entry.filename: entry for entry in opened.infolist() if not entry.is_dir()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __contains__(self, entry: object) -> bool:
        return entry in self._entries

    def namelist(self) -> list[str]:
        """Returns the names of the files in it, in the order of its directory; folders are left out."""
        return list(self._entries)

    def read(self, entry: str) -> bytes:
        """Unpacks one file. Reading a file twice counts twice.

        Raises:
            ParseFailed: there is none of that name, it is damaged, or it unpacks to more than is allowed.
        """
        return b"".join(self._blocks(entry))

    def open(self, entry: str) -> io.BytesIO:
        """Unpacks one file as something to read from; raises as `read`."""
        return io.BytesIO(self.read(entry))

    def verify(self) -> None:
        """Unpacks everything once and keeps nothing, so that a library may then open the same file by itself.

        Raises:
            ParseFailed: something in it is damaged, or it all unpacks to more than is allowed.
        """
        for entry in self._entries:
            for _ in self._blocks(entry):
                pass
        self._left = self._max_total_bytes

    def close(self) -> None:
        """Closes the file; a second call does nothing."""
        self._zip.close()

    def _blocks(self, name: str) -> Iterator[bytes]:
        entry = self._entries.get(name)
        if entry is None:
            raise ParseFailed(self._name, f"lacks its part {name[:200]!r}; it is damaged or of another format")
        most = entry.compress_size * self._max_ratio + _RATIO_FROM_BYTES
        found = 0
        with _told(self._name), self._zip.open(entry) as stream:
            while block := stream.read(_BLOCK):
                found += len(block)
                self._left -= len(block)
                if self._left < 0:
                    raise _too_much(self._name, self._max_total_bytes)
                if found > most:
                    raise _too_dense(self._name, name, self._max_ratio)
                yield block


def open_archive(
    path: Path | bytes,
    name: str,
    max_total_bytes: int = MAX_TOTAL_BYTES,
    max_entries: int = MAX_ENTRIES,
    max_ratio: float = MAX_RATIO,
) -> Archive:
    """Opens an archive, a file or its content, for reading under limits; `name` is what failures call it.

    `max_ratio` bounds the unpacked over the packed size of each part, from some megabytes on.

    Raises:
        ParseFailed: it is no archive (kind `unparsable`), is `encrypted`, has too many parts or unpacks to too much
            (`bomb`), or names parts outside of itself (`unsafe_path`).
        OSError: the file cannot be read.
    """
    with _told(name):
        _check_end(path, name, max_entries)
        opened = zipfile.ZipFile(io.BytesIO(path) if isinstance(path, bytes) else path)
    try:
        _check_entries(opened.infolist(), name, max_entries)
        _check_sizes(opened.infolist(), name, max_total_bytes, max_ratio)
    except ParseFailed:
        opened.close()
        raise
    return Archive(opened, name, max_total_bytes, max_ratio)


def _check_end(path: Path | bytes, name: str, max_entries: int) -> None:
    """Looks at the record at the end, so that a directory of millions is not even read."""
    start, tail = _ends(path)
    if start.startswith(_OLE_START):
        if _OLE_ENCRYPTED in (path if isinstance(path, bytes) else path.read_bytes()):
            raise ParseFailed(name, "is encrypted: it asks for a password; remove the protection first", "encrypted")
        raise ParseFailed(name, "is an old Office document, not a zip archive; save it in today's format", "wrong_type")
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) < at + _END_RECORD.size:
        raise ParseFailed(name, "is no zip archive, or is cut off; get the file again")
    *_, count, directory_bytes, _, _ = _END_RECORD.unpack_from(tail, at)
    if count > max_entries or 0xFFFFFFFF > directory_bytes > max_entries * _ENTRY_DIRECTORY_BYTES:
        raise _too_many(name, max_entries)


def _ends(path: Path | bytes) -> tuple[bytes, bytes]:
    """Returns the first bytes, and as many of the last as hold the end record with the longest comment."""
    longest = _END_RECORD.size + 0xFFFF
    if isinstance(path, bytes):
        return path[:8], path[-longest:]
    with path.open("rb") as opened:
        start = opened.read(8)
        size = opened.seek(0, io.SEEK_END)
        opened.seek(max(0, size - longest))
        return start, opened.read(longest)


def _check_entries(entries: list[zipfile.ZipInfo], name: str, max_entries: int) -> None:
    if len(entries) > max_entries:
        raise _too_many(name, max_entries)
    for entry in entries:
        if is_unsafe(entry.orig_filename) or is_unsafe(entry.filename):
            reason = f"holds a part that would lie outside of it ({entry.orig_filename[:100]!r}); do not trust it"
            raise ParseFailed(name, reason, "unsafe_path")
        if entry.flag_bits & _ENCRYPTED_FLAGS:
            raise ParseFailed(name, "is encrypted: it asks for a password; remove the protection first", "encrypted")
        if entry.compress_type not in _METHODS:
            raise ParseFailed(name, f"is packed by method {entry.compress_type}, which is not supported; pack it anew")


def _check_sizes(entries: list[zipfile.ZipInfo], name: str, max_total_bytes: int, max_ratio: float) -> None:
    if sum(entry.file_size for entry in entries) > max_total_bytes:
        raise _too_much(name, max_total_bytes)
    for entry in entries:
        if entry.file_size > entry.compress_size * max_ratio + _RATIO_FROM_BYTES:
            raise _too_dense(name, entry.filename, max_ratio)
    end = 0
    for entry in sorted(entries, key=lambda one: one.header_offset):
        # The trick of the densest bombs: thousands of entries that share the same packed bytes.
        if entry.header_offset < end:
            raise ParseFailed(name, "has parts that overlap, as decompression bombs do; do not trust it", "bomb")
        end = entry.header_offset + entry.compress_size


def is_unsafe(entry: str) -> bool:
    """Tells whether the name of a part is an absolute path, leads upwards, or hides its end behind a NUL."""
    path = entry.replace("\\", "/")
    return path.startswith("/") or path[1:2] == ":" or "\x00" in path or ".." in path.split("/")


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Says in our words what is wrong with an archive."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise ParseFailed(name, f"is a damaged zip archive ({str(error)[:200]}); get the file again") from error


def _too_many(name: str, max_entries: int) -> ParseFailed:
    return ParseFailed(name, f"is an archive of more than {max_entries} parts; it is not to be trusted", "bomb")


def _too_much(name: str, max_total_bytes: int) -> ParseFailed:
    return ParseFailed(name, f"unpacks to more than {max_total_bytes} bytes; split it or raise the limit", "bomb")


def _too_dense(name: str, entry: str, max_ratio: float) -> ParseFailed:
    reason = f"has a part {entry[:100]!r} that unpacks to more than {max_ratio:g} times its size, as bombs do"
    return ParseFailed(name, reason, "bomb")
