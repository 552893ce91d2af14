"""Real Redis servers for tests: alone, with Sentinels, or as a cluster."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench._common.redis_server import HOST, START_S, RedisServer, free_port, server_program

__all__ = ["HOST", "RedisServer", "free_port", "running_cluster", "running_sentinel", "server_program"]

_CLUSTER_SLOTS = 16384
_CLUSTERED = ("--cluster-enabled", "yes", "--cluster-node-timeout", "1000")


@contextmanager
def running_sentinel(primary_port: int, service: str, down_after_ms: int = 300) -> Iterator[RedisServer]:
    """Gives a Sentinel, alone in its quorum, that watches the primary and gives it up after a while of silence."""
    rules = [
        f"sentinel monitor {service} {HOST} {primary_port} 1",
        f"sentinel down-after-milliseconds {service} {down_after_ms}",
        f"sentinel failover-timeout {service} 2000",
    ]
    with tempfile.TemporaryDirectory(prefix="headrace-sentinel-") as folder:
        configuration = Path(folder) / "sentinel.conf"  # rewritten by the Sentinel as it learns
        configuration.write_text("\n".join(rules) + "\n", encoding="utf-8")
        with RedisServer(str(configuration), "--sentinel") as sentinel:
            yield sentinel


@contextmanager
def running_cluster(count: int = 3) -> Iterator[list[RedisServer]]:
    """Gives a cluster of primaries without replicas that covers all slots."""
    with ExitStack() as stack:
        nodes = [stack.enter_context(RedisServer(*_CLUSTERED)) for _ in range(count)]
        for number, node in enumerate(nodes):
            with node.client() as client:
                first, end = (_CLUSTER_SLOTS * edge // count for edge in (number, number + 1))
                client.cluster("SET-CONFIG-EPOCH", number + 1)
                client.cluster("ADDSLOTS", *range(first, end))
                if number:
                    client.cluster("MEET", HOST, nodes[0].port)
        for node in nodes:
            _wait_for_cluster(node, count)
        yield nodes


def _wait_for_cluster(node: RedisServer, count: int) -> None:
    """Asks until the node has heard of all slots: gossip cannot be waited for otherwise."""
    until = time.monotonic() + START_S
    with node.client() as client:
        while True:
            told = client.cluster("INFO")
            if told["cluster_state"] == "ok" and int(told["cluster_size"]) == count:
                return
            assert time.monotonic() < until, told
            threading.Event().wait(0.02)
