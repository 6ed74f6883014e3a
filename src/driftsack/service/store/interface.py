"""``Store``: the interface of the databases that keep journals, budgets, snapshots and API keys."""

from __future__ import annotations

import abc
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Final, NamedTuple

from driftsack.core.errors import DriftsackError
from driftsack.service.domain.journal import Delta, RawContext, Segment

KEPT_SNAPSHOTS: Final = 3
LARGEST_PAGE: Final = 25  # segments that are read together, while commits wait
DELETED_AT_ONCE: Final = 500  # rows in one transaction, so that commits need not wait long
LAST_ENTRY: Final = 2**63 - 1  # above the number of every audit entry
Amounts = tuple[int, int, int, int]
Budgets = Mapping[tuple[int, int], Amounts]


class StoreError(DriftsackError):
    """An operation of the store failed."""


class FencedError(StoreError):
    """Another process owns the journal now, or the segment does not follow the last one."""


class OverspentError(StoreError):
    """A budget would be overspent."""


class NameTakenError(StoreError):
    """A campaign or key of this name exists."""


class UnavailableError(StoreError):
    """The database did not answer; whether the operation was carried out is not known."""


class NewerSchemaError(StoreError):
    """The database was written by a newer release."""


class CampaignRow(NamedTuple):
    """The row of a campaign.

    Attributes:
        config: The encoded settings.
        epoch: The number of times that a process became its owner.
        seq: The number of events.
        chain: The hash after the last event.
        owner: The name of the process that writes its journal.
        owner_url: The address of the owner.
    """

    name: str
    config: bytes
    epoch: int
    seq: int
    chain: bytes
    owner: str
    owner_url: str


class SnapshotRow(NamedTuple):
    """A snapshot.

    Attributes:
        seq: The number of events that it includes.
        chain: The hash after the last of them.
        body: The encoded campaign.
    """

    seq: int
    chain: bytes
    body: bytes


class BaseRow(NamedTuple):
    """Where a journal begins after its earlier part was archived; the opening segment is kept, too.

    Attributes:
        seq: The number of the last archived event; there is a snapshot after it.
        chain: The hash after it.
        at: Its time in milliseconds since 1970.
        number: The number of decisions up to it.
        oldest: The first decision that can still be looked up, because it was open or had been settled lately.
    """

    seq: int
    chain: bytes
    at: int
    number: int
    oldest: int


class KeyRow(NamedTuple):
    """An API key.

    Attributes:
        prefix: The first characters of the key.
        hash: The SHA-256 of the key.
        scopes: The scopes of the key.
        campaigns: The campaigns that the key is limited to; None for all.
        expires: The time at which the key expires, in milliseconds since 1970; None for never.
        note: A note for operators.
        labels: The labels of all requests with the key: names and values.
    """

    prefix: str
    hash: bytes
    scopes: tuple[str, ...]
    campaigns: tuple[str, ...] | None
    expires: int | None
    note: str
    labels: tuple[tuple[str, str], ...] = ()


class AuditRow(NamedTuple):
    """A change by an operator or administrator.

    Attributes:
        at: The time in milliseconds since 1970.
        who: The prefix of the API key.
        campaign: The campaign, if the action concerned one.
        detail: The body of the request.
    """

    at: int
    who: str
    action: str
    campaign: str | None
    detail: str


class Owner(NamedTuple):
    """A process that writes journals.

    Attributes:
        name: A name that no other process has.
        url: The address at which the process answers requests.
        lease: Seconds after which it loses its campaigns unless it renews the lease.
    """

    name: str
    url: str = ""
    lease: float = 10.0


