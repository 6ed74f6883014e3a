"""``serve``: the service as a process, with uvicorn."""

from __future__ import annotations

import gc
import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import uvicorn

from driftsack.core.errors import MissingExtraError
from driftsack.service.dashboard.app import Dashboard
from driftsack.service.dashboard.watcher import Watcher
from driftsack.service.http.app import Application
from driftsack.service.http.context import Service
from driftsack.service.http.direct import direct_protocol
from driftsack.service.http.keyring import Keyring
from driftsack.service.http.limits import LimitedProtocol
from driftsack.service.logs import log_as_json
from driftsack.service.owner import SNAPSHOT_EVERY, Keeper
from driftsack.service.store import open_store
from driftsack.service.store.interface import Owner, Store

SWITCH = 0.0002  # seconds after which a busy event loop lets the thread of a commit go on; 5 ms by default
RARELY = (20_000, 20, 100)  # of gc.set_threshold: requests make few cycles


class Settings(NamedTuple):
    """How to serve.

    Attributes:
        store: A file, or ``postgresql://...``.
        host: The address to listen on.
        port: The port; 0 for any.
        url: Where other replicas reach this one; None for host and port.
        lease: Seconds for which a replica owns campaigns unless it says so again.
        rate: Requests a second that each key may send; 0 for no limit.
        proxies: Addresses whose ``X-Forwarded-*`` headers are believed.
        snapshot_every: Events between two snapshots.
        log_level: What is logged: ``debug``, ``info``, ``warning`` or ``error``.
        traces: Where traces go (OpenTelemetry), such as ``http://localhost:4318/v1/traces``; empty for nowhere.
    """

    store: str = "driftsack.db"
    host: str = "127.0.0.1"
    port: int = 8787
    url: str | None = None
    lease: float = 10.0
    rate: float = 0.0
    proxies: str = ""
    snapshot_every: int = SNAPSHOT_EVERY
    log_level: str = "info"
    traces: str = ""


def application(store: Store, settings: Settings, port: int) -> Application:
    """The service on a store.

    Args:
        store: The store.
        settings: How to serve.
        port: The port that it listens on.

    Returns:
        The ASGI application.
    """
    url = settings.url or f"http://{settings.host}:{port}"
    owner = Owner(f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}", url, settings.lease)
    keeper = Keeper(store, owner, snapshot_every=settings.snapshot_every)
    service = Service(keeper, Keyring(store, settings.rate), Watcher(keeper))
    return Application(service, Dashboard(service))


def with_traces(app: Application, address: str) -> Any:
    """The application, with traces if there is an address for them.

    Args:
        app: The application.
        address: Where traces go; empty for nowhere.

    Returns:
        The application.

    Raises:
        MissingExtraError: The extra ``otel`` is not installed.
    """
    if not address:
        return app
    try:
        from driftsack.service.tracing import traced  # noqa: PLC0415  (an optional package)
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{error.name} is not installed: pip install 'driftsack[otel]'") from error
    return traced(app, address)


class Server(uvicorn.Server):
    """A server that ends the streams of the pages before it waits for connections to close.

    Args:
        config: Of uvicorn.
        app: The service.
    """

    def __init__(self, config: uvicorn.Config, app: Application) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop."""
        if self._app.pages is not None:
            self._app.pages.close()
        await super().shutdown(sockets)


def server_config(app: Any, settings: Settings) -> uvicorn.Config:
    """How uvicorn serves an application: slow and endless requests end, and only listed proxies are believed.

    Args:
        app: The application.
        settings: How to serve.

    Returns:
        The configuration of uvicorn.
    """
    return uvicorn.Config(
        app,
        http=direct_protocol(app) if isinstance(app, Application) else LimitedProtocol,  # traces need the usual way
        access_log=False,
        log_config=None,
        log_level=settings.log_level,
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=settings.proxies or None,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=10,
        limit_concurrency=10_000,
        server_header=False,
        lifespan="on",
    )


@contextmanager
def drained_exit() -> Iterator[None]:
    """Exit with code 0 after SIGTERM: uvicorn raises the signal again once the service is drained."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals go to the main thread
        return

    def leave(*_: object) -> None:
        raise SystemExit(0)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def serve(settings: Settings, first_key: Callable[[str], None], ready: Callable[[str], None]) -> None:
    """Serve until the process is told to stop.

    Args:
        settings: How to serve.
        first_key: Called with the first administrator's key if the store is empty.
        ready: Called with the address when the service listens.
    """
    if not settings.store.startswith("postgres"):
        Path(settings.store).resolve().parent.mkdir(parents=True, exist_ok=True)
    log_as_json(settings.log_level)
    store = open_store(settings.store)
    try:
        key = Keyring(store).first_key()
        if key is not None:
            first_key(key)
        with socket.create_server((settings.host, settings.port), backlog=2048) as listener:
            port = listener.getsockname()[1]
            app = application(store, settings, port)
            config = server_config(with_traces(app, settings.traces), settings)
            sys.setswitchinterval(SWITCH)
            gc.freeze()  # the library itself is never collected
            gc.set_threshold(*RARELY)
            ready(f"http://{settings.host}:{port}")
            with drained_exit():
                Server(config, app).run(sockets=[listener])
    finally:
        store.close()
