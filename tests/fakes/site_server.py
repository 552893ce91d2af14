"""A web server of one thread a request, that answers what a script says and notes what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Page:
    """What is answered at a path."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "text/html"})
    etag: str = ""
    drips: bool = False  # sends the body byte by byte, and then on and on


@dataclass
class SiteServer:
    """Pages by path; what is not there answers 404."""

    pages: dict[str, Page] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        """Where the site is."""
        return f"http://127.0.0.1:{self.port}"

    def paths(self) -> list[str]:
        """Returns the paths that were asked for, in order."""
        return [path for path, _ in self.asked]


@contextmanager
def serving(site: SiteServer) -> Iterator[SiteServer]:
    """Serves the site on a free port of this machine."""
    closing = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            site.asked.append((self.path, headers))
            page = site.pages.get(self.path, Page(status=404))
            if page.etag and headers.get("if-none-match") == page.etag:
                page = Page(status=304)
            self.send_response(page.status)
            for name, value in page.headers.items():
                self.send_header(name, value)
            if page.etag:
                self.send_header("etag", page.etag)
            if page.drips:
                self.end_headers()
                self.drip()
                return
            self.send_header("content-length", str(len(page.body)))
            self.end_headers()
            self.wfile.write(page.body)

        def drip(self) -> None:
            with suppress(OSError):
                while not closing.wait(0.05):
                    self.wfile.write(b"x")

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield site
    finally:
        closing.set()
        server.shutdown()
        thread.join()
        server.server_close()
