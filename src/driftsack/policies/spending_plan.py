r"""A spending plan: any policy, paced to a given curve instead of an even one.

The curve :math:`P_j(t) \in [0, 1]` is the share of budget j that may be spent by the end of round t; the even pace of
all other policies is :math:`P_j(t) = t/T`. In round t the base is told that it may use, on average,

.. math:: b_{t,j} = B_j\, (P_j(t) - P_j(t-1)) \quad \text{("fixed")} \qquad \text{or} \qquad
          \frac{B_j P_j(T) - \text{spent}_j}{P_j(T) - P_j(t-1)}\, (P_j(t) - P_j(t-1)) \quad \text{("remaining")},

which replaces the base's own budget rule. Policies that plan with a rate (the LP ones, ``DualDescent``) follow it.
Those that do not are held back: a round is skipped when some resource's spending is ahead of its curve by more than
``slack`` of its budget. The base is asked all the same, so that its windows and clocks go on.

*Guarantee*: none of its own. The regret of even pacing contains :math:`W_1 + \bar q W_2`, the price of not knowing when
to spend (Theorem 1); the right curve removes it, a wrong one adds to it. A round costs the base's and O(d).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.checks import at_least_zero, floats, frozen, one_of
from driftsack.core.decision import SKIP
from driftsack.core.errors import SettingError
from driftsack.core.problem import Problem
from driftsack.game.ledger import Ledger
from driftsack.numerics.compiled import kernel
from driftsack.policies.naive_ucb import NaiveUCB
from driftsack.policies.nesting import check_base
from driftsack.policies.policy import STUCK, Policy
from driftsack.policies.policy import choose as choose_base
from driftsack.policies.policy import learn as learn_base
from driftsack.policies.sliding_window_ucb import BUDGET_RULES

Curve = tuple[float, ...] | tuple[tuple[float, ...], ...]


class State(NamedTuple):
    """All that changes as the learner plays."""

    base: Any  # the base's state
    curve: Floats  # (d, n + 1) shares at n + 1 evenly spaced times, from 0 to the horizon; read-only
    rate: Floats  # (d,) today's
    horizon: int
    remaining: bool
    slack: float


@kernel
def choose(state: State, ledger: Ledger, t: int, rng: Generator, mix: Floats, prices: Floats) -> int:
    """What the base does at today's rate, unless spending is ahead of the curve."""
    ahead = False
    for j in range(ledger.budget.size):
        before = allowed(state.curve, j, t / state.horizon)
        after = allowed(state.curve, j, (t + 1) / state.horizon)
        end = state.curve[j, state.curve.shape[1] - 1]
        budget, spent = ledger.budget[j], ledger.spent[j]
        state.rate[j] = budget * (after - before)
        if state.remaining and end > before:
            state.rate[j] = max(budget * end - spent, 0.0) * (after - before) / (end - before)
        ahead |= spent > budget * (after + state.slack)
    today = Ledger(ledger.budget, ledger.limit, ledger.spent, ledger.carry, state.rate)
    arm: int = choose_base(state.base, today, t, rng, mix, prices)  # held back or not: its windows and clocks go on
    if arm == STUCK or not ahead:
        return arm
    mix[:] = 0.0
    prices[:] = 0.0
    return SKIP


@kernel
def allowed(curve: Floats, j: int, time: float) -> float:
    """P_j at a share ``time`` of the horizon, straight between the given points."""
    place = time * (curve.shape[1] - 1)
    k = min(int(place), curve.shape[1] - 2)
    return float(curve[j, k] + (place - k) * (curve[j, k + 1] - curve[j, k]))


@kernel
def learn(state: State, t: int, arm: int, chance: float, reward: float, costs: Floats) -> None:
    """Tell the base."""
    learn_base(state.base, t, arm, chance, reward, costs)


def is_nested(value: Any) -> bool:
    """Whether numbers come in rows; rows of different lengths do, and are for ``floats`` to refuse."""
    try:
        return np.ndim(value) > 1
    except ValueError:
        return True