class Store(abc.ABC):
    """A database. Calls block, and each is an atomic transaction."""

    @abc.abstractmethod
    def create(self, segment: Segment, config: bytes, owner: Owner) -> None:
        """Create a campaign with its first segment, written by ``owner`` in epoch 1."""

    @abc.abstractmethod
    def campaigns(self) -> list[CampaignRow]:
        """Every campaign."""

    @abc.abstractmethod
    def campaign(self, name: str) -> CampaignRow | None:
        """Return a campaign; None if there is none of this name."""

    @abc.abstractmethod
    def names(self) -> list[str]:
        """Return the names of all campaigns, sorted."""

    @abc.abstractmethod
    def positions(self) -> dict[str, int]:
        """Return the number of events of every campaign."""

    @abc.abstractmethod
    def elsewhere(self, owner: Owner) -> dict[str, str]:
        """Return the addresses of the owners of all campaigns that other processes own, by campaign."""

    @abc.abstractmethod
    def claim_free(self, owner: Owner, without: Sequence[str] = (), again: bool = False) -> list[CampaignRow]:
        """Become the owner of campaigns without an owner.

        Args:
            owner: The new owner.
            without: Campaigns that are left out.
            again: Claim the campaigns of this owner, too, under a new epoch.

        Returns:
            The claimed campaigns.
        """

    @abc.abstractmethod
    def claim(self, name: str, owner: Owner) -> CampaignRow | None:
        """Become the owner of a campaign without an owner; return None if it has one or does not exist."""

    @abc.abstractmethod
    def extend(self, names: Sequence[str], owner: Owner) -> list[str]:
        """Renew the lease of a process; return those of the names that it still owns."""

    @abc.abstractmethod
    def release(self, names: Sequence[str], owner: Owner) -> None:
        """Stop owning campaigns, so that other processes can take over immediately."""

    @abc.abstractmethod
    def append(self, segments: Sequence[Segment]) -> None:
        """Append segments of different campaigns durably, and update their budgets; or none.

        Their audit entries, milestones and contexts are written in the same transaction.

        Raises:
            FencedError: A segment has another epoch, or does not follow the last one.
            OverspentError: A budget would be overspent.
            UnavailableError: The database did not answer.
        """

    @abc.abstractmethod
    def segments(self, name: str, after: int = 0) -> Iterator[Segment]:
        """Iterate over the segments that begin after an event, oldest first."""

    @abc.abstractmethod
    def opening(self, name: str) -> Segment | None:
        """Return the first segment of a journal; None if it is missing."""

    @abc.abstractmethod
    def count_events(self, name: str, after: int, last: int) -> int:
        """Return the number of events in the segments after an event and up to another, from their numbers."""

    @abc.abstractmethod
    def budgets(self, name: str) -> dict[tuple[int, int], Amounts]:
        """Return (granted, reserved, spent, overrun) by season and resource."""

    @abc.abstractmethod
    def at_once(self, name: str) -> tuple[CampaignRow, dict[tuple[int, int], Amounts]]:
        """Return a consistent view of a campaign and its budgets while another process may append to its journal.

        Raises:
            StoreError: There is no such campaign.
        """

    @abc.abstractmethod
    def save_snapshot(self, name: str, snapshot: SnapshotRow) -> None:
        """Save a snapshot, and delete all but the latest three."""

    @abc.abstractmethod
    def snapshots(self, name: str) -> Iterator[SnapshotRow]:
        """Iterate over the snapshots, newest first."""

    @abc.abstractmethod
    def snapshot(self, name: str, seq: int) -> SnapshotRow | None:
        """Return the snapshot after an event; None if there is none."""

    @abc.abstractmethod
    def milestones(self, name: str, before: int) -> Iterator[bytes]:
        """Iterate over the encoded milestones that do not include a decision, newest first.

        A milestone is a snapshot without settled decisions and idempotency cache, from which decisions are explained.
        """

    @abc.abstractmethod
    def latest_milestone(self, name: str) -> int:
        """Return the number of decisions in the latest milestone; 0 if there is none."""

    @abc.abstractmethod
    def around(self, name: str, number: int) -> tuple[int | None, int | None]:
        """Return the events of the milestones before and after a decision; None where there is none."""

    @abc.abstractmethod
    def base(self, name: str) -> BaseRow | None:
        """Return where a journal begins; None if nothing of it was archived."""

    @abc.abstractmethod
    def prune(self, name: str, base: BaseRow, snapshot: SnapshotRow, entry: AuditRow) -> None:
        """Let a journal begin after an archived event, and delete what comes before it, except the opening segment.

        The first transaction decides. The deletion follows in small steps, and continues at the next call if it is
        interrupted.
        """

    @abc.abstractmethod
    def delete(self, name: str, entry: AuditRow) -> None:
        """Delete a campaign with its journal, in small steps; the last one also adds the audit entry.

        A campaign whose deletion was interrupted is damaged, and can be deleted again.
        """

    @abc.abstractmethod
    def contexts(self, name: str, first: int, last: int) -> dict[int, bytes]:
        """Return the contexts that were kept as they were sent, by number, from a number up to another."""

    @abc.abstractmethod
    def forget_contexts(self, name: str, first: int, last: int, entry: AuditRow | None = None) -> None:
        """Delete the contexts from a number up to another, in small steps, and then add the audit entry of this."""

    @abc.abstractmethod
    def forget_old_contexts(self, now: int) -> None:
        """Delete the contexts of all campaigns that were to be kept until a time."""

    @abc.abstractmethod
    def add_key(self, key: KeyRow, entry: AuditRow | None = None) -> None:
        """Add an API key, and the audit entry of this in the same transaction."""

    @abc.abstractmethod
    def keys(self) -> list[KeyRow]:
        """Every API key."""

    @abc.abstractmethod
    def remove_key(self, prefix: str, entry: AuditRow | None = None) -> bool:
        """Remove an API key, and add the audit entry of this in the same transaction; return whether it existed."""

    @abc.abstractmethod
    def add_audit(self, entry: AuditRow) -> None:
        """Add an entry to the audit that belongs to no other change."""

    @abc.abstractmethod
    def audit(self, limit: int, before: int = LAST_ENTRY) -> list[tuple[int, AuditRow]]:
        """Return the latest audit entries before a number, newest first, with their increasing numbers."""

    @abc.abstractmethod
    def latest_times(self) -> dict[str, int]:
        """Return the time of the last event of every campaign."""

    @abc.abstractmethod
    def latest_entry(self, action: str) -> int | None:
        """Return the time of the last audit entry with an action; None if there is none."""

    @abc.abstractmethod
    def backup(self, path: Path) -> None:
        """Write a copy of the database to a file while it is in use."""

    @abc.abstractmethod
    def interrupt(self) -> None:
        """Let a call that waits for the database fail now, and later calls immediately, before ``close``."""

    @abc.abstractmethod
    def close(self) -> None:
        """Close the database."""


