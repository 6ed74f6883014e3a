"""Explains decisions by recomputing them from the journal, and verifies that replay is deterministic."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np

from driftsack.core.decision import SKIP
from driftsack.core.errors import SettingError
from driftsack.game.state_tree import arrays
from driftsack.policies.parts.estimates import Estimates
from driftsack.service.domain import journal, views
from driftsack.service.domain.campaign import Campaign
from driftsack.service.domain.journal import JournalError
from driftsack.service.domain.refusals import Refusal
from driftsack.service.domain.replay import apply_events
from driftsack.service.projections.export import find_row
from driftsack.service.projections.feature_effects import FeatureEffect, effects_of, in_words
from driftsack.service.runtime.recovery import before_decision, recover
from driftsack.service.store.interface import CampaignRow, Store

SHOWN = 200  # entries of each array


class ArmWhy(msgspec.Struct):
    """The information about one arm at a decision, in the units of the campaign.

    Attributes:
        arm: The name of the arm.
        closed: Why it could not be chosen: ``"retired"``, ``"not asked for"``, ``"limit"`` (by label) or ``"budget"``;
            None if it could.
        probability: The probability with which it was drawn.
        reward: The estimated mean reward; None if it was never observed or the policy has no estimates.
        costs: The estimated mean costs; None if it was never observed or the policy has no estimates.
        planned_reward: The value that the plan used for the reward: see ``Why.planned_with``.
        planned_costs: The values that the plan used for the costs.
    """

    arm: str
    closed: str | None
    probability: float
    reward: float | None = None
    costs: dict[str, float] | None = None
    planned_reward: float | None = None
    planned_costs: dict[str, float] | None = None


class Why(msgspec.Struct):
    """The explanation of a decision.

    Attributes:
        decision: The number of the decision.
        event: The number of its event.
        at: The time of the decision, in milliseconds since 1970.
        arm: The arm that was drawn; None if the request was skipped.
        same: Whether the recomputed decision equals the recorded one.
        open: The arms that were offered, asked for, and covered by the budgets and limits.
        mix: The probability of each arm; the rest of 1 is the probability of skipping.
        prices: The shadow price of each budget.
        remaining: The amount of each budget that could still be reserved.
        arms: The information about each arm.
        planned_with: What the plan used in place of means: optimistic ``"bounds"``, or ``"draws"`` from a posterior.
        estimates: The arrays of the policy's state before the decision.
        features: What each feature of the request added to the estimates; empty without features.
        words: Which features spoke for or against the drawn arm, most important first.
        context: The context as it was sent; None unless the campaign keeps it.
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
    features: list[FeatureEffect] = []
    words: list[str] = []
    context: dict[str, Any] | None = None


def why(store: Store, name: str, number: int) -> Why:
    """Recompute one decision and return its explanation.

    Args:
        name: The campaign.
        number: The number of the decision.

    Raises:
        Refusal: The campaign made no such decision.
    """
    row = find_row(store, name)
    campaign = before_decision(store, row, number)
    for segment in store.segments(name, after=campaign.book.seq):
        events = journal.decode(segment.body)
        found = next((e for e in events if isinstance(e, journal.Asked) and e.number == number), None)
        if found is not None:
            for event in events[: events.index(found)]:
                campaign.apply(event)
            kept = store.contexts(name, number, number).get(number)
            return _explained(name, campaign, found, None if kept is None else msgspec.json.decode(kept))
        apply_events(campaign, events, segment.deltas)
    raise Refusal("unknown-decision", f"the campaign has made decisions 1 to {campaign.book.number}, got {number}.")


def _explained(name: str, campaign: Campaign, event: journal.Asked, context: dict[str, Any] | None) -> Why:
    """Repeat a decision, and collect the information that it was based on."""
    # The state before the decision.
    book, names = campaign.book, campaign.problem.arm_names
    free = [book.account.free(j) for j in range(len(campaign.exponents))]
    estimates = {
        path.removeprefix("state."): [float(value) for value in array.ravel()[:SHOWN]]
        for path, array in arrays(campaign.learner.state).items()
        if array.dtype.kind in "fiub"
    }
    # Repeat the decision.
    closed = [_closed(campaign, event, arm) for arm in range(len(names))]
    decision = campaign.learner.ask(open=campaign.open_arms(event), **campaign.terms(event))
    known = _estimates(campaign)
    effects = effects_of(campaign, event.context)
    mix = {name: share for name, reason, share in zip(names, closed, decision.mix.tolist(), strict=True) if not reason}
    prices = dict(zip(campaign.resources, decision.prices.tolist(), strict=True))
    arm = None if event.arm == SKIP or event.arm is None else names[event.arm]
    return Why(
        campaign=name,
        decision=event.number,
        event=book.seq + 1,
        at=event.at,
        arm=arm,
        same=decision.arm == event.arm,
        open=[name for name, reason in zip(names, closed, strict=True) if reason is None],
        mix=dict(zip(names, decision.mix.tolist(), strict=True)),
        prices=prices,
        remaining=views.amounts(campaign, free),
        arms=_arms(campaign, closed, decision.mix.tolist(), known),
        planned_with=None if known is None else known.kind,
        estimates=estimates,
        features=effects,
        words=in_words(effects, arm, mix, prices, campaign.config.reward_max),
        context=context,
    )


