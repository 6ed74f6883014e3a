"""Views: decisions, budgets, arms and the campaign itself as messages of the API."""

from __future__ import annotations

from typing import Any

from driftsack.core.decision import SKIP
from driftsack.service.domain import journal
from driftsack.service.domain import messages as ms
from driftsack.service.domain.amounts import text_of
from driftsack.service.domain.book import Record
from driftsack.service.domain.calendar import SECOND
from driftsack.service.domain.refusals import Refusal
from driftsack.service.domain.state import CampaignState


def problem(refusal: Refusal) -> ms.ProblemDetails:
    """A refusal as problem details (RFC 9457)."""
    kind = f"urn:driftsack:{refusal.kind}"
    return ms.ProblemDetails(kind, refusal.title, refusal.status, refusal.detail, None, refusal.pointer)


def amounts(state: CampaignState, units: list[int]) -> ms.Texts:
    """Grid units as decimal strings, by resource."""
    rows = zip(state.resources, units, state.exponents, strict=True)
    return {name: text_of(amount, k) for name, amount, k in rows}


def arm_name(state: CampaignState, arm: int) -> str | None:
    """The name of an arm; None for a skipped request."""
    return None if arm == SKIP else state.problem.arm_names[arm]


def decided(state: CampaignState, number: int, record: Record) -> ms.Decided:
    """The answer to a request for a decision."""
    if record.arm == SKIP:
        return ms.Decided(number, None, True, "policy", record.probability, {}, 0)
    arm, reserved = arm_name(state, record.arm), amounts(state, record.reserved)
    return ms.Decided(number, arm, False, None, record.probability, reserved, record.lease, record.token)


def skipped(reason: Any) -> ms.Decided:
    """The answer to a request for which nothing was decided."""
    return ms.Decided(None, None, True, reason, 0.0, {}, 0)


def charged(state: CampaignState, record: Record) -> list[int]:
    """(d,) the charge of a decision in grid units."""
    if record.billed or record.kind in ("told", "cancelled"):
        return state.units(record.costs)
    return record.reserved if record.kind in ("expired", "dropped") else [0] * len(state.exponents)


def settled(state: CampaignState, number: int, record: Record) -> ms.Settled:
    """The answer to an outcome, a cancellation, an extension or a forfeit."""
    units = charged(state, record)
    beyond = [0] * len(units)
    if record.billed or record.kind in ("told", "cancelled"):
        beyond = [max(cost - kept, 0) for cost, kept in zip(units, record.reserved, strict=True)]
    return ms.Settled(number, record.kind, amounts(state, units), amounts(state, beyond), record.late)  # type: ignore[arg-type]


def decision(state: CampaignState, number: int, record: Record) -> ms.DecisionView:
    """The current state of a decision."""
    left = max(record.until - state.book.tick, 0) // SECOND if record.kind == "pending" else 0
    reserved = record.reserved or [0] * len(state.exponents)
    return ms.DecisionView(
        decision=number,
        state=record.kind,  # type: ignore[arg-type]
        arm=arm_name(state, record.arm),
        probability=record.probability,
        reserved=amounts(state, reserved),
        reward=record.reward,
        charged=amounts(state, charged(state, record)),
        seconds_left=left,
        at=record.at or None,
    )


def absurd(state: CampaignState, number: int, costs: list[float]) -> Refusal:
    """The answer to an outcome that costs more than the campaign accepts."""
    rows = zip(state.resources, costs, state.cost_limit, strict=True)
    beyond = ", ".join(f"{cost:g} {name} (at most {limit:g})" for name, cost, limit in rows if cost > limit)
    return Refusal(
        "absurd-cost",
        f"the outcome of decision {number} costs {beyond}, which is refused as absurd, and an alarm is raised; the "
        "decision stays open, send the corrected costs. A campaign with such costs needs a larger refuse_above.",
    )


