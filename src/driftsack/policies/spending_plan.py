r"""A spending plan: paces any policy along a given curve instead of evenly.

The curve :math:`P_j(t) \in [0, 1]` is the share of budget j that may be spent by the end of round t; the even pace
is :math:`P_j(t) = t/T`. In round t the base plans with the rate

.. math:: b_{t,j} = B_j\, (P_j(t) - P_j(t-1)) \quad \text{("fixed")} \qquad \text{or} \qquad
          \frac{B_j P_j(T) - \text{spent}_j}{P_j(T) - P_j(t-1)}\, (P_j(t) - P_j(t-1)) \quad \text{("remaining")},

which replaces the base's own budget rule. Policies that plan with a rate (the LP policies, ``DualDescent``) follow it.
The others are only throttled: a round is skipped when the spending of some resource is ahead of its curve by more
than ``slack`` of its budget. The base still chooses in such a round, so that its windows advance. A policy with
its own spending plan is rejected as a base.

*Guarantee* (theorem N4 of docs/theory-new.md; sliding-window UCB as the base, one curve for all resources,
``"fixed"``): against the best mixes that spend at most :math:`b_t` in every round, the regret is that of Theorem 1
without its W terms and with the smallest :math:`b_t` in place of b. So the right curve removes
:math:`W_1 + \bar q W_2`, the cost of not knowing when to spend, and a wrong one increases it. With other bases there is
none. A round costs as much as in the base, plus O(d).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.checks import LARGEST_SETTING, at_least_zero, floats, frozen
from driftsack.core.decision import SKIP
from driftsack.core.errors import SettingError
from driftsack.core.names import checked_names, default_resource_names, positions
from driftsack.core.problem import Problem
from driftsack.game.protocol import STUCK
from driftsack.game.protocol import choose as choose_base
from driftsack.game.protocol import learn as learn_base
from driftsack.game.records import Outcome, Round, with_rate
from driftsack.numerics.compiled import kernel
from driftsack.policies.naive_ucb import NaiveUCB
from driftsack.policies.parts.estimates import Estimates
from driftsack.policies.parts.memory import check_base
from driftsack.policies.parts.pacing import REMAINING, BudgetRule, check_budget_rule
from driftsack.policies.policy import Policy

Row = tuple[float, ...]
Curve = Row | tuple[Row, ...]
NamedCurves = Mapping[str, Row] | tuple[tuple[str, Row], ...]


class State(NamedTuple):
    """The base and the curve that paces it."""

    base: Any  # the base's state
    curve: Floats  # (d, n + 1) shares at n + 1 evenly spaced times, from 0 to the horizon; read-only
    rate: Floats  # (d,) of the last round chosen
    horizon: int
    remaining: bool
    slack: float


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Let the base choose at the rate of the curve, or skip if spending is ahead of the curve."""
    ledger, t = round.ledger, max(state.horizon - round.rounds_left, 0.0)
    ahead = False
    for j in range(ledger.budget.size):
        # The slope of the curve in this round, corrected by the remaining budget.
        before = allowed(state.curve, j, t / state.horizon)
        after = allowed(state.curve, j, (t + 1) / state.horizon)
        end = state.curve[j, state.curve.shape[1] - 1]
        budget, spent = ledger.budget[j], ledger.spent[j]
        state.rate[j] = budget * (after - before)
        if state.remaining and end > before:
            state.rate[j] = max(budget * end - spent, 0.0) * (after - before) / (end - before)
        ahead |= spent > budget * (after + state.slack)
    # The base also chooses in a skipped round, so that its windows advance.
    arm: int = choose_base(state.base, with_rate(round, state.rate), rng, mix, prices)
    if arm == STUCK or not ahead or round.must:
        return arm
    mix[:] = 0.0
    prices[:] = 0.0
    return SKIP


