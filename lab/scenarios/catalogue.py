"""All scenarios by name."""

from __future__ import annotations

from typing import Final

from lab.scenarios import (
    ad_auction,
    ad_pacing,
    call_centre,
    cloud_regions,
    coupons,
    demand_response,
    email_offers,
    inventory,
    llm_answers,
    moderation,
    pricing_stock,
    spot_instances,
)
from lab.scenarios.scenario import CatalogueEntry, Scenario, check_seed

ENTRIES: Final[dict[str, CatalogueEntry]] = {
    "cloud-regions": cloud_regions.ENTRY,
    "coupons": coupons.ENTRY,
    "ad-auction": ad_auction.ENTRY,
    "pricing-stock": pricing_stock.ENTRY,
    "call-centre": call_centre.ENTRY,
    "llm-answers": llm_answers.ENTRY,
    "moderation": moderation.ENTRY,
    "ad-pacing": ad_pacing.ENTRY,
    "inventory": inventory.ENTRY,
    "spot-instances": spot_instances.ENTRY,
    "demand-response": demand_response.ENTRY,
    "email-offers": email_offers.ENTRY,
}


def make(name: str, seed: int, final: bool = False) -> Scenario:
    """Make a scenario; seeds from 1000 on are refused unless ``final``."""
    if name not in ENTRIES:
        raise ValueError(f"expected a scenario among {', '.join(ENTRIES)}, got {name!r}.")
    return ENTRIES[name].make(check_seed(seed, final))
