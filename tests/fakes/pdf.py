"""Writes small PDF files: lines of text on a page, or none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_FONT = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


def pdf_bytes(pages: Sequence[str]) -> bytes:
    """Returns a PDF file of a line on each page; an empty string gives a page without a text layer."""
    return pdf_of_lines([[(12, text)] if text else [] for text in pages])


def pdf_of_lines(pages: Sequence[Sequence[tuple[float, str]]], scaled: bool = False) -> bytes:
    """Returns a PDF file of pages of lines, each with the size of its letters.

    The size is that of the font, or a scale of a font of size 1, as some programs write it.
    """
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>", _FONT]
    for number, lines in enumerate(pages):
        resources = f"/Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * number} 0 R"
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 800] {resources} >>")
        drawn = "\n".join(_drawn(lines, scaled)) or "0 0 10 10 re f"
        objects.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
    return _file(objects)


def _drawn(lines: Sequence[tuple[float, str]], scaled: bool) -> Iterator[str]:
    place = 760.0
    for size, text in lines:
        font, scale = (1, size) if scaled else (size, 1)
        yield f"BT /F1 {font} Tf {scale} 0 0 {scale} 20 {place} Tm ({text}) Tj ET"
        place -= 2 * size


def _file(objects: Sequence[str]) -> bytes:
    content = b"%PDF-1.4\n"
    offsets: list[int] = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(content))
        content += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    trailer = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(content)}\n%%EOF\n"
    return content + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{trailer}".encode()
