"""Why a decision was made, recomputed from the journal, and whether the whole journal comes out the same again."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from driftsack.core.decision import SKIP
from driftsack.game.state_tree import arrays
from driftsack.service import journal, views
from driftsack.service.campaign import Campaign
from driftsack.service.estimates import Estimates, estimates_of
from driftsack.service.export import find_row
from driftsack.service.journal import JournalError
from driftsack.service.recovery import from_snapshot, recover
from driftsack.service.refusals import Refusal
from driftsack.service.store.interface import CampaignRow, Store

SHOWN = 200  # entries of an array


class ArmWhy(msgspec.Struct):
    """What a decision knew about an arm, in the units of the campaign.

    Attributes:
        arm: Its name.
        closed: Why it could not be chosen: ``"retired"``, ``"not asked for"`` or ``"budget"``; None if it could.
        probability: With which probability it was drawn.
        reward: The estimated mean reward; None if it was never observed or the policy estimates none.
        costs: The estimated mean costs, likewise.
        planned_reward: What the plan used instead of the mean reward: see ``Why.planned_with``.
        planned_costs: What it used instead of the mean costs.
    """

    arm: str
    closed: str | None
    probability: float
    reward: float | None = None
    costs: dict[str, float] | None = None
    planned_reward: float | None = None
    planned_costs: dict[str, float] | None = None


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
        arms: What was known about each arm.
        planned_with: What the plan used instead of means: optimistic ``"bounds"``, or ``"draws"`` from a posterior.
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
    arms: list[ArmWhy]
    planned_with: str | None
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
    campaign, _ = from_snapshot(store, row, before=number)
    for segment in store.segments(name, after=campaign.book.seq):
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
    closed = [_closed(campaign, event, arm) for arm in range(len(names))]
    caps = campaign.named_caps(event.caps)
    at = event.at / 1000 if campaign.problem.period is not None else None
    decision = campaign.learner.ask(open=event.open, caps=caps, at=at)
    known = estimates_of(campaign.learner.state, len(campaign.resources))
    return Why(
        campaign=name,
        decision=event.number,
        event=book.seq + 1,
        at=event.at,
        arm=None if event.arm == SKIP or event.arm is None else names[event.arm],
        same=decision.arm == event.arm,
        open=[name for name, reason in zip(names, closed, strict=True) if reason is None],
        mix=dict(zip(names, decision.mix.tolist(), strict=True)),
        prices=dict(zip(campaign.resources, decision.prices.tolist(), strict=True)),
        remaining=views.amounts(campaign, free),
        arms=_arms(campaign, closed, decision.mix.tolist(), known),
        planned_with=None if known is None else known.kind,
        estimates=estimates,
    )


def _closed(campaign: Campaign, event: journal.Asked, arm: int) -> str | None:
    """Why an arm cannot be chosen; None if it can."""
    if arm in campaign.book.retired:
        return "retired"
    if event.open is not None and arm not in event.open:
        return "not asked for"
    return None if campaign.fits(arm, event.caps) else "budget"


def _arms(campaign: Campaign, closed: list[str | None], mix: list[float], known: Estimates | None) -> list[ArmWhy]:
    """What is known about each arm."""
    rows = zip(campaign.problem.arm_names, closed, mix, strict=True)
    arms = [ArmWhy(name, reason, probability) for name, reason, probability in rows]
    if known is None:
        return arms
    first = campaign.config.problem()  # the problem without added arms, whose maxima are the units of the learner
    units = np.array([first.reward_max, *first.cost_max])
    pairs = zip((known.means * units).tolist(), (known.used * units).tolist(), strict=False)  # without free slots
    for arm, (means, used) in zip(arms, pairs, strict=False):
        if math.isfinite(means[0]):
            arm.reward, arm.costs = means[0], dict(zip(campaign.resources, means[1:], strict=True))
        if arm.closed is None:
            arm.planned_reward, arm.planned_costs = used[0], dict(zip(campaign.resources, used[1:], strict=True))
    return arms


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

    The service may append events meanwhile; what is compared is the campaign at the moment at which the replay begins.

    Args:
        store: The store.
        name: The campaign.

    Returns:
        What was found.

    Raises:
        JournalError: The journal is damaged or does not match the budgets.
    """
    find_row(store, name)  # or an error that says which campaigns there are
    row, budgets = store.at_once(name)
    short = recover(store, row, budgets=budgets)  # first, since a service that goes on drops old snapshots
    whole = recover(store, row, snapshots=False, budgets=budgets)
    _check_later_events(store, row)
    digest = whole.learner.state_hash()
    same = digest == short.learner.state_hash() and whole.book == short.book
    book = whole.book
    return Replayed(name, book.seq, book.number, book.divergences, same, digest, row.chain.hex())


def _check_later_events(store: Store, row: CampaignRow) -> None:
    """Raise unless what follows a row was appended to the journal meanwhile, together with the number of its events."""
    seq, _ = journal.verify(store.segments(row.name, after=row.seq), row.chain, row.seq)
    written = store.at_once(row.name)[0].seq
    if seq > written:
        raise JournalError(f"the journal of {row.name} ends at event {seq}, but {written} were written.")
