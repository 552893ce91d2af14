"""A loopback server that speaks as much of the Hugging Face hub's HTTP API as its client needs to fetch a model.

It serves folders as repositories of one commit each: what the repository is, its tree, and its files by commit, with
the hashes by which the client names them: git's own for small files, SHA-256 for those in LFS. A repository may want
a token. The server can lie about a file: break off in the middle, or give other bytes of the same length.
"""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

COMMIT = "c0ffee" + "0" * 34
LFS_SUFFIXES = {".onnx", ".safetensors", ".bin"}


@dataclass
class Repository:
    """A folder as a repository; `token` is what opens it, `halved` and `garbled` files arrive damaged."""

    folder: Path
    token: str = ""
    halved: set[str] = field(default_factory=set)
    garbled: set[str] = field(default_factory=set)

    def names(self) -> list[str]:
        """Lists the files, as paths inside the repository."""
        return sorted(path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if path.is_file())


class HubServer:
    """The server, in a thread of its own; `requests` holds method, path and token of everything that was asked."""

    def __init__(self, repositories: dict[str, Repository]) -> None:
        self.repositories = repositories
        self.requests: list[tuple[str, str, str]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": self}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        """What HF_ENDPOINT must be."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def downloads(self) -> list[str]:
        """Lists the files that were fetched."""
        marker = f"/resolve/{COMMIT}/"
        return [path.partition(marker)[2] for method, path, _ in self.requests if method == "GET" and marker in path]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: HubServer

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _answer(self, *, body: bool) -> None:
        path = self.path.partition("?")[0]
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        self.hub.requests.append((self.command, path, token))
        owner, name, *rest = path.removeprefix("/api/models/").strip("/").split("/")
        repository = self.hub.repositories.get(f"{owner}/{name}")
        if repository is None or (repository.token and repository.token != token):
            self._send(401, b'{"error":"Repository not found"}', {"X-Error-Code": "RepoNotFound"}, body)
        elif path.startswith("/api/models/"):
            self._send(200, json.dumps(_about(repository, f"{owner}/{name}", rest)).encode(), {}, body)
        elif "/".join(rest[2:]) in repository.names():
            self._file(repository, "/".join(rest[2:]), body)
        else:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"}, body)

    def _file(self, repository: Repository, name: str, body: bool) -> None:
        content = (repository.folder / name).read_bytes()
        headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{_oid(name, content)}"'}
        sent = b"\0" * len(content) if name in repository.garbled else content
        if name in repository.halved and body:
            self._head(200, len(content), headers)
            self.wfile.write(sent[: len(content) // 2])
            self.close_connection = True
        else:
            self._send(200, sent, headers, body)

    def _send(self, status: int, content: bytes, headers: dict[str, str], body: bool) -> None:
        self._head(status, len(content), headers)
        if body:
            self.wfile.write(content)

    def _head(self, status: int, length: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(length), "Content-Type": "application/json"}.items():
            self.send_header(key, value)
        self.end_headers()


def _about(repository: Repository, model: str, rest: list[str]) -> Any:
    if rest[:1] == ["tree"]:
        return [_entry(name, (repository.folder / name).read_bytes()) for name in repository.names()]
    siblings = [{"rfilename": name} for name in repository.names()]
    return {"id": model, "modelId": model, "sha": COMMIT, "siblings": siblings, "private": bool(repository.token)}


def _entry(name: str, content: bytes) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "file", "path": name, "size": len(content), "oid": _git_oid(content)}
    if Path(name).suffix in LFS_SUFFIXES:
        entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
    return entry


def _oid(name: str, content: bytes) -> str:
    return hashlib.sha256(content).hexdigest() if Path(name).suffix in LFS_SUFFIXES else _git_oid(content)


def _git_oid(content: bytes) -> str:
    return hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()
