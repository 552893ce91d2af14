"""Snapshots of a server's physical collections, over its REST interface: the only one that hands out their files.

A snapshot is made and kept by one node. So a collection that is spread over several nodes is refused: what one node
gives is only its part.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from indexers.backup.manifest import sha256_of
from indexers.errors import IndexCorrupt, IndexUnavailable
from indexers.generation import sync
from indexers.qdrant.options import QdrantOptions

_UPLOADED_AS = "snapshot"


class Snapshots:
    """Makes, fetches and restores snapshots of one node; an async context manager."""

    def __init__(self, options: QdrantOptions) -> None:
        """Connects with the first call.

        Raises:
            OSError: the file with the certificates cannot be read.
        """
        self._address = options.rest_address
        verify: ssl.SSLContext | bool = True
        if options.ca_file is not None:
            verify = ssl.create_default_context(cafile=str(options.ca_file))
        headers = {"api-key": options.api_key} if options.api_key else {}
        # Making or restoring one takes as long as copying; only a node that says nothing at all is given up.
        timeout = httpx.Timeout(options.build_timeout_s, connect=options.timeout_s)
        self._client = httpx.AsyncClient(base_url=self._address, headers=headers, timeout=timeout, verify=verify)

    async def check_whole(self, name: str) -> None:
        """Refuses a collection that has parts on other nodes.

        Raises:
            IndexUnavailable: it has, or the node cannot be reached.
        """
        found = await self._result("GET", f"/collections/{quote(name)}/cluster")
        if found.get("remote_shards"):
            reason = "it is spread over several nodes, and a snapshot holds one node's part; transfer it instead"
            raise IndexUnavailable(f"collection {name!r}", reason)

    async def make(self, name: str) -> str:
        """Makes a snapshot of a physical collection on the node, and returns its name there."""
        made = await self._result("POST", f"/collections/{quote(name)}/snapshots", params={"wait": "true"})
        return str(made["name"])

    async def fetch(self, name: str, snapshot: str, target: Path) -> None:
        """Loads a snapshot into a file, and compares it with the hash that the node gives.

        Raises:
            IndexCorrupt: it did not arrive as it was.
        """
        listed = await self._result("GET", f"/collections/{quote(name)}/snapshots")
        described: dict[str, Any] = next((one for one in listed if one["name"] == snapshot), {})
        target.parent.mkdir(parents=True, exist_ok=True)
        path = f"/collections/{quote(name)}/snapshots/{quote(snapshot)}"
        with target.open("wb") as file:
            async with self._errors(), self._client.stream("GET", path) as response:
                response.raise_for_status()
                async for block in response.aiter_bytes():
                    file.write(block)
        sync(target)
        if described.get("checksum") not in (None, sha256_of(target)):
            raise IndexCorrupt(str(target), "the snapshot did not arrive as it was made; back up again")

    async def remove(self, name: str, snapshot: str) -> None:
        """Removes a snapshot from the node."""
        await self._result("DELETE", f"/collections/{quote(name)}/snapshots/{quote(snapshot)}")

    async def restore(self, name: str, source: Path, sha256: str) -> None:
        """Makes a physical collection of a snapshot; the node compares the hash before it begins."""
        params = {"wait": "true", "priority": "snapshot", "checksum": sha256}
        with source.open("rb") as file:
            await self._result(
                "POST", f"/collections/{quote(name)}/snapshots/upload", params=params, files={_UPLOADED_AS: file}
            )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def _result(self, method: str, path: str, **more: Any) -> Any:
        async with self._errors():
            response = await self._client.request(method, path, **more)
            response.raise_for_status()
            return response.json()["result"]

    @asynccontextmanager
    async def _errors(self) -> AsyncIterator[None]:
        """Translates what the client raises, in one place."""
        where = f"qdrant at {self._address}"
        try:
            yield
        except httpx.HTTPStatusError as error:
            raise IndexUnavailable(where, f"status {error.response.status_code}") from error
        except (httpx.HTTPError, ValueError, KeyError) as error:
            raise IndexUnavailable(where, type(error).__name__) from error
