"""Sessions: a key that was shown once is remembered for some hours by a signed cookie, which ends with the process.

The cookie holds the prefix of the key, an end and a random number, signed with a secret that only this process has. The
key itself is never sent back. A key that is removed or expires ends its sessions at once.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from http.cookies import CookieError, SimpleCookie
from typing import Final, NamedTuple

from driftsack.service.http.keyring import Keyring, Principal
from driftsack.service.refusals import Refusal

COOKIE: Final = "driftsack_session"
HOURS: Final = 8
PARTS: Final = 4


class Session(NamedTuple):
    """Somebody who is logged in.

    Attributes:
        principal: What the key allows.
        token: What every form must send back, so that no other site can send it.
        ends: When the session ends, in seconds since 1970.
        nonce: Its random number.
    """

    principal: Principal
    token: str
    ends: int
    nonce: str


class Sessions:
    """The sessions of a process.

    Args:
        keyring: The keys.
    """

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring
        self._secret = secrets.token_bytes(32)
        self._left: dict[str, int] = {}

    def start(self, key: str, secure: bool) -> str:
        """Log in.

        Args:
            key: An API key.
            secure: Whether the connection is encrypted, so that the cookie need never be sent in the clear.

        Returns:
            The header that sets the cookie.

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
        """The session of a request; None if it has none, or one that has ended.

        Args:
            headers: The headers of the request.

        Returns:
            The session.
        """
        cookies: SimpleCookie = SimpleCookie()
        try:
            cookies.load(headers.get(b"cookie", b"").decode("latin-1"))
        except CookieError:
            return None
        parts = cookies[COOKIE].value.split(".") if COOKIE in cookies else []
        if len(parts) != PARTS:
            return None
        prefix, ends, nonce, signature = parts
        if not hmac.compare_digest(signature, self._sign(f"{prefix}.{ends}.{nonce}")):
            return None
        principal = self._keyring.valid(prefix)
        if int(ends) < time.time() or nonce in self._left or principal is None:
            return None
        return Session(principal, self._sign(f"form.{nonce}"), int(ends), nonce)

    def end(self, session: Session) -> str:
        """Log out; return the header that removes the cookie."""
        now = time.time()
        self._left = {nonce: ends for nonce, ends in self._left.items() if ends > now}
        self._left[session.nonce] = session.ends
        return self._header("", 0, secure=False)

    def check(self, session: Session, token: str) -> None:
        """Refuse a form that did not come from a page of this session."""
        if not hmac.compare_digest(token.encode(), session.token.encode()):
            raise Refusal("forbidden", "the form is out of date; load the page again and repeat it.")

    def _sign(self, said: str) -> str:
        return hmac.new(self._secret, said.encode(), hashlib.sha256).hexdigest()

    def _header(self, value: str, seconds: int, secure: bool) -> str:
        end = f"{COOKIE}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax"
        return f"{end}; Secure" if secure else end
