"""Effects: how each event changes the state of a campaign, and the answer to the request that caused it.

The same functions apply an event when it happens and when a campaign is rebuilt from its journal.
"""

from __future__ import annotations

import secrets
import warnings
from datetime import timedelta
from typing import Any, Final

from driftsack.core.decision import SKIP, Decision
from driftsack.core.errors import BudgetExhaustedError, HorizonReachedError, OverrunWarning
from driftsack.game.amounts import whole_units
from driftsack.service.domain import apprentice, journal, views
from driftsack.service.domain import messages as ms
from driftsack.service.domain.accounts import HeldAccount
from driftsack.service.domain.book import Observation, Record, Write, is_overrun
from driftsack.service.domain.calendar import SECOND
from driftsack.service.domain.refusals import Refusal
from driftsack.service.domain.state import CampaignState
from driftsack.service.domain.thresholds import mask_of

MOST_EXPIRED: Final = 5_000  # a learner keeps 10,000 forfeited decisions
TOKEN_BYTES: Final = 12


def _opened(state: CampaignState, event: journal.Opened) -> ms.Done:
    if event.config.watch:
        state.book.state = "watching"
    state.book.following = event.config.next_refill(event.at)
    _begin_period(state, event)
    return ms.Done()


def _begin_period(state: CampaignState, event: journal.Opened | journal.StateChanged) -> None:
    """Let the learner's period end with the next refill; the budgets stay as they are."""
    if event.period is not None:
        length = timedelta(seconds=event.period)
        state.learner.renew(state.learner.budget, at=event.at / SECOND, period=length)


def _asked(state: CampaignState, event: journal.Asked) -> ms.Decided:
    try:
        decision = _choose(state, event)
    except (HorizonReachedError, BudgetExhaustedError) as error:
        if event.arm is not None:
            state.book.divergences += 1
            return _keep_unknown(state, event)
        return views.skipped("horizon" if isinstance(error, HorizonReachedError) else "budget")
    if event.arm is not None and decision.arm != event.arm:
        if not decision.skipped:
            state.learner.cancel(decision)
        return _keep_unknown(state, event)

    # Write a decision that is made for the first time into its event.
    if event.arm is None:
        event.arm = decision.arm
        event.reserved = [] if decision.skipped else state.most(decision.arm, event.caps)
        event.token = "" if decision.skipped else secrets.token_hex(TOKEN_BYTES)
        event.held = [] if decision.skipped else event.held
        event.probability = (
            float(max(0.0, 1.0 - decision.mix.sum())) if decision.skipped else float(decision.mix[decision.arm])
        )

    state.prices = decision.prices.tolist()
    answer = _keep(state, event, event.arm, decision.round)
    if event.arm != SKIP:
        state.decisions[decision.round] = decision
    return answer


def _keep_unknown(state: CampaignState, event: journal.Asked) -> ms.Decided:
    """Keep a recorded decision that the learner of this release would not make at all; it is charged, not learnt."""
    answer = _keep(state, event, SKIP if event.arm is None else event.arm, -event.number)
    state.set_learner_account()
    return answer


def _keep(state: CampaignState, event: journal.Asked, arm: int, turn: int) -> ms.Decided:
    """Keep a decision of a round of the learner, and its key if the request had one."""
    book = state.book
    book.number = event.number
    record = Record(
        arm=arm,
        probability=event.probability,
        reserved=event.reserved,
        until=event.until,
        lease=(event.until - event.tick) // SECOND,
        season=book.season,
        round=turn,
        key=event.key,
        token=event.token,
        at=event.at,
        held=event.held,
    )
    if event.key:
        book.remember(event.key, Write(event.digest, number=event.number))

    # Reserve its maximum cost until it is settled; a skipped request is settled at once.
    if arm == SKIP:
        record.kind = "skipped"
        book.settle(event.number, record)
    else:
        book.open[event.number] = record
        book.pending += 1
        book.reserve(event.reserved)
        state.limits.reserve(event.held, event.reserved, event.at)
        state.leases.add(event.number, record)
    return views.decided(state, event.number, record)


def _choose(state: CampaignState, event: journal.Asked) -> Decision:
    """The learner's decision; the recorded one if a replay comes to another."""
    terms = state.terms(event)
    decision = state.learner.ask(open=state.open_arms(event), **terms)
    if event.arm is None or decision.arm == event.arm:
        return decision
    state.book.divergences += 1
    if not decision.skipped:
        state.learner.cancel(decision)
    only = [] if event.arm == SKIP else [event.arm]
    closed = [k in only for k in range(state.problem.arms)]
    return state.learner.ask(open=closed, **terms)


