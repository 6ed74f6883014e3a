r"""Plan with a forecast: plan when to spend, and learn which arm to pull.

It follows the ideas of Lyu and Cheung (2023) and of Stradi and others (2025).

A forecast gives means :math:`f_t` (rewards) and :math:`g_t` (costs) for every round. LP-Dynamic on them,

.. math:: \max \sum_t f_t^\top x_t \quad \text{s.t. } \sum_t g_t x_t \le B,\; x_t \in \Delta_m,

gives the spending of each round: :math:`p_t = g_t x_t`. With a trust :math:`\lambda \in [0, 1]` the rate of round t is
:math:`\lambda p_t + (1 - \lambda) b`; ``"remaining"`` multiplies it by the ratio of the remaining budget to the budget
that the plan would have left. Sliding-window UCB on the errors of the forecast learns which arm to pull,

.. math:: \hat\mu_{t,i} = \lambda f_{t,i} + \frac{\sum_s (r_s - \lambda f_{s,i})\, 1\{i_s = i\}}{n_i + N}, \qquad
          \mathrm{UCB}_{t,i} = \hat\mu_{t,i} + \frac{R}{\sqrt{n_i + N}}, \qquad N = (1 - \lambda)^{-2},

and likewise for the lower bounds of costs: the forecast has the weight of N outcomes. With :math:`\lambda = 0` this is
sliding-window UCB; with :math:`\lambda = 1` the policy follows the forecast and never learns.

*Guarantee*: with :math:`\lambda = 1` and an exact forecast, this is the plan of LP-Dynamic, and only :math:`O(\sqrt T)`
is lost because spending is random. An error of :math:`\epsilon` in every mean changes the LP's value by at most
:math:`(1 + \|q\|_1)\, \epsilon T` (its prices are feasible for the other LP's dual up to :math:`\epsilon`), and may
overspend :math:`\epsilon T` of a budget, which ``"remaining"`` corrects; docs/policies.md reports measurements. No
worst-case bound is claimed. When the forecast's row changes, all bounds change, so a round costs O(md + d³). Late
feedback is compared with the forecast of its own round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.benchmarks.benchmark import plan_spending
from driftsack.benchmarks.lp_dynamic import lp_dynamic
from driftsack.core.arrays import Floats, Ints, Phase
from driftsack.core.bounds import index_of
from driftsack.core.checks import LARGEST_SETTING, at_least_zero, frozen, of_type, share
from driftsack.core.decision import SKIP
from driftsack.core.errors import SettingError
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.game.records import Outcome, Round, usual_skip_cost
from driftsack.lp.step import LOOSE, new_step_lp
from driftsack.numerics.compiled import kernel
from driftsack.numerics.index_set import clear, insert
from driftsack.numerics.simplex import Simplex, column_changed
from driftsack.policies.parts.estimates import BOUNDS, Estimates, planned_values
from driftsack.policies.parts.means import WindowedMeans, begin_round, observe, windowed_means
from driftsack.policies.parts.open_arms import close_column
from driftsack.policies.parts.pacing import REMAINING, BudgetRule, check_budget_rule
from driftsack.policies.parts.radius import Radius, lower_bound, new_radius, upper_bound
from driftsack.policies.policy import Policy
from driftsack.policies.sliding_window_ucb import checked_windows, solve_and_draw


class Forecast(NamedTuple):
    """The forecast means and the plan, multiplied by the trust; all arrays are read-only."""

    rewards: Floats  # (K, m) lambda f
    costs: Floats  # (K, d, m) lambda g
    planned: Floats  # (K, d) lambda p
    phase: Phase  # (T,) the row of each round


class State(NamedTuple):
    """The forecast, the estimates of its errors, and the LP of optimistic means."""

    forecast: Forecast
    errors: WindowedMeans  # observed outcomes minus the forecast
    radius: Radius
    lp: Simplex
    row: Annotated[Ints, index_of("forecast.rewards", least=-1)]  # (1,) the forecast's row in the latest round chosen
    planned_left: Floats  # (d,) what the plan spends from the current round on
    scratch: Floats  # (d,)
    even: float  # 1 - lambda
    prior_weight: float  # N
    remaining: bool


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Set the bounds around the forecast and the rate of the plan, solve the step LP and draw the arm."""
    t, errors = round.t, state.errors
    row = state.forecast.phase[t]
    # Once per round: set the rate; a new row of the forecast changes the bounds of all arms.
    if t > errors.latest[0]:
        for s in range(errors.latest[0] + 1, t):  # rounds before a wrapper restarted this policy
            advance_plan(state, round, state.forecast.phase[s])
        pace_by_plan(state, round, row)
        if row != state.row[0]:
            for i in range(mix.size):
                insert(errors.stale, i)
        state.row[0] = row
    # Update the bounds of stale arms.
    begin_round(errors, round)
    for i in range(errors.stale.size[0]):
        set_bounds(state, round, row, errors.stale.members[i])
    clear(errors.stale)
    return solve_and_draw(state.lp, errors, round, rng, mix, prices)


