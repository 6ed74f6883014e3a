"""``Store``: where journals, budgets, snapshots and keys are kept."""

from __future__ import annotations

import abc
import json
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Final, NamedTuple

from driftsack.core.errors import DriftsackError
from driftsack.service.journal import Delta, Segment

KEPT_SNAPSHOTS: Final = 3
LAST_ENTRY: Final = 2**63 - 1  # above the number of every entry of the audit
Amounts = tuple[int, int, int, int]


class StoreError(DriftsackError):
    """The store did not do what it was asked."""


class FencedError(StoreError):
    """Another owner writes the journal now, or the segment does not follow the last one."""


class OverspentError(StoreError):
    """A budget would be overspent."""


class NameTakenError(StoreError):
    """There is a campaign or key of this name."""


class UnavailableError(StoreError):
    """The database did not answer; whether it did what it was asked is not known."""


class NewerSchemaError(StoreError):
    """The database was written by a newer release."""


class CampaignRow(NamedTuple):
    """What the store knows of a campaign.

    Attributes:
        name: Its name.
        config: Its settings, encoded.
        epoch: How often it changed its owner.
        seq: The number of events.
        chain: The chain after the last event.
        owner: Who writes its journal.
        owner_url: Where the owner answers requests.
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
        chain: The chain after them.
        body: The campaign in bytes.
    """

    seq: int
    chain: bytes
    body: bytes


class KeyRow(NamedTuple):
    """An API key.

    Attributes:
        prefix: How it begins.
        hash: The SHA-256 of the key.
        scopes: What it allows.
        campaigns: The campaigns that it is limited to; None for all.
        expires: When it expires, in milliseconds since 1970; None for never.
        note: What it is for.
    """

    prefix: str
    hash: bytes
    scopes: tuple[str, ...]
    campaigns: tuple[str, ...] | None
    expires: int | None
    note: str


class AuditRow(NamedTuple):
    """Who changed what.

    Attributes:
        at: When, in milliseconds since 1970.
        who: The prefix of the API key.
        action: What was done.
        campaign: The campaign, if it was one.
        detail: With which content.
    """

    at: int
    who: str
    action: str
    campaign: str | None
    detail: str


class Owner(NamedTuple):
    """Who writes a journal.

    Attributes:
        name: A name that no other process has.
        url: Where it answers requests.
        lease: Seconds for which it owns a campaign unless it says so again.
    """

    name: str
    url: str = ""
    lease: float = 10.0


class Store(abc.ABC):
    """A database. Calls block; each is a transaction of its own, done wholly or not at all."""

    @abc.abstractmethod
    def create(self, segment: Segment, config: bytes, owner: Owner) -> None:
        """Begin a campaign with its first segment, written by ``owner`` in epoch 1."""

    @abc.abstractmethod
    def campaigns(self) -> list[CampaignRow]:
        """Every campaign."""

    @abc.abstractmethod
    def claim(self, name: str, owner: Owner) -> CampaignRow | None:
        """Become the owner of a campaign whose owner is gone; None if it has another one, or does not exist."""

    @abc.abstractmethod
    def extend(self, names: Sequence[str], owner: Owner) -> list[str]:
        """Go on owning campaigns; return those that are still owned."""

    @abc.abstractmethod
    def release(self, names: Sequence[str], owner: Owner) -> None:
        """Stop owning campaigns, so that others can take over at once."""

    @abc.abstractmethod
    def append(self, segments: Sequence[Segment]) -> None:
        """Append segments of different campaigns, durably, and move their budgets: all of them or none.

        Raises:
            FencedError: A segment is of another epoch, or does not follow the last one.
            OverspentError: A budget would be overspent.
            UnavailableError: The database did not answer.
        """

    @abc.abstractmethod
    def segments(self, name: str, after: int = 0) -> Iterator[Segment]:
        """The segments that begin after an event, oldest first."""

    @abc.abstractmethod
    def budgets(self, name: str) -> dict[tuple[int, int], Amounts]:
        """Granted, reserved, spent and overrun, by season and resource."""

    @abc.abstractmethod
    def at_once(self, name: str) -> tuple[CampaignRow, dict[tuple[int, int], Amounts]]:
        """A campaign and its budgets at the same moment, while another process may append to its journal.

        Raises:
            StoreError: There is no such campaign.
        """

    @abc.abstractmethod
    def save_snapshot(self, name: str, snapshot: SnapshotRow) -> None:
        """Keep a snapshot, and only the latest three."""

    @abc.abstractmethod
    def snapshots(self, name: str) -> Iterator[SnapshotRow]:
        """The snapshots, newest first."""

    @abc.abstractmethod
    def add_key(self, key: KeyRow) -> None:
        """Keep an API key."""

    @abc.abstractmethod
    def keys(self) -> list[KeyRow]:
        """Every API key."""

    @abc.abstractmethod
    def remove_key(self, prefix: str) -> bool:
        """Remove an API key; return whether there was one."""

    @abc.abstractmethod
    def add_audit(self, entry: AuditRow) -> None:
        """Note who changed what."""

    @abc.abstractmethod
    def audit(self, limit: int, before: int = LAST_ENTRY) -> list[tuple[int, AuditRow]]:
        """The latest entries before one, newest first, with their numbers, which grow."""

    @abc.abstractmethod
    def backup(self, path: Path) -> None:
        """Write a copy of the database to a file while it is used."""

    @abc.abstractmethod
    def close(self) -> None:
        """Close the database."""


