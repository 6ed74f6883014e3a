"""``Operations``: calls that read or change a campaign and its arms and budgets, with a key of a larger scope."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from typing import Any, Literal

from driftsack.client.messages import Amount, amounts_text
from driftsack.client.transport import Transport

State = Literal["active", "paused", "closed"]


class Operations:
    """Reads and changes a campaign; answers are those of the API, as plain data.

    Every call raises :class:`ServiceUnavailableError` if the service cannot be reached, and :class:`ServiceError` if it
    refuses the request, or the key has not the scope that the call needs.

    Args:
        transport: Sends the requests.
        campaign: The name of the campaign.
    """

    def __init__(self, transport: Transport, campaign: str) -> None:
        self._transport, self._name = transport, campaign

    def create(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Open the campaign; the key needs the scope ``admin``. Repeating the call changes nothing.

        Args:
            config: The settings, as in the API; amounts are decimal strings.
        """
        outside = self._transport.outside()
        try:
            found: dict[str, Any] = outside.post("", {"name": self._name, "config": config})
        finally:
            outside.disconnect()
        return found

    def describe(self) -> dict[str, Any]:
        """Return the campaign, with its state and its settings; the key needs the scope ``read``."""
        found: dict[str, Any] = self._transport.get("")
        return found

    def budgets(self) -> list[dict[str, Any]]:
        """Return the budget of each resource in each season; the key needs the scope ``read``."""
        found: list[dict[str, Any]] = self._transport.get("/budgets")["budgets"]
        return found

    def arms(self) -> list[dict[str, Any]]:
        """Return the arms, in the order in which they were added; the key needs the scope ``read``."""
        found: list[dict[str, Any]] = self._transport.get("/arms")["arms"]
        return found

    def set_state(self, state: State) -> dict[str, Any]:
        """Activate, pause or close the campaign, and return it; the key needs the scope ``operate``.

        Args:
            state: ``"active"``, which also switches on a campaign that watches, ``"paused"`` or ``"closed"``.
        """
        found: dict[str, Any] = self._transport.patch("", {"state": state})
        return found

    def revise(self, rounds_left: int) -> dict[str, Any]:
        """Change the expected number of remaining requests, and return the campaign; needs the scope ``operate``.

        Args:
            rounds_left: The expected number of remaining requests.
        """
        found: dict[str, Any] = self._transport.patch("", {"rounds_left": rounds_left})
        return found

    def grant(self, amounts: Mapping[str, Amount]) -> None:
        """Add to the budgets of the season, once; the key needs the scope ``operate``.

        Args:
            amounts: The amount to add to each resource; others get nothing.
        """
        self._transport.post("/grants", {"amounts": amounts_text(amounts, "amounts")})

    def charge(self, amounts: Mapping[str, Amount]) -> None:
        """Add spending outside the campaign to that of the season, once; the key needs the scope ``operate``.

        Args:
            amounts: The amount that was spent of each resource; others are charged nothing.
        """
        self._transport.post("/charges", {"amounts": amounts_text(amounts, "amounts")})

    def add_arm(self, name: str, cost_max: Mapping[str, Amount] | None = None) -> None:
        """Add an arm; the key needs the scope ``operate``.

        Args:
            name: Its name.
            cost_max: Its maximum cost in each resource; None for those of the campaign.
        """
        body = {} if cost_max is None else {"cost_max": amounts_text(cost_max, "cost_max")}
        self._transport.post("/arms", {"name": name, **body})

    def retire_arm(self, name: str) -> None:
        """Stop offering an arm; its decisions can still be told. The key needs the scope ``operate``.

        Args:
            name: Its name.
        """
        self._offer(name, offered=False)

    def reopen_arm(self, name: str) -> None:
        """Offer an arm again that was retired; the key needs the scope ``operate``.

        Args:
            name: Its name.
        """
        self._offer(name, offered=True)

    def _offer(self, name: str, offered: bool) -> None:
        self._transport.patch(f"/arms/{urllib.parse.quote(name, safe='')}", {"offered": offered})
