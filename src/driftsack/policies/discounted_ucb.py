r"""Discounted UCB: a discount in place of a window (after Garivier and Moulines 2008), with Algorithm 1's LP.

Before round t an outcome of round s weighs :math:`\rho^{t-s}`, :math:`\rho < 1`: with discounted pulls
:math:`N_i = \sum_{s<t} \rho^{t-s} 1\{i_s = i\}`,

.. math:: \hat\mu_i = \frac{\sum_{s<t} \rho^{t-s} r_s 1\{i_s = i\}}{N_i + 1}, \qquad
          \mathrm{UCB}_i = \hat\mu_i + \sqrt{2 \log(12 m T^3) / (N_i + 1)},

the costs likewise from below, and the mix solves the step LP. A discount of :math:`1 - 1/w` remembers about w rounds.
Every arm's bounds move in every round, so a round costs O(md + d³). The sums shrink, and rounding in them with it. It
forgets smoothly. *No guarantee for budgets is known to us*; without budgets, regret is
:math:`\tilde O(\sqrt{m \Upsilon T})` for :math:`\Upsilon` abrupt changes and the right :math:`\rho`.

Late feedback enters with the weight that its round has by then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import number
from driftsack.core.decision import SKIP
from driftsack.core.errors import OutOfRangeError
from driftsack.core.problem import Problem
from driftsack.game.ledger import Ledger
from driftsack.lp.step import draw_from, new_step_lp
from driftsack.numerics.compiled import kernel
from driftsack.numerics.simplex import OPTIMAL, STALE, Simplex, solve
from driftsack.policies.pacing import pace
from driftsack.policies.policy import STUCK, Policy
from driftsack.policies.sliding_window_ucb import check_optimism
from driftsack.theory.windows import radius_constant


class Settings(NamedTuple):
    """What the kernels need to know of the recipe and the problem."""

    horizon: int
    discount: float  # rho
    reward_radius: float
    cost_radius: float
    clip: bool
    remaining: bool


class State(NamedTuple):
    """All that changes as the learner plays."""

    settings: Settings
    sums: Floats  # (m, 1 + d) discounted outcomes, rewards first
    pulls: Floats  # (m,) discounted pulls
    lp: Simplex
    clock: Ints  # (1,) the latest round chosen, from 0


@kernel
def choose(state: State, ledger: Ledger, t: int, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Discount once a round, solve the LP on optimistic means, draw."""
    if t > state.clock[0]:
        state.clock[0] = t
        for i in range(mix.size):
            discount_arm(state, i)
        state.lp.counts[STALE] = 1
    pace(state.lp, ledger, 1.0, state.settings.horizon - t if state.settings.remaining else 0)
    if solve(state.lp) != OPTIMAL:
        return STUCK
    return draw_from(state.lp, rng, mix, prices)


@kernel
def discount_arm(state: State, i: int) -> None:
    """One round more of distance to all that is known of an arm, and its bounds."""
    settings = state.settings
    state.pulls[i] *= settings.discount
    n = state.pulls[i] + 1.0
    for k in range(state.sums.shape[1]):
        state.sums[i, k] *= settings.discount
        if k == 0:
            upper = state.sums[i, 0] / n + settings.reward_radius / math.sqrt(n)
            state.lp.objective[i] = min(upper, 1.0) if settings.clip else upper
        else:
            lower = state.sums[i, k] / n - settings.cost_radius / math.sqrt(n)
            state.lp.columns[k - 1, i] = max(lower, 0.0) if settings.clip else lower


@kernel
def learn(state: State, t: int, arm: int, chance: float, reward: float, costs: Floats) -> None:  # noqa: ARG001
    """Enter an outcome with the weight that its round has by now."""
    if arm != SKIP:
        weight = state.settings.discount ** (state.clock[0] - t)
        state.pulls[arm] += weight
        state.sums[arm, 0] += weight * reward
        for j in range(costs.size):
            state.sums[arm, 1 + j] += weight * costs[j]


@dataclass(frozen=True)
class DiscountedUCB(Policy):
    """Recipe: ``discount`` in (0, 1), about 1 - 1/(rounds to remember); the rest as for ``SlidingWindowUCB``.

    >>> DiscountedUCB(discount=0.999).to_spec()["discount"]
    0.999
    """

    discount: float = 0.999
    scale: float = 1.0
    clip: bool = False
    budget_rule: str = "fixed"

    def __post_init__(self) -> None:
        object.__setattr__(self, "discount", number(self.discount, "discount"))
        if not 0.0 < self.discount < 1.0:
            raise OutOfRangeError(f"discount must lie between 0 and 1, got {self.discount:g}.")
        check_optimism(self)

    @property
    def forgets(self) -> bool:
        """Yes."""
        return True

    def new_state(self, problem: Problem) -> State:
        """Nothing known, every arm at its most optimistic."""
        horizon, arms, resources = problem.horizon, problem.arms, problem.resources
        settings = Settings(
            horizon=horizon,
            discount=self.discount,
            reward_radius=self.scale * radius_constant(horizon, arms),
            cost_radius=self.scale * radius_constant(horizon, arms, resources),
            clip=self.clip,
            remaining=self.budget_rule == "remaining",
        )
        sums, pulls = np.zeros((arms, 1 + resources)), np.zeros(arms)
        clock = np.full(1, -1, dtype=np.int64)
        return State(settings, sums, pulls, new_step_lp(arms, problem.rate), clock)
