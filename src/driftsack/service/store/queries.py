"""``QueryStore``: the queries that SQLite and PostgreSQL share, which differ only in the mark of a parameter."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from driftsack.service.domain.journal import Segment
from driftsack.service.store import interface as base
from driftsack.service.store.interface import LAST_ENTRY, Amounts, AuditRow, CampaignRow, KeyRow, SnapshotRow, Store

COLUMNS: Final = "name, config, epoch, seq, chain, owner, owner_url"
AMOUNTS: Final = "season, resource, granted, reserved, spent, overrun"


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
        query = f"SELECT * FROM segment WHERE campaign = {self.mark} AND first > {self.mark} ORDER BY first LIMIT 100"
        return base.paged_segments(lambda last: self._rows(query, name, last), after)

    def count_events(self, name: str, last: int) -> int:
        """Return the number of events in the segments up to an event."""
        query = "SELECT coalesce(sum(last - first + 1), 0) FROM segment"
        return int(self._rows(f"{query} WHERE campaign = {self.mark} AND first <= {self.mark}", name, last)[0][0])

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

    def keys(self) -> list[KeyRow]:
        """Every API key."""
        return [base.key_of(row) for row in self._rows("SELECT * FROM api_key ORDER BY prefix")]

    def audit(self, limit: int, before: int = LAST_ENTRY) -> list[tuple[int, AuditRow]]:
        """Return the latest audit entries before a number, newest first, with their numbers."""
        selected = f"FROM audit WHERE id < {self.mark} ORDER BY id DESC LIMIT {self.mark}"
        rows = self._rows(f"SELECT id, at, who, action, campaign, detail {selected}", before, limit)
        return [(row[0], AuditRow(*row[1:])) for row in rows]

    def latest_time(self, action: str) -> int | None:
        """Return the time of the latest event or of an audit entry with this action; None if there is none."""
        found = self._rows(base.LATEST.format(action=self.mark), action)[0][0]
        return None if found is None else int(found)
