"""API keys (256 random bits, stored as a digest), their scopes and their rate limits."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from driftsack.service.domain import messages as ms
from driftsack.service.domain.calendar import DAY_MS
from driftsack.service.domain.refusals import Refusal
from driftsack.service.store.interface import KeyRow, Store
from driftsack.service.web.api import work as work_budgets

MARK: Final = "ds"
PREFIX_BYTES: Final = 6
SECRET_BYTES: Final = 32
FAILURES: Final = 20.0
ALLOWS: Final = {
    "decide": frozenset({"decide"}),
    "read": frozenset({"read"}),
    "operate": frozenset({"operate", "read"}),
    "admin": frozenset({"admin", "operate", "read", "decide"}),
}
"""The scopes that each scope includes."""
NOBODY: Final = KeyRow("", b"\0" * 32, (), None, None, "")


class Principal(NamedTuple):
    """The owner of a key.

    Attributes:
        prefix: The public prefix of the key.
        allows: The scopes of the key, with those that they include.
        campaigns: The campaigns that the key is limited to; None for all.
        labels: The labels of all requests with the key.
    """

    prefix: str
    allows: frozenset[str]
    campaigns: tuple[str, ...] | None
    labels: Mapping[str, str] = MappingProxyType({})

    def check(self, scope: str, campaign: str | None, limited_ok: bool = False) -> None:
        """Raise a refusal unless the key allows an action.

        Args:
            scope: The scope that the action needs.
            campaign: The campaign; None for an action on the whole service.
            limited_ok: Allow campaign-scoped keys on this route although it names no campaign.
        """
        if scope not in self.allows:
            raise Refusal("forbidden", f"this needs a key with the scope {scope!r}.")
        if self.campaigns is None or (campaign is None and limited_ok):
            return
        if campaign is None or campaign not in self.campaigns:
            raise Refusal("forbidden", f"the key is limited to the campaigns {list(self.campaigns)[:10]}.")

    def labelled(self, given: Mapping[str, str] | None) -> dict[str, str] | None:
        """Return the labels of a request with those of the key; None if there are none.

        Raises:
            Refusal: The request has another label of the same name.
        """
        if not self.labels:
            return None if given is None else dict(given)
        for name, label in self.labels.items():
            if given is not None and given.get(name, label) != label:
                raise Refusal(
                    "forbidden",
                    f"the key is for {name}={label}, the request says {given[name]!r:.100}; omit the label.",
                )
        return {**(given or {}), **self.labels}


def new_key(
    scopes: tuple[str, ...],
    campaigns: tuple[str, ...] | None = None,
    expires: int | None = None,
    note: str = "",
    labels: Mapping[str, str] = MappingProxyType({}),
) -> tuple[str, KeyRow]:
    """Create a key.

    Args:
        scopes: Its scopes.
        campaigns: The campaigns that it is limited to; None for all.
        expires: When it expires, in milliseconds since 1970; None for never.
        note: A note for administrators.
        labels: The labels of all requests with it.

    Returns:
        The key, which is stored nowhere, and its row for the store.
    """
    prefix = secrets.token_hex(PREFIX_BYTES)
    key = f"{MARK}_{prefix}_{secrets.token_hex(SECRET_BYTES)}"
    fixed = tuple(sorted(labels.items()))
    return key, KeyRow(prefix, digest_of(key), tuple(sorted(set(scopes))), campaigns, expires, note, fixed)


def key_for(body: ms.NewKey) -> tuple[str, KeyRow]:
    """Create the key that a request asks for; see :func:`new_key`."""
    expires = None if body.days is None else int(1000 * time.time()) + body.days * DAY_MS
    campaigns = None if body.campaigns is None else tuple(body.campaigns)
    return new_key(tuple(body.scopes), campaigns, expires, body.note, body.labels)


def is_last_admin(rows: list[KeyRow], prefix: str) -> bool:
    """Return whether the key with this prefix is the only one that may create others."""
    now = 1000 * time.time()
    lasting = [row for row in rows if row.expires is None or row.expires > now]
    admins = [row.prefix for row in lasting if "admin" in row.scopes and row.campaigns is None]
    return admins == [prefix]


def digest_of(key: str) -> bytes:
    """Return the digest of a key."""
    return hashlib.sha256(key.encode()).digest()


class TokenBucket:
    """A rate limit: tokens arrive at a steady rate, and each request takes one.

    Args:
        rate: Tokens per second; the bucket holds the tokens of two seconds.
    """

    def __init__(self, rate: float) -> None:
        self._rate, self._most = rate, max(2 * rate, 1.0)
        self._tokens, self._at = self._most, time.monotonic()

    def take(self, count: float = 1.0) -> bool:
        """Take tokens, and return whether there were enough."""
        now = time.monotonic()
        self._tokens = min(self._most, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if self._tokens < count:
            return False
        self._tokens -= count
        return True

    def owe(self, count: float) -> None:
        """Take tokens even if there are not enough, so that there are fewer later."""
        self._tokens -= count


class Keyring:
    """The keys of a service.

    Args:
        rate: Requests per second that each key may send; 0 for no limit.
        failures: Requests per second without a valid key that are answered with 401; the others get 429.
        work: Seconds of work per second that each key may cause while others are active; 0 for no limit.
    """

    def __init__(
        self, store: Store, rate: float = 0.0, failures: float = FAILURES, work: float = work_budgets.SHARE
    ) -> None:
        self._store, self._rate = store, rate
        self.work = work_budgets.WorkBudgets(work)
        self._keys: dict[str, KeyRow] = {}
        self._principals: dict[str, Principal] = {}
        self._buckets: dict[str, TokenBucket] = {}
        self._failures = TokenBucket(failures)

    def load(self) -> None:
        """Read the keys from the store."""
        rows = self._store.keys()
        self._principals = {row.prefix: _principal(row) for row in rows}
        self._keys = {row.prefix: row for row in rows}

    def first_key(self) -> str | None:
        """Create the first administrator's key if there are no keys.

        Returns:
            The key, to be shown once; None if there are keys.
        """
        self.load()
        if self._keys:
            return None
        key, row = new_key(("admin",), note="the first key")
        self._store.add_key(row)
        self.load()
        return key

    def principal(self, headers: dict[bytes, bytes]) -> Principal:
        """Return the owner of the key in the headers of a request.

        Raises:
            Refusal: The key is missing, invalid or rate-limited.
        """
        given = _sent(headers)
        row = self._keys.get(_prefix(given), NOBODY)
        same = hmac.compare_digest(digest_of(given), row.hash)
        if not same or row is NOBODY or (row.expires is not None and row.expires < 1000 * time.time()):
            if not self._failures.take():
                raise Refusal("rate-limited", "too many requests without a valid key.", 1)
            raise Refusal("unauthenticated", "send a valid key in the header 'Authorization: Bearer KEY'.")
        if self._rate and not self._buckets.setdefault(row.prefix, TokenBucket(self._rate)).take():
            raise Refusal("rate-limited", f"the key may send {self._rate:g} requests a second.", 1)
        self.work.note(row.prefix)
        return self._principals[row.prefix]

    def count(self, prefix: str, requests: int) -> None:
        """Count the parts of a request as requests of a key, whose next ones may have to wait for this."""
        if self._rate:
            self._buckets.setdefault(prefix, TokenBucket(self._rate)).owe(requests)

    def knows(self, headers: dict[bytes, bytes]) -> bool:
        """Return whether there is a key with the prefix of the one in the headers of a request."""
        return _prefix(_sent(headers)) in self._keys

    def valid(self, prefix: str) -> Principal | None:
        """Return the owner of a prefix; None if the key was removed or has expired."""
        row = self._keys.get(prefix)
        if row is None or (row.expires is not None and row.expires < 1000 * time.time()):
            return None
        return self._principals[prefix]

    def rows(self) -> list[KeyRow]:
        """Return all keys."""
        return list(self._keys.values())


def _sent(headers: dict[bytes, bytes]) -> str:
    """The key in the headers of a request; empty without one."""
    scheme, _, sent = headers.get(b"authorization", b"").partition(b" ")
    return sent.decode("latin-1") if scheme.lower() == b"bearer" else ""


def _prefix(key: str) -> str:
    return key[len(MARK) + 1 : len(MARK) + 1 + 2 * PREFIX_BYTES]


def _principal(row: KeyRow) -> Principal:
    allows: frozenset[Any] = frozenset().union(*(ALLOWS[scope] for scope in row.scopes))
    return Principal(row.prefix, allows, row.campaigns, dict(row.labels))
