"""``driftsack mcp``: a campaign as tools of an assistant."""

from __future__ import annotations

from typing import Annotated

import typer

from driftsack.cli.campaign import ADDRESS
from driftsack.cli.console import plain_errors
from driftsack.core.errors import MissingExtraError, SettingError


def mcp(
    campaign: Annotated[str, typer.Argument(envvar="DRIFTSACK_CAMPAIGN", help="The campaign.")],
    url: Annotated[str, typer.Option(envvar="DRIFTSACK_URL", help="The address of the service.")] = ADDRESS,
    key: Annotated[str, typer.Option(envvar="DRIFTSACK_KEY", help="A key with the scopes decide and read.")] = "",
) -> None:
    """Serve a campaign to an assistant as tools of the Model Context Protocol, over standard input and output.

    The tools are what_is_left, why, ask and tell. The scopes of the key limit what they may do.

    Example: driftsack mcp chat
    """
    with plain_errors():
        if not key:
            raise SettingError(
                "a key with the scopes decide and read is needed; pass it as --key, or set DRIFTSACK_KEY."
            )
        try:
            from driftsack.service.gateways.mcp_server import CampaignTools, mcp_server
        except ModuleNotFoundError as error:
            raise MissingExtraError(f"{error.name} is not installed: pip install 'driftsack[mcp]'") from error
        tools = CampaignTools(url, key, campaign)
        try:
            mcp_server(tools).run("stdio")
        finally:
            tools.close()
