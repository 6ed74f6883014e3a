"""What each route does."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

from driftsack.service import explain, export, openings, views
from driftsack.service import messages as ms
from driftsack.service.campaign import Campaign, Now
from driftsack.service.dashboard.apprentice import apprentice
from driftsack.service.http.context import Context
from driftsack.service.http.keyring import is_last_admin, key_for
from driftsack.service.metrics import exposition
from driftsack.service.owned import Owned
from driftsack.service.refusals import Refusal
from driftsack.service.store.interface import LAST_ENTRY, KeyRow

PAGE: Final = 100
MOST_ENTRIES: Final = 1000  # of the audit
LONGEST_NUMBER: Final = 15  # digits


async def list_campaigns(context: Context) -> ms.Campaigns:
    """The campaigns that the key may see."""
    names = {row.name for row in await context.store(context.keeper.store.campaigns)}
    limited = context.principal.campaigns
    return ms.Campaigns(sorted(names if limited is None else names & set(limited)))


async def create_campaign(context: Context) -> ms.CampaignView:
    """Open a campaign; the one that exists if it has the same settings."""
    body: ms.NewCampaign = context.body
    caller, store = context.caller(), context.keeper.store
    if caller.key:
        await context.store(openings.check_key, store, caller.key, caller.digest)
    try:
        campaign = await context.keeper.create(body.name, body.config, caller)
    except Refusal as refusal:
        if refusal.kind != "name-taken" or not await context.store(openings.is_same, store, body.name, body.config):
            raise
        now = Now(context.keeper.clock.at(), 0)  # another replica owns it: as it was opened
        return views.campaign_view(await context.store(Campaign.open, body.config, now), body.name)
    await context.audit()
    return views.campaign_view(campaign, body.name)


async def read_campaign(context: Context) -> ms.CampaignView:
    """The campaign."""
    return views.campaign_view((await context.owned()).campaign, context.campaign)


async def change(context: Context) -> Any:
    """Carry out what the body says, and note it."""
    answer = await context.submit()
    await context.audit()
    return answer


async def patch_campaign(context: Context) -> ms.CampaignView:
    """Change the campaign."""
    await change(context)
    return await read_campaign(context)


def ask(context: Context) -> tuple[Owned, ms.Decided]:
    """Ask for a decision."""
    return context.carry_out()


def settle(context: Context) -> tuple[Owned, ms.Settled]:
    """Tell, cancel, extend or forfeit a decision."""
    return context.carry_out(context.number())


async def exchange(context: Context) -> ms.Exchanged:
    """Tell many outcomes and ask for many decisions."""
    return await context.keeper.exchange(context.campaign, context.body, context.caller())


def observe(context: Context) -> tuple[Owned, ms.Noted]:
    """Say what the user's own rule did."""
    return context.carry_out()


async def read_apprentice(context: Context) -> ms.Apprentice:
    """What the campaign would have chosen and earned while it watched."""
    await context.owned()
    track, _ = await context.service.watcher.track(context.campaign)
    return apprentice(track)


async def list_decisions(context: Context) -> ms.Page:
    """Every decision, oldest first, a page at a time; old ones are read from the journal."""
    after = read_cursor(context, "after", 0)
    campaign = (await context.owned()).campaign
    book, most = campaign.book, campaign.book.number
    numbers = range(after + 1, min(after + PAGE, most) + 1)
    known = {number: record for number in numbers if (record := book.open.get(number) or book.settled.get(number))}
    shown = {number: views.decision(campaign, number, record) for number, record in known.items()}
    missing = [number for number in numbers if number not in known]
    if missing:
        found = await context.keeper.recall(context.campaign, missing)
        shown |= {number: views.decision(campaign, number, record) for number, record in found.items()}
        numbers = range(after + 1, next((number for number in missing if number not in found), numbers[-1] + 1))
    decisions = [shown[number] for number in numbers]
    return ms.Page(decisions, write_cursor(numbers[-1], "after") if numbers and numbers[-1] < most else None)


def write_cursor(number: int, word: str) -> str:
    """A place in a list, as clients see it: after or before a number."""
    return base64.urlsafe_b64encode(f"{word} {number}".encode()).decode()


