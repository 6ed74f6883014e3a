"""Why a decision was made, recomputed from the journal, and whether the whole journal comes out the same again."""

from __future__ import annotations

import msgspec

from driftsack.core.decision import SKIP
from driftsack.game.state_tree import arrays
from driftsack.service import journal, views
from driftsack.service.campaign import Campaign
from driftsack.service.config import Config
from driftsack.service.export import find_row
from driftsack.service.journal import START, JournalError
from driftsack.service.recovery import check_budgets, recover
from driftsack.service.refusals import Refusal
from driftsack.service.store.interface import Store

SHOWN = 200  # entries of an array


class Why(msgspec.Struct):
    """How a decision was made.

    Attributes:
        campaign: The campaign.
        decision: The number of the decision.
        event: The number of its event.
        at: When it was made, in milliseconds since 1970.
        arm: The arm that was drawn; None if the request was skipped.
        same: Whether the recomputed decision is the recorded one.
        open: The arms that were open: offered, asked for, and covered by the budgets.
        mix: The probability of each arm; what is left of 1 is the probability to skip.
        prices: What one more unit of each budget would earn.
        remaining: What could still be reserved of each budget.
        estimates: The arrays of the policy's state before the decision.
    """

    campaign: str
    decision: int
    event: int
    at: int
    arm: str | None
    same: bool
    open: list[str]
    mix: dict[str, float]
    prices: dict[str, float]
    remaining: dict[str, str]
    estimates: dict[str, list[float]]


def why(store: Store, name: str, number: int) -> Why:
    """Recompute one decision.

    Args:
        store: The store.
        name: The campaign.
        number: The number of the decision.

    Returns:
        What it was made from.

    Raises:
        Refusal: The campaign made no such decision.
    """
    row = find_row(store, name)
    campaign = Campaign.new(msgspec.msgpack.decode(row.config, type=Config))
    for segment in store.segments(name):
        for event in journal.decode(segment.body):
            if isinstance(event, journal.Asked) and event.number == number:
                return _explained(name, campaign, event)
            campaign.apply(event)
    raise Refusal("unknown-decision", f"the campaign has made decisions 1 to {campaign.book.number}, got {number}.")


def _explained(name: str, campaign: Campaign, event: journal.Asked) -> Why:
    """Make a decision again, and look at what it is made from."""
    book, names = campaign.book, campaign.problem.arm_names
    free = [book.account.free(j) for j in range(len(campaign.exponents))]
    estimates = {
        path.removeprefix("state."): [float(value) for value in array.ravel()[:SHOWN]]
        for path, array in arrays(campaign.learner.state).items()
        if array.dtype.kind in "fiub"
    }
    offered = range(len(names)) if event.open is None else event.open
    fitting = [arm for arm in offered if arm not in book.retired and campaign.fits(arm, event.caps)]
    caps = campaign.named_caps(event.caps)
    at = event.at / 1000 if campaign.problem.period is not None else None
    decision = campaign.learner.ask(open=event.open, caps=caps, at=at)
    return Why(
        campaign=name,
        decision=event.number,
        event=book.seq + 1,
        at=event.at,
        arm=None if event.arm == SKIP or event.arm is None else names[event.arm],
        same=decision.arm == event.arm,
        open=[names[arm] for arm in fitting],
        mix=dict(zip(names, decision.mix.tolist(), strict=True)),
        prices=dict(zip(campaign.resources, decision.prices.tolist(), strict=True)),
        remaining=views.amounts(campaign, free),
        estimates=estimates,
    )


class Replayed(msgspec.Struct):
    """What a replay of a whole journal found.

    Attributes:
        campaign: The campaign.
        events: The number of events.
        decisions: The number of decisions.
        divergences: Decisions that came out differently.
        same: Whether the replay and the latest snapshot with the events after it give the same state, bit for bit.
        state_hash: The digest of the learner.
        chain: The hash of the whole journal.
    """

    campaign: str
    events: int
    decisions: int
    divergences: int
    same: bool
    state_hash: str
    chain: str


def replay(store: Store, name: str) -> Replayed:
    """Rebuild a campaign from its first event, and compare it with its snapshot, its chain and its budgets.

    Args:
        store: The store.
        name: The campaign.

    Returns:
        What was found.

    Raises:
        JournalError: The journal is damaged or does not match the budgets.
    """
    row = find_row(store, name)
    seq, chain = journal.verify(store.segments(name), START)
    if (seq, chain) != (row.seq, row.chain):
        raise JournalError(f"the journal of {name} ends at event {seq}, but {row.seq} were written.")
    whole, short = recover(store, row, snapshots=False), recover(store, row)
    check_budgets(store, name, whole)
    digest = whole.learner.state_hash()
    same = digest == short.learner.state_hash() and whole.book == short.book
    book = whole.book
    return Replayed(name, book.seq, book.number, book.divergences, same, digest, chain.hex())
