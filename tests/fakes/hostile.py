"""Files that no parser wants to meet, the same for a seed: some made to do harm, the rest good and broken by chance."""

from __future__ import annotations

import io
import itertools
import random
import struct
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from tests.fakes.good_files import docx, epub, good_files, pptx, xlsx, zipped

_ZIPPED = frozenset({".docx", ".pptx", ".xlsx", ".epub"})
_BOMB = b"a" * 20_000_000
_LAUGHS = (
    "<!DOCTYPE l [<!ENTITY l0 'lol'>" + "".join(f"<!ENTITY l{n} '{f'&l{n - 1};' * 10}'>" for n in range(1, 12)) + "]>"
)
_EXTERNAL = '<!DOCTYPE l [<!ENTITY l11 SYSTEM "file:///etc/passwd">]>'
_LAUGHING = "<w:p><w:r><w:t>&l11;</w:t></w:r></w:p>"


@dataclass(frozen=True, slots=True)
class HostileFile:
    """A file, and what is wrong with it; `kind` is that of the failure where only one will do."""

    name: str
    content: bytes
    what: str
    kind: str = ""


def hostile_files(count: int, seed: int) -> Iterator[HostileFile]:
    """Yields so many files: first those made by hand, then good ones broken by chance."""
    yield from itertools.islice(itertools.chain(crafted(), broken(seed)), count)


def crafted() -> Iterator[HostileFile]:
    """Yields the files that were made to do harm, a few dozen."""
    makers = (_archives, _entities, _deep, _encodings, _lines, _wrong_names, _rows, _portable_documents)
    for number, (name, content, what, kind) in enumerate(itertools.chain.from_iterable(make() for make in makers)):
        yield HostileFile(f"{number:03}-{name}", content, what, kind)


def broken(seed: int) -> Iterator[HostileFile]:
    """Yields good files of every suffix, broken in one of many ways; does not end."""
    good = sorted(good_files().items())
    chance = random.Random(seed)
    for number in itertools.count():
        name, content = good[number % len(good)]
        breaks = chance.choice(_BREAKS)
        suffix = PurePosixPath(name).suffix
        if suffix in _ZIPPED and chance.random() < 0.6:
            yield HostileFile(
                f"{number:05}{suffix}", _break_part(content, breaks, chance), f"part {breaks.__name__[1:]}"
            )
            continue
        if chance.random() < 0.05:
            suffix = PurePosixPath(chance.choice(good)[0]).suffix
        yield HostileFile(f"{number:05}{suffix}", breaks(content, chance), breaks.__name__[1:])


_Made = Iterator[tuple[str, bytes, str, str]]  # name, content, what, kind


def _archives() -> _Made:
    paragraph = "<w:p><w:r><w:t>x</w:t></w:r></w:p>"
    yield "bomb.docx", docx("<w:p><w:r><w:t>" + _BOMB.decode() + "</w:t></w:r></w:p>"), "decompression bomb", "bomb"
    yield "media.docx", docx(paragraph, {"word/media/a.png": _BOMB}), "bomb beside the text", "bomb"
    yield "bomb.xlsx", xlsx(_BOMB.decode()), "decompression bomb", "bomb"
    yield "bomb.pptx", pptx(_BOMB.decode()), "decompression bomb", "bomb"
    yield "bomb.epub", epub(_BOMB.decode()), "decompression bomb", "bomb"
    yield "liar.docx", lying(docx(paragraph + "<!--" + "a" * 20_000_000 + "-->")), "bomb that lies of its size", ""
    yield (
        "many.docx",
        docx(paragraph, dict.fromkeys(map("x/{}".format, range(11_000)), "")),
        "thousands of parts",
        "bomb",
    )
    yield "slip.docx", docx(paragraph, {"../../../evil.sh": b"x"}), "zip slip", "unsafe_path"
    yield "root.epub", zipped({"/etc/evil": "x", "mimetype": "application/epub+zip"}), "absolute path", "unsafe_path"
    yield "drive.xlsx", zipped({"C:\\evil": "x"}), "path with a drive", "unsafe_path"
    yield "far.xlsx", _far(xlsx("x")), "a cell in the last row that a number can name", ""
    yield "locked.docx", _flagged(docx(paragraph)), "encrypted parts", "encrypted"
    yield "macro.docm", docx(paragraph, {"word/vbaProject.bin": b"\xd0\xcf\x11\xe0macro"}), "macros", ""
    yield "macro.docx", docx(paragraph, {"word/vbaProject.bin": b"\xd0\xcf\x11\xe0macro"}), "macros", ""
    yield (
        "nested.docx",
        docx(paragraph, {"word/embeddings/a.zip": zipped({"b": _BOMB})}),
        "bomb inside an archive",
        "",
    )
    yield "empty.docx", zipped({}), "archive of nothing", ""
    yield "other.docx", zipped({"readme.txt": "x"}), "archive of something else", ""
    yield "old.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(4096), "old Office document", ""
    yield (
        "sealed.docx",
        b"\xd0\xcf\x11\xe0" + bytes(600) + "EncryptedPackage".encode("utf-16-le"),
        "encrypted Office",
        "",
    )


