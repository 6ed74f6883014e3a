"""``Visit``: a request of somebody who may or may not be logged in."""

from __future__ import annotations

import urllib.parse
from typing import Any, NamedTuple

from driftsack.service.dashboard.sessions import Session
from driftsack.service.http.keyring import Principal
from driftsack.service.refusals import Refusal


class Visit(NamedTuple):
    """A request for a page.

    Attributes:
        method: GET or POST.
        path: Its path.
        query: Its query, by name.
        headers: Its headers.
        form: The fields that were sent.
        session: Who is logged in; None without a session.
        secure: Whether the connection is encrypted.
    """

    method: str
    path: str
    query: dict[str, str]
    headers: dict[bytes, bytes]
    form: dict[str, str]
    session: Session | None
    secure: bool

    @property
    def known(self) -> Session:
        """Who is logged in."""
        if self.session is None:
            raise Refusal("unauthenticated", "log in first.")
        return self.session

    @property
    def principal(self) -> Principal:
        """What they may do."""
        return self.known.principal

    @property
    def is_part(self) -> bool:
        """Whether a script asks for a part of a page."""
        return b"hx-request" in self.headers

    def is_foreign(self) -> bool:
        """Whether the form was sent by a page of another site."""
        origin = self.headers.get(b"origin")
        if origin is None:
            return False
        return urllib.parse.urlsplit(origin.decode("latin-1")).netloc.encode() != self.headers.get(b"host", b"")

    def common(self) -> dict[str, Any]:
        """What every template needs."""
        allows = self.session.principal.allows if self.session else frozenset()
        return {
            "session": self.session,
            "may_operate": "operate" in allows,
            "may_admin": "admin" in allows and self.session is not None and self.session.principal.campaigns is None,
            "part": self.is_part,
        }


def fields(raw: bytes) -> dict[str, str]:
    """The fields of a form; of several with one name, all values with commas."""
    found: dict[str, str] = {}
    for name, value in urllib.parse.parse_qsl(raw.decode("utf-8", "replace"), max_num_fields=100):
        found[name] = f"{found[name]},{value}" if name in found else value
    return found