@kernel
def pace_by_plan(state: State, round: Round, row: int) -> None:
    """Set the right-hand side: planned and even rates weighted by trust, corrected by the remaining budget."""
    ledger = round.ledger
    for j in range(ledger.budget.size):
        rate = state.forecast.planned[row, j] + state.even * round.rate[j]
        left, expected = max(ledger.budget[j] - ledger.spent[j], 0.0), state.planned_left[j]
        if state.remaining and expected > 0.0:
            rate *= left / expected
        state.lp.rhs[j] = min(rate, LOOSE)
    advance_plan(state, round, row)


@kernel
def advance_plan(state: State, round: Round, row: int) -> None:
    """Subtract the planned spending of one round from the remaining plan."""
    for j in range(state.planned_left.size):
        rate = state.forecast.planned[row, j] + state.even * round.rate[j]
        state.planned_left[j] = max(state.planned_left[j] - rate, 0.0)


@kernel
def set_bounds(state: State, round: Round, row: int, arm: int) -> None:
    """Set the bounds of an arm from the forecast, its mean error and the radius, or close the arm."""
    if not round.open[arm]:
        close_column(state.lp, arm)
        column_changed(state.lp, arm)
        return
    rewards, costs = state.errors.rewards, state.errors.costs
    n = rewards.pulls[arm] + state.prior_weight
    error = rewards.sums[arm, 0] / (rewards.grid[0] * n)
    bound = upper_bound(state.radius, state.forecast.rewards[row, arm] + error, n)
    state.lp.objective[arm] = bound + usual_skip_cost(round)
    n = costs.pulls[arm] + state.prior_weight
    for j in range(costs.sums.shape[1]):
        error = costs.sums[arm, j] / (costs.grid[0] * n)
        state.lp.columns[j, arm] = lower_bound(state.radius, state.forecast.costs[row, j, arm] + error, n)
    column_changed(state.lp, arm)


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Add the error of the forecast for the round of the outcome."""
    if outcome.arm == SKIP:
        return
    row = state.forecast.phase[outcome.t]
    for j in range(outcome.costs.size):
        state.scratch[j] = outcome.costs[j] - state.forecast.costs[row, j, outcome.arm]
    error = outcome.reward - state.forecast.rewards[row, outcome.arm]
    observe(state.errors, outcome.t, outcome.arm, error, state.scratch)


@dataclass(frozen=True)
class PlanWithForecast(Policy):
    """Follows the spending plan of a forecast and learns the forecast's errors.

    Attributes:
        forecast: An instance whose means are the forecast. Its arms and resources are matched to those of the problem
            by name.
        trust: The weight λ in [0, 1] of the forecast; 0 is sliding-window UCB, 1 never learns.
        windows: The windows (w1, w2) of rewards and costs in rounds, or one number for both; None never forgets.
        scale: Factor on both radii; see ``SlidingWindowUCB``.
        budget_rule: ``"fixed"`` follows the plan; ``"remaining"`` corrects it by the remaining budget.

    >>> import driftsack as ds
    >>> world = ds.instances.example_3(alpha=0.5)
    >>> policy = PlanWithForecast(world, trust=1.0)
    >>> bool(ds.simulate(world, policy, trials=20).reward.mean() > 0.97 * ds.benchmarks.lp_dynamic(world).value)
    True
    """

    forecast: Instance
    trust: float = 0.5
    windows: int | tuple[int, int] | None = None
    scale: float = 0.1
    budget_rule: BudgetRule = "remaining"

    def __post_init__(self) -> None:
        if isinstance(self.forecast, Mapping):
            object.__setattr__(self, "forecast", Instance.from_dict(self.forecast))
        of_type(self.forecast, Instance, "forecast")
        object.__setattr__(self, "trust", share(self.trust, "trust"))
        object.__setattr__(self, "scale", at_least_zero(self.scale, "scale", LARGEST_SETTING))
        check_budget_rule(self)
        if self.windows is not None:
            object.__setattr__(self, "windows", checked_windows(self.windows))

    @property
    def forgets(self) -> bool:
        """Whether ``windows`` are given; older observations are dropped."""
        return self.windows is not None

    @property
    def open_ended(self) -> bool:
        """False: there is no forecast after the horizon."""
        return False

    @property
    def teachable(self) -> bool:
        """False: it learns errors of the forecast, which does not cover past rounds."""
        return False

    def follow_rate(self) -> Policy:
        """Raise: the forecast already gives this policy a spending plan."""
        raise SettingError(
            "base must not have its own spending plan, but PlanWithForecast follows the plan of its forecast; "
            "wrap another policy, or use PlanWithForecast alone."
        )

    def rounds_kept(self, problem: Problem) -> int:
        """Return the number of rounds in both windows; an infinite window keeps none."""
        lengths = () if self.windows is None else checked_windows(self.windows)
        return sum(length for length in lengths if length < problem.horizon)

    def new_state(self, problem: Problem) -> State:
        """Return the state with the plan and without observations."""
        forecast, rounds = self._forecast(problem), self.forecast.rounds
        lengths = (problem.horizon, problem.horizon) if self.windows is None else checked_windows(self.windows)
        even = 1.0 - self.trust
        return State(
            forecast=forecast,
            errors=windowed_means(problem, lengths),
            radius=new_radius(problem, self.scale),
            lp=new_step_lp(problem.arms, problem.rate),
            row=np.full(1, -1, dtype=np.int64),
            planned_left=rounds @ forecast.planned + even * problem.unit_budget,
            scratch=np.zeros(problem.resources),
            even=even,
            prior_weight=math.inf if even == 0.0 else even**-2.0,
            remaining=self.budget_rule == REMAINING,
        )

    def estimates(self, state: State) -> Estimates | None:
        """The forecast of the latest round plus its mean error so far, and the confidence bounds around it."""
        row, rewards, costs = int(state.row[0]), state.errors.rewards, state.errors.costs
        if row < 0:
            return None
        with np.errstate(invalid="ignore", divide="ignore"):
            reward_errors = rewards.sums[:, :1] / (rewards.grid[0] * (rewards.pulls[:, None] + state.prior_weight))
            cost_errors = costs.sums / (costs.grid[0] * (costs.pulls[:, None] + state.prior_weight))
        means = np.hstack(
            [state.forecast.rewards[row][:, None] + reward_errors, state.forecast.costs[row].T + cost_errors]
        )
        return Estimates(means, planned_values(state.lp, *cost_errors.shape), BOUNDS)

    def _forecast(self, problem: Problem) -> Forecast:
        """Return the normalised forecast and its plan, multiplied by the trust."""
        sizes = (self.forecast.horizon, self.forecast.arms, self.forecast.resources)
        if sizes != (problem.horizon, problem.arms, problem.resources):
            raise SettingError(
                f"the forecast must have the problem's {problem.horizon} rounds, {problem.arms} arms and "
                f"{problem.resources} resources, got {sizes[0]}, {sizes[1]} and {sizes[2]}."
            )
        world = self.forecast.arranged_for(problem, "forecast")
        if world.problem != problem:  # the budget or the units differ
            world = Instance(problem, world.rewards, world.costs, world.phase)
        planned = plan_spending(world.unit_costs, np.asarray(lp_dynamic(world).plan))
        rewards, costs = self.trust * world.unit_rewards, self.trust * world.unit_costs
        return Forecast(frozen(rewards), frozen(costs), frozen(self.trust * planned), world.phase)