def _entities() -> _Made:
    yield "laughs.docx", docx(_LAUGHING, prolog=_LAUGHS), "billion laughs", "bomb"
    yield "outside.docx", docx(_LAUGHING, prolog=_EXTERNAL), "external entity", "bomb"
    book = epub("<p>x</p>")
    yield "laughs.epub", _with_part(book, "book.opf", (_LAUGHS + "<package>&l11;</package>").encode()), "laughs", "bomb"
    yield "laughs.html", (_LAUGHS + "<p>&l11; text").encode(), "billion laughs, which HTML does not know", ""


def _deep() -> _Made:
    yield "deep.html", b"<div>" * 100_000 + b"x", "nesting", "bomb"
    yield "inline.html", b"<b><i>" * 20_000 + b"x", "inline nesting", ""
    yield "tables.html", b"<table><tr><td>" * 4_000 + b"x", "tables in tables", ""
    yield "attributes.html", b"<p " + b"".join(b"a%d=1 " % n for n in range(200_000)) + b">x", "attributes", "bomb"
    yield "wide.html", b"<table><tr>" + b"<td>x" * 9_000 + b"<tr><td>x" * 9_000, "a wide row and many short ones", ""
    yield "quotes.md", b">" * 50_000 + b" x", "quotes in quotes", ""
    yield "lists.md", b"- " * 20_000 + b"x", "lists in lists", ""
    yield "brackets.md", b"[" * 50_000 + b"x", "open brackets", ""
    yield "lists.rst", b"- " * 9_000 + b"x", "lists in lists", ""
    yield "notes.rst", b"".join(b"   " * n + b".. note::\n\n" for n in range(60)) + b" " * 180 + b"x", "directives", ""
    yield (
        "include.rst",
        b".. include:: /etc/passwd\n\n.. raw:: html\n   :file: /etc/passwd\n\nText.\n",
        "file access",
        "",
    )
    yield "deep.json", b"[" * 200_000, "nesting", ""
    yield "deep.ipynb", b'{"cells":' * 50_000, "nesting", ""
    yield "deep.jsonl", b'{"text":"x","a":' + b"[" * 50_000 + b"]" * 50_000 + b"}", "nesting", ""
    yield "deep.py", b"(" * 20_000, "nesting", ""
    yield "deep.docx", docx("<w:p>" * 50_000), "nesting", ""
    mail = b"".join(b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (n, n) for n in range(2_000))
    yield "deep.eml", mail + b"Content-Type: text/plain\n\nx", "parts in parts", ""


def _encodings() -> _Made:
    chance = random.Random(0)
    noise = bytes(chance.randrange(1, 256) for _ in range(4_000))
    yield "noise.txt", noise, "no encoding at all", "bad_encoding"
    yield "noise.md", noise, "no encoding at all", "bad_encoding"
    yield "half.txt", "\ufeffhello".encode("utf-16")[:-1], "half a character", ""
    yield "swapped.txt", b"\xff\xfe" + b"\xd8\x00" * 500, "lone surrogates in UTF-16", ""
    yield "nul.txt", b"text" * 500 + b"\x00" * 5_000, "NULs after a good start", ""
    yield "overlong.html", b"<p>" + b"\xc0\xaf\xf8\x88\x80\x80\x80" * 500, "overlong UTF-8", ""
    yield "charset.html", b"<meta charset=rot13><p>text \xff\xfe", "a charset that is none", ""
    yield "surrogate.jsonl", b'{"text": "half \\ud83d"}\n', "a lone surrogate in JSON", ""
    yield "rot.eml", b"Content-Type: text/plain; charset=klingon\n\n\xff\xfetext", "a charset that is none", ""


def _lines() -> _Made:
    yield (
        "line.jsonl",
        b'{"id":"1","text":"ok"}\n{"text":"' + b"a" * 3_000_000 + b'"}',
        "a line of megabytes",
        "too_large",
    )
    yield "line.csv", b"id,text\n1,ok\n2," + b"a" * 3_000_000, "a line of megabytes", "too_large"
    yield "big.txt", b"word " * 1_000_000, "megabytes of text", "too_large"
    yield "blank.txt", b" \n" * 100_000, "nothing but space", "no_text"
    yield "empty.md", b"", "nothing", ""


def _wrong_names() -> _Made:
    yield "page.pdf", b"<!doctype html><p>text", "a page named PDF", ""
    yield "program.txt", b"\x7fELF" + bytes(100), "a program named text", ""
    yield "picture.html", b"\x89PNG\r\n\x1a\n" + bytes(100), "a picture named HTML", ""
    yield "archive.md", zipped({"a": "x"}), "an archive named Markdown", ""
    yield "text.docx", b"just text", "text named DOCX", ""
    yield "table.parquet", b"PAR1" + bytes(64) + b"PAR1", "nothing named Parquet", ""


