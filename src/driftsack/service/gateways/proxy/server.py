"""``serve_proxy``: runs the proxy in a process, with uvicorn."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, Final

import uvicorn

from driftsack.service.gateways.proxy.app import Proxy
from driftsack.service.gateways.proxy.settings import ProxySettings
from driftsack.service.web.api.limits import LimitedProtocol
from driftsack.service.web.json_logs import log_as_json

MOST_CONNECTIONS: Final = 10_000


def proxy_config(app: Any) -> uvicorn.Config:
    """Return the uvicorn configuration, with the limits of the service on slow and large headers."""
    return uvicorn.Config(
        app,
        http=LimitedProtocol,
        ws="none",
        access_log=False,
        log_config=None,
        log_level="warning",
        timeout_keep_alive=30,
        limit_concurrency=MOST_CONNECTIONS,
        server_header=False,
        lifespan="on",
    )


def serve_proxy(settings: ProxySettings, ready: Callable[[str], None]) -> None:
    """Serve until the process is stopped; ``ready`` is called with the address when the proxy listens."""
    log_as_json("info")
    with socket.create_server((settings.host, settings.port), backlog=2048) as listener:
        ready(f"http://{settings.host}:{listener.getsockname()[1]}/v1")
        uvicorn.Server(proxy_config(Proxy(settings))).run(sockets=[listener])
