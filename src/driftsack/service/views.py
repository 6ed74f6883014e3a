"""What a campaign shows: decisions, budgets, arms and the campaign itself as messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftsack.core.decision import SKIP
from driftsack.service import messages as ms
from driftsack.service.amounts import text_of
from driftsack.service.book import Record
from driftsack.service.refusals import Refusal

if TYPE_CHECKING:
    from driftsack.service.campaign import Campaign


def problem(refusal: Refusal) -> ms.Problem:
    """A refusal as a problem document."""
    return ms.Problem(f"urn:driftsack:{refusal.kind}", refusal.title, refusal.status, refusal.detail)


def amounts(campaign: Campaign, units: list[int]) -> ms.Texts:
    """Grid units as decimal text, by resource."""
    rows = zip(campaign.resources, units, campaign.exponents, strict=True)
    return {name: text_of(amount, k) for name, amount, k in rows}


def arm_name(campaign: Campaign, arm: int) -> str | None:
    """The name of an arm; None for a skipped request."""
    return None if arm == SKIP else campaign.problem.arm_names[arm]


def decided(campaign: Campaign, number: int, record: Record) -> ms.Decided:
    """The answer to the request for a decision."""
    if record.arm == SKIP:
        return ms.Decided(number, None, True, "policy", record.probability, {}, 0)
    arm, reserved = arm_name(campaign, record.arm), amounts(campaign, record.reserved)
    return ms.Decided(number, arm, False, None, record.probability, reserved, record.lease)


def charged(campaign: Campaign, record: Record) -> list[int]:
    """(d,) what a decision is charged with, in grid units."""
    if record.kind in ("told", "cancelled"):
        return campaign.units(record.costs)
    return record.reserved if record.kind in ("expired", "dropped") else [0] * len(campaign.exponents)


def settled(campaign: Campaign, number: int, record: Record) -> ms.Settled:
    """The answer to what was done to a decision."""
    units = charged(campaign, record)
    beyond = [0] * len(units)
    if record.kind in ("told", "cancelled"):
        beyond = [max(cost - kept, 0) for cost, kept in zip(units, record.reserved, strict=True)]
    return ms.Settled(number, record.kind, amounts(campaign, units), amounts(campaign, beyond), record.late)  # type: ignore[arg-type]


def decision(campaign: Campaign, number: int, record: Record) -> ms.DecisionView:
    """A decision as it is now."""
    left = max(record.until - campaign.book.tick, 0) // 1000 if record.kind == "pending" else 0
    reserved = record.reserved or [0] * len(campaign.exponents)
    return ms.DecisionView(
        decision=number,
        state=record.kind,  # type: ignore[arg-type]
        arm=arm_name(campaign, record.arm),
        probability=record.probability,
        reserved=amounts(campaign, reserved),
        reward=record.reward,
        charged=amounts(campaign, charged(campaign, record)),
        lease=left,
    )


def budgets(campaign: Campaign) -> ms.Budgets:
    """The budgets of every season that is not over, or still has decisions that may be told."""
    found = []
    for season, account in campaign.book.accounts.items():
        for j, (name, k) in enumerate(zip(campaign.resources, campaign.exponents, strict=True)):
            now = season == campaign.book.season and campaign.prices is not None
            found.append(
                ms.BudgetView(
                    season=season,
                    resource=name,
                    granted=text_of(account.granted[j], k),
                    reserved=text_of(account.reserved[j], k),
                    spent=text_of(account.spent[j], k),
                    overrun=text_of(account.overrun[j], k),
                    remaining=text_of(account.free(j), k),
                    price=campaign.prices[j] if now and campaign.prices is not None else None,
                )
            )
    return ms.Budgets(found, next_refill(campaign))


def next_refill(campaign: Campaign) -> int | None:
    """When the budgets begin again, in milliseconds since 1970; None for never."""
    return None if campaign.book.state in ("draining", "closed") else campaign.book.following


def arms(campaign: Campaign) -> ms.Arms:
    """The arms."""
    retired = set(campaign.book.retired)
    rows = enumerate(campaign.problem.arm_names)
    return ms.Arms([ms.ArmView(name, k not in retired, amounts(campaign, campaign.worst[k])) for k, name in rows])


def campaign_view(campaign: Campaign, name: str) -> ms.CampaignView:
    """The campaign."""
    book = campaign.book
    return ms.CampaignView(
        name=name,
        state=book.state,  # type: ignore[arg-type]
        events=book.seq,
        decisions=book.number,
        pending=book.pending,
        told=book.told,
        expired=book.expired,
        overruns=book.overruns,
        reward=book.reward,
        divergences=book.divergences,
        observed=book.observed,
        config=campaign.config,
        next_refill=next_refill(campaign),
    )
