"""The settings of the service: server, identity, request path, context, logs and metrics."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator, model_validator

from retrieval.settings.base import NAME, Section, live

Role = Literal["read", "write", "admin"]


class ServerSettings(Section):
    """Where and how the server listens."""

    host: str = "127.0.0.1"
    """The address to listen on; anything but a loopback address needs API keys."""

    port: int = Field(default=50051, ge=0, le=65535)
    """The TCP port; 0 takes a free one, which the log names."""

    unix_socket: str = ""
    """A path to listen on besides, for an app in the same pod; empty listens on TCP only."""

    max_message_bytes: int = Field(default=64 * 1024 * 1024, ge=64 * 1024, le=512 * 1024 * 1024)
    """The largest message; above it gRPC itself answers."""

    grace_s: float = Field(default=5.0, ge=0.0, le=300.0)
    """How long running calls may go on after a stop is asked for."""

    keepalive_s: float = Field(default=20.0, ge=1.0, le=3600.0)
    """How long a connection may be silent before a ping asks whether the caller is still there, and keeps it open."""

    reflection: bool = True
    """Whether the wire can be listed with reflection; with API keys, callers must present one for it too."""

    metrics_host: str = "127.0.0.1"
    """The address of the Prometheus endpoint."""

    metrics_port: int = Field(default=0, ge=0, le=65535)
    """The port of the Prometheus endpoint; 0 turns it off."""


class ApiKey(Section):
    """A key that callers present."""

    name: str = Field(min_length=1, max_length=64)
    """What the log calls the key."""

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """The SHA-256 of the key, in hexadecimal; `headrace keys new` makes both."""

    tenant: str = Field(pattern=NAME)
    """Whose data the key opens."""

    roles: tuple[Role, ...] = ("read",)
    """What the key may do: `read`, `write`, `admin`."""

    data_policy: str = Field(default="", max_length=64)
    """A name for what may be done with the data; cached answers are shared among keys of one policy only."""

    expires_at: datetime | None = None
    """When the key ends, with a time zone; absent means never."""

    @field_validator("expires_at")
    @classmethod
    def _has_zone(cls, value: datetime | None) -> datetime | None:
        if value is not None and value.tzinfo is None:
            raise ValueError("must have a time zone")
        return value


class AuthSettings(Section):
    """Who may call. Without keys the server listens on loopback only, and everyone is the tenant `default`."""

    keys: tuple[ApiKey, ...] = ()
    """The keys."""

    @field_validator("keys")
    @classmethod
    def _no_doubles(cls, keys: tuple[ApiKey, ...]) -> tuple[ApiKey, ...]:
        if len({key.sha256 for key in keys}) != len(keys):
            raise ValueError("two keys are the same")
        return keys


class AdmissionSettings(Section):
    """How many requests run at once."""

    max_concurrent: int = live(64, ge=1, le=100_000)
    """Requests that run at once."""

    max_queued: int = live(128, ge=0, le=100_000)
    """Requests that may wait for one of them to end; beyond that they are refused at once."""

    max_wait_ms: int = live(1000, ge=0, le=600_000)
    """How long a request may wait."""


class RetrievalSettings(Section):
    """The request path from a question to hits."""

    timeout_ms: int = live(10_000, ge=1, le=600_000)
    """The longest that Retrieve may take; a caller's shorter deadline holds instead."""

    mode: Literal["hybrid", "dense", "sparse"] = live("hybrid")
    """Which branches search."""

    fusion: Literal["convex", "rrf"] = live("convex")
    """How rankings are fused: a convex combination of normalised scores, or reciprocal ranks."""

    dense_weight: float = live(0.65, ge=0.0, le=1.0)
    """Weight of the cosine in a convex combination; BM25, divided by the query's upper bound, has the rest. Before late
    interaction 0.65 is best, alone 0.55."""

    rrf_k: int = live(60, ge=1, le=1000)
    """The constant of reciprocal rank fusion."""

    top_k: int = live(10, ge=1, le=1000)
    """Hits that are returned."""

    max_top_k: int = live(200, ge=1, le=1000)
    """The largest top_k that a request may ask for."""

    candidates: int = live(100, ge=1, le=2000)
    """Candidates asked of each branch; never fewer than top_k."""

    max_candidates: int = live(500, ge=1, le=2000)
    """The most candidates that a request may ask for."""

    min_score: float = live(-1.0, ge=-1.0, le=2.0)
    """Hits below this final score are left out; a score equal to it stays."""

    @model_validator(mode="after")
    def _bounds_agree(self) -> RetrievalSettings:
        if self.top_k > self.max_top_k:
            raise ValueError("top_k must not be above max_top_k")
        if self.candidates > self.max_candidates:
            raise ValueError("candidates must not be above max_candidates")
        return self


class ContextSettings(Section):
    """How hits become a prompt."""

    budget_tokens: int = live(1500, ge=16, le=1_000_000)
    """Tokens of assembled context, as the target model counts them, marks and titles included."""

    max_budget_tokens: int = live(32_000, ge=16, le=1_000_000)
    """The largest budget that a request may ask for."""

    tokenizer: str = "bundled"
    """What counts: `bundled` (the bundled encoder's tokenizer) or the path of a tokenizer.json of the target model."""

    duplicate_overlap: float = live(0.8, ge=0.1, le=1.0)
    """A passage is dropped when this share of its word 5-grams stands in a better one."""

    expand: Literal["none", "window", "section"] = live("none")
    """What is served around a hit: nothing, some sentences on each side of it (`window`), or the section that it is in
    (`section`)."""

    window_sentences: int = live(2, ge=1, le=100)
    """Sentences on each side that `window` adds at most."""

    expand_tokens: int = live(512, ge=32, le=32_000)
    """Tokens of a widened passage at most."""

    passages: Literal["all", "gap"] = live("all")
    """How many hits are assembled: `all` that fit, or `gap`, those above the largest gap between the scores of two
    neighbours in rank, within the bounds below."""

    min_passages: int = live(3, ge=1, le=1000)
    """Hits that `gap` keeps at least."""

    max_passages: int = live(20, ge=1, le=1000)
    """Hits that `gap` keeps at most."""

    @model_validator(mode="after")
    def _budgets_agree(self) -> ContextSettings:
        if self.budget_tokens > self.max_budget_tokens:
            raise ValueError("budget_tokens must not be above max_budget_tokens")
        if self.min_passages > self.max_passages:
            raise ValueError("min_passages must not be above max_passages")
        return self


class LogSettings(Section):
    """The log, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = live("info")
    """The least level that is written; query texts are written at debug only."""

    format: Literal["json", "console"] = "json"
    """One JSON object a line, or lines for a person."""


class DataSettings(Section):
    """Where data is kept."""

    folder: Path = Path("data")
    """The folder of records and generations; one process at a time. In a file, relative to that file."""
