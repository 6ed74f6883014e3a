"""``serve_proxy``: runs the proxy in a process, with uvicorn."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn

from driftsack.service.gateways.proxy.app import Proxy
from driftsack.service.gateways.proxy.table import ProxySettings
from driftsack.service.web.json_logs import log_as_json


def serve_proxy(settings: ProxySettings, ready: Callable[[str], None]) -> None:
    """Serve until the process is stopped; ``ready`` is called with the address when the proxy listens."""
    log_as_json("info")
    with socket.create_server((settings.host, settings.port), backlog=2048) as listener:
        config = uvicorn.Config(
            Proxy(settings), access_log=False, log_config=None, log_level="warning", lifespan="on", server_header=False
        )
        ready(f"http://{settings.host}:{listener.getsockname()[1]}/v1")
        uvicorn.Server(config).run(sockets=[listener])