@kernel
def allowed(curve: Floats, j: int, time: float) -> float:
    """Return P_j at a share ``time`` of the horizon, by linear interpolation."""
    place = time * (curve.shape[1] - 1)
    k = min(int(place), curve.shape[1] - 2)
    return float(curve[j, k] + (place - k) * (curve[j, k + 1] - curve[j, k]))


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Pass the outcome to the base."""
    learn_base(state.base, outcome)


def is_nested(value: Any) -> bool:
    """Return whether numbers are given in rows, even rows of different lengths, which ``floats`` rejects."""
    try:
        return np.ndim(value) > 1
    except ValueError:
        return True


def curve_by_period(amounts: npt.ArrayLike) -> Curve:
    """Return the curve that spends in proportion to the amounts (n,) or (n, d) of equal periods."""
    nested = is_nested(amounts)
    parts = floats(amounts, "amounts", (None, None) if nested else (None,))
    if parts.size == 0 or (parts < 0).any() or (parts.sum(axis=0) <= 0).any():
        raise SettingError(f"amounts must be 0 or more and not all 0, got {amounts!r:.80}.")
    shares = np.vstack([np.zeros((1, *parts.shape[1:])), np.cumsum(parts, axis=0)]) if nested else np.cumsum(parts)
    curve = shares / shares[-1]
    return tuple(map(tuple, curve.T.tolist())) if nested else (0.0, *curve.tolist())


def without_names(curve: Any) -> tuple[tuple[str, ...], Any]:
    """Split curves given by name, in a mapping or in pairs, into names and curves; no names if there are none."""
    pairs = list(curve.items()) if isinstance(curve, Mapping) else curve
    named = isinstance(pairs, (list, tuple)) and any(
        isinstance(pair, (list, tuple)) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs
    )
    if not (named or isinstance(curve, Mapping)):
        return (), curve
    return checked_names([pair[0] for pair in pairs], "curve"), [pair[1] for pair in pairs]


@dataclass(frozen=True)
class SpendingPlan(Policy):
    """Paces a base policy along a curve.

    Attributes:
        base: The policy that is paced.
        curve: The shares of the budget that may be spent by evenly spaced times, starting with 0: one curve for all
            resources, a tuple with one for each, or a mapping from the names of the resources to their curves, which
            is stored as pairs. :meth:`by_period` builds it from amounts such as hourly traffic.
        budget_rule: ``"fixed"`` uses the slope of the curve; ``"remaining"`` corrects it by the remaining
            budget.
        slack: The share of a budget by which spending may be ahead of the curve before rounds are skipped.

    >>> plan = SpendingPlan.by_period(NaiveUCB(scale=0.1), [1, 5, 4])
    >>> plan.curve
    (0.0, 0.1, 0.6, 1.0)
    """

    base: Policy = field(default_factory=lambda: NaiveUCB(scale=0.1))
    curve: Curve | NamedCurves = (0.0, 1.0)
    budget_rule: BudgetRule = "remaining"
    slack: float = 0.01

    def __post_init__(self) -> None:
        check_base(self.base)
        self.base.follow_rate()  # raises if the base cannot follow a rate
        check_budget_rule(self)
        object.__setattr__(self, "slack", at_least_zero(self.slack, "slack", LARGEST_SETTING))
        names, curves = without_names(self.curve)
        nested = is_nested(curves)
        points = floats(curves, "curve", (None, None) if nested else (None,))
        rows = np.atleast_2d(points)
        if rows.shape[1] < 2 or rows[:, 0].any() or (np.diff(rows) < 0).any() or (rows > 1).any():
            raise SettingError(
                "curve must begin with 0, never decrease and not exceed 1, such as (0.0, 0.2, 1.0), "
                f"got {self.curve!r:.80}."
            )
        plain: Any = tuple(map(tuple, rows.tolist())) if nested else tuple(points.tolist())
        object.__setattr__(self, "curve", tuple(zip(names, plain, strict=True)) if names else plain)

    @classmethod
    def by_period(
        cls, base: Policy, amounts: npt.ArrayLike, budget_rule: BudgetRule = "remaining", slack: float = 0.01
    ) -> SpendingPlan:
        """Build a plan that spends in proportion to the amounts of equal periods.

        Args:
            base: The policy that is paced.
            amounts: (n,) one amount per period, or (n, d) with a column for each resource.
            budget_rule: See the class.
            slack: See the class.
        """
        return cls(base, curve_by_period(amounts), budget_rule, slack)

    @property
    def known_costs(self) -> bool:
        """As for the base."""
        return self.base.known_costs

    @property
    def forgets(self) -> bool | None:
        """As for the base."""
        return self.base.forgets

    def follow_rate(self) -> Policy:
        """Raise: this policy has its own spending plan."""
        raise SettingError(
            "base must not have its own spending plan, but SpendingPlan has one; give one curve, to the outermost "
            "policy."
        )

    def announce(self, state: State, arm: int, cost_factors: Floats) -> None:
        """Pass an announced change of an arm's costs on to the base.

        Args:
            state: The state; changed in place.
            arm: The arm whose costs change.
            cost_factors: (d,) the factor on its future costs in each resource.
        """
        self.base.announce(state.base, arm, cost_factors)

    def new_state(self, problem: Problem) -> State:
        """Return the initial state of the base, with the base's own pacing turned off."""
        names, curves = without_names(self.curve)
        rows = np.atleast_2d(np.asarray(curves))
        if names:
            default = default_resource_names(len(names))
            what = "the resources of the curve and of the problem"
            rows = rows[positions(names, problem.resource_names, default, what)]
        if len(rows) not in (1, problem.resources):
            raise SettingError(
                f"curve must be one curve, or one for each of {problem.resources} resources, got {len(rows)} curves."
            )
        return State(
            base=self.base.follow_rate().new_state(problem),
            curve=frozen(np.tile(rows, (problem.resources // len(rows), 1))),
            rate=problem.rate.copy(),
            horizon=problem.horizon,
            remaining=self.budget_rule == REMAINING,
            slack=self.slack,
        )

    def estimates(self, state: State) -> Estimates | None:
        """The estimates of the base."""
        return self.base.estimates(state.base)
