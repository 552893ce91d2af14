"""The settings of the HTTP listener, which speaks as OpenAI and rerank servers do."""

from __future__ import annotations

from pydantic import Field

from retrieval.settings.base import Section


class HttpSettings(Section):
    """The HTTP listener beside gRPC: `/v1/chat/completions`, `/v1/embeddings`, `/v1/models` and `/v1/rerank`."""

    port: int = Field(default=0, ge=0, le=65535)
    """The TCP port; 0 turns it off."""

    host: str = "127.0.0.1"
    """The address to listen on; anything but a loopback address needs API keys."""

    max_body_bytes: int = Field(default=8 * 1024 * 1024, ge=1024, le=512 * 1024 * 1024)
    """The largest body of a request."""

    keepalive_s: float = Field(default=10.0, ge=0.1, le=3600.0)
    """How long a stream may be silent before a comment keeps it open."""

    max_connections: int = Field(default=1024, ge=1, le=1_000_000)
    """Connections at once; beyond that they are answered with 503."""
