"""Server-sent events out of bytes, cut anywhere."""

from __future__ import annotations

import pytest

from retrieval.generation.sse import EventDecoder, EventTooLong, ServerEvent


def decode(data: bytes, size: int = 0) -> list[ServerEvent]:
    """Decodes the data fed in pieces of a size; 0 is all at once."""
    decoder = EventDecoder()
    size = size or max(1, len(data))
    events = [event for start in range(0, len(data), size) for event in list(decoder.feed(data[start : start + size]))]
    return events + list(decoder.finish())


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7])
@pytest.mark.parametrize(
    ("text", "events"),
    [
        ("data: a\n\ndata: b\n\n", [("", "a"), ("", "b")]),
        ("data:a\r\n\r\ndata:b\r\n\r\n", [("", "a"), ("", "b")]),
        ("data: a\r\rdata: b\r\r", [("", "a"), ("", "b")]),
        ("\ufeffdata: a\ndata: b\n\ndata: c", [("", "a\nb"), ("", "c")]),
        (": comment\n\nevent: ping\n\nid: 7\nretry: 10\n\ndata: a\n\n", [("", "a")]),
        ("event: error\ndata: a\n\ndata: b\n\n", [("error", "a"), ("", "b")]),
        ("data:  two\ndata\ndata: \u2028\u0085\n\n", [("", " two\n\n\u2028\u0085")]),
        ("\r\ndata: a\r\n\n", [("", "a")]),
        ("", []),
        ("d", []),
    ],
)
def test_decoder_reads_every_variant_at_every_cut(text: str, events: list[tuple[str, str]], size: int) -> None:
    """GEN-07: line ends, byte order mark, missing space, several data lines, comments, events without data."""
    assert [(event.name, event.data) for event in decode(text.encode(), size)] == events


def test_bytes_that_are_no_text_are_an_error() -> None:
    """What is no UTF-8 is an error of its own, not replacement characters in an answer."""
    with pytest.raises(UnicodeDecodeError):
        decode(b"data: \xff\xfe\n\n")


def test_a_line_without_end_is_refused() -> None:
    """A stream that never ends its line does not fill the memory."""
    decoder = EventDecoder()
    assert list(decoder.feed(b"x" * 1_000_000)) == []
    with pytest.raises(EventTooLong):
        list(decoder.feed(b"x" * 100_000))


@pytest.mark.parametrize("piece", [b"x" * 65_536, b"data: " + b"x" * 65_529 + b"\n"])
def test_what_never_ends_is_refused_before_it_fills_the_memory(piece: bytes) -> None:
    """Neither one line of 10 MB nor an event of many lines is gathered further than the bound."""
    decoder = EventDecoder()
    for _ in range((1 << 20) // len(piece)):
        assert list(decoder.feed(piece)) == []
    with pytest.raises(EventTooLong):
        list(decoder.feed(piece + b"x"))


def test_events_before_a_fault_are_given() -> None:
    """A fault takes nothing from the events that came with it."""
    events = EventDecoder().feed(b"data: a\n\ndata: \xff\n\n")
    assert next(events) == ServerEvent("", "a")
    with pytest.raises(UnicodeDecodeError):
        next(events)
