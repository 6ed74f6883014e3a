"""Run a service on a real port, in a thread of the test."""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import msgspec

from driftsack.service.store import open_store
from driftsack.service.web.api.app import Application
from driftsack.service.web.api.keyring import Keyring
from driftsack.service.web.server import Server, Settings, application, server_config
from tests.support.campaigns import small


class Live(NamedTuple):
    """A running service, its URL and its first key."""

    app: Application
    url: str
    key: str

    def call(self, method: str, path: str, body: Any = None, key: str | None = None, **headers: str) -> tuple[int, Any]:
        """Send a request; return the status and the content of the response."""
        data = None if body is None else json.dumps(body).encode()
        given = {"content-type": "application/json", "authorization": f"Bearer {self.key if key is None else key}"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + path, data, given, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                text, status = response.read().decode(), response.status
        except urllib.error.HTTPError as error:
            text, status = error.read().decode(), error.code
        return status, json.loads(text) if text[:1] in "{[" else text

    def open(self, name: str = "chat", **settings: Any) -> None:
        """Open a campaign."""
        config = msgspec.to_builtins(small(**settings))
        status, answer = self.call("POST", "/v1/campaigns", {"name": name, "config": config})
        assert status == 201, answer

    def ask(self, name: str = "chat", **terms: Any) -> Any:
        """Ask until the policy does not skip."""
        while True:
            status, answer = self.call("POST", f"/v1/campaigns/{name}/decisions", terms)
            assert status == 200, answer
            if answer["reason"] != "policy":
                return answer


@contextmanager
def serving(
    address: str, injected: dict[str, Any] | None = None, wrap: Callable[[Any], Any] | None = None, **settings: Any
) -> Iterator[Live]:
    """Run a service until the end of the block.

    Args:
        address: The store.
        injected: Clock and limits, as arguments of :func:`application`.
        wrap: Wraps the application.
        **settings: The settings of ``driftsack serve``; the port is any free one unless it is given.
    """
    given = ("127.0.0.1", settings.get("port", 0))
    with closing(open_store(address)) as store, socket.create_server(given, backlog=512) as listener:
        port = listener.getsockname()[1]
        key = Keyring(store).first_key() or ""
        app = application(store, Settings(**settings), port, **(injected or {}))
        config = server_config(app if wrap is None else wrap(app), Settings(log_level="error", **settings))
        server = Server(config, app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            deadline = time.monotonic() + 20
            while (not server.started or app.service.keeper.unloaded) and time.monotonic() < deadline:
                time.sleep(0.01)
            yield Live(app, f"http://127.0.0.1:{port}", key)
        finally:
            server.should_exit = True
            thread.join(20)
