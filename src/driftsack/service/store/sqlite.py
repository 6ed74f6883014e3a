"""``SQLiteStore``: a store in one file, for one process.

With WAL and ``synchronous=FULL``, a commit that has returned survives a power failure. A lock file keeps a second
process out. A trigger checks the epoch and number of each segment and updates the budgets in the same statement.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from driftsack.core.locks import hold
from driftsack.service.domain.journal import START, Segment
from driftsack.service.store import interface as base
from driftsack.service.store.interface import (
    KEPT_SNAPSHOTS,
    AuditRow,
    BaseRow,
    Budgets,
    CampaignRow,
    KeyRow,
    Owner,
    SnapshotRow,
)
from driftsack.service.store.queries import COLUMNS, QueryStore

APPEND: Final = "INSERT INTO segment VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
CONTEXT: Final = "INSERT OR REPLACE INTO raw_context VALUES (?, ?, ?, ?)"
AUDIT: Final = "INSERT INTO audit (at, who, action, campaign, detail) VALUES (?, ?, ?, ?, ?)"


class SQLiteStore(QueryStore):
    """A store in one file.

    Args:
        path: The path of the file, which is created if it does not exist.
        read_only: Whether to only read a file that another process may be using.
        shared: Whether to change API keys in a file that another process may be using; journals must not be changed.

    Raises:
        FileInUseError: Another process uses the file.
        NewerSchemaError: A newer release wrote the file.
        StoreError: The file is shared, and an earlier release wrote it.
    """

    mark = "?"

    def __init__(self, path: str | Path, read_only: bool = False, shared: bool = False) -> None:
        self.path = Path(path)
        self._held = None if read_only or shared else hold(self.path)
        if not (read_only or shared):
            with suppress(OSError):  # of which the next lines say more
                self.path.touch(mode=0o600)  # it holds secrets, so other users must not read it
        try:
            self._connection = self._connected("ro" if read_only else "rw" if shared else "rwc")
        except sqlite3.OperationalError as error:
            raise base.StoreError(f"the store {self.path} cannot be opened: {error}.") from error
        self._lock = threading.Lock()
        try:
            self._prepare(read_only, shared)
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise base.StoreError(f"{self.path} is not a driftsack store: {error}.") from error
        except base.StoreError:
            self._connection.close()
            raise

    def _connected(self, mode: str) -> sqlite3.Connection:
        """Return a new connection to the file."""
        address = f"{self.path.resolve().as_uri()}?mode={mode}"
        return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)

    def _prepare(self, read_only: bool, shared: bool) -> None:
        """Set the pragmas and bring the schema up to date."""
        run = self._connection.execute
        found, scripts = run("PRAGMA user_version").fetchone()[0], base.migrations("sqlite")
        base.check_version(found, len(scripts))
        if shared and found < len(scripts):
            raise base.StoreError(f"{self.path} has schema {found}, not {len(scripts)}; serve it once first.")
        if read_only:
            for script in scripts[found:] if found else ():  # of an earlier release: its later tables are empty
                self._connection.executescript(script.replace("CREATE TABLE", "CREATE TEMP TABLE"))
            return
        run("PRAGMA journal_mode=WAL")
        run("PRAGMA synchronous=FULL")
        run("PRAGMA foreign_keys=ON")
        for version, script in enumerate(scripts[found:], start=found + 1):
            self._connection.executescript(f"BEGIN; {script} PRAGMA user_version={version}; COMMIT;")

    @contextmanager
    def _changing(self) -> Iterator[Any]:
        """Run a block in one transaction."""
        with self._lock:
            run = self._connection.execute
            try:
                run("BEGIN IMMEDIATE")
                yield run
                run("COMMIT")
            except sqlite3.Error as error:
                self._undo()
                raise _translated(error) from error
            except BaseException:
                self._undo()
                raise

    def _undo(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _rows(self, query: str, *values: Any) -> list[Any]:
        with self._lock:
            try:
                return self._connection.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise _translated(error) from error

    def create(self, segment: Segment, config: bytes, owner: Owner) -> None:
        """Create a campaign with its first segment."""
        with self._changing() as run:
            row = (segment.campaign, config, segment.epoch, 0, START, owner.name, owner.url, 0.0)
            run("INSERT INTO campaign VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            _append(run, segment)

    def names(self) -> list[str]:
        """Return the names of all campaigns, sorted."""
        return [row[0] for row in self._rows("SELECT name FROM campaign ORDER BY name")]

    def elsewhere(self, owner: Owner) -> dict[str, str]:
        """Return nothing, because only one process uses the file."""
        return {}

    def claim_free(self, owner: Owner, without: Sequence[str] = (), again: bool = False) -> list[CampaignRow]:
        """Become the owner of all campaigns of other processes, which are gone."""
        free = "owner <> ? AND name NOT IN (SELECT value FROM json_each(?))"
        values = ("" if again else owner.name, json.dumps(list(without)))
        if not self._rows(f"SELECT 1 FROM campaign WHERE {free} LIMIT 1", *values):
            return []
        query = f"UPDATE campaign SET epoch = epoch + 1, owner = ?, owner_url = ? WHERE {free} RETURNING {COLUMNS}"
        with self._changing() as run:
            rows = run(query, (owner.name, owner.url, *values)).fetchall()
        return sorted(CampaignRow(*row) for row in rows)

    def claim(self, name: str, owner: Owner) -> CampaignRow | None:
        """Become the owner; the lock of the file shows that the previous one is gone."""
        with self._changing() as run:
            values = (owner.name, owner.url, name)
            run("UPDATE campaign SET epoch = epoch + 1, owner = ?, owner_url = ? WHERE name = ?", values)
            row = run(f"SELECT {COLUMNS} FROM campaign WHERE name = ?", (name,)).fetchone()
        return None if row is None else CampaignRow(*row)

    def extend(self, names: Sequence[str], owner: Owner) -> list[str]:
        """Return the owned campaigns; all are owned as long as the file is locked."""
        owned = {row[0] for row in self._rows("SELECT name FROM campaign WHERE owner = ?", owner.name)}
        return [name for name in names if name in owned]

    def release(self, names: Sequence[str], owner: Owner) -> None:
        """Do nothing, because closing the file releases its lock."""

    def append(self, segments: Sequence[Segment]) -> None:
        """Append segments durably; see :meth:`Store.append`. A single segment needs one statement."""
        if len(segments) == 1 and base.is_alone(segments[0]):
            self._rows(APPEND, *_columns(segments[0]))
            return
        with self._changing() as run:
            for segment in segments:
                _append(run, segment)

    def save_snapshot(self, name: str, snapshot: SnapshotRow) -> None:
        """Save a snapshot, and delete all but the latest ones."""
        with self._changing() as run:
            run("INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?)", (name, *snapshot))
            older = "SELECT seq FROM snapshot WHERE campaign = ? ORDER BY seq DESC LIMIT -1 OFFSET ?"
            kept = "AND seq NOT IN (SELECT seq FROM base WHERE campaign = ?)"
            values = (name, name, KEPT_SNAPSHOTS, name)
            run(f"DELETE FROM snapshot WHERE campaign = ? AND seq IN ({older}) {kept}", values)

    def _set_base(self, name: str, base: BaseRow, snapshot: SnapshotRow, entry: AuditRow) -> None:
        with self._changing() as run:
            run("INSERT OR REPLACE INTO base VALUES (?, ?, ?, ?, ?, ?)", (name, *base))
            run("INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?)", (name, *snapshot))
            run("DELETE FROM snapshot WHERE campaign = ? AND seq < ?", (name, base.seq))
            run("DELETE FROM milestone WHERE campaign = ? AND seq < ?", (name, base.seq))
            run(AUDIT, entry)

    def _delete_some(self, table: str, column: str, where: str, *values: Any) -> None:
        """Delete rows in transactions of their own; contexts, which may hold personal data, are overwritten."""
        if table != "raw_context":
            super()._delete_some(table, column, where, *values)
            return
        before = self._connection.total_changes
        self.pragma("secure_delete", 1)  # it stays: another thread may be deleting, too
        super()._delete_some(table, column, where, *values)
        if self._connection.total_changes > before:
            self._rows("PRAGMA wal_checkpoint(TRUNCATE)")  # the write-ahead log has the rows, too

    def _delete_rest(self, name: str, entry: AuditRow) -> None:
        with self._changing() as run:
            for table in ("snapshot", "base", "budget"):
                run(f"DELETE FROM {table} WHERE campaign = ?", (name,))
            run("DELETE FROM campaign WHERE name = ?", (name,))
            run(AUDIT, entry)

    def copy(
        self,
        row: CampaignRow,
        segments: Iterable[Segment],
        base: BaseRow | None = None,
        snapshot: SnapshotRow | None = None,
        budgets: Budgets = MappingProxyType({}),
    ) -> None:
        """Copy a part of a journal into this store, which has no campaign of this name; the database checks it again.

        Args:
            row: The row of the campaign.
            segments: The opening segment, and the others from the base on.
            base: Where the part begins; None for the beginning of the journal.
            snapshot: The campaign at the base.
            budgets: The budgets at the base.
        """
        with self._changing() as run:
            run("INSERT INTO campaign VALUES (?, ?, 0, 0, ?, '', '', 0)", (row.name, row.config, START))
            for segment in segments:
                run("UPDATE campaign SET epoch = ? WHERE name = ?", (segment.epoch, row.name))
                _append(run, segment)
                if segment.first == 1 and base is not None and snapshot is not None:
                    run("INSERT INTO base VALUES (?, ?, ?, ?, ?, ?)", (row.name, *base))
                    run("INSERT INTO snapshot VALUES (?, ?, ?, ?)", (row.name, *snapshot))
                    run("UPDATE campaign SET seq = ?, chain = ? WHERE name = ?", (base.seq, base.chain, row.name))
                    run("DELETE FROM budget WHERE campaign = ?", (row.name,))
                    rows = [(row.name, *key, *amounts) for key, amounts in budgets.items()]
                    self._connection.executemany("INSERT INTO budget VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def add_key(self, key: KeyRow, entry: AuditRow | None = None) -> None:
        """Add an API key, and the audit entry of this in the same transaction."""
        with self._changing() as run:
            run("INSERT INTO api_key VALUES (?, ?, ?, ?, ?, ?)", base.key_columns(key))
            if key.labels:
                run("INSERT INTO key_labels VALUES (?, ?)", base.label_columns(key))
            if entry is not None:
                run(AUDIT, entry)

    def remove_key(self, prefix: str, entry: AuditRow | None = None) -> bool:
        """Remove an API key, and add the audit entry of this in the same transaction."""
        with self._changing() as run:
            found = bool(run("DELETE FROM api_key WHERE prefix = ?", (prefix,)).rowcount)
            run("DELETE FROM key_labels WHERE prefix = ?", (prefix,))
            if found and entry is not None:
                run(AUDIT, entry)
            return found

    def add_audit(self, entry: AuditRow) -> None:
        """Add an entry to the audit that belongs to no other change."""
        with self._changing() as run:
            run(AUDIT, entry)

    def backup(self, path: Path) -> None:
        """Copy the database to a file in one step, in a connection of its own; writers may continue meanwhile.

        A backup in several steps would begin again at each commit of another connection and never end under writes.
        The file gets its name when it is complete.
        """
        partial = path.with_name(f"{path.name}.partial")
        try:
            partial.unlink(missing_ok=True)
            os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with closing(self._connected("ro")) as source, closing(sqlite3.connect(partial)) as target:
                source.backup(target)
            partial.replace(path)
        except (sqlite3.Error, OSError) as error:
            raise base.StoreError(f"the backup {path} could not be written: {error}.") from error
        finally:
            partial.unlink(missing_ok=True)

    def pragma(self, name: str, value: int | None = None) -> Any:
        """Read a pragma of the connection; set it first if a value is given."""
        if value is not None:
            self._rows(f"PRAGMA {name}={value}")
        return self._rows(f"PRAGMA {name}")[0][0]

    def interrupt(self) -> None:
        """Interrupt the current statement."""
        self._connection.interrupt()

    def close(self) -> None:
        """Close the file and release its lock."""
        with self._lock:
            self._connection.close()
            self._held = None


def _columns(segment: Segment) -> tuple[Any, ...]:
    return (*segment[:5], base.encode_deltas(segment.deltas), segment.body, segment.chain)


def _append(run: Any, segment: Segment) -> None:
    """Append a segment, its audit entries and its milestone in the present transaction."""
    run(APPEND, _columns(segment))
    if segment.milestone is not None:
        number, body = segment.milestone
        run("INSERT OR REPLACE INTO milestone VALUES (?, ?, ?, ?)", (segment.campaign, number, segment.last, body))
    for entry in segment.entries:
        run(AUDIT, entry)
    for row in base.context_rows(segment.campaign, segment.contexts):
        run(CONTEXT, row)


def _translated(error: sqlite3.Error) -> base.StoreError:
    """Translate an error of the database to one of the interface."""
    if isinstance(error, sqlite3.IntegrityError):
        if "fenced" in str(error):
            return base.FencedError("another process owns the journal or has appended to it.")
        if "CHECK" in str(error):
            return base.OverspentError("the database refused a commit that would overspend a budget.")
        return base.NameTakenError(f"the name is taken: {error}.")
    return base.UnavailableError(f"the database did not answer: {error}.")
