"""Recovery: rebuild a campaign from its latest readable snapshot and the journal after it, and verify the result."""

from __future__ import annotations

import contextlib
import logging
import warnings
from typing import NamedTuple

import msgspec
import numpy as np

from driftsack.core.errors import DriftsackError
from driftsack.policies.learner import Learner
from driftsack.service.domain import apprentice, journal
from driftsack.service.domain.book import Observation
from driftsack.service.domain.campaign import Campaign
from driftsack.service.domain.config import Config
from driftsack.service.domain.features import bytes_of
from driftsack.service.domain.journal import START, JournalError
from driftsack.service.domain.refusals import Refusal
from driftsack.service.domain.replay import apply_events
from driftsack.service.runtime.snapshots import read_snapshot, write_snapshot
from driftsack.service.store.interface import Budgets, CampaignRow, SnapshotRow, Store

log = logging.getLogger("driftsack.service")


def encode_config(config: Config) -> bytes:
    """Encode the settings as a store keeps them."""
    return msgspec.msgpack.encode(config)


class Rebuilt(NamedTuple):
    """A rebuilt campaign.

    Attributes:
        campaign: The campaign after its last event.
        snapshot_at: The number of events in the snapshot that it was rebuilt from; 0 if there was none.
        milestone: The number of decisions in its latest milestone; 0 if there is none.
    """

    campaign: Campaign
    snapshot_at: int
    milestone: int


def recover(store: Store, row: CampaignRow, snapshots: bool = True, budgets: Budgets | None = None) -> Campaign:
    """Rebuild a campaign; see :func:`rebuild`."""
    return rebuild(store, row, snapshots, budgets).campaign


def rebuild(store: Store, row: CampaignRow, snapshots: bool = True, budgets: Budgets | None = None) -> Rebuilt:
    """Rebuild a campaign.

    Args:
        row: The row of the campaign, read after it was claimed.
        snapshots: Whether to begin with a snapshot; otherwise the whole journal is replayed, but for archived events.
        budgets: The budgets in the store when ``row`` was read. Events that another process appends meanwhile are then
            ignored. None if no other process writes the journal.

    Returns:
        The campaign after the last event of ``row``, and the position of the snapshot.

    Raises:
        JournalError: The journal was changed or truncated, or does not match the budgets.
    """
    base = store.base(row.name)
    try:
        return _rebuilt(store, row, snapshots, budgets)
    except JournalError:
        if store.base(row.name) == base:
            raise
        return _rebuilt(store, row, snapshots, budgets)  # a part was archived and deleted meanwhile


def _rebuilt(store: Store, row: CampaignRow, snapshots: bool, budgets: Budgets | None) -> Rebuilt:
    """Rebuild a campaign from a journal of which nothing is deleted meanwhile."""
    check_beginning(store, row)

    # Apply the events after the snapshot.
    campaign, chain = from_snapshot(store, row) if snapshots else from_beginning(store, row)
    snapshot_at = campaign.book.seq
    for segment in store.segments(row.name, after=campaign.book.seq):
        if budgets is not None and segment.first > row.seq:
            break
        _, chain = journal.verify([segment], chain, campaign.book.seq)
        apply_events(campaign, journal.decode(segment.body), segment.deltas)

    # Compare the result with the hash chain and the budgets.
    if (campaign.book.seq, chain) != (row.seq, row.chain):
        raise JournalError(
            f"the journal of {row.name} ends at event {campaign.book.seq}, but {row.seq} were written; restore it from "
            "a backup."
        )
    if campaign.corrections:
        log.warning(
            "the rules of this release give other amounts than those of %s in %d segments; the recorded ones are kept",
            row.name,
            campaign.corrections,
        )
    campaign.book.forget_seasons()
    check_budgets(store.budgets(row.name) if budgets is None else budgets, row.name, campaign)
    return Rebuilt(campaign, snapshot_at, store.latest_milestone(row.name))


