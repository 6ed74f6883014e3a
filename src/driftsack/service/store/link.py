"""``Link``: a connection to PostgreSQL on which no call takes longer than a deadline.

A database, or a network in between, may swallow what is sent without an error. The server's own limits and TCP's do not
help then, so a thread watches the call and shuts the socket down when its time is over. The caller gets an error, as
if the connection had been lost, and the next call connects again.
"""

from __future__ import annotations

import math
import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

import psycopg

from driftsack.service.store.interface import UnavailableError

Result = TypeVar("Result")
DEADLINE: Final = 5.0  # seconds of a call
STATEMENT_LIMIT: Final = "4s"  # after which the server cancels a statement, before the deadline
PATIENCE: Final = 3  # seconds until an attempt to connect fails
PAUSE: Final = 0.25  # seconds after a call that was not answered in which others, which waited for it, fail too
CHECKS: Final = 20  # in a deadline
TCP: Final[dict[str, Any]] = {
    "keepalives": 1,
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 5000,
}
"""How the kernel notices a peer that does not acknowledge, also on an idle connection."""


class Link:
    """A connection that is made again when it was lost, for one call at a time.

    Args:
        address: The address, such as ``postgresql://user@host/database``.
        deadline: Seconds after which a call fails.
    """

    def __init__(self, address: str, deadline: float = DEADLINE) -> None:
        self._address, self._deadline = address, deadline
        self._lock = threading.Lock()  # held by the call
        self._connection: psycopg.Connection[Any] | None = None
        self._guard = threading.Lock()  # of the two below
        self._ends = math.inf  # when the call must end
        self._descriptor: int | None = None  # the socket of the call
        self._down_until = -math.inf
        self._closed = threading.Event()
        threading.Thread(target=self._watch, name="deadline", daemon=True).start()

    def run(self, work: Callable[[psycopg.Connection[Any]], Result], deadline: float | None = None) -> Result:
        """Call a function with the connection.

        Args:
            work: The function.
            deadline: Seconds after which it fails; None for that of the link.

        Raises:
            UnavailableError: The database did not answer in time, or failed a moment ago.
            psycopg.Error: Any other error of the database.
        """
        limit = self._deadline if deadline is None else deadline
        if not self._lock.acquire(timeout=limit):
            raise UnavailableError(f"the database did not answer within {limit:g} seconds.")
        begin = time.monotonic()
        try:
            if begin < self._down_until:
                raise UnavailableError("the database did not answer a moment ago.")
            if self._connection is None or self._connection.closed:
                self._connection = self._connected()
            return self._watched(work, self._connection, limit)
        except (psycopg.OperationalError, psycopg.InterfaceError):
            if time.monotonic() - begin > PAUSE:  # not after a reset, which is noticed at once
                self._down_until = max(self._down_until, time.monotonic() + PAUSE)
            raise
        finally:
            self._lock.release()

    def _connected(self) -> psycopg.Connection[Any]:
        options = f"-c statement_timeout={STATEMENT_LIMIT} -c lock_timeout={STATEMENT_LIMIT}"
        return psycopg.connect(self._address, autocommit=True, connect_timeout=PATIENCE, options=options, **TCP)

    def _watched(
        self, work: Callable[[psycopg.Connection[Any]], Result], connection: psycopg.Connection[Any], limit: float
    ) -> Result:
        """Call a function while its deadline is watched; close the connection unless only the data was refused."""
        with self._guard:
            self._descriptor, self._ends = connection.fileno(), time.monotonic() + limit
        try:
            return work(connection)
        except psycopg.IntegrityError:
            raise
        except psycopg.Error:
            with self._guard:  # before the descriptor may belong to another file
                self._ends = math.inf
            connection.close()
            raise
        finally:
            with self._guard:
                self._ends = math.inf

    def _watch(self) -> None:
        """Shut down the socket of a call that takes too long."""
        while not self._closed.wait(self._deadline / CHECKS):
            with self._guard:
                if time.monotonic() > self._ends:
                    self._shut_down()

    def _shut_down(self) -> None:
        """Let the current call fail; the guard is held."""
        self._ends = math.inf
        if self._descriptor is not None:
            with socket.socket(fileno=os.dup(self._descriptor)) as connected:
                connected.shutdown(socket.SHUT_RDWR)

    def interrupt(self) -> None:
        """Let the current call fail now, and later ones immediately."""
        self._down_until = math.inf
        with self._guard:
            if self._ends < math.inf:
                self._shut_down()

    def close(self) -> None:
        """Close the connection."""
        self._closed.set()
        with self._lock:
            if self._connection is not None:
                self._connection.close()
