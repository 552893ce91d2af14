"""How `git` reaches a repository elsewhere: by addresses that were checked, with the credentials of the job."""

from __future__ import annotations

import base64
import os
import shlex
from dataclasses import dataclass
from urllib.parse import urlsplit

from indexers.errors import ItemUnreadable
from indexers.sources.access import SourceAccess
from indexers.sources.addresses import AddressGuard
from indexers.sources.spec import GitSource as GitSpec

_PORTS = {"http": 80, "https": 443, "ssh": 22}


@dataclass(frozen=True, slots=True)
class Reach:
    """What the program is given for one fetch."""

    settings: dict[str, str]
    environment: dict[str, str]
    secrets: tuple[str, ...]


class GitRemote:
    """A repository at a URL."""

    def __init__(self, spec: GitSpec, access: SourceAccess) -> None:
        """Raises: ItemUnreadable: the URL may not be read by this job, or the password is not there."""
        parts = urlsplit(spec.url)
        self._scheme, self._host = parts.scheme, parts.hostname or ""
        if parts.scheme not in _PORTS:
            raise ItemUnreadable(
                parts.scheme, "is no scheme that repositories are read by; use https or ssh", "forbidden"
            )
        if parts.password is not None or (parts.username and parts.scheme != "ssh"):
            raise ItemUnreadable("source.url", "holds credentials; use username and password_ref", "forbidden")
        if parts.scheme == "ssh" and access.secrets is not None:
            reason = "would use the server's own keys, which are not for jobs that are submitted; use https"
            raise ItemUnreadable("source.url", reason, "forbidden")
        self._password = access.secret(spec.password_ref)
        if self._password and parts.scheme == "http" and not spec.allow_private:
            raise ItemUnreadable("source.url", "would carry the password for all to read; use https", "forbidden")
        self._username = spec.username
        self._port = parts.port or _PORTS[parts.scheme]
        self._guard = AddressGuard(access.private(asked=spec.allow_private))

    def reach(self) -> Reach:
        """Resolves the host and returns what leads there and nowhere else.

        Raises:
            ItemUnreadable: the address may not be connected to.
            SourceUnavailable: the host cannot be resolved.
        """
        addresses = self._guard.resolve(self._host, self._port)
        environment = {"GIT_ALLOW_PROTOCOL": self._scheme}
        if self._scheme == "ssh":
            return Reach({}, environment | self._ssh(addresses[0]), ())
        listed = ",".join(f"[{address}]" if ":" in address else address for address in addresses)
        settings = {"http.curloptResolve": f"{self._host}:{self._port}:{listed}", "http.proxy": ""}
        if not (self._password or self._username):
            return Reach(settings, environment, ())
        token = base64.b64encode(f"{self._username}:{self._password}".encode()).decode()
        settings["http.extraHeader"] = f"Authorization: Basic {token}"
        return Reach(settings, environment, (self._password, token))

    def _ssh(self, address: str) -> dict[str, str]:
        """Returns the user's own keys and agent; the host's key must be known by the name in the URL."""
        alias = self._host if self._port == _PORTS["ssh"] else f"[{self._host}]:{self._port}"
        options = ("BatchMode=yes", "StrictHostKeyChecking=yes", f"HostName={address}", f"HostKeyAlias={alias}")
        command = ["ssh", "-o", "ProxyCommand=none", *(part for one in options for part in ("-o", one))]
        kept = {name: os.environ[name] for name in ("HOME", "SSH_AUTH_SOCK") if name in os.environ}
        return {**kept, "GIT_SSH_COMMAND": shlex.join(command), "GIT_SSH_VARIANT": "ssh"}
