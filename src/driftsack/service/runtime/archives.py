"""Archives: copies a journal to a store of its own, and lets the store forget what was copied.

An archive is a SQLite store with one campaign, which ``replay`` verifies and ``why`` reads like any other. The hash at
its end is the one with which the rest of the journal continues, so that archives and journal form one chain. It has no
contexts as they were sent, because they are kept for a limited time only.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from driftsack.core.errors import SettingError
from driftsack.service.domain import journal
from driftsack.service.domain.campaign import Campaign
from driftsack.service.domain.journal import JournalError, Segment
from driftsack.service.runtime.recovery import from_beginning, recover, snapshot_of
from driftsack.service.runtime.snapshots import read_book
from driftsack.service.store.interface import AuditRow, BaseRow, Budgets, CampaignRow, SnapshotRow, Store, StoreError
from driftsack.service.store.sqlite import SQLiteStore


class Archived(NamedTuple):
    """What was archived.

    Attributes:
        events: The number of events that the archive adds to earlier ones.
        base: Where the rest of the journal begins.
        snapshot: The campaign there.
    """

    events: int
    base: BaseRow
    snapshot: SnapshotRow


def archive(store: Store, name: str, file: Path, before: int | None = None) -> Archived:
    """Copy the journal of a campaign to a new file, and verify the copy by replaying it.

    Args:
        store: The store, which a service may be using.
        name: The campaign.
        file: The file, which gets its name when it is complete.
        before: The time before which events are archived, in milliseconds since 1970; None for all events.

    Raises:
        SettingError: There is nothing to archive.
        JournalError: The journal is damaged.
        StoreError: There is no such campaign, or the file cannot be written.
    """
    row, opening = store.campaign(name), store.opening(name)
    if row is None or opening is None:
        raise StoreError(f"the store has no campaign {name!r:.60}; it has {store.names()[:10]}.")
    base = store.base(name)
    begins = opening.last if base is None else base.seq
    with TemporaryDirectory(dir=file.parent, prefix=f".{file.name}-") as directory:
        partial = Path(directory) / file.name
        with closing(SQLiteStore(partial)) as copy:
            segments = itertools.chain([opening], _before(store, row, begins, before))
            if base is None:
                copy.copy(row, segments)
            else:
                snapshot = store.snapshot(name, base.seq)
                copy.copy(row, segments, base, snapshot, _budgets_of(from_beginning(store, row)[0]))
            found = _verified(copy, name, begins)
        partial.replace(file)
    return found


def prune(store: Store, name: str, found: Archived, entry: AuditRow) -> None:
    """Let a journal begin after an archive.

    Args:
        store: The store, which a service may be using.
        name: The campaign.
        found: The result of :func:`archive`.
        entry: The entry of this in the audit.

    Raises:
        JournalError: The archive does not end where the journal continues.
    """
    row, base = store.campaign(name), found.base
    following = next(store.segments(name, base.seq), None)
    chain = None if row is None else row.chain
    if following is not None and following.first == base.seq + 1:
        chain = base.chain if journal.chained(base.chain, following.body) == following.chain else None
    if chain != base.chain:
        raise JournalError(f"the archive does not end where the journal of {name} continues; nothing was deleted.")
    store.prune(name, base, found.snapshot, entry)
    store.forget_contexts(name, -read_book(found.snapshot).observed, base.number)


def _before(store: Store, row: CampaignRow, begins: int, before: int | None) -> Iterator[Segment]:
    """Iterate over the segments after an event and before a time."""

    def fits(segment: Segment) -> bool:
        return segment.last <= row.seq and (before is None or segment.at < before)

    return itertools.takewhile(fits, store.segments(row.name, begins))


def _verified(copy: SQLiteStore, name: str, begins: int) -> Archived:
    """Replay an archive, and add the snapshot with which the rest of the journal begins."""
    row = copy.campaign(name)
    if row is None or row.seq <= begins:
        raise SettingError(f"the journal of {name} has no events to archive; give a later time.")
    campaign = recover(copy, row, snapshots=False)
    snapshot, book = snapshot_of(campaign, row.chain), campaign.book
    copy.save_snapshot(name, snapshot)
    oldest = min((*book.open, *book.settled), default=book.number + 1)
    return Archived(row.seq - begins, BaseRow(row.seq, row.chain, book.at, book.number, oldest), snapshot)


def _budgets_of(campaign: Campaign) -> Budgets:
    """The budgets of the seasons that a campaign remembers."""
    return {
        (season, j): (account.granted[j], account.reserved[j], account.spent[j], account.overrun[j])
        for season, account in campaign.book.accounts.items()
        for j in range(len(account.granted))
    }