def read_cursor(context: Context, word: str, start: int) -> int:
    """The number that :func:`write_cursor` wrote with the same word; where the list begins without a cursor."""
    text = context.query.get("cursor", "")
    if not text:
        return start
    try:
        found, number = base64.urlsafe_b64decode(text.encode()).decode().split()
        if found == word and number.isascii() and number.isdigit() and len(number) <= LONGEST_NUMBER:
            return int(number)
    except (ValueError, binascii.Error, UnicodeError):
        pass
    raise Refusal.invalid(f"cursor must be one that a page of this list returned, got {text!r:.60}.")


async def read_decision(context: Context) -> ms.DecisionView:
    """A decision as it is now."""
    campaign, number = (await context.owned()).campaign, context.number()
    try:
        record = campaign.record(number)
    except Refusal as refusal:
        if refusal.kind != "forgotten":
            raise
        record = (await context.keeper.recall(context.campaign, [number]))[number]
    return views.decision(campaign, number, record)


async def why(context: Context) -> explain.Why:
    """How a decision was made, recomputed from the journal."""
    number = context.number()
    await context.owned()
    return await context.read_journal(explain.why, context.campaign, number)  # type: ignore[no-any-return]


async def read_budgets(context: Context) -> ms.Budgets:
    """The budgets."""
    return views.budgets((await context.owned()).campaign)


async def read_arms(context: Context) -> ms.Arms:
    """The arms."""
    return views.arms((await context.owned()).campaign)


async def offer_arm(context: Context) -> Any:
    """Retire an arm, or offer it again."""
    arm = context.keeper.find(context.campaign).campaign.arm_number(context.item)
    answer = await context.submit(arm)
    await context.audit()
    return answer


async def export_log(context: Context) -> str:
    """The journal as a log that ``driftsack advise`` reads."""
    await context.owned()
    return await context.read_journal(export.as_csv, context.campaign)  # type: ignore[no-any-return]


def key_view(row: KeyRow) -> ms.KeyView:
    """A key without its secret."""
    campaigns = None if row.campaigns is None else list(row.campaigns)
    return ms.KeyView(row.prefix, list(row.scopes), campaigns, row.expires, row.note)  # type: ignore[arg-type]


async def list_keys(context: Context) -> ms.Keys:
    """The keys, without their secrets."""
    return ms.Keys([key_view(row) for row in await context.store(context.keeper.store.keys)])


async def create_key(context: Context) -> ms.CreatedKey:
    """Create a key, which is shown once."""
    key, row = key_for(context.body)
    await context.store(context.keeper.store.add_key, row)
    await context.store(context.service.keyring.load)
    await context.audit()
    view = key_view(row)
    return ms.CreatedKey(view.prefix, view.scopes, view.campaigns, view.expires, view.note, key)


async def remove_key(context: Context) -> ms.Done:
    """Remove a key, which stops working at once; the last administrator's key is kept."""
    if is_last_admin(await context.store(context.keeper.store.keys), context.item):
        raise Refusal(
            "last-admin-key",
            "no other key could create keys; create another administrator's key first, or use driftsack keys revoke.",
        )
    if not await context.store(context.keeper.store.remove_key, context.item):
        raise Refusal("not-found", f"there is no key {context.item!r:.40}.")
    await context.store(context.service.keyring.load)
    await context.audit()
    return ms.Done()


async def read_audit(context: Context) -> ms.Audit:
    """The changes by operators and administrators, newest first, a page at a time."""
    text = context.query.get("limit", str(PAGE))
    if not (text.isascii() and text.isdigit() and len(text) < PAGE and 1 <= int(text) <= MOST_ENTRIES):
        raise Refusal.invalid(f"limit must lie in [1, {MOST_ENTRIES}], got {text!r:.40}.")
    before = read_cursor(context, "before", LAST_ENTRY)
    rows = await context.store(context.keeper.store.audit, int(text) + 1, before)
    shown = rows[: int(text)]
    cursor = write_cursor(shown[-1][0], "before") if len(rows) > len(shown) else None
    return ms.Audit([ms.AuditEntry(*entry) for _, entry in shown], cursor)


async def metrics(context: Context) -> str:
    """Counters and gauges in the text format of Prometheus."""
    keeper, watcher = context.keeper, context.service.watcher
    tracks = {name: (await watcher.track(name, goes=2))[0] for name in list(keeper.owned)}
    return exposition(keeper, tracks)
