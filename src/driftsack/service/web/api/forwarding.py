"""Forwards requests to the replica that owns their campaign."""

from __future__ import annotations

import http.client
import logging
import urllib.parse
from typing import Final

from driftsack.service.runtime.keeper import Keeper
from driftsack.service.web.api.requests import AuthenticatedRequest
from driftsack.service.web.api.responses import Response, respond

TIMEOUT: Final = 3.0  # seconds
FORWARDED: Final = b"x-driftsack-forwarded"
SENT: Final = (b"authorization", b"idempotency-key", b"content-type")
RETURNED: Final = (b"retry-after", b"www-authenticate", b"allow")
log = logging.getLogger("driftsack.service.web.api")


def must_forward(keeper: Keeper, request: AuthenticatedRequest) -> bool:
    """Return whether another replica owns the campaign; a request is forwarded only once."""
    return request.target.campaign in keeper.foreign and FORWARDED not in request.headers


async def forward(keeper: Keeper, request: AuthenticatedRequest, raw: bytes) -> Response | None:
    """Return the response of the campaign's owner; None if it cannot be reached."""
    campaign = request.target.campaign
    url = urllib.parse.urlsplit(keeper.foreign[campaign])
    if not url.hostname:
        return None

    def send() -> Response:
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        connection = kind(url.hostname or "", url.port, timeout=TIMEOUT)
        # Send the request as it came, marked as forwarded.
        scope = request.scope
        headers = {name.decode(): value.decode("latin-1") for name, value in request.headers.items() if name in SENT}
        path = urllib.parse.quote(scope["path"], safe="/:@")  # ASGI decodes it
        path += "?" + urllib.parse.quote(scope["query_string"], safe="%&=+/:@") if scope["query_string"] else ""
        try:
            connection.request(scope["method"], path, raw, {**headers, FORWARDED.decode(): "1"})
            found = connection.getresponse()
            response = respond(found.status, (found.headers["content-type"] or "").encode(), found.read())
            returned = [(name, found.headers[name.decode()]) for name in RETURNED]
            response.headers.extend((name, value.encode("latin-1")) for name, value in returned if value is not None)
            return response
        finally:
            connection.close()

    try:
        return await keeper.forwarded(send)
    except (OSError, http.client.HTTPException) as error:
        log.warning("the owner of %s cannot be reached: %s", campaign, error)
        return None