def budgets(state: CampaignState) -> ms.Budgets:
    """The budgets of the current season, and of past ones with decisions that may still be told."""
    found = []
    for season, account in state.book.accounts.items():
        for j, (name, k) in enumerate(zip(state.resources, state.exponents, strict=True)):
            now = season == state.book.season and state.prices is not None
            found.append(
                ms.BudgetView(
                    season=season,
                    resource=name,
                    granted=text_of(account.granted[j], k),
                    reserved=text_of(account.reserved[j], k),
                    spent=text_of(account.spent[j], k),
                    overrun=text_of(account.overrun[j], k),
                    remaining=text_of(account.free(j), k),
                    price=state.prices[j] if now and state.prices is not None else None,
                )
            )
    return ms.Budgets(found, next_refill(state))


def label_accounts(state: CampaignState, by: str, label: str, at: int) -> ms.AccountsOfLabel:
    """The accounts of a label at a time, in the order of the limits.

    Raises:
        Refusal: No limit is by labels of this name.
    """
    found = []
    for number, rule in enumerate(state.limits.rules):
        if rule.limit.by == by:
            found += [_label_account(state, number, k, label, at) for k in range(len(rule.resources))]
    if not found:
        known = sorted({rule.limit.by for rule in state.limits.rules})
        raise Refusal("not-found", f"the limits of the campaign are by {known}, got {by!r:.60}.")
    return ms.AccountsOfLabel(found)


def _label_account(state: CampaignState, number: int, place: int, label: str, at: int) -> ms.LabelAccount:
    """The account of a label for one of the resources of a limit."""
    rule, accounts = state.limits.rules[number], state.limits.accounts[number]
    row, j = accounts.find(label, at), rule.resources[place]
    readings = (accounts.spent, accounts.reserved, accounts.overrun)
    spent, reserved, overrun = (0 if row < 0 else read(row, place) for read in readings)
    amount, k = rule.amounts[place], state.exponents[j]
    return ms.LabelAccount(
        by=rule.limit.by,
        label=label,
        every=rule.limit.every,
        resource=list(state.resources)[j],
        amount=text_of(amount, k),
        spent=text_of(spent, k),
        reserved=text_of(reserved, k),
        left=text_of(amount - spent - reserved, k),
        overrun=text_of(overrun, k),
        resets=accounts.until(row) if row >= 0 and rule.limit.every else None,
    )


def alert(state: CampaignState, name: str, number: int, event: journal.Crossed) -> ms.Alert:
    """An event about a threshold as a message; ``number`` is that of the event."""
    k = state.exponents[event.resource]
    found = ms.Alert(
        type="threshold.crossed",
        id=f"{name}-{number}-{event.at}",
        campaign=name,
        at=event.at,
        percent=event.percent,
        resource=list(state.resources)[event.resource],
        spent=text_of(event.spent, k),
        amount=text_of(event.amount, k),
    )
    if event.limit is not None:
        limit = state.limits.rules[event.limit].limit
        found.by, found.label, found.every = limit.by, event.label, limit.every
        found.resets = event.until if limit.every else None
    return found


def next_refill(state: CampaignState) -> int | None:
    """The time of the next refill, in milliseconds since 1970; None for never."""
    return None if state.book.state in ("draining", "closed") else state.book.following


def arms(state: CampaignState) -> ms.Arms:
    """The arms, in the order in which they were added."""
    retired = set(state.book.retired)
    rows = enumerate(state.problem.arm_names)
    return ms.Arms([ms.ArmView(name, k not in retired, amounts(state, state.worst[k])) for k, name in rows])


def campaign_view(state: CampaignState, name: str) -> ms.CampaignView:
    """The campaign with its settings and counts."""
    book = state.book
    return ms.CampaignView(
        name=name,
        state=book.state,  # type: ignore[arg-type]
        events=book.seq,
        decisions=book.number,
        pending=book.pending,
        told=book.told,
        expired=book.expired,
        overruns=book.overruns,
        refused=book.refused,
        reward=book.reward,
        divergences=book.divergences,
        observed=book.observed,
        config=state.config,
        next_refill=next_refill(state),
    )
