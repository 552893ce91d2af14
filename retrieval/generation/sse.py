"""Decodes server-sent events from bytes, as the WHATWG standard says (section 9.2.6), whatever the chunks.

The `openai` client has a decoder too. It takes a byte order mark for a part of the first field's name, hands on events
without data (`event: ping`, `id: 7`) to its JSON parser, and hides whether `[DONE]` came or the stream just stopped.
Only that part of the client is replaced; requests, headers and statuses are the client's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LONGEST_LINE_BYTES = 1 << 20


class LineTooLong(ValueError):
    """A line that does not end; the stream is something else than events."""

    def __init__(self) -> None:
        super().__init__(f"a line is longer than {_LONGEST_LINE_BYTES} bytes; read something else from this server")


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """An event with data; `name` is empty unless the server gave one."""

    name: str
    data: str


class EventDecoder:
    """Decodes one stream: feed it bytes, finish it at the end."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._started = False
        self._after_cr = False
        self._name = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[ServerEvent]:
        """Yields the events that are complete by now.

        Raises:
            UnicodeDecodeError: the bytes are no UTF-8.
            LineTooLong: a line does not end.
        """
        self._buffer += chunk
        if not self._started:
            if len(self._buffer) < 3 and _BYTE_ORDER_MARK.startswith(self._buffer):
                return
            self._started = True
            if self._buffer.startswith(_BYTE_ORDER_MARK):
                del self._buffer[:3]
        for line in self._lines():
            yield from self._take(line)

    def finish(self) -> Iterator[ServerEvent]:
        """Yields what stands before the end of the stream; servers forget the last empty line."""
        if self._buffer:
            yield from self._take(bytes(self._buffer))
            self._buffer.clear()
        yield from self._take(b"")

    def _lines(self) -> list[bytes]:
        """Cuts complete lines off the buffer. A line ends with CR, LF or both, and with nothing else."""
        if self._after_cr and self._buffer:
            self._after_cr = False
            if self._buffer.startswith(b"\n"):
                del self._buffer[:1]
        self._after_cr = self._buffer.endswith(b"\r")
        normal = bytes(self._buffer).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = normal.split(b"\n")
        if len(rest) > _LONGEST_LINE_BYTES:
            raise LineTooLong
        self._buffer[:] = rest
        return lines

    def _take(self, line: bytes) -> Iterator[ServerEvent]:
        if not line:
            if self._data:
                yield ServerEvent(self._name, "\n".join(self._data))
            self._name, self._data = "", []
            return
        name, _, value = line.decode("utf-8").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
