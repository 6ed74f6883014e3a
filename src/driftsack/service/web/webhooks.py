"""``Webhooks``: alerts about thresholds, sent to the addresses that the operator listed when starting the service.

Nobody else can name an address: neither settings of campaigns nor requests have any. Redirects are not followed, the
settings of proxies in the environment are ignored, and answers are not read. Alerts wait in a queue of each address, so
nothing waits for a receiver. Messages are signed as Standard Webhooks says (https://www.standardwebhooks.com).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import logging
import random
import time
import urllib.parse
from collections import Counter
from collections.abc import Sequence
from typing import Final

import httpx
import msgspec

from driftsack.core.errors import SettingError
from driftsack.service.domain import messages as ms

MOST_WAITING: Final = 1000  # alerts for one address
ATTEMPTS: Final = 30  # in about two hours
FIRST_WAIT: Final = 1.0  # seconds before the second attempt, doubled before each further one
LONGEST_WAIT: Final = 300.0
PATIENCE: Final = 10.0  # seconds of one attempt
SHORTEST_SECRET: Final = 16  # characters
ENCODED: Final = "whsec_"  # the prefix of a secret in Base64
OK: Final = range(200, 300)
log = logging.getLogger("driftsack.service.webhooks")


class Webhooks:
    """The receivers of alerts.

    Args:
        addresses: Their addresses.
        secret: The secret with which messages are signed.
        first_wait: Seconds before the second attempt.

    Raises:
        SettingError: An address or the secret is not valid.

    Attributes:
        counts: Counters for the metrics.
    """

    def __init__(self, addresses: Sequence[str], secret: str, first_wait: float = FIRST_WAIT) -> None:
        self.counts: Counter[str] = Counter()
        for address in addresses:
            check_address(address)
        self._secret = key_of(secret) if addresses else b""
        self._first_wait = first_wait
        self._queues = {address: asyncio.Queue[ms.Alert](MOST_WAITING) for address in addresses}

    def announce(self, alert: ms.Alert) -> None:
        """Put an alert into the queue of each address; it is dropped where the queue is full."""
        for address, queue in self._queues.items():
            try:
                queue.put_nowait(alert)
            except asyncio.QueueFull:
                self._drop(address, alert, "too many alerts wait")

    async def run(self) -> None:
        """Send alerts until the task is cancelled; those that are left then are not sent."""
        if not self._queues:
            return
        async with httpx.AsyncClient(follow_redirects=False, trust_env=False, timeout=PATIENCE) as http:
            await asyncio.gather(*(self._serve(http, address, queue) for address, queue in self._queues.items()))

    async def _serve(self, http: httpx.AsyncClient, address: str, queue: asyncio.Queue[ms.Alert]) -> None:
        """Send the alerts for one address, one after the other."""
        while True:
            alert = await queue.get()
            why, wait = "", self._first_wait
            for attempt in range(ATTEMPTS):
                if attempt:
                    self.counts["webhooks_retried"] += 1
                    await asyncio.sleep(wait * random.uniform(0.75, 1.25))  # noqa: S311  (jitter)
                    wait = min(2 * wait, LONGEST_WAIT)
                why = await self._refusal(http, address, alert)
                if not why:
                    self.counts["webhooks_sent"] += 1
                    break
            else:
                self._drop(address, alert, why)

    async def _refusal(self, http: httpx.AsyncClient, address: str, alert: ms.Alert) -> str:
        """Send an alert once; return why it was not accepted, empty if it was."""
        body, stamp = msgspec.json.encode(alert), str(int(time.time()))
        headers = {
            "content-type": "application/json",
            "webhook-id": alert.id,
            "webhook-timestamp": stamp,
            "webhook-signature": signature(self._secret, alert.id, stamp, body),
        }
        try:
            async with (
                asyncio.timeout(PATIENCE),  # a receiver that sends byte after byte
                http.stream("POST", address, content=body, headers=headers) as response,
            ):
                return "" if response.status_code in OK else f"status {response.status_code}"
        except Exception as error:  # must not end the deliveries
            return type(error).__name__

    def _drop(self, address: str, alert: ms.Alert, why: str) -> None:
        self.counts["webhooks_dropped"] += 1
        host = urllib.parse.urlsplit(address).hostname  # paths may hold secrets
        log.warning("the alert %s was not delivered to %s: %s", alert.id, host, why)


def signature(secret: bytes, number: str, stamp: str, body: bytes) -> str:
    """Return the signature of a message.

    >>> signature(b"0123456789abcdef", "chat-7", "1700000000", b"{}")[:12]
    'v1,cHH1x1+wO'
    """
    said = f"{number}.{stamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(secret, said, hashlib.sha256)).decode()


def key_of(secret: str) -> bytes:
    """Return the bytes of a secret, which is in Base64 if it begins with ``whsec_``.

    Raises:
        SettingError: It is too short, or not in Base64.
    """
    try:
        found = (
            base64.b64decode(secret[len(ENCODED) :], validate=True) if secret.startswith(ENCODED) else secret.encode()
        )
    except binascii.Error as error:
        raise SettingError("a webhook_secret that begins with whsec_ must be in Base64.") from error
    if len(found) < SHORTEST_SECRET:
        raise SettingError(
            f"webhooks need a webhook_secret of at least {SHORTEST_SECRET} characters, with which messages are signed; "
            "set DRIFTSACK_WEBHOOK_SECRET."
        )
    return found


def check_address(address: str) -> None:
    """Raise an error unless an address is one of HTTP, without a user or a fragment."""
    try:
        parts = urllib.parse.urlsplit(address)
        fits = (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0
            and bool(httpx.URL(address).host)
        )
    except (ValueError, httpx.InvalidURL):
        fits = False
    if not fits or parts.username is not None or parts.fragment or any(c.isspace() for c in address):
        raise SettingError(f"a webhook must be an address such as https://example.org/alerts, got {address!r:.80}.")
