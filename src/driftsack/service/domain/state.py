"""``CampaignState``: the settings, book and learner of a campaign, and what is looked up in them.

Plans, effects and views are functions of this state. ``Campaign`` adds the commands and the events.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from driftsack.core.decision import Decision
from driftsack.core.problem import Problem
from driftsack.game.amounts import cost_units, grid_factors, whole_units
from driftsack.game.ledger import grid_exponents
from driftsack.numerics.compiled import source
from driftsack.policies.learner import Learner
from driftsack.service.domain import journal
from driftsack.service.domain.book import Book, Record
from driftsack.service.domain.calendar import SECOND
from driftsack.service.domain.config import Config
from driftsack.service.domain.features import vector_of
from driftsack.service.domain.leases import Leases
from driftsack.service.domain.limits import Limits
from driftsack.service.domain.refusals import Refusal

SHOWN_ARMS: Final = 10  # in an error message

_exact_units = lru_cache(maxsize=4096)(source(cost_units))


class CampaignState:
    """The state of a campaign.

    Attributes:
        config: The settings.
        book: Everything that the campaign remembers besides its learner.
        leases: The ends of leases and late windows.
        decisions: The learner's open decisions, by its round.
        expired: The number of expired decisions that may still be told.
        blocked: The number of requests, since the campaign is in memory, that were skipped only because the money was
            reserved for pending decisions.
        limits: The limits by label, and their accounts.
        percents: The percentages at which alerts are raised.
        limited: The number of requests that each limit refused, since the campaign is in memory.
        corrections: The number of segments whose recorded amounts were not those of this release's rules.
        prices: (d,) the shadow price of each budget according to the latest decision; None before the first.
        exponents: (d,) the exponent of the grid of each resource.
        factors: (d,) the factors of the grid of each resource, see ``grid_factors``.
        arms: The number of each arm, by name.
        resources: The number of each resource, by name.
        worst: (m, d) the maximum cost of each arm in grid units.
        largest_worst: (d,) the largest of them.
        cost_limit: (d,) the costs above which outcomes are refused.
    """

    def __init__(self, config: Config, book: Book, learner: Learner) -> None:
        self.config, self.book, self.learner = config, book, learner
        learner.accept_all_costs()  # plans check them; a journal may have costs that this release would refuse
        self.leases = Leases(book, config.late)
        self.decisions: dict[int, Decision] = {d.round: d for d in (*learner.pending, *learner.forfeited)}
        self.expired = sum(record.kind == "expired" for record in book.open.values())
        self.blocked = 0
        self.corrections = 0
        self.prices: list[float] | None = None
        self.exponents = grid_exponents(config.problem())
        self.factors = [grid_factors(k) for k in self.exponents]
        self.set_arms()
        self.limits = Limits(config, self.exponents)
        self.limited = [0] * len(self.limits.rules)
        self.percents = config.percents

    def set_arms(self) -> None:
        """Derive the lookups by arm and resource, at first and when an arm was added."""
        problem = self.problem
        self.arms: dict[str, int] = {name: k for k, name in enumerate(problem.arm_names)}
        self.resources: dict[str, int] = {name: j for j, name in enumerate(problem.resource_names)}
        self.worst: list[list[int]] = [
            [whole_units(most, k, up=True) for most, k in zip(column, self.exponents, strict=True)]
            for column in problem.cost_max_by_arm.T.tolist()
        ]
        self.largest_worst = [max(row) for row in zip(*self.worst, strict=True)]
        self.cost_limit = self.config.cost_limit(problem)

    @property
    def problem(self) -> Problem:
        """The learner's problem, which includes the arms that were added."""
        return self.learner.problem

    def set_learner_account(self) -> None:
        """Let the learner have the budgets and the spending of the book, after a journal recorded other amounts.

        Reservations that the learner does not know, because it would not have made the decision, reduce its budgets.
        """
        book, ledger = self.book, self.learner._engine.ledger  # noqa: SLF001  (only a replay may set amounts)
        unknown = [0] * len(self.exponents)
        for record in book.open.values():
            if record.kind == "pending" and record.season == book.season and record.round not in self.decisions:
                unknown = [a + b for a, b in zip(unknown, record.reserved, strict=True)]
        ledger.granted[:] = [a - b for a, b in zip(book.account.granted, unknown, strict=True)]
        ledger.charged[:] = book.account.spent
        ledger.budget[:] = ledger.granted / ledger.per_cost
        ledger.spent[:] = ledger.charged / ledger.per_cost

    def fits(self, arm: int, caps: list[float | None] | None) -> bool:
        """Whether the budgets cover the maximum cost of an arm."""
        return self.covers(self.most(arm, caps))

    def covers(self, units: list[int]) -> bool:
        """Whether the budgets cover amounts in grid units."""
        account = self.book.account
        for granted, spent, reserved, most in zip(account.granted, account.spent, account.reserved, units, strict=True):
            if most > granted - spent - reserved:
                return False
        return True

    def owns(self, units: list[int]) -> bool:
        """Whether the budgets would cover amounts in grid units if nothing were reserved."""
        account = self.book.account
        rows = zip(account.granted, account.spent, units, strict=True)
        return all(most <= granted - spent for granted, spent, most in rows)

    def most(self, arm: int, caps: list[float | None] | None) -> list[int]:
        """(d,) the maximum cost of an arm in grid units, given the caps of a request."""
        if caps is None:
            return self.worst[arm]
        rows = zip(self.worst[arm], caps, self.exponents, strict=True)
        return [most if cap is None else min(most, whole_units(cap, k, up=True)) for most, cap, k in rows]

    def units(self, costs: list[float]) -> list[int]:
        """(d,) costs in grid units, rounded as the learner rounds them."""
        return [_exact_units(cost, *factors) for cost, factors in zip(costs, self.factors, strict=True)]

    def budget_units(self) -> list[int]:
        """(d,) the budgets of a new season in grid units."""
        return [whole_units(amount, k, up=False) for amount, k in zip(self.problem.budget, self.exponents, strict=True)]

    def named_caps(self, caps: list[float | None] | None) -> dict[str, float] | None:
        """Caps by the name of the resource, as a learner takes them."""
        if caps is None:
            return None
        return {name: cap for name, cap in zip(self.resources, caps, strict=True) if cap is not None} or None

    def open_arms(self, event: journal.Asked) -> list[int] | None:
        """The arms that a request may use: those that it offers, without those that limits closed; None for all."""
        if not event.limited:
            return event.open
        arms = range(self.problem.arms) if event.open is None else event.open
        return [arm for arm in arms if arm not in event.limited]

    def terms(self, event: journal.Asked) -> dict[str, Any]:
        """The terms of a request as a learner takes them, but for the arms that it may use."""
        listed = None
        if event.costs is not None:
            rows = zip(self.resources, event.costs, strict=True)
            listed = {name: self._listed_row(row) for name, row in rows if row is not None}
        return {
            "caps": self.named_caps(event.caps),
            "at": event.at / SECOND if self.problem.period is not None else None,
            "must": event.must,
            "costs": listed,
            "context": None if event.context is None else vector_of(event.context),
        }

    def _listed_row(self, row: list[float | None]) -> dict[str, float]:
        """Listed costs by the name of the arm."""
        return {name: cost for name, cost in zip(self.arms, row, strict=False) if cost is not None}

    def record(self, number: int) -> Record:
        """Return a decision that is in memory.

        Raises:
            Refusal: The decision is too old to be in memory, or was never made.
        """
        found = self.book.open.get(number) or self.book.settled.get(number)
        if found is not None:
            return found
        if 1 <= number <= self.book.number:
            raise Refusal("forgotten", f"decision {number} was settled too long ago to compare.")
        raise Refusal("unknown-decision", f"the campaign has made decisions 1 to {self.book.number}, got {number}.")

    def arm_number(self, name: str) -> int:
        """Return the number of an arm.

        Raises:
            Refusal: There is no arm of this name.
        """
        number = self.arms.get(name)
        if number is None:
            raise Refusal.invalid(f"the arms are {list(self.arms)[:SHOWN_ARMS]}, got {name!r:.60}.")
        return number
