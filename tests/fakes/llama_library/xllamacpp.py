"""Stands in for the library of the same name where it is put before it on the path: a server with canned answers.

The weights are a file with one word, which says how it behaves: `answer`, `refuse`, `exit`, `hang`, `die_before` or
`die_midway`. An answer says who gave it: process id, port, niceness, slots and tokens of each.
"""

from __future__ import annotations

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any


class CommonParams(SimpleNamespace):
    """The parameters that are set."""

    def __init__(self) -> None:
        super().__init__(model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace())


class Server:
    """Serves from a thread, as the library does."""

    def __init__(self, params: Any) -> None:
        self.behaviour = Path(params.model.path).read_text(encoding="utf-8").strip()
        self.params = params
        os.write(1, b"a library that prints\n")
        os.write(2, b"a library that warns\n" * 10_000)
        if self.behaviour == "refuse":
            raise RuntimeError("it is no model")
        if self.behaviour == "exit":
            os._exit(3)
        if self.behaviour == "hang":
            threading.Event().wait()
        handler = type("Handler", (_Handler,), {"served": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def listening_address(self) -> str:
        """Where it serves."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def said(self) -> str:
        """What it answers."""
        facts = (os.getpid(), self._server.server_port, os.nice(0), self.params.n_parallel, self.params.n_ctx)
        return " ".join(str(fact) for fact in facts)


class _Handler(BaseHTTPRequestHandler):
    served: Server

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Authorization"] != f"Bearer {self.served.params.api_keys[0]}":
            self.send_error(401)
            return
        if self.served.behaviour == "die_before":
            os._exit(4)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        model = next(iter(self.served.params.model_alias))
        self._event({"model": model, "choices": [{"index": 0, "delta": {"content": self.served.said}}]})
        if self.served.behaviour == "die_midway":
            os._exit(5)
        usage = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 8}}
        self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        self._event({"choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _event(self, event: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        self.wfile.flush()
