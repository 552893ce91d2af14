"""Where Redis is and how much it may cost; nothing here opens a connection."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field
from typing import NoReturn
from urllib.parse import SplitResult, unquote, urlsplit

_PREFIX = re.compile(r"[A-Za-z0-9_.-]{1,32}")  # no character that a SCAN pattern or a hash tag gives a meaning
_SCHEMES = "redis, rediss, redis+cluster, rediss+cluster, redis+sentinel or rediss+sentinel"


class RedisOptionsError(ValueError):
    """An option that cannot be used; `field` says which."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field


class Topology(enum.Enum):
    """How the servers stand to one another."""

    STANDALONE = "standalone"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class Node:
    """Where a server listens."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """Certificates of an encrypted connection. Without `ca_file` the system's authorities are trusted."""

    ca_file: str | None = None
    cert_file: str | None = None  # of this client, if the server wants one
    key_file: str | None = None
    verify: bool = True  # of the server's certificate and name


@dataclass(frozen=True, slots=True)
class RedisOptions:
    """Where Redis is, and the bounds within which it is used.

    Raises:
        RedisOptionsError: when a value is out of its bounds or does not go with another.
    """

    nodes: tuple[Node, ...]  # the server, the Sentinels, or some of the cluster
    topology: Topology = Topology.STANDALONE
    sentinel_service: str = ""  # what the Sentinels call the primary
    database: int = 0
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    sentinel_username: str | None = None
    sentinel_password: str | None = field(default=None, repr=False)
    tls: TlsOptions | None = None
    budget_ms: float = 20.0  # what a look-up may cost a request
    connect_timeout_ms: float = 250.0
    max_connections: int = 8  # that look-ups use at once, per server; three more write, probe and invalidate
    failures_to_open: int = 3  # in a row, after which Redis is left alone until a probe succeeds
    queue_count: int = 2048  # of values that wait to be written
    queue_bytes: int = 32 << 20
    key_prefix: str = "headrace"

    def __post_init__(self) -> None:
        for name in ("budget_ms", "connect_timeout_ms", "max_connections", "failures_to_open"):
            if not getattr(self, name) > 0:
                raise RedisOptionsError(name, "must be above 0")
        for name in ("database", "queue_count", "queue_bytes"):
            if getattr(self, name) < 0:
                raise RedisOptionsError(name, "must not be below 0")
        if _PREFIX.fullmatch(self.key_prefix) is None:
            raise RedisOptionsError("key_prefix", "must be 1 to 32 letters, digits, '_', '.' or '-'")
        self._check_servers()

    def _check_servers(self) -> None:
        if not self.nodes:
            raise RedisOptionsError("nodes", "name at least one server")
        if self.topology is Topology.STANDALONE and len(self.nodes) > 1:
            raise RedisOptionsError("nodes", "several servers are a cluster or Sentinels; say which")
        if self.topology is Topology.CLUSTER and self.database:
            raise RedisOptionsError("database", "a cluster has only database 0")
        if (self.topology is Topology.SENTINEL) != bool(self.sentinel_service):
            raise RedisOptionsError("sentinel_service", "goes with Sentinels, and they need it")
        for node in self.nodes:
            if not node.host or not 0 < node.port < 65536:
                raise RedisOptionsError("nodes", f"{node.host}:{node.port} is no address")
        if self.tls is not None and self.tls.key_file is not None and self.tls.cert_file is None:
            raise RedisOptionsError("tls.key_file", "goes with tls.cert_file")

    @property
    def shown(self) -> str:
        """The servers as people write them, without secrets."""
        return ",".join(f"{node.host}:{node.port}" for node in self.nodes)


def options_from_url(url: str) -> RedisOptions:
    """Reads where Redis is; bounds keep their defaults (`dataclasses.replace` changes them).

    `redis://user:password@host:port/database`, `rediss://` for TLS, `redis+cluster://host:port,host:port` and
    `redis+sentinel://host:port,host:port/service/database`.

    Raises:
        RedisOptionsError: when it is no such URL. The text of the error does not hold the URL, which may hold secrets.
    """
    parts = urlsplit(url)
    base, _, suffix = parts.scheme.partition("+")
    if base not in {"redis", "rediss"} or suffix not in {"", "cluster", "sentinel"}:
        raise RedisOptionsError("url", f"the scheme must be {_SCHEMES}")
    topology = Topology(suffix or "standalone")
    username, password, nodes = _authority(parts, 26379 if topology is Topology.SENTINEL else 6379)
    service, database = _path(parts, topology)
    return RedisOptions(
        nodes,
        topology,
        service,
        database,
        username,
        password,
        tls=TlsOptions() if base == "rediss" else None,
    )


def _authority(parts: SplitResult, default_port: int) -> tuple[str | None, str | None, tuple[Node, ...]]:
    """Reads `user:password@host:port,host:port`, which the standard library knows for one host only."""
    credential, _, hosts = parts.netloc.rpartition("@")
    username, _, password = credential.partition(":")
    nodes = tuple(_node(host, default_port) for host in hosts.split(",") if host)
    return unquote(username) or None, unquote(password) or None, nodes


def _node(text: str, default_port: int) -> Node:
    one = urlsplit(f"//{text}")
    try:
        return Node(one.hostname or "", one.port or default_port)
    except ValueError:
        _refuse(f"{text} is no host and port")


def _path(parts: SplitResult, topology: Topology) -> tuple[str, int]:
    """Reads `/database`, or `/service` and `/service/database` for Sentinels."""
    if parts.query or parts.fragment:
        _refuse("options stand in their own fields, not in the URL")
    steps = [unquote(step) for step in parts.path.split("/") if step]
    service = steps.pop(0) if topology is Topology.SENTINEL and steps else ""
    if len(steps) > 1 or not all(step.isdecimal() for step in steps):
        _refuse("the path must be the number of a database")
    return service, int(steps[0]) if steps else 0


def _refuse(problem: str) -> NoReturn:
    raise RedisOptionsError("url", problem)
