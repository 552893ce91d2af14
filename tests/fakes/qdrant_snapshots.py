"""The REST interface of a Qdrant server, as far as it is about snapshots, over the state of the fake gRPC server.

It behaves as the documented interface: snapshots are made, listed with their hashes, handed out, removed, and uploaded
as a form, and an upload whose hash differs is refused. What is inside a snapshot is the fake's own.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from qdrant_client import grpc
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.fakes.qdrant_engine import StoredCollection
from tests.fakes.qdrant_servicer import FakeQdrant


class FakeSnapshots:
    """Snapshots of the collections of a fake server, and switches that make it fail."""

    def __init__(self, fake: FakeQdrant) -> None:
        self.fake = fake
        self.made: dict[tuple[str, str], bytes] = {}
        self.remote_shards: list[dict[str, int]] = []
        self.api_key = ""
        self.damaged = False  # what is handed out differs from its hash
        self.forgets = False  # what is uploaded loses a point
        self.refused = ""  # a method that fails with 500
        self.making: asyncio.Event | None = None  # snapshots wait for it

    def app(self) -> Starlette:
        """Returns the application."""
        place = "/collections/{name}"
        return Starlette(
            routes=[
                Route(f"{place}/cluster", self.cluster),
                Route(f"{place}/snapshots", self.make, methods=["POST"]),
                Route(f"{place}/snapshots", self.listed),
                Route(f"{place}/snapshots/upload", self.upload, methods=["POST"]),
                Route(f"{place}/snapshots/{{snapshot}}", self.fetch),
                Route(f"{place}/snapshots/{{snapshot}}", self.remove, methods=["DELETE"]),
            ]
        )

    async def cluster(self, request: Request) -> Response:
        """Tells where the shards are."""
        return self._said(request, {"peer_id": 1, "shard_count": 1, "remote_shards": self.remote_shards})

    async def make(self, request: Request) -> Response:
        """Makes a snapshot."""
        if self.making is not None:
            await self.making.wait()
        name = request.path_params["name"]
        collection = self.fake.collections.get(name)
        if collection is None:
            return JSONResponse({"status": {"error": "not found"}}, 404)
        snapshot = f"{name}-{len(self.made)}.snapshot"
        self.made[name, snapshot] = _written(collection)
        return self._said(request, self._described(name, snapshot))

    async def listed(self, request: Request) -> Response:
        """Lists the snapshots of a collection."""
        name = request.path_params["name"]
        return self._said(request, [self._described(*one) for one in self.made if one[0] == name])

    async def fetch(self, request: Request) -> Response:
        """Hands out a snapshot."""
        content = self.made[request.path_params["name"], request.path_params["snapshot"]]
        return Response(content[:-1] + b"?" if self.damaged else content)

    async def remove(self, request: Request) -> Response:
        """Removes a snapshot."""
        del self.made[request.path_params["name"], request.path_params["snapshot"]]
        return self._said(request, True)

    async def upload(self, request: Request) -> Response:
        """Makes a collection of a snapshot."""
        content = _form_file(request.headers["content-type"], await request.body())
        if hashlib.sha256(content).hexdigest() != request.query_params["checksum"]:
            return JSONResponse({"status": {"error": "checksum"}}, 400)
        collection = _read(content)
        if self.forgets and collection.points:
            collection.points.popitem()
        self.fake.collections[request.path_params["name"]] = collection
        return self._said(request, True)

    def _said(self, request: Request, result: Any) -> Response:
        if self.api_key and request.headers.get("api-key") != self.api_key:
            return JSONResponse({"status": {"error": "forbidden"}}, 403)
        if request.method == self.refused:
            return JSONResponse({"status": {"error": "as told"}}, 500)
        return JSONResponse({"result": result, "status": "ok", "time": 0.0})

    def _described(self, name: str, snapshot: str) -> dict[str, Any]:
        content = self.made[name, snapshot]
        return {"name": snapshot, "size": len(content), "checksum": hashlib.sha256(content).hexdigest()}


@asynccontextmanager
async def serving_snapshots(snapshots: FakeSnapshots, **tls: Any) -> AsyncIterator[int]:
    """Serves on a free loopback port, which it gives."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(snapshots.app(), log_level="critical", lifespan="off", **tls))
        task = asyncio.create_task(server.serve([listening]))
        while not server.started:
            await asyncio.sleep(0)
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            await task


def _written(collection: StoredCollection) -> bytes:
    points = [base64.b64encode(one.point.SerializeToString()).decode() for one in collection.points.values()]
    indexes = {name: base64.b64encode(one.SerializeToString()).decode() for name, one in collection.indexes.items()}
    return json.dumps({"vectors": sorted(collection.vector_names), "indexes": indexes, "points": points}).encode()


def _read(content: bytes) -> StoredCollection:
    stored = json.loads(content)
    collection = StoredCollection(set(stored["vectors"]))
    for name, index in stored["indexes"].items():
        collection.indexes[name] = grpc.CreateFieldIndexCollection.FromString(base64.b64decode(index))
    for point in stored["points"]:
        collection.upsert(grpc.PointStruct.FromString(base64.b64decode(point)))
    return collection


def _form_file(content_type: str, body: bytes) -> bytes:
    boundary = content_type.partition("boundary=")[2].encode()
    part = body.split(b"--" + boundary)[1]
    head, _, content = part.partition(b"\r\n\r\n")
    assert b'name="snapshot"' in head
    return content.removesuffix(b"\r\n")
