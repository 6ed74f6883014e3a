"""The list of decisions: by page, with filters; old ones are read from the journal."""

from __future__ import annotations

from typing import Final, NamedTuple, get_args

from driftsack.service.domain import messages as ms
from driftsack.service.domain import views
from driftsack.service.domain.book import Record
from driftsack.service.domain.campaign import Campaign
from driftsack.service.domain.refusals import Refusal
from driftsack.service.web.api.context import Context
from driftsack.service.web.api.paging import LARGEST_PAGE, read_cursor, read_limit, write_cursor

STATES: Final = get_args(ms.Kind)


class Filter(NamedTuple):
    """Which decisions are listed.

    Attributes:
        state: The state of the decisions; empty for all.
        arm: The number of their arm; None for all.
    """

    state: str
    arm: int | None

    def passes(self, record: Record) -> bool:
        """Return whether a decision is listed."""
        return self.state in ("", record.kind) and self.arm in (None, record.arm)


def read_filter(context: Context, campaign: Campaign) -> Filter:
    """Return the filter in the query of a request."""
    state, arm = context.query.get("state", ""), context.query.get("arm", "")
    if state and state not in STATES:
        raise Refusal.invalid(f"state must be one of {', '.join(STATES)}, got {state!r:.40}.")
    return Filter(state, campaign.arm_number(arm) if arm else None)


async def list_decisions(context: Context) -> ms.Page:
    """List decisions, oldest first, by page."""
    limit, after = read_limit(context), read_cursor(context, "after", 0)
    campaign = (await context.owned()).campaign
    chosen = read_filter(context, campaign)
    # Archived decisions are not listed.
    base = await context.store(context.keeper.store.base, context.campaign)
    after, most = after if base is None else max(after, base.oldest - 1), campaign.book.number
    # Look at as many decisions as a page has; with a filter at as many as the largest page has.
    size = limit if chosen == Filter("", None) else LARGEST_PAGE
    numbers = range(after + 1, min(after + size, most) + 1)
    found, last = await _records(context, campaign, numbers)
    shown = [number for number in numbers if number <= last and number in found and chosen.passes(found[number])]
    if len(shown) > limit:
        shown, last = shown[:limit], shown[limit - 1]
    decisions = [views.decision(campaign, number, found[number]) for number in shown]
    return ms.Page(decisions, write_cursor(last, "after") if numbers and last < most else None)


async def _records(context: Context, campaign: Campaign, numbers: range) -> tuple[dict[int, Record], int]:
    """Return decisions by number, and the last one before the first that takes too long to find."""
    book = campaign.book
    known = {number: record for number in numbers if (record := book.open.get(number) or book.settled.get(number))}
    others = [number for number in numbers if number not in known]
    if not others:
        return known, numbers[-1] if numbers else 0
    recalled = await context.keeper.recall(context.campaign, others)
    return known | recalled.records, min(recalled.missing, default=numbers[-1] + 1) - 1
