"""A repository that can be changed, and Git's own HTTP service over it, with a password if wanted."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b.c", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b.c"}
_ALONE = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "PATH": os.environ["PATH"]}


@dataclass
class Repository:
    """A checkout on the branch `main`."""

    path: Path

    @classmethod
    def made(cls, path: Path, files: dict[str, str]) -> Repository:
        """Makes one with one commit."""
        path.mkdir(parents=True)
        repository = cls(path)
        repository.git("init", "--quiet", "--initial-branch=main")
        repository.write(files)
        return repository

    def git(self, *arguments: str) -> str:
        """Runs git in it and returns what it prints."""
        command = ["git", "-C", str(self.path), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=_ALONE | _WHO).stdout.strip()

    def write(self, files: dict[str, str]) -> str:
        """Commits files; returns the commit."""
        for name, text in files.items():
            place = self.path / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        return self.commit()

    def commit(self) -> str:
        """Commits the checkout as it is."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "change")
        return self.git("rev-parse", "HEAD")


@dataclass
class GitServer:
    """Where repositories are served, and what was asked."""

    root: Path
    login: str = ""  # user:password; empty asks for none
    redirect: str = ""
    port: int = 0
    asked: list[str] = field(default_factory=list)

    def url(self, name: str) -> str:
        """Returns the address of a repository below the root."""
        return f"http://127.0.0.1:{self.port}/{name}"

    def allows(self, header: str) -> bool:
        """Tells whether a request may go on."""
        expected = base64.b64encode(self.login.encode()).decode()
        return not self.login or header == f"Basic {expected}"


@contextmanager
def serving_git(server: GitServer) -> Iterator[GitServer]:
    """Serves while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.asked.append(self.path)
            if server.redirect:
                self._plain(302, {"location": server.redirect + self.path})
            elif not server.allows(self.headers.get("authorization", "")):
                self._plain(401, {"www-authenticate": "Basic realm=git"})
            else:
                self._serve()

        do_POST = do_GET  # noqa: N815

        def _plain(self, status: int, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {**headers, "content-length": "0"}.items():
                self.send_header(name, value)
            self.end_headers()

        def _serve(self) -> None:
            path, _, query = self.path.partition("?")
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            variables = {
                **_ALONE,
                "GIT_PROJECT_ROOT": str(server.root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_PROTOCOL": self.headers.get("git-protocol", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""),
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("content-type", ""),
                "CONTENT_LENGTH": str(len(body)),
            }
            service = ["git", "http-backend"]
            answer = subprocess.run(service, input=body, capture_output=True, env=variables, check=True).stdout
            head, _, content = answer.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
            self.send_response(int(headers.pop("Status", "200").split()[0]))
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments: object) -> None:
            """Is quiet."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = False
    server.port = listening.server_port
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()