def _closed(campaign: Campaign, event: journal.Asked, arm: int) -> str | None:
    """Return why an arm cannot be chosen; None if it can."""
    if arm in campaign.book.retired:
        return "retired"
    if event.open is not None and arm not in event.open:
        return "not asked for"
    if arm in event.limited:
        return "limit"
    return None if campaign.fits(arm, event.caps) else "budget"


def _estimates(campaign: Campaign) -> Estimates | None:
    """What the policy believes.

    Raises:
        SettingError: It returned arrays of another shape.
    """
    policy, columns = campaign.learner.policy, 1 + len(campaign.resources)
    known = policy.estimates(campaign.learner.state)
    for array in () if known is None else (known.means, known.used):
        if array is not None and (array.ndim != 2 or array.shape[1] != columns or len(array) < campaign.problem.arms):
            raise SettingError(
                f"{type(policy).__name__}.estimates must return one row for each arm and {columns} columns, the reward "
                f"and then each cost, got an array of shape {array.shape}."
            )
    if known is None:
        return None
    means = known.means.copy()
    means[: campaign.problem.arms, 1:] *= campaign.learner.cost_factors.T  # at the prices of this request
    return known._replace(means=means)


def _arms(campaign: Campaign, closed: list[str | None], mix: list[float], known: Estimates | None) -> list[ArmWhy]:
    """Return the information about each arm."""
    rows = zip(campaign.problem.arm_names, closed, mix, strict=True)
    arms = [ArmWhy(name, reason, probability) for name, reason, probability in rows]
    if known is None:
        return arms
    # Convert normalised estimates to the units of the campaign.
    first = campaign.config.problem()  # the problem without added arms, whose maxima are the units of the learner
    units = np.array([first.reward_max, *first.cost_max])
    planned = [None] * len(known.means) if known.used is None else (known.used * units).tolist()
    pairs = zip((known.means * units).tolist(), planned, strict=True)
    for arm, (means, used) in zip(arms, pairs, strict=False):  # without free slots
        if math.isfinite(means[0]):
            arm.reward, arm.costs = means[0], dict(zip(campaign.resources, means[1:], strict=True))
        if arm.closed is None and used is not None:
            arm.planned_reward, arm.planned_costs = used[0], dict(zip(campaign.resources, used[1:], strict=True))
    return arms


class Replayed(msgspec.Struct):
    """The result of replaying a whole journal.

    Attributes:
        events: Number of events.
        decisions: Number of decisions.
        divergences: Number of decisions that differ from the recorded ones.
        same: Whether the replay equals, bit for bit, the latest snapshot with the events after it.
        state_hash: The digest of the learner.
        chain: The hash chain at the end of the journal.
    """

    campaign: str
    events: int
    decisions: int
    divergences: int
    same: bool
    state_hash: str
    chain: str


def replay(store: Store, name: str) -> Replayed:
    """Verify that replay is deterministic: rebuild a campaign from its first event, and compare it with its snapshot.

    The hash chain and the budgets are verified too. The service may append events during the replay; the comparison is
    with the campaign at the start of the replay.

    Args:
        name: The campaign.

    Raises:
        JournalError: The journal is corrupted or does not match the budgets.
    """
    find_row(store, name)  # raises an error that lists the campaigns
    row, budgets = store.at_once(name)
    short = recover(store, row, budgets=budgets)  # first, since a running service drops old snapshots
    whole = recover(store, row, snapshots=False, budgets=budgets)
    _check_later_events(store, row)
    digest = whole.learner.state_hash()
    book = whole.book
    accounts = [campaign.limits.live(book.at) for campaign in (whole, short)]
    same = digest == short.learner.state_hash() and book == short.book and accounts[0] == accounts[1]
    return Replayed(name, book.seq, book.number, book.divergences, same, digest, row.chain.hex())


def _check_later_events(store: Store, row: CampaignRow) -> None:
    """Raise unless the store counts all events of the journal after a row."""
    seq, _ = journal.verify(store.segments(row.name, after=row.seq), row.chain, row.seq)
    written = store.at_once(row.name)[0].seq
    if seq > written:
        raise JournalError(f"the journal of {row.name} ends at event {seq}, but {written} were written.")
