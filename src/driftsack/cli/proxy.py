"""``driftsack proxy``: an endpoint for language models that spends the budgets of campaigns."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from driftsack.cli.console import messages, plain_errors
from driftsack.cli.extras import service_extra


def proxy(
    config: Annotated[Path, typer.Argument(help="A TOML file with the campaign, the upstreams and their prices.")],
) -> None:
    """Forward requests to language models, and let campaigns choose the model of each.

    The endpoint speaks the protocols of OpenAI and Anthropic, streaming and tools included, towards its callers and
    towards the upstreams. Before a request is sent, its maximum cost is reserved; afterwards it is charged by the usage
    that the upstream reports. Callers send their driftsack key as the API key, and "driftsack" as the model.

    Example: driftsack proxy proxy.toml
    """
    with plain_errors(), service_extra():
        from driftsack.service.gateways.proxy.server import serve_proxy
        from driftsack.service.gateways.proxy.settings import read_settings

        settings = read_settings(config)
        serve_proxy(settings, lambda address: messages.print(f"listening on {address}"))
