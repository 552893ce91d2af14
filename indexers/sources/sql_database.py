"""One database, opened through SQLAlchemy: read only where it can be, with a bound on time, errors in our terms.

A database that a submitted job names is reached with credentials of the job's own, at an address that it may reach, and
without options in its URL, which can name files and sockets of the server.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from indexers.errors import ItemUnreadable, JobError, SourceUnavailable
from indexers.sources.access import SourceAccess
from indexers.sources.addresses import AddressGuard
from indexers.sources.spec import SqlSource as SqlSpec

# ruff: noqa: PLC0415  SQLAlchemy comes with the extra `sql`

_PORTS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306, "mssql": 1433, "oracle": 1521}
_READ_ONLY = frozenset({"postgresql", "mysql", "mariadb", "oracle"})
_CONNECT_TIMEOUT = frozenset({"psycopg", "psycopg2", "pymysql", "mysqldb"})
_PINNED = frozenset({"psycopg", "psycopg2"})
_STEPS = 10_000  # of SQLite's machine between two looks at the clock


class Database:
    """Where the rows are."""

    def __init__(self, spec: SqlSpec, base_folder: Path, access: SourceAccess) -> None:
        """Checks what may be read; nothing is connected to yet.

        Raises:
            ItemUnreadable: the database may not be read, or its password is not there.
            JobError: the extra `sql` or the driver is not installed, or the URL is none.
        """
        self._timeout_s = spec.timeout_s
        self._rows_per_read = spec.rows_per_read
        self._password = access.secret(spec.password_ref)
        self._pin = ""
        try:
            from sqlalchemy import create_engine
            from sqlalchemy.engine import make_url
            from sqlalchemy.exc import SQLAlchemyError
        except ImportError as error:
            raise JobError("a source of kind `sql` needs the extra `sql`: pip install 'headrace[sql]'") from error
        try:
            url = make_url(spec.url)
            if url.password is not None:
                raise ItemUnreadable("source.url", "holds a password; use password_ref", "forbidden")
            self.name = url.set(username=None, query={}).render_as_string()
            connect = self._checked(url, base_folder, access)
            self._engine: Any = create_engine(*connect[:1], connect_args=connect[1])
        except (SQLAlchemyError, ImportError) as error:
            raise JobError(f"the database cannot be opened: {_first_line(error)}") from None

    def rows(self, statement: Any) -> Iterator[Mapping[str, Any]]:
        """Yields the rows of a statement, from a cursor of the server's where it has some.

        Raises:
            SourceUnavailable: the database cannot be reached, refuses the query, or takes too long.
        """
        spent_s = 0.0
        with self._errors(), self._engine.connect() as connection:
            self._prepare(connection)
            streaming = connection.execution_options(stream_results=True, max_row_buffer=self._rows_per_read)
            begun = time.monotonic()
            found = iter(streaming.execute(statement).mappings())
            while True:
                row = next(found, None)
                # Without the time in which whoever takes the rows lets us wait.
                spent_s += time.monotonic() - begun
                if spent_s > self._timeout_s:
                    raise SourceUnavailable(self.name, f"the query took longer than {self._timeout_s:g} s")
                if row is None:
                    return
                yield row
                begun = time.monotonic()

    def close(self) -> None:
        """Closes the connections."""
        self._engine.dispose()

    def _checked(self, url: Any, base_folder: Path, access: SourceAccess) -> tuple[Any, dict[str, Any]]:
        """Returns the URL to connect to and what its driver is given."""
        backend = url.get_backend_name()
        if backend == "sqlite":
            if url.database in (None, "", ":memory:"):
                return url, {}
            path = access.path(base_folder / str(url.database))
            return url.set(database=f"file:{quote(str(path))}", query={"mode": "ro", "uri": "true"}), {}
        options: dict[str, Any] = {}
        driver = url.get_driver_name()
        if driver in _CONNECT_TIMEOUT:
            options["connect_timeout"] = max(1, int(min(self._timeout_s, 30.0)))
        if access.secrets is not None:
            address = self._submitted(url, backend, access)
            options |= {"hostaddr": address} if driver in _PINNED else {}
        return (url.set(password=self._password) if self._password else url), options

    def _submitted(self, url: Any, backend: str, access: SourceAccess) -> str:
        """Refuses what a submitted job may not reach; returns the address that was checked."""
        if backend not in _PORTS:
            raise ItemUnreadable("source.url", f"{backend} is no database that submitted jobs may read", "forbidden")
        if url.query or not url.host or str(url.host).startswith("/"):
            reason = "must name a host and have no options, when the job is submitted to a server"
            raise ItemUnreadable("source.url", reason, "forbidden")
        if not (url.username and self._password):
            reason = "is missing; jobs that are submitted do not use the server's own credentials"
            raise ItemUnreadable("source.password_ref", reason, "no_secret")
        return AddressGuard(access.private_addresses).resolve(url.host, url.port or _PORTS[backend])[0]

    def _prepare(self, connection: Any) -> None:
        """Has the database itself keep to reading and to the time, where it can."""
        from sqlalchemy import text

        backend, milliseconds = self._engine.dialect.name, max(1, int(self._timeout_s * 1000))
        if backend in _READ_ONLY:
            connection.execute(text("SET TRANSACTION READ ONLY"))
        if backend == "postgresql":
            connection.execute(text(f"SET LOCAL statement_timeout = {milliseconds}"))
        elif backend == "mysql" and not self._engine.dialect.is_mariadb:
            connection.execute(text(f"SET SESSION max_execution_time = {milliseconds}"))
        elif backend == "sqlite":
            give_up = time.monotonic() + self._timeout_s
            raw = connection.connection.driver_connection
            raw.set_progress_handler(lambda: int(time.monotonic() > give_up), _STEPS)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
        except SQLAlchemyError as error:
            reason = _first_line(getattr(error, "orig", None) or error)
            reason = reason.replace(self._password, "***") if self._password else reason
            raise SourceUnavailable(self.name, f"the query failed: {reason}") from None


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]
