"""Decodes server-sent events from bytes, as the WHATWG standard says (section 9.2.6), whatever the chunks.

Decoders of clients take a byte order mark for a part of the first field's name, hand on events without data
(`event: ping`, `id: 7`) to a JSON parser, split lines at U+2028, and hide whether `[DONE]` came or the stream just
stopped. A line and an event are bounded, since what does not end is something else than events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LONGEST_BYTES = 1 << 20


class EventTooLong(ValueError):
    """A line or an event that does not end; the stream is something else than events."""

    def __init__(self) -> None:
        super().__init__(f"an event is longer than {_LONGEST_BYTES} bytes; read something else from this server")


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """An event with data; `name` is empty unless the server gave one."""

    name: str
    data: str


class EventDecoder:
    """Decodes one stream: feed it bytes, finish it at the end."""

    def __init__(self) -> None:
        self._rest = bytearray()  # of the line that has not ended
        self._started = False
        self._after_cr = False
        self._name = ""
        self._data: list[str] = []
        self._data_bytes = 0

    def feed(self, chunk: bytes) -> Iterator[ServerEvent]:
        """Yields the events that are complete by now.

        Raises:
            UnicodeDecodeError: the bytes are no UTF-8.
            EventTooLong: a line or an event does not end.
        """
        if not self._started:
            chunk = self._begin(chunk)
        for line in self._lines(chunk):
            if line:
                self._take(line)
            elif event := self._dispatched():
                yield event
        if len(self._rest) > _LONGEST_BYTES:
            raise EventTooLong

    def finish(self) -> Iterator[ServerEvent]:
        """Yields what stands before the end of the stream; servers forget the last empty line."""
        if self._rest:
            self._take(bytes(self._rest))
            self._rest.clear()
        if event := self._dispatched():
            yield event

    def _begin(self, chunk: bytes) -> bytes:
        """Returns the stream's first bytes without a byte order mark, once there are enough to tell."""
        first = bytes(self._rest) + chunk
        self._rest.clear()
        if len(first) < len(_BYTE_ORDER_MARK) and _BYTE_ORDER_MARK.startswith(first):
            self._rest += first
            return b""
        self._started = True
        return first.removeprefix(_BYTE_ORDER_MARK)

    def _lines(self, chunk: bytes) -> list[bytes]:
        """Returns the lines that end in the chunk. A line ends with CR, LF or both, and with nothing else."""
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = chunk.split(b"\n")
        if lines and self._rest:
            lines[0] = bytes(self._rest) + lines[0]
            self._rest.clear()
        self._rest += rest
        return lines

    def _take(self, line: bytes) -> None:
        name, _, value = line.decode("utf-8").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data_bytes += len(line)
            if self._data_bytes > _LONGEST_BYTES:
                raise EventTooLong
            self._data.append(value)
        elif name == "event":
            self._name = value

    def _dispatched(self) -> ServerEvent | None:
        """Returns the event that an empty line ends, if it has data."""
        event = ServerEvent(self._name, "\n".join(self._data)) if self._data else None
        self._name, self._data, self._data_bytes = "", [], 0
        return event
