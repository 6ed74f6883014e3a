"""A server of the Model Context Protocol (extra ``mcp``): a campaign as tools of an assistant.

The tools say what is left of the budgets and why a decision was made, ask for a decision, and tell its outcome. They
use the service over HTTP with one key, whose scopes limit them: ``read`` for the first two, ``decide`` for the others.
"""

from __future__ import annotations

import functools
import http.client
import json
import urllib.parse
from collections.abc import Callable
from typing import Annotated, Any, Final

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from driftsack.client import Client, RemoteDecision, ServiceError, ServiceUnavailableError
from driftsack.core.errors import DriftsackError, SettingError
from driftsack.core.release import __version__
from driftsack.service.gateways.decision_id import DecisionId

TIMEOUT: Final = 10.0  # seconds
INSTRUCTIONS: Final = (
    "Budgets that are never exceeded. Before an action that costs money, call ask and use the arm in its answer unless "
    "it is skipped; afterwards call tell with the reward and the costs."
)
SHOWN: Final = ("name", "state", "decisions", "pending", "told", "reward")  # of a campaign
Arms = Annotated[list[str] | None, Field(description="The arms that may be used; all if omitted.")]
Amounts = Annotated[
    dict[str, str] | None,
    Field(description='Decimal strings by resource, such as {"usd": "0.02"}.'),
]
Number = Annotated[int, Field(ge=1, description="The number of the decision.")]
Id = Annotated[str, Field(description="The id that ask returned.")]
Context = Annotated[dict[str, Any] | None, Field(description="The features of the request, if the campaign has some.")]


class CampaignTools:
    """The tools of a campaign.

    Args:
        url: The address of ``driftsack serve``.
        key: An API key.
        campaign: The campaign.
    """

    def __init__(self, url: str, key: str, campaign: str) -> None:
        self._client = Client(url, key, campaign)  # checks the address
        self._parts, self._key, self._campaign = urllib.parse.urlsplit(url), key, campaign

    def what_is_left(self) -> dict[str, Any]:
        """Return what is left of each budget, what is spent and reserved, and how many decisions were made."""
        campaign, budgets = self._read(""), self._read("/budgets")
        return {**{name: campaign[name] for name in SHOWN if name in campaign}, **budgets}

    def why(self, decision: Number) -> dict[str, Any]:
        """Explain a decision: its arms, their probabilities and estimates, the budgets, and the prices of the plan."""
        return self._read(f"/decisions/{decision}/why")

    def ask(self, arms: Arms = None, caps: Amounts = None, context: Context = None) -> dict[str, Any]:
        """Ask which arm to use now. Its maximum cost is reserved until tell is called, or the lease ends.

        A skipped request must not be carried out: the reason says whether a budget is exhausted or saved for later.
        """
        found = self._client.ask(arms, caps, context=context)
        if found.skipped or found.number is None:
            return {"skipped": True, "reason": found.reason}
        name = str(DecisionId(self._campaign, found.number, found.token))
        return {"skipped": False, "id": name, "arm": found.name, "reserved": dict(found.reserved)}

    def tell(
        self,
        id: Id,  # noqa: A002
        reward: Annotated[
            float | None, Field(description="How good the outcome was; omit it if not known yet.")
        ] = None,
        costs: Amounts = None,
    ) -> dict[str, Any]:
        """Tell the outcome of a decision: its reward, its costs, or both. Telling the same again changes nothing."""
        known = DecisionId.read(id)
        if known is None or known.campaign != self._campaign:
            raise SettingError(f"id must be one that ask returned for the campaign {self._campaign}, got {id!r:.60}.")
        self._client.tell(RemoteDecision(known.number, "", skipped=False, token=known.token), reward, costs)
        return {"told": True}

    def _read(self, path: str) -> dict[str, Any]:
        """Return the answer of the service to a GET request."""
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(self._parts.hostname or "", self._parts.port, timeout=TIMEOUT)
        target = f"{self._parts.path.rstrip('/')}/v1/campaigns/{urllib.parse.quote(self._campaign, safe='')}{path}"
        try:
            connection.request("GET", target, headers={"Authorization": f"Bearer {self._key}"})
            response = connection.getresponse()
            found = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ServiceUnavailableError(503, "unavailable", f"no answer: {error}") from error
        finally:
            connection.close()
        if response.status != 200:
            raise ServiceError(response.status, str(found.get("type", "")), str(found.get("detail", "")))
        return dict(found)

    def close(self) -> None:
        """Close the connections; decisions stay open until they are told, or their leases end."""
        self._client.disconnect()


def mcp_server(tools: CampaignTools) -> MCPServer[Any]:
    """Return a server with the tools of a campaign."""
    server: MCPServer[Any] = MCPServer(
        "driftsack",
        version=__version__,
        instructions=INSTRUCTIONS,
        log_level="WARNING",
    )
    for tool in (tools.what_is_left, tools.why, tools.ask, tools.tell):
        server.tool()(explained(tool))
    return server


def explained(tool: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Return a tool whose errors are shown to the assistant; the package hides all others."""

    @functools.wraps(tool)
    def called(**arguments: Any) -> dict[str, Any]:
        try:
            return tool(**arguments)
        except DriftsackError as error:
            raise ToolError(str(error)) from error

    return called
