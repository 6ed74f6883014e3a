"""Requests with retries under one idempotency key, on persistent connections."""

from __future__ import annotations

import http.client
import json
import random
import secrets
import threading
import time
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any, Final

from driftsack.client.messages import ServiceError, ServiceUnavailableError
from driftsack.core.errors import SettingError

FIRST_WAIT: Final = 0.05  # seconds before the second attempt
LONGEST_WAIT: Final = 2.0
TRY_AGAIN: Final = (429, 502, 503, 504)


def new_once() -> str:
    """Return a new idempotency key."""
    return secrets.token_hex(16)


class Transport:
    """Sends requests about one campaign. Threads may share it.

    Args:
        url: The address of the service.
        key: The API key.
        campaign: The campaign; empty for requests about none.
        patience: Seconds for which a request is retried.
        timeout: Timeout of one attempt, in seconds.
    """

    def __init__(self, url: str, key: str, campaign: str, patience: float, timeout: float) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingError(f"url must look like 'http://localhost:8787', got {url!r:.80}.")
        self._parts, self._key, self._patience, self._timeout = parts, key, patience, timeout
        path = f"/{urllib.parse.quote(campaign, safe='')}" if campaign else ""
        self._base = f"{parts.path.rstrip('/')}/v1/campaigns{path}"
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def post(self, path: str, body: Mapping[str, Any], patience: float | None = None, once: str = "") -> Any:
        """Send a request, with retries, and return the answer.

        Args:
            path: The path after that of the campaign.
            body: The message.
            patience: Seconds for which it is retried; None for the setting of the transport.
            once: The idempotency key; a new one if omitted.

        Raises:
            ServiceUnavailableError: The service could not be reached in time.
            ServiceError: The service refused the request.
        """
        once, data = once or new_once(), json.dumps(body).encode()
        return self._retried(lambda: self.send(path, data, once), self._patience if patience is None else patience)

    def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send a change, with retries, and return the answer; errors are those of :meth:`post`.

        Args:
            path: The path after that of the campaign.
            body: The message.
        """
        once, data = new_once(), json.dumps(body).encode()
        return self._retried(lambda: self._sent("PATCH", path, data, once), self._patience)

    def get(self, path: str) -> Any:
        """Read, with retries; errors are those of :meth:`post`.

        Args:
            path: The path after that of the campaign.
        """
        return self._retried(lambda: self._sent("GET", path, None, new_once()), self._patience)

    def outside(self) -> Transport:
        """Return a transport for requests about no campaign, to the same service with the same key."""
        return Transport(urllib.parse.urlunsplit(self._parts), self._key, "", self._patience, self._timeout)

    def _retried(self, attempt: Callable[[], tuple[int, Any]], patience: float) -> Any:
        """Make attempts until one is answered, or for so many seconds."""
        wait, end = FIRST_WAIT, time.monotonic() + patience
        while True:
            # Make an attempt; no response counts as 503.
            try:
                status, answer = attempt()
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.disconnect()
                status, answer = 503, {"type": "urn:driftsack:unavailable", "detail": f"no answer: {error}"}
            # Return, raise, or wait and try again.
            if status < 300:
                return answer
            kind, detail = str(answer.get("type", "")).rpartition(":")[2], str(answer.get("detail", ""))
            if status not in TRY_AGAIN:
                raise ServiceError(status, kind, detail)
            if time.monotonic() + wait > end:
                raise ServiceUnavailableError(status, kind, detail)
            time.sleep(wait * (0.5 + random.random()))  # noqa: S311  (jitter, so that clients do not retry together)
            wait = min(2 * wait, LONGEST_WAIT)

    def send(self, path: str, data: bytes, once: str) -> tuple[int, Any]:
        """Make one attempt to post, on a connection of its own, and return status and answer."""
        return self._sent("POST", path, data, once)

    def _sent(self, method: str, path: str, data: bytes | None, once: str) -> tuple[int, Any]:
        """Make one attempt with any method."""
        connection = self._connection()
        headers = {
            "Authorization": f"Bearer {self._key}",
            "Content-Type": "application/json",
            "Idempotency-Key": once,
        }
        try:
            connection.request(method, self._base + path, data, headers)
            response = connection.getresponse()
            found = response.status, json.loads(response.read())
        except BaseException:
            connection.close()
            raise
        with self._lock:
            self._idle.append(connection)
        return found

    def _connection(self) -> http.client.HTTPConnection:
        """Return an idle connection, or a new one."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        return kind(self._parts.hostname or "", self._parts.port, timeout=self._timeout)

    def disconnect(self) -> None:
        """Close the connections; decisions are not changed, and the next call reconnects."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
