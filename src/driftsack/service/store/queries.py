"""``QueryStore``: the queries that SQLite and PostgreSQL share, which differ only in the mark of a parameter."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from driftsack.service.domain.journal import Segment
from driftsack.service.store import interface as base
from driftsack.service.store.interface import (
    LAST_ENTRY,
    Amounts,
    AuditRow,
    BaseRow,
    CampaignRow,
    KeyRow,
    SnapshotRow,
    Store,
)

COLUMNS: Final = "name, config, epoch, seq, chain, owner, owner_url"
AMOUNTS: Final = "season, resource, granted, reserved, spent, overrun"

LATEST: Final = """
SELECT name, coalesce(
  (SELECT at FROM segment WHERE campaign = name AND first > coalesce(base.seq, 0) ORDER BY first DESC LIMIT 1), base.at
) FROM campaign LEFT JOIN base ON base.campaign = name"""
"""The query of :meth:`Store.latest_times`; the last segment of each journal is found by its key."""


class QueryStore(Store):
    """A store in an SQL database.

    Attributes:
        mark: What stands for a parameter in a query.
    """

    mark: ClassVar[str]

    @abc.abstractmethod
    def _rows(self, query: str, *values: Any) -> list[Any]:
        """Return the rows of one statement."""

    def campaigns(self) -> list[CampaignRow]:
        """Every campaign."""
        return [base.campaign_of(row) for row in self._rows(f"SELECT {COLUMNS} FROM campaign ORDER BY name")]

    def campaign(self, name: str) -> CampaignRow | None:
        """Return a campaign; None if there is none of this name."""
        rows = self._rows(f"SELECT {COLUMNS} FROM campaign WHERE name = {self.mark}", name)
        return base.campaign_of(rows[0]) if rows else None

    def positions(self) -> dict[str, int]:
        """Return the number of events of every campaign."""
        return dict(self._rows("SELECT name, seq FROM campaign"))

    def segments(self, name: str, after: int = 0) -> Iterator[Segment]:
        """Iterate over the segments that begin after an event, oldest first."""
        where = f"campaign = {self.mark} AND first > {self.mark} ORDER BY first LIMIT {self.mark}"
        query = f"SELECT * FROM segment WHERE {where}"
        return base.paged_segments(lambda last, size: self._rows(query, name, last, size), after)

    def opening(self, name: str) -> Segment | None:
        """Return the first segment of a journal; None if it is missing."""
        rows = self._rows(f"SELECT * FROM segment WHERE campaign = {self.mark} AND first = 1", name)
        return base.segment_of(rows[0]) if rows else None

    def count_events(self, name: str, after: int, last: int) -> int:
        """Return the number of events in the segments after an event and up to another."""
        where = f"campaign = {self.mark} AND first > {self.mark} AND first <= {self.mark}"
        query = f"SELECT coalesce(sum(last - first + 1), 0) FROM segment WHERE {where}"
        return int(self._rows(query, name, after, last)[0][0])

    def budgets(self, name: str) -> dict[tuple[int, int], Amounts]:
        """Return (granted, reserved, spent, overrun) by season and resource."""
        return base.budgets_of(self._rows(f"SELECT {AMOUNTS} FROM budget WHERE campaign = {self.mark}", name))

    def at_once(self, name: str) -> tuple[CampaignRow, dict[tuple[int, int], Amounts]]:
        """Return a consistent view of a campaign and its budgets, read by one statement."""
        joined = f"campaign LEFT JOIN budget ON budget.campaign = campaign.name WHERE name = {self.mark}"
        return base.parted(name, self._rows(f"SELECT {COLUMNS}, {AMOUNTS} FROM {joined}", name))

    def snapshots(self, name: str) -> Iterator[SnapshotRow]:
        """Iterate over the snapshots, newest first."""
        one = f"FROM snapshot WHERE campaign = {self.mark}"
        for (seq,) in self._rows(f"SELECT seq {one} ORDER BY seq DESC", name):
            for row in self._rows(f"SELECT seq, chain, body {one} AND seq = {self.mark}", name, seq):
                yield SnapshotRow(row[0], bytes(row[1]), bytes(row[2]))

    def snapshot(self, name: str, seq: int) -> SnapshotRow | None:
        """Return the snapshot after an event; None if there is none."""
        where = f"campaign = {self.mark} AND seq = {self.mark}"
        rows = self._rows(f"SELECT seq, chain, body FROM snapshot WHERE {where}", name, seq)
        return SnapshotRow(rows[0][0], bytes(rows[0][1]), bytes(rows[0][2])) if rows else None

    def latest_milestone(self, name: str) -> int:
        """Return the number of decisions in the latest milestone; 0 if there is none."""
        query = f"SELECT coalesce(max(number), 0) FROM milestone WHERE campaign = {self.mark}"
        return int(self._rows(query, name)[0][0])

    def milestones(self, name: str, before: int) -> Iterator[bytes]:
        """Iterate over the encoded milestones that do not include a decision, newest first."""
        query = f"FROM milestone WHERE campaign = {self.mark} AND number"
        for (number,) in self._rows(f"SELECT number {query} < {self.mark} ORDER BY number DESC", name, before):
            for row in self._rows(f"SELECT body {query} = {self.mark}", name, number):
                yield bytes(row[0])

    def around(self, name: str, number: int) -> tuple[int | None, int | None]:
        """Return the events of the milestones before and after a decision; None where there is none."""
        before = f"SELECT max(seq) FROM milestone WHERE campaign = {self.mark} AND number < {self.mark}"
        after = f"SELECT min(seq) FROM milestone WHERE campaign = {self.mark} AND number >= {self.mark}"
        return tuple(self._rows(f"SELECT ({before}), ({after})", name, number, name, number)[0])

    def base(self, name: str) -> BaseRow | None:
        """Return where a journal begins; None if nothing of it was archived."""
        rows = self._rows(f"SELECT seq, chain, at, number, oldest FROM base WHERE campaign = {self.mark}", name)
        return BaseRow(rows[0][0], bytes(rows[0][1]), *rows[0][2:]) if rows else None

    def prune(self, name: str, base: BaseRow, snapshot: SnapshotRow, entry: AuditRow) -> None:
        """Let a journal begin after an archived event; see :meth:`Store.prune`."""
        self._set_base(name, base, snapshot, entry)
        where = f"campaign = {self.mark} AND first > 1 AND last <= {self.mark}"
        self._delete_some("segment", "first", where, name, base.seq)

    def delete(self, name: str, entry: AuditRow) -> None:
        """Delete a campaign with its journal; see :meth:`Store.delete`."""
        self._delete_some("segment", "first", f"campaign = {self.mark}", name)
        self._delete_some("milestone", "number", f"campaign = {self.mark}", name)
        self._delete_some("raw_context", "number", f"campaign = {self.mark}", name)
        self._delete_rest(name, entry)

    def contexts(self, name: str, first: int, last: int) -> dict[int, bytes]:
        """Return the contexts that were kept as they were sent, by number, from a number up to another."""
        where = f"campaign = {self.mark} AND number BETWEEN {self.mark} AND {self.mark}"
        rows = self._rows(f"SELECT number, body FROM raw_context WHERE {where}", name, first, last)
        return {number: bytes(body) for number, body in rows}

    def forget_contexts(self, name: str, first: int, last: int, entry: AuditRow | None = None) -> None:
        """Delete the contexts from a number up to another; see :meth:`Store.forget_contexts`."""
        where = f"campaign = {self.mark} AND number BETWEEN {self.mark} AND {self.mark}"
        self._delete_some("raw_context", "number", where, name, first, last)
        if entry is not None:
            self.add_audit(entry)

    def forget_old_contexts(self, now: int) -> None:
        """Delete the contexts of all campaigns that were to be kept until a time."""
        self._delete_some("raw_context", "until", f"until <= {self.mark}", now)

    def _delete_some(self, table: str, column: str, where: str, *values: Any) -> None:
        """Delete rows in transactions of their own, until none is left."""
        some = f"SELECT {column} FROM {table} WHERE {where} ORDER BY {column} LIMIT {base.DELETED_AT_ONCE}"
        query = f"DELETE FROM {table} WHERE {where} AND {column} IN ({some}) RETURNING 1"
        while self._rows(query, *values, *values):
            pass

    @abc.abstractmethod
    def _set_base(self, name: str, base: BaseRow, snapshot: SnapshotRow, entry: AuditRow) -> None:
        """Save where a journal begins, with its snapshot and an audit entry, and delete snapshots from before it."""

    @abc.abstractmethod
    def _delete_rest(self, name: str, entry: AuditRow) -> None:
        """Delete what is left of a campaign after its segments, and add an audit entry."""

    def keys(self) -> list[KeyRow]:
        """Every API key."""
        joined = "api_key LEFT JOIN key_labels ON key_labels.prefix = api_key.prefix ORDER BY api_key.prefix"
        return [base.key_of(row) for row in self._rows(f"SELECT api_key.*, labels FROM {joined}")]

    def audit(self, limit: int, before: int = LAST_ENTRY) -> list[tuple[int, AuditRow]]:
        """Return the latest audit entries before a number, newest first, with their numbers."""
        selected = f"FROM audit WHERE id < {self.mark} ORDER BY id DESC LIMIT {self.mark}"
        rows = self._rows(f"SELECT id, at, who, action, campaign, detail {selected}", before, limit)
        return [(row[0], AuditRow(*row[1:])) for row in rows]

    def latest_times(self) -> dict[str, int]:
        """Return the time of the last event of every campaign."""
        return {name: int(at) for name, at in self._rows(LATEST) if at is not None}

    def latest_entry(self, action: str) -> int | None:
        """Return the time of the last audit entry with an action; None if there is none."""
        rows = self._rows(f"SELECT at FROM audit WHERE action = {self.mark} ORDER BY id DESC LIMIT 1", action)
        return int(rows[0][0]) if rows else None