def _told(state: CampaignState, event: journal.Told) -> ms.Settled:
    record = state.book.open[event.number]
    decision = state.decisions.get(record.round)
    units = state.units(event.costs)
    if decision is None:
        pass  # the learner does not know it
    elif is_overrun(record.reserved, units) or not 0.0 <= event.reward <= state.problem.reward_max:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OverrunWarning)  # counted, answered and shown instead
            state.learner.tell(decision, event.reward, event.costs)
    else:
        state.learner.tell(decision, event.reward, event.costs)
    state.book.told += 1
    state.book.reward += event.reward
    record.reward = event.reward
    return _settle(state, event, record, "told", units)


def _billed(state: CampaignState, event: journal.Billed) -> ms.Settled:
    record = state.book.open[event.number]
    decision = state.decisions.get(record.round)
    if decision is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OverrunWarning)
            state.learner.tell(decision, costs=event.costs)
    _charge_costs(state, event, record, state.units(event.costs))
    record.costs, record.billed = event.costs, True
    return views.settled(state, event.number, record)


def _charge_costs(
    state: CampaignState, event: journal.Told | journal.Billed | journal.Cancelled, record: Record, units: list[int]
) -> None:
    """Charge the costs of a decision, in grid units, to the budgets and to its accounts of limits."""
    if record.held:
        event.units = units if event.units is None else event.units
        state.limits.charge(record.held, record.reserved, event.units, record.kind == "pending")
    state.book.overruns += state.book.charge(record, units)


def _earned(state: CampaignState, event: journal.Earned) -> ms.Settled:
    record = state.book.open[event.number]
    decision = state.decisions.get(record.round)
    if decision is not None:
        state.learner.tell(decision, reward=event.reward)
    record.reward = event.reward
    return views.settled(state, event.number, record)


def _cancelled(state: CampaignState, event: journal.Cancelled) -> ms.Settled:
    record = state.book.open[event.number]
    decision = state.decisions.get(record.round)
    if decision is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OverrunWarning)
            state.learner.cancel(decision, event.costs)
    record.reward = None
    return _settle(state, event, record, "cancelled", state.units(event.costs))


def _refused(state: CampaignState, event: journal.Refused) -> Refusal:
    state.book.open[event.number].refused = True
    state.book.refused += 1
    return views.absurd(state, event.number, event.costs)


def _settle(
    state: CampaignState, event: journal.Told | journal.Cancelled, record: Record, kind: str, units: list[int]
) -> ms.Settled:
    """Charge a decision its costs, in grid units, unless they were charged before, and move it to the settled ones."""
    book = state.book
    if not record.billed:
        _charge_costs(state, event, record, units)
    state.limits.close(record.held, event.at)
    if record.kind == "pending":
        book.pending -= 1
    else:
        state.expired -= 1
        record.late = True
    record.kind, record.costs = kind, event.costs
    book.settle(event.number, record)
    if state.decisions.pop(record.round, None) is None:
        state.set_learner_account()
    return views.settled(state, event.number, record)


def _extended(state: CampaignState, event: journal.Extended) -> ms.Settled:
    record = state.book.open[event.number]
    record.until = event.until
    state.leases.add(event.number, record)
    return views.settled(state, event.number, record)


def _expired(state: CampaignState, event: journal.Expired) -> ms.Settled | None:
    book, record = state.book, None

    # Charge the reservations; the decisions may still be told.
    for number in event.numbers:
        record = book.open[number]
        decision = state.decisions.get(record.round)
        if decision is not None:
            state.learner.forfeit(decision)
        book.forfeit(record)
        if not record.billed:
            state.limits.forfeit(record.held, record.reserved)
        record.kind = "expired"
        record.until = min(record.until, event.tick)
        book.pending -= 1
        book.expired += 1
        state.expired += 1
        state.leases.add(number, record)
        if decision is None:
            state.set_learner_account()

    # Drop the oldest if there are more than the learner can keep; a replay drops the recorded ones.
    if event.dropped is None:
        event.dropped = _oldest_above_limit(state)
    for number in event.dropped:
        _drop(state, number, event.at)
    return None if record is None else views.settled(state, event.numbers[-1], record)


def _oldest_above_limit(state: CampaignState) -> list[int]:
    """The oldest expired decisions, as many as exceed the limit."""
    surplus = state.expired - MOST_EXPIRED
    if surplus <= 0:
        return []
    return [number for number, record in state.book.open.items() if record.kind == "expired"][:surplus]


def _drop(state: CampaignState, number: int, at: int) -> None:
    """Settle an expired decision, which can no longer be told; its charge stays."""
    record = state.book.open[number]
    decision = state.decisions.pop(record.round, None)
    if decision is not None:
        state.learner.cancel(decision, None if record.billed else decision.reserved)
    record.kind = "dropped"
    state.limits.close(record.held, at)
    state.expired -= 1
    state.book.settle(number, record)