def migrations(kind: str) -> list[str]:
    """The scripts that build the schema, oldest first."""
    folder = resources.files("driftsack.service.store") / "migrations" / kind
    return [path.read_text() for path in sorted(folder.iterdir(), key=lambda path: path.name)]


def check_version(found: int, known: int) -> None:
    """Raise if a database is newer than this release."""
    if found > known:
        raise NewerSchemaError(
            f"the database has schema {found}, but this release knows schemas up to {known}; use the release that "
            "wrote it, or a newer one."
        )


def encode_deltas(deltas: Sequence[Delta]) -> str:
    """Deltas as JSON, which the database reads."""
    return json.dumps([[d.season, d.resource, int(d.new), *d[3:]] for d in deltas])


def decode_deltas(text: str) -> tuple[Delta, ...]:
    """What :func:`encode_deltas` wrote."""
    return tuple(Delta(row[0], row[1], bool(row[2]), *row[3:]) for row in json.loads(text))


def parted(name: str, rows: Sequence[Sequence[Any]]) -> tuple[CampaignRow, dict[tuple[int, int], Amounts]]:
    """A campaign and its budgets from rows with the columns of both."""
    if not rows:
        raise StoreError(f"the store has no campaign {name!r:.60}.")
    columns = len(CampaignRow._fields)
    budgets = {(row[columns], row[columns + 1]): tuple(row[columns + 2 :]) for row in rows}
    return campaign_of(rows[0][:columns]), {key: amounts for key, amounts in budgets.items() if key[0] is not None}


def campaign_of(row: Sequence[Any]) -> CampaignRow:
    """A campaign from its row."""
    name, config, epoch, seq, chain, owner, url = row
    return CampaignRow(name, bytes(config), epoch, seq, bytes(chain), owner, url)


def segment_of(row: Sequence[Any]) -> Segment:
    """A segment from its row."""
    name, first, last, at, epoch, deltas, body, chain = row
    return Segment(name, first, last, at, epoch, decode_deltas(deltas), bytes(body), bytes(chain))


def key_of(row: Sequence[Any]) -> KeyRow:
    """A key from its row."""
    prefix, digest, scopes, campaigns, expires, note = row
    limited = None if campaigns is None else tuple(json.loads(campaigns))
    return KeyRow(prefix, bytes(digest), tuple(scopes.split()), limited, expires, note)


def key_columns(key: KeyRow) -> tuple[Any, ...]:
    """The row of a key."""
    campaigns = None if key.campaigns is None else json.dumps(key.campaigns)
    return key.prefix, key.hash, " ".join(key.scopes), campaigns, key.expires, key.note
