"""Sessions of the pages: signed cookies that expire after some hours or when the process stops.

A cookie contains the prefix of the key, an expiry time and a random number, signed with a secret of this process. It
never contains the key itself. Sessions end as soon as their key is removed or expires.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from http.cookies import CookieError, SimpleCookie
from typing import Final, NamedTuple

from driftsack.service.domain.refusals import Refusal
from driftsack.service.web.api.keyring import Keyring, Principal

COOKIE: Final = "driftsack_session"
HOURS: Final = 8
PARTS: Final = 4


class Session(NamedTuple):
    """The session of a user.

    Attributes:
        principal: The owner of the key.
        token: The token that forms must carry (CSRF protection).
        ends: Expiry time, in seconds since 1970.
        nonce: The random number of the session.
    """

    principal: Principal
    token: str
    ends: int
    nonce: str


class Sessions:
    """The sessions of a process."""

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring
        self._secret = secrets.token_bytes(32)
        self._left: dict[str, int] = {}

    def start(self, key: str, secure: bool) -> str:
        """Log in, and return the header that sets the cookie.

        Args:
            key: An API key with the scope ``read``.
            secure: Whether to restrict the cookie to encrypted connections.

        Raises:
            Refusal: The key is not valid, or there were too many attempts.
        """
        principal = self._keyring.principal({b"authorization": b"Bearer " + key.strip().encode("latin-1", "replace")})
        if "read" not in principal.allows:
            raise Refusal("forbidden", "this key does not allow reading; use one with the scope 'read'.")
        ends, nonce = int(time.time()) + HOURS * 3600, secrets.token_hex(16)
        said = f"{principal.prefix}.{ends}.{nonce}"
        return self._header(f"{said}.{self._sign(said)}", HOURS * 3600, secure)

    def find(self, headers: dict[bytes, bytes]) -> Session | None:
        """Return the session of a request; None if it has none or it has expired."""
        # Parse the cookie.
        cookies: SimpleCookie = SimpleCookie()
        try:
            cookies.load(headers.get(b"cookie", b"").decode("latin-1"))
        except CookieError:
            return None
        parts = cookies[COOKIE].value.split(".") if COOKIE in cookies else []
        if len(parts) != PARTS:
            return None
        # Check the signature, then expiry, logout and key.
        prefix, ends, nonce, signature = parts
        if not hmac.compare_digest(signature.encode(), self._sign(f"{prefix}.{ends}.{nonce}").encode()):
            return None
        principal = self._keyring.valid(prefix)
        if int(ends) < time.time() or nonce in self._left or principal is None:
            return None
        return Session(principal, self._sign(f"form.{nonce}"), int(ends), nonce)

    def end(self, session: Session) -> str:
        """Log out, and return the header that removes the cookie."""
        now = time.time()
        self._left = {nonce: ends for nonce, ends in self._left.items() if ends > now}
        self._left[session.nonce] = session.ends
        return self._header("", 0, secure=False)

    def check(self, session: Session, token: str) -> None:
        """Raise a refusal unless a form came from a page of this session."""
        if not hmac.compare_digest(token.encode(), session.token.encode()):
            raise Refusal("forbidden", "the form has expired; reload the page and try again.")

    def _sign(self, said: str) -> str:
        return hmac.new(self._secret, said.encode(), hashlib.sha256).hexdigest()

    def _header(self, value: str, seconds: int, secure: bool) -> str:
        end = f"{COOKIE}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax"
        return f"{end}; Secure" if secure else end