def _dropped(state: CampaignState, event: journal.Dropped) -> None:
    for number in event.numbers:
        _drop(state, number, event.at)


def _granted(state: CampaignState, event: journal.Granted) -> ms.Budgets:
    state.learner.grant(event.amounts)
    granted = state.book.account.granted
    for j, (amount, k) in enumerate(zip(event.amounts, state.exponents, strict=True)):
        granted[j] += whole_units(amount, k, up=False)
    return views.budgets(state)


def _charged(state: CampaignState, event: journal.Charged) -> ms.Budgets:
    state.learner.charge(event.amounts)
    pairs = zip(event.amounts, state.exponents, strict=True)
    state.book.spend([whole_units(amount, k, up=True) for amount, k in pairs])
    return views.budgets(state)


def _renewed(state: CampaignState, event: journal.Renewed) -> None:
    at = event.at / SECOND if state.problem.period is not None else None
    period = None if event.period is None else timedelta(seconds=event.period)
    state.learner.renew(rollover=event.rollover, at=at, period=period)
    state.book.begin_season(state.budget_units(), event.rollover)
    state.book.following = event.following


def _arm_added(state: CampaignState, event: journal.ArmAdded) -> ms.Arms:
    state.learner.add_arm(event.name, event.cost_max)
    state.set_arms()
    return views.arms(state)


def _arm_offered(state: CampaignState, event: journal.ArmOffered) -> ms.Arms:
    change = state.learner.reopen_arm if event.offered else state.learner.retire_arm
    change(event.arm)
    retired = set(state.book.retired) - {event.arm}
    state.book.retired = sorted(retired if event.offered else retired | {event.arm})
    return views.arms(state)


def _observed(state: CampaignState, event: journal.Observed) -> ms.Noted:
    book = state.book
    book.observed += 1
    seen = Observation(event.arm, event.reward, event.costs, event.probability, event.at, event.context)
    book.unlearnt.append(seen)
    return ms.Noted(book.observed)


def _studied(state: CampaignState, event: journal.Studied) -> None:
    seen, first = state.book.unlearnt, event.mix is None
    if first and state.problem.features:  # before they are learnt from
        event.mixes = apprentice.choices_at(state.learner, seen)
    _learn_observations(state)
    if first:
        times = [event.at + each.at - seen[0].at for each in seen]
        event.mix = apprentice.choices(state.learner, times, [each.context for each in seen])


def _learn_observations(state: CampaignState) -> None:
    apprentice.teach(state.learner, state.book.unlearnt)
    state.book.unlearnt = []


def _state_changed(state: CampaignState, event: journal.StateChanged) -> ms.Done:
    if not event.reason:  # by an operator, who may have switched on a campaign that watched
        _learn_observations(state)
        _begin_period(state, event)
    state.book.state = event.new_state
    return ms.Done()


def _clock_set(state: CampaignState, event: journal.ClockSet) -> ms.Done:
    if event.ends:
        records = state.book.open.values()
        moved = state.limits.set_clock(event.before, event.ends, [record.held for record in records])
        for record, held in zip(records, moved, strict=True):
            record.held = held
    state.book.following = event.following
    if state.problem.period is not None:
        period = None if event.period is None else timedelta(seconds=event.period)
        state.learner.set_clock(event.at / SECOND, period)
    return ms.Done()


def _revised(state: CampaignState, event: journal.Revised) -> ms.Done:
    state.learner.revise(event.rounds_left)
    return ms.Done()


def _crossed(state: CampaignState, event: journal.Crossed) -> ms.Done:
    mask = mask_of(state, event.resource, event.percent)
    if event.limit is None:
        state.book.raised |= mask
    else:
        accounts, held = state.limits.accounts[event.limit], HeldAccount(event.limit, event.label, event.until)
        row = accounts.place(held)
        if row >= 0:
            accounts.set_raised(row, mask)
    return ms.Done()


EFFECTS: Final[dict[type, Any]] = {
    journal.Opened: _opened,
    journal.Asked: _asked,
    journal.Told: _told,
    journal.Billed: _billed,
    journal.Earned: _earned,
    journal.Cancelled: _cancelled,
    journal.Refused: _refused,
    journal.Extended: _extended,
    journal.Expired: _expired,
    journal.Dropped: _dropped,
    journal.Granted: _granted,
    journal.Charged: _charged,
    journal.Renewed: _renewed,
    journal.ArmAdded: _arm_added,
    journal.ArmOffered: _arm_offered,
    journal.Observed: _observed,
    journal.Studied: _studied,
    journal.StateChanged: _state_changed,
    journal.ClockSet: _clock_set,
    journal.Revised: _revised,
    journal.Crossed: _crossed,
}
