"""Small campaigns for the tests of the service, with amounts that are easy to add up."""

from __future__ import annotations

from typing import Any

from driftsack.service.domain import messages as ms
from driftsack.service.domain.campaign import NOBODY, Caller, Campaign, Now
from driftsack.service.domain.config import Config, Refill

START = 1_700_000_000_000


def small(**settings: Any) -> Config:
    """Settings with two arms, a budget for ten reservations, and a policy that does not learn."""
    given: dict[str, Any] = {
        "arms": ["small", "large"],
        "budget": {"usd": "1"},
        "cost_max": {"usd": "0.1"},
        "horizon": 10**6,
        "policy": {"policy": "UniformRandom"},
        "lease": 60,
        "late": 600,
    }
    return Config(**{**given, **settings})


def monthly(**settings: Any) -> Config:
    """Settings with monthly budgets (Berlin time), to which half of the rest is carried over."""
    return small(refill=Refill("month", "Europe/Berlin", "0.5"), **settings)


class Desk:
    """A campaign with a clock that the test sets.

    Args:
        config: The settings; ``small()`` if omitted.
    """

    def __init__(self, config: Config | None = None) -> None:
        self.now = Now(START, 0)
        self.campaign = Campaign.open(config or small(), self.now)

    def do(self, command: Any, number: int = 0, caller: Caller = NOBODY) -> Any:
        """Handle a command at the current time."""
        return self.campaign.handle(command, self.now, caller, number)

    def ask(self, **terms: Any) -> Any:
        """Ask until the policy does not skip."""
        while True:
            found = self.do(ms.Ask(**terms))
            if found.reason != "policy":
                return found

    def tell(self, number: int, cost: str = "0.02", reward: float = 1.0) -> Any:
        """Report an outcome."""
        return self.do(ms.Tell(reward, {"usd": cost}), number)

    def wait(self, seconds: int) -> None:
        """Advance the clock."""
        self.now = Now(self.now.at + 1000 * seconds, self.now.tick + 1000 * seconds)
        self.campaign.pass_time(self.now)

    def budget(self, season: int | None = None) -> Any:
        """The budget of a season; the current one if omitted."""
        from driftsack.service.domain.views import budgets

        wanted = self.campaign.book.season if season is None else season
        return next(row for row in budgets(self.campaign).budgets if row.season == wanted)
