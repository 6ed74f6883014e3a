"""Where a track begins: with the first event of a journal, or after the part of it that was archived."""

from __future__ import annotations

from driftsack.service.domain.config import Config
from driftsack.service.domain.journal import JournalError
from driftsack.service.projections.track import SeasonBudgets, Track, Waiting
from driftsack.service.runtime.recovery import from_beginning
from driftsack.service.store.interface import BaseRow, CampaignRow, Store


def begun(store: Store, row: CampaignRow) -> Track:
    """Return a track at the beginning of a journal.

    If a part was archived, the track begins with the counts and budgets at its end, and everything else that is shown,
    such as charts, shares of the arms and alarms, is about the time since.

    Raises:
        JournalError: The opening segment is missing, or the snapshot after the archived part cannot be read.
    """
    opening, base = store.opening(row.name), store.base(row.name)
    if opening is None:
        raise JournalError(f"the beginning of the journal of {row.name} is missing; restore it from a backup.")
    track = Track(row.name, Config.from_bytes(row.config))
    track.opening, track.opened_at = opening.chain, opening.at
    if base is not None:
        _continue(track, store, row, base)
    return track


def _continue(track: Track, store: Store, row: CampaignRow, base: BaseRow) -> None:
    """Set what the events before the base would have set."""
    campaign, _ = from_beginning(store, row)
    book = campaign.book
    for name in ("state", "format", "at", "number", "pending", "told", "expired", "overruns", "refused", "reward"):
        setattr(track, name, getattr(book, name))
    track.seq = track.first = base.seq
    track.lost, track.retired = campaign.expired, set(book.retired)
    for arm in campaign.problem.arm_names[len(track.arms) :]:
        track.add_arm(arm)
    # The budgets, and the decisions that wait for an outcome.
    track.season, track.following = book.season, book.following
    track.season_at, track.season_number = base.at, base.number
    for season, account in book.accounts.items():
        kept = track.seasons[season] = SeasonBudgets(len(track.resources))
        kept.granted, kept.reserved = [*account.granted], [*account.reserved]
        kept.spent, kept.overrun = [*account.spent], [*account.overrun]
    for number, record in book.open.items():
        expired = record.kind == "expired"
        track.waiting[number] = Waiting(
            record.arm, record.probability, record.reserved, record.at, expired, record.billed, record.held
        )
    track.limits = campaign.limits
