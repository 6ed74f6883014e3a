"""``Dashboard``: the pages as an ASGI application beside the API."""

from __future__ import annotations

import asyncio
import logging
import urllib.parse
from typing import Any, Final

from driftsack.service.domain.refusals import Refusal
from driftsack.service.web.api.context import Service
from driftsack.service.web.api.keyring import Principal
from driftsack.service.web.asgi import Receive, Send, caller_gone, whole_body
from driftsack.service.web.pages.pages import OPEN, Pages, check_query
from driftsack.service.web.pages.responses import SAFE, PageResponse, page, redirect, static_file
from driftsack.service.web.pages.sessions import Sessions
from driftsack.service.web.pages.visit import Visit, fields

LARGEST_FORM: Final = 16 * 1024
MOST_FIELDS: Final = 2000  # of a form, which may have a box for each arm or campaign
MOST_PARAMETERS: Final = 20  # of a query
PULSE: Final = 1.0  # seconds between two reads of the journals
KEEP_ALIVE: Final = 15.0  # seconds after which an idle stream sends a comment
BEGINNINGS: Final = ("/campaigns/", "/static/", "/keys/")
PATHS: Final = frozenset({"/", "/login", "/logout", "/open", "/keys", "/audit", "/stream"})
log = logging.getLogger("driftsack.service.web.pages")


class Dashboard:
    """The pages.

    Args:
        service: Campaigns, keys and projections.
        pulse: Seconds between two reads of the journals for an event stream.
        is_encrypted: Whether browsers reach the service by TLS, so that cookies are restricted to it.
    """

    def __init__(self, service: Service, pulse: float = PULSE, is_encrypted: bool = False) -> None:
        self._service, self._pulse, self._is_encrypted = service, pulse, is_encrypted
        self._sessions = Sessions(service.keyring)
        self._watcher = service.watcher
        self._pages = Pages(service, self._sessions)
        self._closing = False

    def has(self, path: str) -> bool:
        """Return whether a path belongs to the pages and not to the API."""
        return path in PATHS or path.startswith(BEGINNINGS)

    def close(self) -> None:
        """End the event streams, so that the server can stop."""
        self._closing = True

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request."""
        headers = dict(scope["headers"])
        session, secure = self._sessions.find(headers), self._is_encrypted or scope.get("scheme") == "https"
        visit = Visit(scope["method"], scope["path"], {}, headers, {}, session, secure)
        try:
            visit = visit._replace(query=fields(scope["query_string"], MOST_PARAMETERS, blank=True))
            check_query(visit)
            if visit.path == "/stream" and session is not None:
                await self._stream(visit, receive, send)
                return
            answer = await self._answer(visit, receive)
        except Refusal as refusal:
            answer = refused(visit, refusal)
        except Exception:
            log.exception("a page failed")
            answer = refused(visit, Refusal("internal", "the page could not be rendered; see the log of the service."))
        await send({"type": "http.response.start", "status": answer.status, "headers": answer.all_headers()})
        await send({"type": "http.response.body", "body": b"" if visit.method == "HEAD" else answer.body})

    async def _answer(self, visit: Visit, receive: Receive) -> PageResponse:
        """Answer a request that is not an event stream."""
        # Static files need no session.
        if visit.path.startswith("/static/"):
            found = static_file(visit.path.removeprefix("/static/")) if visit.method in ("GET", "HEAD") else None
            if found is None:
                raise Refusal("not-found", f"there is no file {visit.path[:100]}.")
            return found
        # Everything else needs a session, except the login.
        if visit.method not in ("GET", "POST"):
            raise Refusal("method-not-allowed", f"{visit.method} is not allowed on {visit.path[:200]}.")
        if visit.session is None and visit.path not in OPEN:
            after = f"?next={urllib.parse.quote(visit.path)}" if visit.method == "GET" and visit.path != "/" else ""
            return redirect(f"/login{after}")
        # Forms must come from a page of the same session.
        if visit.method == "POST":
            if visit.is_foreign():
                raise Refusal("forbidden", "forms of other sites are not accepted.")
            visit = visit._replace(form=fields(await whole_body(receive, LARGEST_FORM), MOST_FIELDS))
            if visit.path not in OPEN:
                self._sessions.check(visit.known, visit.form.pop("token", ""))
        return await self._pages.answer(visit)

    async def _stream(self, visit: Visit, receive: Receive, send: Send) -> None:
        """Send a server-sent event whenever the number of the latest journal event changes."""
        name = visit.query.get("campaign", "")
        visit.principal.check("read", name or None, limited_ok=True)
        headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store"), *SAFE]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        gone = asyncio.ensure_future(caller_gone(receive))
        last, quiet = "", 0.0
        try:
            while not gone.done() and not self._closing and self._sessions.find(visit.headers) is not None:
                now = await self._latest(visit.principal, name)
                quiet += self._pulse
                if now != last or quiet >= KEEP_ALIVE:
                    said = f"data: {now}\n\n" if now != last else ": keep-alive\n\n"
                    await send({"type": "http.response.body", "body": said.encode(), "more_body": True})
                    last, quiet = now, 0.0
                await asyncio.wait([gone], timeout=self._pulse)
            await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()

    async def _latest(self, principal: Principal, name: str) -> str:
        """Return a string that changes with the latest events of a campaign, or of all that the key may see."""
        try:
            positions = await self._watcher.positions(self._pulse)
        except Refusal:
            return "unavailable"
        limited = principal.campaigns
        shown = [seq for each, seq in positions.items() if name in ("", each) and (limited is None or each in limited)]
        return f"{len(shown)} {sum(shown)}"


def refused(visit: Visit, refusal: Refusal) -> PageResponse:
    """Return the page for a refused request."""
    return page("problem.html", refusal.status, title=refusal.title, detail=refusal.detail, **visit.common())
