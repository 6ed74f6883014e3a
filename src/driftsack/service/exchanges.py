"""Exchanges: many outcomes and many requests at once, refused as a whole before anything is changed, or carried out."""

from __future__ import annotations

from driftsack.service import journal, plans, views
from driftsack.service import messages as ms
from driftsack.service.campaign import Caller, Campaign, Now, common
from driftsack.service.refusals import Refusal


def exchange(campaign: Campaign, many: ms.Exchange, now: Now, caller: Caller) -> ms.Exchanged:
    """Tell many outcomes and ask for many decisions.

    Args:
        campaign: The campaign.
        many: The outcomes, and how many decisions are wanted.
        now: The time.
        caller: Who sent them.

    Returns:
        The answers; an outcome that is refused has a problem of its own.

    Raises:
        Refusal: No decision can be made as it is asked for, or the key was used with another body. Nothing was changed.
    """
    campaign.pass_time(now)
    again = campaign.seen(caller) is not None
    askers = [caller._replace(key=f"{caller.key}#{k}") if caller.key else caller for k in range(many.ask)]
    known = [campaign.seen(each) is not None for each in askers]
    new = 0 if again else known.count(False)
    terms = many.terms or ms.Ask()
    if new and campaign.book.state not in ("paused", "watching"):
        plans.checked_terms(campaign, terms, new - _settled_by(campaign, many, now, new))
    told = []
    for outcome in many.tells:
        fresh = not again and caller.key not in campaign.book.keys  # the first one that happens keeps the key
        told.append(_tell(campaign, outcome, now, caller if fresh else Caller(who=caller.who)))
    decisions = [
        campaign.handle(terms, now, each) if found or not again else plans.skipped("budget")  # its reason is not kept
        for each, found in zip(askers, known, strict=True)
    ]
    return ms.Exchanged(told, decisions)


def _tell(campaign: Campaign, outcome: ms.TellOne, now: Now, caller: Caller) -> ms.ToldOne:
    try:
        return ms.ToldOne(settled=campaign.handle(outcome, now, caller, outcome.decision))
    except Refusal as refusal:
        return ms.ToldOne(problem=views.problem(refusal))


def _settled_by(campaign: Campaign, many: ms.Exchange, now: Now, new: int) -> int:
    """How many pending decisions the outcomes will settle; 0 if there is room without that."""
    if campaign.book.pending + new <= plans.MOST_PENDING:
        return 0
    settled: set[int] = set()
    for outcome in many.tells:
        record = campaign.book.open.get(outcome.decision)
        try:
            planned = plans.PLANS[ms.TellOne](campaign, outcome, common(now, Caller()), outcome.decision)
        except Refusal:
            continue
        if isinstance(planned, journal.Told) and record is not None and record.kind == "pending":
            settled.add(outcome.decision)
    return len(settled)
