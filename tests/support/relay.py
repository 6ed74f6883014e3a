"""A TCP relay to a PostgreSQL server, which can stop relaying without closing a connection."""

from __future__ import annotations

import contextlib
import socket
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager


class Relay:
    """Relays bytes between clients and a server; while it holds them, connections stay open and nothing arrives.

    Args:
        target: The server's socket in the file system, or its host and port.
        host: The address to listen on.
    """

    def __init__(self, target: str | tuple[str, int], host: str = "127.0.0.1") -> None:
        self._target = target
        self._flowing, self._swallowing = threading.Event(), False
        self._flowing.set()
        self._open: list[socket.socket] = []
        self._listener = socket.create_server((host, 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def hold(self) -> None:
        """Keep bytes back until :meth:`go_on`."""
        self._flowing.clear()

    def swallow(self) -> None:
        """Acknowledge bytes and discard them."""
        self._swallowing = True

    def go_on(self) -> None:
        """Relay again, first what was held; connections that lost bytes are closed."""
        if self._swallowing:
            self._swallowing = False
            self._close_connections()
        self._flowing.set()

    def close(self) -> None:
        """Close everything."""
        self._listener.close()
        self._close_connections()
        self._flowing.set()

    def _close_connections(self) -> None:
        opened, self._open = self._open, []
        for one in opened:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """Connect to the server and relay both directions."""
        self._flowing.wait()
        family = socket.AF_UNIX if isinstance(self._target, str) else socket.AF_INET
        server = socket.socket(family)
        try:
            server.connect(self._target)
        except OSError:
            client.close()
            return
        self._open += [client, server]
        threading.Thread(target=self._copy, args=(server, client), daemon=True).start()
        self._copy(client, server)

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._flowing.wait()
                if not self._swallowing:
                    sink.sendall(data)
            self._flowing.wait()
            sink.shutdown(socket.SHUT_WR)


@contextmanager
def relayed(address: str, host: str = "127.0.0.1") -> Iterator[tuple[Relay, str]]:
    """Put a relay before a database of :class:`LocalPostgres`; yield it and the address through it."""
    parts = urllib.parse.urlsplit(address)
    query = dict(urllib.parse.parse_qsl(parts.query))
    target = (
        f"{query['host']}/.s.PGSQL.{parts.port or 5432}"
        if "host" in query
        else (parts.hostname or "", parts.port or 5432)
    )
    relay = Relay(target, host)
    user = f"{parts.username}:{parts.password or ''}@" if parts.username else ""
    try:
        yield relay, f"postgresql://{user}{host}:{relay.port}{parts.path}"
    finally:
        relay.close()
