"""The handlers of the routes."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from driftsack.service.domain import messages as ms
from driftsack.service.domain import views
from driftsack.service.domain.campaign import Campaign, Now
from driftsack.service.domain.config import Labels
from driftsack.service.domain.refusals import Refusal
from driftsack.service.projections import explain, export
from driftsack.service.projections.apprentice_report import apprentice
from driftsack.service.runtime import leaving, openings
from driftsack.service.runtime.owned import Owned
from driftsack.service.store.interface import LAST_ENTRY, KeyRow
from driftsack.service.web.api.context import Context
from driftsack.service.web.api.keyring import Principal, is_last_admin, key_for
from driftsack.service.web.api.paging import read_cursor, read_limit, write_cursor

MOST_NAMES: Final = 1000  # campaigns in a page


async def list_campaigns(context: Context) -> ms.Campaigns:
    """List the campaigns that the key may read, a page at a time."""
    limited, after = context.principal.campaigns, context.query.get("after", "")
    found = await context.store(context.keeper.store.names)
    names = [name for name in found if name > after and (limited is None or name in limited)]
    return ms.Campaigns(names[:MOST_NAMES], names[MOST_NAMES - 1] if len(names) > MOST_NAMES else None)


async def create_campaign(context: Context) -> ms.CampaignView:
    """Open a campaign, or return the existing one if its settings are the same."""
    body: ms.NewCampaign = context.body
    config = body.config.completed()
    caller, store = context.caller(), context.keeper.store
    if caller.key:
        await context.store(openings.check_key, store, caller.key, caller.digest)
    try:
        campaign = await context.keeper.create(body.name, config, caller, context.entry())
    except Refusal as refusal:
        if refusal.kind != "name-taken" or not await context.store(openings.is_same, store, body.name, config):
            raise
        now = Now(context.keeper.clock.at(), 0)  # another replica owns it, so show it as it was opened
        return views.campaign_view(await context.store(Campaign.open, config, now), body.name)
    return views.campaign_view(campaign, body.name)


async def read_campaign(context: Context) -> ms.CampaignView:
    """Read a campaign."""
    return views.campaign_view((await context.owned()).campaign, context.campaign)


async def change(context: Context) -> Any:
    """Carry out a change, and add it to the audit."""
    return await context.change()


async def patch_campaign(context: Context) -> ms.CampaignView:
    """Change a campaign."""
    await change(context)
    return await read_campaign(context)


async def delete_campaign(context: Context) -> ms.Done:
    """Delete a campaign that is closed or damaged, with its journal."""
    await leaving.delete(context.keeper, context.campaign, context.entry())
    return ms.Done()


def ask(context: Context) -> tuple[Owned, ms.Decided]:
    """Ask for a decision."""
    if context.principal.labels:
        context.body.labels = context.principal.labelled(context.body.labels)
    return context.carry_out()


def settle(context: Context) -> tuple[Owned, ms.Settled]:
    """Tell, cancel, extend or forfeit a decision."""
    context.check_has_token(context.body, "token")
    return context.carry_out(context.number())


async def exchange(context: Context) -> ms.Exchanged:
    """Tell many outcomes and ask for many decisions."""
    for k, outcome in enumerate(context.body.tells):
        context.check_has_token(outcome, f"tells[{k}].token")
    if context.principal.labels:
        label_exchange(context.body, context.principal)
    return await context.exchange()


def label_exchange(many: ms.Exchange, principal: Principal) -> None:
    """Give the requests of an exchange the labels of its key.

    Raises:
        Refusal: A request has another label of the same name.
    """
    if many.labels is not None:
        many.labels = [principal.labelled(each) or {} for each in many.labels]
    else:
        terms = many.terms or ms.Ask()
        many.terms = msgspec.structs.replace(terms, labels=principal.labelled(terms.labels))


def observe(context: Context) -> tuple[Owned, ms.Noted]:
    """Record what the user's own rule did."""
    return context.carry_out()


async def read_apprentice(context: Context) -> ms.Apprentice:
    """Compare the user's own rule with what the campaign would have chosen and earned."""
    await context.owned()
    track, _ = await context.service.watcher.track(context.campaign)
    return apprentice(track)


