"""``Visit``: a request for a page."""

from __future__ import annotations

import urllib.parse
from typing import Any, NamedTuple

from driftsack.service.domain.refusals import Refusal
from driftsack.service.web.api.keyring import Principal
from driftsack.service.web.pages.sessions import Session


class Visit(NamedTuple):
    """A request for a page.

    Attributes:
        method: GET or POST.
        query: The query parameters, by name.
        headers: The headers, by name.
        form: The fields of a form, by name.
        session: The session; None if the visitor is not logged in.
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
        """The session; a refusal is raised if there is none."""
        if self.session is None:
            raise Refusal("unauthenticated", "log in first.")
        return self.session

    @property
    def principal(self) -> Principal:
        """The owner of the session's key."""
        return self.known.principal

    @property
    def is_part(self) -> bool:
        """Whether the page's script asks for a part of a page."""
        return b"hx-request" in self.headers

    def is_foreign(self) -> bool:
        """Return whether the form was sent by a page of another site."""
        origin = self.headers.get(b"origin")
        if origin is None:
            return False
        return urllib.parse.urlsplit(origin.decode("latin-1")).netloc.encode() != self.headers.get(b"host", b"")

    def common(self) -> dict[str, Any]:
        """Return the values that every template uses."""
        host = self.headers.get(b"host", b"localhost").decode("latin-1")
        allows = self.session.principal.allows if self.session else frozenset()
        return {
            "session": self.session,
            "may_operate": "operate" in allows,
            "may_admin": "admin" in allows and self.session is not None and self.session.principal.campaigns is None,
            "part": self.is_part,
            "address": f"http{'s' if self.secure else ''}://{host}",
        }


def fields(raw: bytes, most: int, blank: bool = False) -> dict[str, str]:
    """Return the fields of a form or query; values of repeated fields are joined by commas.

    Args:
        raw: The form or query.
        most: The largest number of fields.
        blank: Whether fields without a value are returned, too.

    Raises:
        Refusal: There are more than ``most`` fields.
    """
    try:
        pairs = urllib.parse.parse_qsl(raw.decode("utf-8", "replace"), blank, max_num_fields=most)
    except ValueError as error:
        raise Refusal.invalid(f"a request may have {most} fields.") from error
    found: dict[str, str] = {}
    for name, value in pairs:
        found[name] = f"{found[name]},{value}" if name in found else value
    return found
