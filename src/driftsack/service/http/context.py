"""``Context``: a request that was understood, and the services that handlers use."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable
from typing import Any, NamedTuple

import msgspec

from driftsack.service.campaign import Caller
from driftsack.service.dashboard.watcher import Watcher
from driftsack.service.http.keyring import Keyring, Principal
from driftsack.service.owned import Owned
from driftsack.service.owner import Keeper
from driftsack.service.refusals import Refusal
from driftsack.service.store.interface import AuditRow, StoreError


class Service(NamedTuple):
    """What handlers use.

    Attributes:
        keeper: The campaigns.
        keyring: The keys.
        watcher: What the journals say.
    """

    keeper: Keeper
    keyring: Keyring
    watcher: Watcher


class Context(NamedTuple):
    """A request.

    Attributes:
        service: What handlers use.
        principal: Who sent it.
        campaign: The campaign that the path names.
        item: What the path names within it: a decision, an arm, a key.
        body: The body, decoded.
        raw: The body as it came.
        action: Method and path, for digests and the audit.
        key: The idempotency key.
        query: The query, by name.
    """

    service: Service
    principal: Principal
    campaign: str
    item: str
    body: Any
    raw: bytes
    action: str
    key: str
    query: dict[str, str]

    @property
    def keeper(self) -> Keeper:
        """The campaigns."""
        return self.service.keeper

    def caller(self) -> Caller:
        """Who sent the request, with the digest of all that it says."""
        if not self.key:
            return Caller("", b"", self.principal.prefix)
        digest = hashlib.blake2b(self.action.encode() + b"\n" + self.raw, digest_size=16).digest()
        return Caller(self.key, digest, self.principal.prefix)

    def number(self) -> int:
        """The decision that the path names."""
        if not (self.item.isascii() and self.item.isdigit() and len(self.item) <= 15):  # noqa: PLR2004
            raise Refusal("unknown-decision", f"a decision is a whole number, got {self.item!r:.40}.")
        return int(self.item)

    async def owned(self) -> Owned:
        """The campaign, when everything that has happened to it is durable."""
        owned = self.keeper.find(self.campaign)
        await self.keeper.settled(owned)
        return owned

    def carry_out(self, number: int = 0) -> tuple[Owned, Any]:
        """Let the campaign carry out the body; the answer is for when that is durable."""
        return self.keeper.carry_out(self.campaign, self.body, self.caller(), number)

    async def submit(self, number: int = 0) -> Any:
        """Let the campaign carry out the body."""
        return await self.keeper.submit(self.campaign, self.body, self.caller(), number)

    async def audit(self) -> None:
        """Note who changed what."""
        at = self.keeper.clock.at()
        shown = msgspec.json.encode(self.body).decode()[:2000] if self.body is not None else ""
        entry = AuditRow(at, self.principal.prefix, self.action, self.campaign or None, shown)
        await self.store(self.keeper.store.add_audit, entry)

    async def store(self, function: Any, *arguments: Any) -> Any:
        """Call the store."""
        return await _available(self.keeper.in_thread(function, *arguments))

    async def read_journal(self, function: Any, *arguments: Any) -> Any:
        """Call what may read a whole journal of the store."""
        return await _available(self.keeper.read_journal(function, self.keeper.store, *arguments))


async def _available(call: Awaitable[Any]) -> Any:
    """What a call to the store returns.

    Raises:
        Refusal: The store does not answer.
    """
    try:
        return await call
    except StoreError as error:
        raise Refusal.unavailable(str(error)) from error