@dataclass(frozen=True)
class SpendingPlan(Policy):
    """Recipe: the ``base`` policy and the ``curve``: shares of the budget at evenly spaced times, from 0 at the start.

    One curve for every resource, or a tuple of one for each. ``budget_rule`` as above. :meth:`by_period` builds the
    curve from amounts, such as the traffic of each hour.

    >>> plan = SpendingPlan.by_period(NaiveUCB(scale=0.1), [1, 5, 4])
    >>> plan.curve
    (0.0, 0.1, 0.6, 1.0)
    """

    base: Policy = field(default_factory=lambda: NaiveUCB(scale=0.1))
    curve: Curve = (0.0, 1.0)
    budget_rule: str = "remaining"
    slack: float = 0.01

    def __post_init__(self) -> None:
        check_base(self.base)
        if any(isinstance(policy, SpendingPlan) for policy in _nested(self.base)):
            raise SettingError("base must not have a spending plan of its own: give one curve, to the outermost.")
        one_of(self.budget_rule, "budget_rule", BUDGET_RULES)
        object.__setattr__(self, "slack", at_least_zero(self.slack, "slack"))
        nested = is_nested(self.curve)
        points = floats(self.curve, "curve", (None, None) if nested else (None,))
        rows = np.atleast_2d(points)
        if rows.shape[1] < 2 or rows[:, 0].any() or (np.diff(rows) < 0).any() or (rows > 1).any():  # noqa: PLR2004
            raise SettingError(
                "curve must begin with 0, never fall and not exceed 1, such as (0.0, 0.2, 1.0), "
                f"got {self.curve!r:.80}."
            )
        plain = tuple(map(tuple, rows.tolist())) if nested else tuple(points.tolist())
        object.__setattr__(self, "curve", plain)

    @classmethod
    def by_period(
        cls, base: Policy, amounts: npt.ArrayLike, budget_rule: str = "remaining", slack: float = 0.01
    ) -> SpendingPlan:
        """Spend in proportion to ``amounts (n,)`` of n equal periods; ``(n, d)`` has a column for each resource."""
        nested = is_nested(amounts)
        parts = floats(amounts, "amounts", (None, None) if nested else (None,))
        if parts.size == 0 or (parts < 0).any() or (parts.sum(axis=0) <= 0).any():
            raise SettingError(f"amounts must be 0 or more and not all 0, got {amounts!r:.80}.")
        shares = np.vstack([np.zeros((1, *parts.shape[1:])), np.cumsum(parts, axis=0)]) if nested else np.cumsum(parts)
        curve = shares / shares[-1]
        plain: Curve = tuple(map(tuple, curve.T.tolist())) if nested else (0.0, *curve.tolist())
        return cls(base, plain, budget_rule, slack)

    @property
    def forgets(self) -> bool | None:
        """As the base does."""
        return self.base.forgets

    def new_state(self, problem: Problem) -> State:
        """The base's first state, with its own budget rule out of the way."""
        rows = np.atleast_2d(np.asarray(self.curve))
        if len(rows) not in (1, problem.resources):
            raise SettingError(f"curve must be one, or one for each of {problem.resources} resources, got {len(rows)}.")
        return State(
            base=_unpaced(self.base).new_state(problem),
            curve=frozen(np.tile(rows, (problem.resources // len(rows), 1))),
            rate=problem.rate.copy(),
            horizon=problem.horizon,
            remaining=self.budget_rule == "remaining",
            slack=self.slack,
        )


def _nested(policy: Policy) -> Iterator[Policy]:
    """The policy and those within it."""
    yield policy
    for setting in dataclasses.fields(policy):
        inner = getattr(policy, setting.name)
        if isinstance(inner, Policy):
            yield from _nested(inner)


def _unpaced(policy: Policy) -> Policy:
    """The same policy with every budget rule in it ``"fixed"``: the ledger's rate is the pace."""
    changed: dict[str, Any] = {}
    for setting in dataclasses.fields(policy):
        value = getattr(policy, setting.name)
        if setting.name == "budget_rule":
            changed[setting.name] = "fixed"
        elif isinstance(value, Policy):
            changed[setting.name] = _unpaced(value)
    return dataclasses.replace(policy, **changed)
