"""``Context``: a decoded request and the services that its handler uses."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable
from typing import Any, NamedTuple

import msgspec

from driftsack.service.domain import messages as ms
from driftsack.service.domain.campaign import Caller
from driftsack.service.domain.refusals import Refusal
from driftsack.service.projections.metrics import Metrics
from driftsack.service.projections.watcher import Watcher
from driftsack.service.runtime.keeper import Keeper
from driftsack.service.runtime.owned import Owned
from driftsack.service.store.interface import AuditRow, StoreError
from driftsack.service.web.api.keyring import Keyring, Principal
from driftsack.service.web.api.work import Timed


class Service(NamedTuple):
    """The services that handlers use.

    Attributes:
        keeper: The campaigns of this process.
        keyring: The API keys.
        watcher: The projections of the journals.
    """

    keeper: Keeper
    keyring: Keyring
    watcher: Watcher
    metrics: Metrics


class Context(NamedTuple):
    """A decoded request.

    Attributes:
        service: The services that handlers use.
        principal: The owner of its key.
        campaign: The campaign in its path.
        item: The decision, arm or key in its path.
        body: The decoded body.
        raw: The body before decoding.
        action: Method and path, for digests and the audit.
        key: The idempotency key.
        query: The query parameters, by name.
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
    def path(self) -> str:
        """The path of the request."""
        return self.action.partition(" ")[2]

    @property
    def keeper(self) -> Keeper:
        """The campaigns of this process."""
        return self.service.keeper

    def caller(self) -> Caller:
        """Return the sender of the request with the digest of its content."""
        if not self.key:
            return Caller("", b"", self.principal.prefix)
        said = f"{self.action}\n{self.principal.prefix}\n".encode() + self.raw  # keys may be guessed by other callers
        digest = hashlib.blake2b(said, digest_size=16).digest()
        key = hashlib.blake2b(self.key.encode(), digest_size=16).hexdigest()  # keys may hold personal data
        return Caller(key, digest, self.principal.prefix)

    def number(self) -> int:
        """Return the number of the decision in the path."""
        if not (self.item.isascii() and self.item.isdigit() and len(self.item) <= 15):
            raise Refusal("unknown-decision", f"a decision must be an integer, got {self.item!r:.40}.")
        return int(self.item)

    def check_has_token(self, command: ms.Settlement, field: str) -> None:
        """Raise a refusal if a command about a decision has no token, which only operators may omit."""
        if command.token is None and "operate" not in self.principal.allows:
            raise Refusal.invalid(
                f"{field} is missing; send the token in the answer to the request for the decision, so that no other "
                "worker can settle it."
            )

    async def owned(self) -> Owned:
        """Return the campaign, once all its changes are durable."""
        owned = self.keeper.find(self.campaign)
        await self.keeper.wait_until_durable(owned)
        return owned

    def carry_out(self, number: int = 0) -> tuple[Owned, Any]:
        """Carry out the body; the answer may be sent once the changes are durable."""
        return self.keeper.carry_out(self.campaign, self.body, self.caller(), number)

    async def change(self, number: int = 0) -> Any:
        """Carry out the body and add it to the audit in the same commit; return the answer once this is durable."""
        return await self.keeper.submit(self.campaign, self.body, self.caller(), number, self.entry())

    def entry(self) -> AuditRow:
        """Return the entry of the request in the audit."""
        at = self.keeper.clock.at()
        shown = msgspec.json.encode(self.body).decode()[:2000] if self.body is not None else ""
        return AuditRow(at, self.principal.prefix, self.action, self.campaign or None, shown)

    async def store(self, function: Any, *arguments: Any) -> Any:
        """Call a function of the store in a thread."""
        return await _available(self.keeper.ask_store(function, *arguments))

    async def read_journal(self, function: Any, *arguments: Any) -> Any:
        """Call a function that may read a whole journal, in the threads for long reads; the key is charged for it."""
        work, prefix, timed = self.service.keyring.work, self.principal.prefix, Timed(function)
        await work.admit(prefix)
        async with work.turn(prefix):
            work.check(prefix)
            try:
                return await _available(self.keeper.read_journal(timed, self.keeper.store, *arguments))
            finally:
                work.charge(prefix, timed.seconds)

    async def exchange(self) -> ms.Exchanged:
        """Carry out an exchange, whose parts count as requests; the key is charged for the work."""
        work, prefix, many = self.service.keyring.work, self.principal.prefix, self.body
        await work.admit(prefix)
        self.service.keyring.count(prefix, max(len(many.tells) + many.ask - 1, 0))
        return await self.keeper.exchange(self.campaign, many, self.caller(), work.meter(prefix))


async def _available(call: Awaitable[Any]) -> Any:
    """Return the result of a call to the store; refuse the request if the store is unavailable."""
    try:
        return await call
    except StoreError as error:
        raise Refusal.unavailable(str(error)) from error
