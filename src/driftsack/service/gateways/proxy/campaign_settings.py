"""``campaign_settings``: a campaign that fits the proxy: its arms, what they cost at most, and its features."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Final

from driftsack.core.errors import SettingError
from driftsack.service.gateways.prompts.features import PROMPT, PROMPT_FEATURES
from driftsack.service.gateways.proxy.prices import Prices
from driftsack.service.gateways.proxy.settings import ProxySettings, Upstream
from driftsack.service.gateways.proxy.worst_case import Demand, worst_case

LONGEST_PROMPT: Final = 16_000  # bytes: a longer one gets a shorter answer, or none


def campaign_settings(settings: ProxySettings, name: str, budget: Decimal, requests: int) -> dict[str, Any]:
    """Return the settings of a campaign, as ``driftsack campaign create`` reads them.

    The maximum cost of an arm is that of a prompt of 16,000 bytes and the longest answer. The cheapest arm becomes the
    fallback if the budget covers all requests at its maximum cost.

    Args:
        settings: The settings of the proxy.
        name: The campaign.
        budget: The budget in dollars.
        requests: The number of requests that it is for.

    Raises:
        SettingError: The proxy has no such campaign, or it measures seconds, which need a budget of their own.
    """
    route = next((route for route in settings.routes() if route.name == name), None)
    if route is None:
        raise SettingError(f"the campaigns of the proxy are {[r.name for r in settings.routes()]}, got {name!r:.60}.")
    if settings.time:
        raise SettingError(f"the campaign also needs a budget of {settings.time}; write its settings by hand.")
    most = {upstream.arm: most_of(upstream) for upstream in settings.upstream if route.has(upstream.arm)}
    cheapest = min(most, key=lambda arm: most[arm])
    found: dict[str, Any] = {
        "name": name,
        "arms": list(most),
        "horizon": requests,
        "budget": {settings.money: f"{budget:f}"},
        "cost_max": {settings.money: {arm: f"{dollars:f}" for arm, dollars in most.items()}},
    }
    if most[cheapest] * requests <= budget:
        found["fallback"] = cheapest
    if settings.features_of(route) == PROMPT:
        found["features"] = PROMPT_FEATURES
    return found


def most_of(upstream: Upstream) -> Decimal:
    """Return the maximum cost of a request at an upstream, at any of its prices."""
    given = [upstream.price] if isinstance(upstream.price, Prices) else upstream.price or []
    demand = Demand(size=LONGEST_PROMPT, limit=None)
    return max(worst_case(demand, prices, upstream.max_tokens) for prices in given)


def campaign_toml(found: dict[str, Any]) -> str:
    """Return the settings of a campaign in TOML.

    >>> print(campaign_toml({"name": "chat", "horizon": 100, "budget": {"usd": "20"}}))
    name = "chat"
    horizon = 100
    <BLANKLINE>
    [budget]
    usd = "20"
    """
    plain = [f"{key} = {json.dumps(value)}" for key, value in found.items() if not isinstance(value, dict)]
    tables = [table(key, value) for key, value in found.items() if isinstance(value, dict)]
    return "\n\n".join(["\n".join(plain), *tables])


def table(name: str, values: dict[str, Any]) -> str:
    """Return a table in TOML; tables in it are inline."""
    return "\n".join([f"[{name}]", *(f"{quoted(key)} = {inline(value)}" for key, value in values.items())])


def inline(value: Any) -> str:
    """Return a value in one line."""
    if not isinstance(value, dict):
        return json.dumps(value)
    return "{ " + ", ".join(f"{quoted(key)} = {inline(one)}" for key, one in value.items()) + " }"


def quoted(key: str) -> str:
    """Return a key, in quotes unless it needs none."""
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else json.dumps(key)
