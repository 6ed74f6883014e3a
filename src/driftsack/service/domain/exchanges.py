"""Exchanges: many outcomes and many requests in one call, which is refused as a whole before anything is changed."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final

import msgspec

from driftsack.service.domain import journal, plans, views
from driftsack.service.domain import messages as ms
from driftsack.service.domain.campaign import Caller, Campaign, Now, common
from driftsack.service.domain.contexts import encoded
from driftsack.service.domain.refusals import Refusal

MADE_IMPOSSIBLE: Final = ("campaign-closed", "too-many-pending", "too-many-labels")
"""Refusals of decisions that other requests may cause while an exchange is being carried out."""


def exchange(campaign: Campaign, many: ms.Exchange, now: Now, caller: Caller) -> ms.Exchanged:
    """Tell many outcomes and ask for many decisions at once; see :func:`exchange_in_steps`."""
    steps = exchange_in_steps(campaign, many, lambda: now, caller)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]


def exchange_in_steps(
    campaign: Campaign, many: ms.Exchange, clock: Callable[[], Now], caller: Caller
) -> Generator[None, None, ms.Exchanged]:
    """Tell many outcomes and ask for many decisions, in steps between which other commands may be carried out.

    Args:
        many: The outcomes, and the number of decisions to make.
        clock: Returns the time.
        caller: The sender.

    Returns:
        The answers; an outcome that is refused has its own problem. Decisions that became impossible between two steps
        are skipped.

    Raises:
        Refusal: The decisions cannot be made, or the key was used with another body. Nothing was changed.
    """
    now = clock()
    # Recognise a repeated exchange by its key: each decision has a key of its own, derived from it.
    campaign.pass_time(now)
    again = campaign.seen(caller) is not None
    askers = [caller._replace(key=f"{caller.key}#{k}") if caller.key else caller for k in range(many.ask)]
    known = [campaign.seen(each) is not None for each in askers]
    new = 0 if again else known.count(False)

    # Refuse the whole exchange if the new decisions are not possible.
    terms = requests_of(many)
    state = campaign.book.state
    checked = bool(new) and state not in ("paused", "watching")
    if checked:
        plans.checked_terms(campaign, terms[0], new - _settled_by(campaign, many, now, new))
        for k, request in enumerate(terms if many.contexts or many.labels else terms[:1]):
            check_context(campaign, request, f"/contexts/{k}" if many.contexts else "/terms/context")
            campaign.limits.held(request.labels or {}, now.at)
            yield  # a context may be large
        campaign.seen(caller)  # the key may have been used for another request meanwhile

    # Carry out the new parts, and repeat the original answers to the others.
    told = []
    for outcome in many.tells:
        fresh = not again and caller.key not in campaign.book.keys  # the first one that happens keeps the key
        told.append(tell_one(campaign, outcome, clock(), caller if fresh else Caller(who=caller.who)))
        yield
    decisions = []
    for each, found, request in zip(askers, known, terms, strict=True):
        # A repeated exchange does not know why it skipped a request.
        if found or checked:
            made = ask_one(campaign, request, clock(), each)
        else:  # nor was a request checked of a campaign that was resumed meanwhile
            made = views.skipped("budget" if again else state)
        decisions.append(made)
        yield
    return ms.Exchanged(told, decisions)


def requests_of(many: ms.Exchange) -> list[ms.Ask]:
    """Return the requests for decisions in an exchange.

    Raises:
        Refusal: There is not one context, or not one set of labels, for each; or there are two.
    """
    terms = many.terms or ms.Ask()
    requests = [terms] * many.ask
    for plural, single, shared in (("contexts", "context", "one context"), ("labels", "labels", "the same labels")):
        given = getattr(many, plural)
        if given is None:
            continue
        if len(given) != many.ask:
            raise Refusal.invalid(f"{plural} must have one entry for each of {many.ask} requests, got {len(given)}.")
        if getattr(terms, single) is not None:
            raise Refusal.invalid(f"give either {plural}, or {shared} for all requests in terms.")
        pairs = zip(requests, given, strict=True)
        requests = [msgspec.structs.replace(request, **{single: one}) for request, one in pairs]
    return requests


def check_context(campaign: Campaign, request: ms.Ask, place: str) -> None:
    """Refuse a request of an exchange whose context is not valid; ``place`` is the context's JSON pointer."""
    try:
        encoded(campaign, request.context)
    except Refusal as refusal:
        named = Refusal.invalid(f"{place.lstrip('/')}: {refusal.detail}")
        named.pointer = (refusal.pointer or "").replace("/context", place, 1)
        raise named from refusal


def ask_one(campaign: Campaign, terms: ms.Ask, now: Now, caller: Caller) -> ms.Decided:
    """Ask for one decision; it is skipped if another request has made decisions impossible meanwhile."""
    try:
        decided: ms.Decided = campaign.handle(terms, now, caller)
    except Refusal as refusal:
        if refusal.kind not in MADE_IMPOSSIBLE:
            raise
        return views.skipped("paused")
    return decided


def tell_one(campaign: Campaign, outcome: ms.TellOne, now: Now, caller: Caller) -> ms.ToldOne:
    """Tell one outcome; a refusal becomes its problem."""
    try:
        return ms.ToldOne(settled=campaign.handle(outcome, now, caller, outcome.decision))
    except Refusal as refusal:
        return ms.ToldOne(problem=views.problem(refusal))


def _settled_by(campaign: Campaign, many: ms.Exchange, now: Now, new: int) -> int:
    """The number of pending decisions that the outcomes will settle; 0 if there is room without them."""
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
