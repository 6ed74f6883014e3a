"""``driftsack proxy``: an endpoint for language models that spends the budgets of campaigns."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer

from driftsack.cli.console import messages, plain_errors
from driftsack.cli.extras import service_extra


def proxy(
    config: Annotated[Path, typer.Argument(help="A TOML file with the campaign, the upstreams and their prices.")],
    campaign: Annotated[
        str | None, typer.Option(help="Print settings of this campaign that fit the proxy, and do not start it.")
    ] = None,
    budget: Annotated[str, typer.Option(help="The budget of the printed campaign, in dollars.")] = "20",
    requests: Annotated[int, typer.Option(min=1, help="The number of requests that the budget is for.")] = 10_000,
) -> None:
    """Forward requests to language models, and let campaigns choose the model of each.

    The endpoint speaks the protocols of OpenAI and Anthropic, streaming and tools included, towards its callers and
    towards the upstreams. Before a request is sent, its maximum cost is reserved; afterwards it is charged by the usage
    that the upstream reports. Callers send their driftsack key as the API key, and "driftsack" as the model.

    Example: driftsack proxy proxy.toml --campaign chat --budget 20 --requests 10000 > chat.toml
    Example: driftsack proxy proxy.toml
    """
    with plain_errors(), service_extra():
        from driftsack.service.gateways.proxy.campaign_settings import campaign_settings, campaign_toml
        from driftsack.service.gateways.proxy.server import serve_proxy
        from driftsack.service.gateways.proxy.settings import read_settings

        settings = read_settings(config)
        if campaign is None:
            serve_proxy(settings, lambda address: messages.print(f"listening on {address}"))
            return
        typer.echo(campaign_toml(campaign_settings(settings, campaign, dollars(budget), requests)))


def dollars(given: str) -> Decimal:
    """Return an amount in dollars."""
    from driftsack.core.errors import SettingError

    try:
        found = Decimal(given)
    except ArithmeticError:
        found = Decimal(0)
    if not (found.is_finite() and found > 0):
        raise SettingError(f"budget must be a positive number of dollars, got {given!r:.40}.")
    return found