def migrations(kind: str) -> list[str]:
    """The scripts that build the schema, oldest first."""
    directory = resources.files("driftsack.service.store") / "migrations" / kind
    return [path.read_text() for path in sorted(directory.iterdir(), key=lambda path: path.name)]


def check_version(found: int, known: int) -> None:
    """Raise an error if a database is newer than this release."""
    if found > known:
        raise NewerSchemaError(
            f"the database has schema {found}, but this release knows schemas up to {known}; use the release that "
            "wrote it, or a newer one."
        )


def encode_deltas(deltas: Sequence[Delta]) -> str:
    """Encode deltas as JSON, which the database can read."""
    return json.dumps([[d.season, d.resource, int(d.new), *d[3:]] for d in deltas])


def decode_deltas(text: str) -> tuple[Delta, ...]:
    """Decode the JSON of :func:`encode_deltas`."""
    return tuple(Delta(row[0], row[1], bool(row[2]), *row[3:]) for row in json.loads(text))


def parted(name: str, rows: Sequence[Sequence[Any]]) -> tuple[CampaignRow, dict[tuple[int, int], Amounts]]:
    """Split joined rows into a campaign and its budgets."""
    if not rows:
        raise StoreError(f"the store has no campaign {name!r:.60}.")
    columns = len(CampaignRow._fields)
    budgets = {(row[columns], row[columns + 1]): tuple(row[columns + 2 :]) for row in rows}
    return campaign_of(rows[0][:columns]), {key: amounts for key, amounts in budgets.items() if key[0] is not None}


def campaign_of(row: Sequence[Any]) -> CampaignRow:
    """Convert a database row to a campaign."""
    name, config, epoch, seq, chain, owner, url = row
    return CampaignRow(name, bytes(config), epoch, seq, bytes(chain), owner, url)


def paged_segments(page_after: Callable[[int, int], Sequence[Sequence[Any]]], after: int) -> Iterator[Segment]:
    """Iterate over all segments that begin after an event.

    Args:
        page_after: Returns the rows after an event, given the largest number of them.
        after: The event.
    """
    size = 1  # often only the first segment is needed, and segments of exchanges are large
    while rows := page_after(after, size):
        for row in rows:
            yield segment_of(row)
        after, size = rows[-1][1], min(2 * size, LARGEST_PAGE)


def is_alone(segment: Segment) -> bool:
    """Return whether a segment has nothing that must be written in the same transaction."""
    return not segment.entries and segment.milestone is None and not segment.contexts


def context_rows(name: str, contexts: Sequence[RawContext]) -> list[tuple[str, int, int, bytes]]:
    """Convert contexts to database rows."""
    return [(name, *context) for context in contexts]


def budgets_of(rows: Sequence[Sequence[Any]]) -> dict[tuple[int, int], Amounts]:
    """Return (granted, reserved, spent, overrun) by season and resource."""
    return {(row[0], row[1]): tuple(row[2:]) for row in rows}


def segment_of(row: Sequence[Any]) -> Segment:
    """Convert a database row to a segment."""
    name, first, last, at, epoch, deltas, body, chain = row
    return Segment(name, first, last, at, epoch, decode_deltas(deltas), bytes(body), bytes(chain))


def key_of(row: Sequence[Any]) -> KeyRow:
    """Convert a database row to a key."""
    prefix, digest, scopes, campaigns, expires, note, labels = row
    limited = None if campaigns is None else tuple(json.loads(campaigns))
    fixed = tuple(json.loads(labels or "{}").items())
    return KeyRow(prefix, bytes(digest), tuple(scopes.split()), limited, expires, note, fixed)


def key_columns(key: KeyRow) -> tuple[Any, ...]:
    """Convert a key, without its labels, to a database row."""
    campaigns = None if key.campaigns is None else json.dumps(key.campaigns)
    return key.prefix, key.hash, " ".join(key.scopes), campaigns, key.expires, key.note


def label_columns(key: KeyRow) -> tuple[str, str]:
    """Convert the labels of a key to a database row."""
    return key.prefix, json.dumps(dict(key.labels))
