"""How campaigns leave the memory of their owner: closed ones that nobody uses, and those that are deleted.

Contexts that are kept as they were sent leave the store when their time is over.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from driftsack.service.domain.refusals import Refusal
from driftsack.service.runtime.recovery import encode_config, snapshot_of
from driftsack.service.store.interface import AuditRow, CampaignRow, StoreError

if TYPE_CHECKING:
    from driftsack.service.runtime.keeper import Keeper

log = logging.getLogger("driftsack.service")


async def delete(keeper: Keeper, name: str, entry: AuditRow) -> None:
    """Delete a campaign that is closed or damaged, with its journal.

    Raises:
        Refusal: The campaign is not closed, or the store is unavailable.
    """
    if name not in keeper.damaged:
        owned = keeper.find(name)
        await keeper.wait_until_durable(owned)
        if owned.campaign.book.state != "closed":
            raise Refusal("not-closed", f"the campaign is {owned.campaign.book.state}; close it before you delete it.")
        keeper.check_present(owned)
        del keeper.owned[name]
    keeper.arriving.add(name)  # so that it is neither looked up nor claimed meanwhile
    try:
        await keeper.read_journal(keeper.store.delete, name, entry)
    except StoreError as error:
        keeper.damaged[name] = f"the deletion of {name} was interrupted; delete it again."
        raise Refusal.unavailable(str(error)) from error
    finally:
        keeper.arriving.discard(name)
    keeper.damaged.pop(name, None)


async def forget_old_contexts(keeper: Keeper) -> None:
    """Delete the contexts of all campaigns whose time is over."""
    try:
        await keeper.call_in(keeper.threads.rebuilds, keeper.store.forget_old_contexts, keeper.clock.at())
    except StoreError as error:
        log.warning("old contexts were not deleted: %s", error)


async def sweep(keeper: Keeper) -> None:
    """Remove closed campaigns from memory that no request has used since the last sweep."""
    for owned in [owned for owned in keeper.owned.values() if owned.is_over]:
        if owned.used:
            owned.used = False
            continue
        if owned.snapshot_at < owned.durable:
            snapshot = snapshot_of(owned.campaign, owned.chain)
            try:
                await keeper.call_in(keeper.threads.rebuilds, keeper.store.save_snapshot, owned.name, snapshot)
            except StoreError as error:
                log.warning("a snapshot of %s was not saved: %s", owned.name, error)
                return
            owned.snapshot_at = snapshot.seq
        if keeper.owned.get(owned.name) is owned and owned.is_over and not owned.used:
            del keeper.owned[owned.name]
            config = encode_config(owned.campaign.config)
            place = (keeper.owner.name, keeper.owner.url)
            row = CampaignRow(owned.name, config, owned.epoch, owned.durable, owned.chain, *place)
            keeper.asleep[owned.name] = row
