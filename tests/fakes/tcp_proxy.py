"""The proxy that lets connections fail, which the tools use too."""

from __future__ import annotations

from bench._common.tcp_proxy import HOST, Faults, TcpProxy, running_proxy

__all__ = ["HOST", "Faults", "TcpProxy", "running_proxy"]