async def read_decision(context: Context) -> ms.DecisionView:
    """Read a decision."""
    campaign, number = (await context.owned()).campaign, context.number()
    try:
        record = campaign.record(number)
    except Refusal as refusal:
        if refusal.kind != "forgotten":
            raise
        record = await context.keeper.recall_one(context.campaign, number)
    return views.decision(campaign, number, record)


async def why(context: Context) -> explain.Why:
    """Explain a decision, recomputed from the journal."""
    number = context.number()
    await context.owned()
    return await context.read_journal(explain.why, context.campaign, number)  # type: ignore[no-any-return]


async def forget_contexts(context: Context) -> ms.Done:
    """Delete the contexts that are kept as they were sent, or that of one decision."""
    owned = await context.owned()
    book = owned.campaign.book
    first, last = (context.number(), context.number()) if context.item else (-book.observed, book.number)
    await context.store(context.keeper.store.forget_contexts, context.campaign, first, last, context.entry())
    return ms.Done()


async def read_budgets(context: Context) -> ms.Budgets:
    """Read the budgets."""
    return views.budgets((await context.owned()).campaign)


async def read_label_accounts(context: Context) -> ms.AccountsOfLabel:
    """Read the accounts of a label."""
    by, label = (context.query.get(name, "") for name in ("by", "label"))
    if not by or not label:
        raise Refusal.invalid("the query must have by and label, such as ?by=user&label=ann.")
    try:
        asked = msgspec.convert({by: label}, Labels)
    except msgspec.ValidationError as error:
        raise Refusal.invalid(f"by and label must be the name and the value of a label: {error}.") from error
    context.principal.labelled(asked)
    owned = await context.owned()
    return views.label_accounts(owned.campaign, by, label, owned.now().at)


async def read_arms(context: Context) -> ms.Arms:
    """List the arms."""
    return views.arms((await context.owned()).campaign)


async def offer_arm(context: Context) -> Any:
    """Retire an arm or offer it again."""
    arm = context.keeper.find(context.campaign).campaign.arm_number(context.item)
    return await context.change(arm)


async def export_log(context: Context) -> str:
    """Export the journal as a log for ``driftsack advise``."""
    await context.owned()
    return await context.read_journal(export.as_csv, context.campaign)  # type: ignore[no-any-return]


def key_view(row: KeyRow) -> ms.KeyView:
    """Return a key without its secret."""
    campaigns = None if row.campaigns is None else list(row.campaigns)
    return ms.KeyView(row.prefix, list(row.scopes), campaigns, row.expires, row.note, dict(row.labels))  # type: ignore[arg-type]


async def list_keys(context: Context) -> ms.Keys:
    """List the keys, without their secrets."""
    return ms.Keys([key_view(row) for row in await context.store(context.keeper.store.keys)])


async def create_key(context: Context) -> ms.CreatedKey:
    """Create a key; it is shown only once."""
    key, row = key_for(context.body)
    await context.store(context.keeper.store.add_key, row, context.entry())
    await context.store(context.service.keyring.load)
    view = key_view(row)
    return ms.CreatedKey(view.prefix, view.scopes, view.campaigns, view.expires, view.note, view.labels, key)


async def remove_key(context: Context) -> ms.Done:
    """Remove a key, effective immediately; the last administrator's key cannot be removed."""
    if is_last_admin(await context.store(context.keeper.store.keys), context.item):
        raise Refusal(
            "last-admin-key",
            "no other key could create keys; create another administrator's key first, or use driftsack keys revoke.",
        )
    if not await context.store(context.keeper.store.remove_key, context.item, context.entry()):
        raise Refusal("not-found", f"there is no key {context.item!r:.40}.")
    await context.store(context.service.keyring.load)
    return ms.Done()


async def read_audit(context: Context) -> ms.AuditPage:
    """The changes by operators and administrators, newest first, a page at a time."""
    limit, before = read_limit(context), read_cursor(context, "before", LAST_ENTRY)
    rows = await context.store(context.keeper.store.audit, limit + 1, before)
    shown = rows[:limit]
    cursor = write_cursor(shown[-1][0], "before") if len(rows) > len(shown) else None
    return ms.AuditPage([ms.AuditEntry(*entry) for _, entry in shown], cursor)


async def metrics(context: Context) -> str:
    """Export the metrics in the text format of Prometheus."""
    return await context.service.metrics.text()
