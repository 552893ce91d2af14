"""The bytes of an OpenAI-compatible answer: chunks of a stream in HTTP's chunked coding, or one JSON object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_REASONS = {200: "OK", 429: "Too Many Requests", 500: "Internal Server Error"}
_STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def reply(status: int, body: Mapping[str, Any], more_head: str = "") -> bytes:
    """Returns a whole reply with a JSON body."""
    text = json.dumps(body).encode()
    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: application/json\r\n{more_head}"
    return f"{head}Content-Length: {len(text)}\r\n\r\n".encode() + text


class AnswerBytes:
    """An answer of so many tokens, each a word."""

    def __init__(self, model: str, length: int, prompt_tokens: int, cached_tokens: int) -> None:
        self.length = length
        self._named = {"id": "chatcmpl-scripted", "created": 0, "model": model}
        self._usage = {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": length,
            "total_tokens": prompt_tokens + length,
            "prompt_tokens_details": {"cached_tokens": cached_tokens},
        }

    def piece(self, number: int, text: str) -> bytes:
        """Returns the chunk of one token; the first one begins the reply."""
        chunk = self._chunk([{"index": 0, "delta": {"content": text}, "finish_reason": None}])
        return _STREAM_HEAD + chunk if number == 0 else chunk

    def end(self) -> bytes:
        """Returns what comes after the last token: why it ended, the usage, the end of the stream."""
        stop = self._chunk([{"index": 0, "delta": {}, "finish_reason": "stop"}])
        return stop + self._chunk([], usage=self._usage) + _event(b"[DONE]") + b"0\r\n\r\n"

    def whole(self, text: str) -> bytes:
        """Returns the reply to a request that wants no stream."""
        message = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        named = self._named | {"object": "chat.completion"}
        return reply(200, named | {"choices": [message], "usage": self._usage})

    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        named = self._named | {"object": "chat.completion.chunk"}
        return _event(json.dumps(named | {"choices": choices} | more).encode())


def _event(data: bytes) -> bytes:
    event = b"data: " + data + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(event), event)
