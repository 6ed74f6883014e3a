"""``PostgresStore``: a PostgreSQL database (15 or newer) that several replicas share.

A commit is one statement that checks the epoch and number of the segment, appends it and updates the budgets, or does
nothing. The epoch fences off a previous owner. The lease, on the database's clock, determines when another process may
take over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import psycopg
from psycopg import errors

from driftsack.service.domain.journal import START, Segment
from driftsack.service.store import interface as base
from driftsack.service.store.interface import (
    KEPT_SNAPSHOTS,
    AuditRow,
    BaseRow,
    CampaignRow,
    KeyRow,
    Owner,
    SnapshotRow,
)
from driftsack.service.store.link import Link
from driftsack.service.store.queries import COLUMNS, QueryStore

Result = TypeVar("Result")
MIGRATION_LOCK: Final = 7_301_405  # key of pg_advisory_xact_lock, so that one replica at a time changes the schema
MIGRATION_LIMIT: Final = 60.0  # seconds until bringing the schema up to date fails
ALIVE: Final = """EXISTS (SELECT 1 FROM owner AS known WHERE known.name = campaign.owner
  AND known.lease_until >= extract(epoch FROM clock_timestamp()))"""
RENEW: Final = """INSERT INTO owner VALUES (%s, extract(epoch FROM clock_timestamp()) + %s)
  ON CONFLICT (name) DO UPDATE SET lease_until = excluded.lease_until"""
APPEND: Final = """
WITH owned AS (
  UPDATE campaign SET seq = %(last)s, chain = %(chain)s
  WHERE name = %(name)s AND epoch = %(epoch)s AND seq = %(first)s - 1 RETURNING name
), moved AS (
  SELECT owned.name, (d->>0)::bigint AS season, (d->>1)::bigint AS resource, (d->>2)::int AS new,
    (d->>3)::bigint AS granted, (d->>4)::bigint AS reserved, (d->>5)::bigint AS spent, (d->>6)::bigint AS overrun
  FROM owned, jsonb_array_elements(%(deltas)s::jsonb) AS d
), appended AS (
  INSERT INTO segment SELECT name, %(first)s, %(last)s, %(at)s, %(epoch)s, %(deltas)s, %(body)s, %(chain)s FROM owned
  RETURNING 1
), begun AS (
  INSERT INTO budget SELECT name, season, resource, granted, reserved, spent, overrun FROM moved WHERE new = 1
  RETURNING 1
), changed AS (
  UPDATE budget b SET granted = b.granted + m.granted, reserved = b.reserved + m.reserved,
    spent = b.spent + m.spent, overrun = b.overrun + m.overrun
  FROM moved m WHERE m.new = 0 AND b.campaign = m.name AND b.season = m.season AND b.resource = m.resource
  RETURNING 1
)
SELECT (SELECT count(*) FROM appended)
"""
MILESTONE: Final = """INSERT INTO milestone VALUES (%s, %s, %s, %s)
  ON CONFLICT (campaign, number) DO UPDATE SET seq = excluded.seq, body = excluded.body"""
CONTEXT: Final = """INSERT INTO raw_context VALUES (%s, %s, %s, %s)
  ON CONFLICT (campaign, number) DO UPDATE SET until = excluded.until, body = excluded.body"""
AUDIT: Final = "INSERT INTO audit (at, who, action, campaign, detail) VALUES (%s, %s, %s, %s, %s)"


class PostgresStore(QueryStore):
    """A store in a PostgreSQL database.

    Args:
        address: The address, such as ``postgresql://user@host/database``.

    Raises:
        UnavailableError: The database does not answer.
        NewerSchemaError: A newer release wrote the database.
    """

    mark = "%s"

    def __init__(self, address: str) -> None:
        self._link = Link(address)
        try:
            self._do(self._prepare, MIGRATION_LIMIT)
        except base.StoreError:
            self.close()
            raise

    def _prepare(self, connection: psycopg.Connection[Any]) -> None:
        """Bring the schema up to date."""
        scripts = base.migrations("postgres")
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
            connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version INT NOT NULL)")
            row = connection.execute("SELECT max(version) FROM schema_version").fetchone()
            found = int(row[0]) if row and row[0] is not None else 0
            base.check_version(found, len(scripts))
            for version, script in enumerate(scripts[found:], start=found + 1):
                connection.execute(script)
                connection.execute("INSERT INTO schema_version VALUES (%s)", (version,))

    def _do(self, work: Callable[[psycopg.Connection[Any]], Result], deadline: float | None = None) -> Result:
        """Call a function with the connection, and translate the errors of the database."""
        try:
            return self._link.run(work, deadline)
        except errors.CheckViolation as error:
            raise base.OverspentError("the database refused a commit that would overspend a budget.") from error
        except errors.UniqueViolation as error:
            raise base.NameTakenError("the name is taken.") from error
        except psycopg.Error as error:
            raise base.UnavailableError(f"the database did not answer: {error}".strip()) from error

    def _rows(self, query: str, *values: Any) -> list[Any]:
        return self._do(lambda connection: connection.execute(query, values).fetchall())

    def _run(self, query: str, *values: Any) -> int:
        return self._do(lambda connection: connection.execute(query, values).rowcount)

    def create(self, segment: Segment, config: bytes, owner: Owner) -> None:
        """Create a campaign with its first segment."""

        def work(connection: psycopg.Connection[Any]) -> None:
            with connection.transaction():
                connection.execute(RENEW, (owner.name, owner.lease))
                row = (segment.campaign, config, segment.epoch, 0, START, owner.name, owner.url)
                connection.execute(f"INSERT INTO campaign ({COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s)", row)
                _append(connection, segment)

        self._do(work)

    def names(self) -> list[str]:
        """Return the names of all campaigns, sorted."""
        return [row[0] for row in self._rows('SELECT name FROM campaign ORDER BY name COLLATE "C"')]

    def elsewhere(self, owner: Owner) -> dict[str, str]:
        """Return the addresses of the owners of all campaigns that other processes own, by campaign."""
        return dict(self._rows("SELECT name, owner_url FROM campaign WHERE owner <> %s", owner.name))

    def claim_free(self, owner: Owner, without: Sequence[str] = (), again: bool = False) -> list[CampaignRow]:
        """Become the owner of all campaigns of processes whose lease has ended on the database's clock."""
        free = f"(CASE WHEN owner = %s THEN %s ELSE NOT {ALIVE} END) AND name <> ALL(%s)"
        values = (owner.name, again, list(without))
        if not self._rows(f"SELECT 1 FROM campaign WHERE {free} LIMIT 1", *values):
            return []
        self._run(RENEW, owner.name, owner.lease)
        query = f"UPDATE campaign SET epoch = epoch + 1, owner = %s, owner_url = %s WHERE {free} RETURNING {COLUMNS}"
        rows = self._rows(query, owner.name, owner.url, *values)
        return sorted(base.campaign_of(row) for row in rows)

    def claim(self, name: str, owner: Owner) -> CampaignRow | None:
        """Become the owner of a campaign if the lease of its owner has ended on the database's clock."""
        self._run(RENEW, owner.name, owner.lease)
        query = f"""UPDATE campaign SET epoch = epoch + 1, owner = %s, owner_url = %s
                    WHERE name = %s AND (owner = %s OR NOT {ALIVE}) RETURNING {COLUMNS}"""
        rows = self._rows(query, owner.name, owner.url, name, owner.name)
        return base.campaign_of(rows[0]) if rows else None

    def extend(self, names: Sequence[str], owner: Owner) -> list[str]:
        """Renew the lease of a process; return those of the names that it still owns."""
        self._run(RENEW, owner.name, owner.lease)
        query = "SELECT name FROM campaign WHERE owner = %s AND name = ANY(%s)"
        return [row[0] for row in self._rows(query, owner.name, list(names))]

    def release(self, names: Sequence[str], owner: Owner) -> None:
        """Stop owning campaigns."""
        query = "UPDATE campaign SET owner = '', owner_url = '' WHERE owner = %s AND name = ANY(%s)"
        self._run(query, owner.name, list(names))
        self._run("DELETE FROM owner WHERE lease_until < extract(epoch FROM clock_timestamp()) - 86400")

    def append(self, segments: Sequence[Segment]) -> None:
        """Append segments durably; see :meth:`Store.append`."""

        def work(connection: psycopg.Connection[Any]) -> None:
            if len(segments) == 1 and base.is_alone(segments[0]):
                _append(connection, segments[0])
                return
            with connection.transaction():
                for segment in sorted(segments):  # in the same order everywhere, so that two owners cannot deadlock
                    _append(connection, segment)

        self._do(work)

    def save_snapshot(self, name: str, snapshot: SnapshotRow) -> None:
        """Save a snapshot, and delete all but the latest ones."""
        self._run(
            """INSERT INTO snapshot VALUES (%s, %s, %s, %s)
               ON CONFLICT (campaign, seq) DO UPDATE SET chain = excluded.chain, body = excluded.body""",
            name,
            *snapshot,
        )
        older = "SELECT seq FROM snapshot WHERE campaign = %s ORDER BY seq DESC OFFSET %s"
        kept = "AND seq NOT IN (SELECT seq FROM base WHERE campaign = %s)"
        query = f"DELETE FROM snapshot WHERE campaign = %s AND seq IN ({older}) {kept}"
        self._run(query, name, name, KEPT_SNAPSHOTS, name)

    def _set_base(self, name: str, base: BaseRow, snapshot: SnapshotRow, entry: AuditRow) -> None:
        def work(connection: psycopg.Connection[Any]) -> None:
            run = connection.execute
            with connection.transaction():
                run("DELETE FROM base WHERE campaign = %s", (name,))
                run("INSERT INTO base VALUES (%s, %s, %s, %s, %s, %s)", (name, *base))
                run("DELETE FROM snapshot WHERE campaign = %s AND seq <= %s", (name, base.seq))
                run("INSERT INTO snapshot VALUES (%s, %s, %s, %s)", (name, *snapshot))
                run("DELETE FROM milestone WHERE campaign = %s AND seq < %s", (name, base.seq))
                run(AUDIT, entry)

        self._do(work)

    def _delete_rest(self, name: str, entry: AuditRow) -> None:
        def work(connection: psycopg.Connection[Any]) -> None:
            with connection.transaction():
                for table in ("snapshot", "base", "budget"):
                    connection.execute(f"DELETE FROM {table} WHERE campaign = %s", (name,))
                connection.execute("DELETE FROM campaign WHERE name = %s", (name,))
                connection.execute(AUDIT, entry)

        self._do(work)

    def add_key(self, key: KeyRow, entry: AuditRow | None = None) -> None:
        """Add an API key, and the audit entry of this in the same transaction."""

        def work(connection: psycopg.Connection[Any]) -> None:
            with connection.transaction():
                connection.execute("INSERT INTO api_key VALUES (%s, %s, %s, %s, %s, %s)", base.key_columns(key))
                if key.labels:
                    connection.execute("INSERT INTO key_labels VALUES (%s, %s)", base.label_columns(key))
                if entry is not None:
                    connection.execute(AUDIT, entry)

        self._do(work)

    def remove_key(self, prefix: str, entry: AuditRow | None = None) -> bool:
        """Remove an API key, and add the audit entry of this in the same transaction."""

        def work(connection: psycopg.Connection[Any]) -> bool:
            with connection.transaction():
                found = bool(connection.execute("DELETE FROM api_key WHERE prefix = %s", (prefix,)).rowcount)
                connection.execute("DELETE FROM key_labels WHERE prefix = %s", (prefix,))
                if found and entry is not None:
                    connection.execute(AUDIT, entry)
                return found

        return self._do(work)

    def add_audit(self, entry: AuditRow) -> None:
        """Add an entry to the audit that belongs to no other change."""

        def work(connection: psycopg.Connection[Any]) -> None:
            with connection.transaction():
                connection.execute(AUDIT, entry)

        self._do(work)

    def backup(self, path: Path) -> None:
        """Refuse: PostgreSQL has tools for this."""
        raise base.StoreError(f"use PostgreSQL's own tool: pg_dump --format=custom --file={path} DATABASE.")

    def interrupt(self) -> None:
        """Let the current call fail now, and later ones immediately."""
        self._link.interrupt()

    def close(self) -> None:
        """Close the connection."""
        self._link.close()


def _append(connection: psycopg.Connection[Any], segment: Segment) -> None:
    values = {
        "name": segment.campaign,
        "first": segment.first,
        "last": segment.last,
        "at": segment.at,
        "epoch": segment.epoch,
        "deltas": base.encode_deltas(segment.deltas),
        "body": segment.body,
        "chain": segment.chain,
    }
    row = connection.execute(APPEND, values).fetchone()
    if row is None or row[0] != 1:
        raise base.FencedError("another process owns the journal or has appended to it.")
    for entry in segment.entries:
        connection.execute(AUDIT, entry)
    if segment.milestone is not None:
        number, body = segment.milestone
        connection.execute(MILESTONE, (segment.campaign, number, segment.last, body))
    if segment.contexts:
        with connection.cursor() as cursor:
            cursor.executemany(CONTEXT, base.context_rows(segment.campaign, segment.contexts))
