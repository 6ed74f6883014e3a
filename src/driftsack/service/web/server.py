"""``serve``: runs the service in a process, with uvicorn."""

from __future__ import annotations

import gc
import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import uvicorn

from driftsack.core.errors import MissingExtraError, SettingError
from driftsack.service.projections.metrics import Metrics
from driftsack.service.projections.watcher import Watcher
from driftsack.service.runtime.clock_check import check_clock
from driftsack.service.runtime.keeper import SNAPSHOT_EVERY, Keeper
from driftsack.service.runtime.owned import ServiceClock
from driftsack.service.store import open_store
from driftsack.service.store.interface import Owner, Store
from driftsack.service.web.api.app import Application
from driftsack.service.web.api.context import Service
from driftsack.service.web.api.direct import direct_protocol
from driftsack.service.web.api.keyring import FAILURES, Keyring
from driftsack.service.web.api.limits import LimitedProtocol
from driftsack.service.web.api.work import SHARE
from driftsack.service.web.json_logs import log_as_json
from driftsack.service.web.pages.app import PULSE, Dashboard

if TYPE_CHECKING:
    from driftsack.service.web.webhooks import Webhooks

SWITCH = 0.0002  # seconds after which a busy event loop yields to the commit thread; Python's default is 5 ms
RARELY = (20_000, 20, 100)  # for gc.set_threshold: requests create few reference cycles


class Settings(NamedTuple):
    """The settings of ``driftsack serve``.

    Attributes:
        store: A file, or ``postgresql://...``.
        host: The address to listen on.
        port: The port; 0 for any.
        url: The address at which other replicas reach this one; None for host and port.
        lease: Seconds after which a replica loses its campaigns unless it renews the lease.
        rate: Requests per second that each key may send; 0 for no limit.
        work: Seconds of work per second that each key may cause by explanations, exports and exchanges while other keys
            are active; 0 for no limit.
        proxies: Addresses whose ``X-Forwarded-*`` headers are trusted.
        snapshot_every: Events between two snapshots.
        log_level: ``debug``, ``info``, ``warning`` or ``error``.
        key_file: The file to which the first administrator's key is written instead of the output; empty for none.
        webhooks: Addresses that get alerts about thresholds, separated by commas.
        webhook_secret: The secret with which these messages are signed.
        traces: The OpenTelemetry collector, such as ``http://localhost:4318/v1/traces``; empty for none.
    """

    store: str = "driftsack.db"
    host: str = "127.0.0.1"
    port: int = 8787
    url: str | None = None
    lease: float = 10.0
    rate: float = 0.0
    work: float = SHARE
    proxies: str = ""
    snapshot_every: int = SNAPSHOT_EVERY
    log_level: str = "info"
    traces: str = ""
    key_file: str = ""
    webhooks: str = ""
    webhook_secret: str = ""


def application(
    store: Store,
    settings: Settings,
    port: int,
    clock: ServiceClock | None = None,
    failures: float = FAILURES,
    pulse: float = PULSE,
) -> Application:
    """Return the service on a store as an ASGI application.

    Args:
        settings: The settings of ``driftsack serve``.
        port: The port that the server listens on.
        clock: The clock of leases and seasons; None for the system's.
        failures: Requests per second without a valid key that are answered with 401; the others get 429.
        pulse: Seconds between two reads of the journals for the event streams of the dashboard.
    """
    url = settings.url or f"http://{settings.host}:{port}"
    owner = Owner(f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}", url, settings.lease)
    webhooks = webhooks_of(settings)
    keeper = Keeper(store, owner, clock=clock, snapshot_every=settings.snapshot_every, alerts=webhooks)
    watcher = Watcher(keeper)
    keyring = Keyring(store, settings.rate, failures, settings.work)
    service = Service(keeper, keyring, watcher, Metrics(keeper, watcher))
    return Application(service, Dashboard(service, pulse, is_encrypted=url.startswith("https:")))


def webhooks_of(settings: Settings) -> Webhooks | None:
    """Return the sender of alerts; None without webhooks.

    Raises:
        SettingError: An address or the secret is not valid.
    """
    addresses = [address.strip() for address in settings.webhooks.split(",") if address.strip()]
    if not addresses:
        return None
    from driftsack.service.web.webhooks import Webhooks  # which imports an HTTP client

    return Webhooks(addresses, settings.webhook_secret)


def with_traces(app: Application, address: str) -> Any:
    """Return the application with traces to a collector; the application itself if the address is empty.

    Raises:
        MissingExtraError: The extra ``otel`` is not installed.
    """
    if not address:
        return app
    try:
        from driftsack.service.web.api.tracing import traced
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{error.name} is not installed: pip install 'driftsack[otel]'") from error
    return traced(app, address)


class Server(uvicorn.Server):
    """A uvicorn server that ends the event streams of the dashboard before it waits for connections to close.

    Args:
        config: Uvicorn configuration.
        app: The service.
    """

    def __init__(self, config: uvicorn.Config, app: Application) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the event streams, then shut down."""
        if self._app.pages is not None:
            self._app.pages.close()
        await super().shutdown(sockets)


def server_config(app: Any, settings: Settings) -> uvicorn.Config:
    """Return the uvicorn configuration: slow and large requests are refused, and only listed proxies are trusted."""
    return uvicorn.Config(
        app,
        http=direct_protocol(app) if isinstance(app, Application) else LimitedProtocol,  # spans need ASGI
        access_log=False,
        ws="none",  # requests for an upgrade are answered as if they did not ask for one
        log_config=None,
        log_level=settings.log_level,
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=settings.proxies or None,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=6,  # with the limits of Keeper.stop, a stop takes less than 15 seconds
        limit_concurrency=10_000,
        server_header=False,
        lifespan="on",
    )


@contextmanager
def drained_exit() -> Iterator[None]:
    """Exit with code 0 after SIGTERM, which uvicorn raises again once the service is drained."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return

    def leave(*_: object) -> None:
        raise SystemExit(0)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def serve(settings: Settings, first_key: Callable[[str], None], ready: Callable[[str], None]) -> None:
    """Serve until the process is stopped.

    Args:
        settings: The settings of ``driftsack serve``.
        first_key: Called with the first administrator's key if the store is empty.
        ready: Called with the address when the service listens.
    """
    directory = Path(settings.store).resolve().parent
    if not settings.store.startswith("postgres") and not directory.is_dir():
        raise SettingError(f"the directory {directory} of the store does not exist; create it first.")
    webhooks_of(settings)  # before a store is made and a key is shown
    log_as_json(settings.log_level)
    # Listen first: if the port is busy, no store is made and no key is shown. The application must know its port, too.
    with (
        socket.create_server((settings.host, settings.port), backlog=2048) as listener,
        closing(open_store(settings.store)) as store,
    ):
        check_clock(store)
        # Create the first key on an empty store.
        key = Keyring(store).first_key()
        if key is not None and settings.key_file:
            write_secret(Path(settings.key_file), key)
        elif key is not None:
            first_key(key)
        port = listener.getsockname()[1]
        app = application(store, settings, port)
        config = server_config(with_traces(app, settings.traces), settings)
        # Tune the interpreter for many short requests, then serve.
        sys.setswitchinterval(SWITCH)
        gc.freeze()  # imported modules are never collected
        gc.set_threshold(*RARELY)
        ready(f"http://{settings.host}:{port}")
        with drained_exit():
            Server(config, app).run(sockets=[listener])


def write_secret(path: Path, key: str) -> None:
    """Write a key to a file that only its owner may read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(f"{key}\n")