def check_beginning(store: Store, row: CampaignRow) -> None:
    """Check what a recovery from a snapshot does not read: the settings, and that no earlier segment is missing.

    The opening segment is kept when a journal is archived, and the others from the base on.

    Raises:
        JournalError: The settings are not those of the first event, or segments are missing.
    """
    first, base = store.opening(row.name), store.base(row.name)
    opened = None if first is None else next(iter(journal.decode(first.body)), None)
    if first is None or journal.chained(START, first.body) != first.chain or not isinstance(opened, journal.Opened):
        raise JournalError(f"the beginning of the journal of {row.name} is missing; restore it from a backup.")
    if opened.config != Config.from_bytes(row.config):
        raise JournalError(f"the settings of {row.name} are not those that it was opened with.")
    begins = 0 if base is None else base.seq
    events = store.count_events(row.name, begins, row.seq)
    if events != row.seq - begins:
        raise JournalError(
            f"events are missing from the journal of {row.name}: it has {events} of {row.seq - begins}; restore it "
            "from a backup."
        )


def from_beginning(store: Store, row: CampaignRow) -> tuple[Campaign, bytes]:
    """Return the campaign at the beginning of its journal and the hash there: a new one, unless a part was archived.

    Raises:
        JournalError: The snapshot after the archived part cannot be read.
    """
    config, base = Config.from_bytes(row.config), store.base(row.name)
    if base is None:
        return Campaign.new(config), START
    snapshot = store.snapshot(row.name, base.seq)
    if snapshot is None or base.seq > row.seq:
        raise JournalError(
            f"the snapshot of {row.name} after its archived events is missing; restore it from a backup."
        )
    return read_snapshot(config, snapshot.body), base.chain


def from_snapshot(store: Store, row: CampaignRow) -> tuple[Campaign, bytes]:
    """Return the campaign of the newest readable snapshot and its hash; see also :func:`from_beginning`."""
    config = Config.from_bytes(row.config)
    for snapshot in store.snapshots(row.name):
        try:
            found = read_snapshot(config, snapshot.body)
        except JournalError:
            continue
        if found.book.seq == snapshot.seq <= row.seq:
            return found, snapshot.chain
    return from_beginning(store, row)


def before_decision(store: Store, row: CampaignRow, number: int) -> Campaign:
    """Return the campaign shortly before a decision: of the newest readable milestone, else from the beginning.

    Raises:
        Refusal: The decision was archived.
    """
    config, base = Config.from_bytes(row.config), store.base(row.name)
    if base is not None and number <= base.number:
        raise archived(row.name, number)
    for body in store.milestones(row.name, number):
        try:
            return read_snapshot(config, body)
        except JournalError:
            continue
    return from_beginning(store, row)[0]


def archived(name: str, number: int) -> Refusal:
    """The answer to a request about a decision whose events were archived."""
    return Refusal(
        "archived",
        f"decision {number} of {name} was archived; ask the archive: driftsack why {name} {number} --store FILE.",
    )


def check_budgets(stored: Budgets, name: str, campaign: Campaign) -> None:
    """Check that the budgets of a campaign are those in the store.

    Raises:
        JournalError: They differ.
    """
    for season, account in campaign.book.accounts.items():
        columns = zip(account.granted, account.reserved, account.spent, account.overrun, strict=True)
        for resource, amounts in enumerate(columns):
            if stored.get((season, resource)) != amounts:
                raise JournalError(
                    f"the journal of {name} gives {amounts} of resource {resource} in season {season}, but the "
                    f"budget in the store is {stored.get((season, resource))}."
                )


def rehearse(campaign: Campaign) -> Campaign:
    """Let a copy of the learner decide once, so that its kernels are loaded before the first request.

    Returns:
        The campaign, which is not changed.
    """
    problem = campaign.problem
    with warnings.catch_warnings(), contextlib.suppress(DriftsackError):
        warnings.simplefilter("ignore")
        copy = Learner.from_bytes(campaign.learner.to_bytes())
        copy.grant(problem.cost_max)
        zeros = np.zeros(problem.features) if problem.features else None
        decision = copy.ask(at=None if problem.period is None else campaign.book.at / 1000, context=zeros)
        copy.tell(decision, 0.0, [0.0] * problem.resources)
        if campaign.book.state == "watching":
            now = campaign.book.at
            context = None if zeros is None else bytes_of(zeros)
            apprentice.teach(copy, [Observation(0, 0.0, [0.0] * problem.resources, None, now, context)])
            apprentice.choices(copy, [now], [context])
    return campaign


def snapshot_of(campaign: Campaign, chain: bytes) -> SnapshotRow:
    """Take a snapshot of a campaign after all its events."""
    campaign.book.forget_seasons()
    return SnapshotRow(campaign.book.seq, chain, write_snapshot(campaign))
