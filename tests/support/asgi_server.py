"""Run an ASGI application on a real port, in a thread of the test."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn


@contextmanager
def running(app: Any, config: uvicorn.Config | None = None) -> Iterator[str]:
    """Serve an application and yield its URL; it is stopped at the end."""
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        server = uvicorn.Server(config or uvicorn.Config(app, log_level="critical", lifespan="auto"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            deadline = time.monotonic() + 20
            while not server.started and time.monotonic() < deadline:
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(20)