def _rows() -> _Made:
    yield "quote.csv", b'id,text\n1,ok\n2,"never closed\n' + b"more\n" * 500_000, "an open quote", "too_large"
    yield "columns.csv", b"text," + b"a," * 50_000 + b"\nx\n", "a column many times", ""
    yield "number.jsonl", b'{"text":' + b"1" * 100_000 + b"}", "an endless number", ""
    yield "bad.jsonl", b"{\n" * 5_000, "thousands of bad lines", ""
    yield "keys.jsonl", b'{"text":"x",' + b",".join(b'"k%d":1' % n for n in range(50_000)) + b"}", "50,000 fields", ""


def _portable_documents() -> _Made:
    tree = b"1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2000000000>>endobj"
    yield "loop.pdf", b"%PDF-1.4\n" + tree + b" trailer<</Root 1 0 R>>", "pages that hold themselves", ""
    yield "start.pdf", good_files()["good.pdf"][:100], "the first 100 bytes", "unparsable"
    yield "array.pdf", b"%PDF-1.4\n1 0 obj " + b"[" * 100_000 + b" endobj trailer<</Root 1 0 R>>", "nesting", ""


def lying(archive: bytes) -> bytes:
    """Returns an archive whose headers say of the largest part that it unpacks to a kilobyte."""
    content = bytearray(archive)
    largest = max(zipfile.ZipFile(io.BytesIO(archive)).infolist(), key=lambda entry: entry.file_size)
    size, lie = struct.pack("<L", largest.file_size), struct.pack("<L", 1_000)
    return bytes(content.replace(size, lie))


def _far(workbook: bytes) -> bytes:
    """Returns a workbook with a cell so far out that a dense table up to it would take all memory."""
    path = "xl/worksheets/sheet1.xml"
    with zipfile.ZipFile(io.BytesIO(workbook)) as opened:
        return _with_part(workbook, path, opened.read(path).replace(b'"A2"', b'"XFD4294967295"'))


def _flagged(archive: bytes) -> bytes:
    """Returns an archive whose directory says that its parts are encrypted."""
    content = bytearray(archive)
    at = content.find(b"PK\x01\x02")
    while at >= 0:
        content[at + 8] |= 1
        at = content.find(b"PK\x01\x02", at + 1)
    return bytes(content)


def _with_part(archive: bytes, name: str, part: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        parts: dict[str, str | bytes] = {entry: opened.read(entry) for entry in opened.namelist()}
    return zipped({**parts, name: part})


def _break_part(archive: bytes, breaks: Callable[[bytes, random.Random], bytes], chance: random.Random) -> bytes:
    """Breaks one part and packs it anew, so that the checksums hold and the parser gets to see it."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        name = chance.choice(opened.namelist())
        return _with_part(archive, name, breaks(opened.read(name), chance))


def _span(content: bytes, chance: random.Random) -> tuple[int, int]:
    start = chance.randrange(len(content) + 1)
    return start, min(len(content), start + chance.choice((1, 4, 16, 64, 256)))


def _cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def _lost(content: bytes, chance: random.Random) -> bytes:
    start, end = _span(content, chance)
    return content[:start] + content[end:]


def _repeated(content: bytes, chance: random.Random) -> bytes:
    start, end = _span(content, chance)
    return content[:end] + content[start:end] * chance.choice((1, 10, 1_000)) + content[end:]


def _flipped(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.choice((1, 3, 10, 100))):
        if changed:
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _noised(content: bytes, chance: random.Random) -> bytes:
    start, end = _span(content, chance)
    return content[:start] + chance.randbytes(end - start + 8) + content[end:]


def _zeroed(content: bytes, chance: random.Random) -> bytes:
    start, end = _span(content, chance)
    return content[:start] + bytes(end - start + 1) + content[end:]


def _shuffled(content: bytes, chance: random.Random) -> bytes:
    pieces = [content[at : at + 24] for at in range(0, len(content), 24)]
    chance.shuffle(pieces)
    return b"".join(pieces)


def _numbered(content: bytes, chance: random.Random) -> bytes:
    """Replaces a run of digits by a number that nobody expects."""
    places = [at for at, byte in enumerate(content) if byte in b"0123456789"]
    if not places:
        return content
    at = chance.choice(places)
    return content[:at] + chance.choice((b"-1", b"0", b"4294967295", b"9" * 40, b"1e400")) + content[at + 1 :]


def _recoded(content: bytes, chance: random.Random) -> bytes:
    return content.decode("latin-1").encode(chance.choice(("utf-16", "utf-32", "utf-16-be", "utf-7")))


_BREAKS: Sequence[Callable[[bytes, random.Random], bytes]] = (
    _cut, _lost, _repeated, _flipped, _noised, _zeroed, _shuffled, _numbered, _recoded,
)  # fmt: skip
