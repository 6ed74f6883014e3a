"""An HTTP client of the dashboard that keeps the cookie, submits forms and follows no redirects."""

from __future__ import annotations

import http.client
import re
import urllib.parse
from typing import NamedTuple


class Seen(NamedTuple):
    """An HTTP response."""

    status: int
    headers: dict[str, str]
    text: str


class Visitor:
    """A client of the pages of a service.

    Args:
        url: The URL of the service.
        key: The key to log in with; None to stay logged out.
    """

    def __init__(self, url: str, key: str | None = None) -> None:
        self._host = urllib.parse.urlsplit(url).netloc
        self.cookie = ""
        if key is not None:
            assert self.post("/login", key=key).status == 303

    def send(self, method: str, path: str, body: str = "", **headers: str) -> Seen:
        """Send a request."""
        given = {"cookie": self.cookie} if self.cookie else {}
        given |= {"content-type": "application/x-www-form-urlencoded"} if method == "POST" else {}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection(self._host, timeout=20)
        try:
            connection.request(method, path, body or None, given)
            response = connection.getresponse()
            seen = Seen(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read().decode())
        finally:
            connection.close()
        if "set-cookie" in seen.headers:
            self.cookie = seen.headers["set-cookie"].partition(";")[0]
        return seen

    def get(self, path: str, **headers: str) -> Seen:
        """Fetch a page."""
        return self.send("GET", path, **headers)

    def post(self, path: str, **fields: str) -> Seen:
        """Post the given fields, without the hidden fields of the page."""
        return self.send("POST", path, urllib.parse.urlencode(fields))

    def submit(self, path: str, **fields: str) -> Seen:
        """Fetch a form and post it with its hidden fields and the given ones."""
        page = self.get(path).text
        hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page.partition("<main")[2]))
        return self.post(path.partition("?")[0], **{**hidden, **fields})
