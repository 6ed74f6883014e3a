r"""Plan with a forecast: when to spend is planned, what to play is learnt.

In the spirit of Lyu and Cheung (2023) and of Stradi and others (2025).

A forecast gives means :math:`f_t` (rewards) and :math:`g_t` (costs) for every round. The horizon LP on them,

.. math:: \max \sum_t f_t^\top x_t \quad \text{s.t. } \sum_t g_t x_t \le B,\; x_t \in \Delta_m,

says how much to spend when: :math:`p_t = g_t x_t`. With a trust :math:`\lambda \in [0, 1]` the rate of round t is
:math:`\lambda p_t + (1 - \lambda) b`, times what is left over what this plan would have left (``"remaining"``). What to
play is learnt by sliding-window UCB on what the forecast does not explain,

.. math:: \hat\mu_{t,i} = \lambda f_{t,i} + \frac{\sum_s (r_s - \lambda f_{s,i})\, 1\{i_s = i\}}{n_i + N}, \qquad
          \mathrm{UCB}_{t,i} = \hat\mu_{t,i} + \frac{R}{\sqrt{n_i + N}}, \qquad N = (1 - \lambda)^{-2},

the costs likewise from below: the forecast counts as much as N outcomes. With :math:`\lambda = 0` it is sliding-window
UCB; with :math:`\lambda = 1` it follows the forecast and never learns.

*Guarantee*: with :math:`\lambda = 1` and a forecast that is exact, the plan is LP-Dynamic's own, and what is lost is
the noise of the budgets, :math:`O(\sqrt T)`. An error of :math:`\epsilon` in every mean moves the LP's value by at
most :math:`(1 + \|q\|_1)\, \epsilon T` (its prices are feasible for the other one's dual but for :math:`\epsilon`),
and may overspend :math:`\epsilon T` of a budget, which ``"remaining"`` takes back; docs/policies.md has what was
measured. No worst-case bound is claimed. When the forecast's row changes all bounds do, so a round costs O(md + d³).
Late feedback is compared with the forecast of its own round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.benchmarks.lp_dynamic import lp_dynamic
from driftsack.core.arrays import Floats, Ints, Phase
from driftsack.core.checks import at_least_zero, frozen, of_type, one_of, pair, share, whole
from driftsack.core.decision import SKIP
from driftsack.core.errors import SettingError
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.game.ledger import Ledger
from driftsack.lp.step import LOOSE, draw_from, new_step_lp
from driftsack.numerics.compiled import kernel
from driftsack.numerics.index_set import Marks, all_marked, clear, mark
from driftsack.numerics.simplex import OPTIMAL, Simplex, column_changed, solve
from driftsack.numerics.window import Window, admit, open_window, retire
from driftsack.policies.policy import STUCK, Policy
from driftsack.policies.sliding_window_ucb import BUDGET_RULES
from driftsack.theory.windows import radius_constant


class Forecast(NamedTuple):
    """What is known from the start; all read-only, and already times the trust."""

    rewards: Floats  # (K, m) lambda f
    costs: Floats  # (K, d, m) lambda g
    planned: Floats  # (K, d) lambda p
    phase: Phase  # (T,) the row of each round


class State(NamedTuple):
    """All that changes as the learner plays."""

    forecast: Forecast
    rewards: Window  # (w1, 1) what the forecast does not explain
    costs: Window  # (w2, d)
    lp: Simplex
    moved: Marks  # arms whose bounds are out of date
    clock: Ints  # (2,) the latest round chosen, from 0; the forecast's row then
    planned_left: Floats  # (d,) what the plan spends from this round on
    scratch: Floats  # (d,)
    reward_radius: float
    cost_radius: float
    even: float  # 1 - lambda
    worth: float  # N
    remaining: bool


@kernel
def choose(state: State, ledger: Ledger, t: int, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Bounds around the forecast, the plan's rate, the step LP."""
    row = state.forecast.phase[t]
    if t > state.clock[0]:
        for s in range(state.clock[0] + 1, t):  # rounds that a wrapper's restart has made it forget
            spend_by_plan(state, ledger, state.forecast.phase[s])
        pace_by_plan(state, ledger, row)
        if row != state.clock[1]:
            for i in range(mix.size):
                mark(state.moved, i)
        state.clock[0], state.clock[1] = t, row
    for i in range(state.moved.size[0]):
        set_bounds(state, row, state.moved.members[i])
    clear(state.moved)
    if solve(state.lp) != OPTIMAL:
        return STUCK
    arm = draw_from(state.lp, rng, mix, prices)
    mark(state.moved, retire(state.rewards, t))
    mark(state.moved, retire(state.costs, t))
    return arm


@kernel
def pace_by_plan(state: State, ledger: Ledger, row: int) -> None:
    """Right-hand side: the plan's and the even rate by trust, times what is left over what should be."""
    for j in range(ledger.budget.size):
        rate = state.forecast.planned[row, j] + state.even * ledger.rate[j]
        left, should = max(ledger.budget[j] - ledger.spent[j], 0.0), state.planned_left[j]
        if state.remaining and should > 0.0:
            rate *= left / should
        state.lp.rhs[j] = min(rate, LOOSE)
    spend_by_plan(state, ledger, row)


@kernel
def spend_by_plan(state: State, ledger: Ledger, row: int) -> None:
    """What the plan has left after a round of this row."""
    for j in range(ledger.budget.size):
        rate = state.forecast.planned[row, j] + state.even * ledger.rate[j]
        state.planned_left[j] = max(state.planned_left[j] - rate, 0.0)


@kernel
def set_bounds(state: State, row: int, arm: int) -> None:
    """The forecast, what it has missed so far, and the radius."""
    n = state.rewards.pulls[arm] + state.worth
    missed = state.rewards.sums[arm, 0] / (state.rewards.grid[0] * n)
    state.lp.objective[arm] = state.forecast.rewards[row, arm] + missed + state.reward_radius / math.sqrt(n)
    n = state.costs.pulls[arm] + state.worth
    for j in range(state.costs.sums.shape[1]):
        missed = state.costs.sums[arm, j] / (state.costs.grid[0] * n)
        state.lp.columns[j, arm] = state.forecast.costs[row, j, arm] + missed - state.cost_radius / math.sqrt(n)
    column_changed(state.lp, arm)


@kernel
def learn(state: State, t: int, arm: int, chance: float, reward: float, costs: Floats) -> None:  # noqa: ARG001
    """Enter what the forecast of round ``t`` did not explain."""
    if arm == SKIP:
        return
    row, now = state.forecast.phase[t], state.clock[0]
    state.scratch[0] = reward - state.forecast.rewards[row, arm]
    if admit(state.rewards, now, t, arm, state.scratch[:1]):
        mark(state.moved, arm)
    for j in range(costs.size):
        state.scratch[j] = costs[j] - state.forecast.costs[row, j, arm]
    if admit(state.costs, now, t, arm, state.scratch):
        mark(state.moved, arm)


@dataclass(frozen=True)
class PlanWithForecast(Policy):
    """Recipe: the ``forecast``, an instance whose means are believed, and the ``trust`` in it.

    ``windows`` in rounds, None to remember everything; ``scale`` and ``budget_rule`` as for ``SlidingWindowUCB``.

    >>> import driftsack as ds
    >>> world = ds.instances.example_3(alpha=0.5)
    >>> policy = PlanWithForecast(world, trust=1.0)
    >>> bool(ds.simulate(world, policy, trials=20).reward.mean() > 0.97 * ds.benchmarks.lp_dynamic(world).value)
    True
    """

    forecast: Instance
    trust: float = 0.5
    windows: tuple[int, int] | None = None
    scale: float = 0.1
    budget_rule: str = "remaining"

    def __post_init__(self) -> None:
        if isinstance(self.forecast, Mapping):
            object.__setattr__(self, "forecast", Instance.from_dict(self.forecast))
        of_type(self.forecast, Instance, "forecast")
        object.__setattr__(self, "trust", share(self.trust, "trust"))
        object.__setattr__(self, "scale", at_least_zero(self.scale, "scale"))
        one_of(self.budget_rule, "budget_rule", BUDGET_RULES)
        if self.windows is not None:
            lengths = pair(self.windows, "windows")
            object.__setattr__(self, "windows", tuple(whole(w, "each window", at_least=1) for w in lengths))

    @property
    def forgets(self) -> bool:
        """With windows."""
        return self.windows is not None

    def new_state(self, problem: Problem) -> State:
        """The plan, and nothing learnt yet."""
        horizon, arms, resources = problem.horizon, problem.arms, problem.resources
        believed, rounds = self._believed(problem), self.forecast.rounds
        lengths = self.windows or (horizon, horizon)
        even = 1.0 - self.trust
        return State(
            forecast=believed,
            rewards=open_window(lengths[0], horizon, arms, outcomes=1),
            costs=open_window(lengths[1], horizon, arms, outcomes=resources),
            lp=new_step_lp(arms, problem.rate),
            moved=all_marked(arms),
            clock=np.array([-1, -1]),
            planned_left=rounds @ believed.planned + even * problem.unit_budget,
            scratch=np.zeros(resources),
            reward_radius=self.scale * radius_constant(horizon, arms),
            cost_radius=self.scale * radius_constant(horizon, arms, resources),
            even=even,
            worth=math.inf if even == 0.0 else even**-2.0,
            remaining=self.budget_rule == "remaining",
        )

    def _believed(self, problem: Problem) -> Forecast:
        """The forecast in the problem's units, times the trust, and its plan."""
        mine = (self.forecast.horizon, self.forecast.arms, self.forecast.resources)
        if mine != (problem.horizon, problem.arms, problem.resources):
            raise SettingError(
                f"the forecast must have the problem's {problem.horizon} rounds, {problem.arms} arms and "
                f"{problem.resources} resources, got {mine[0]}, {mine[1]} and {mine[2]}."
            )
        world = self.forecast
        if world.problem != problem:  # another budget or other units
            world = Instance(problem, world.rewards, world.costs, world.phase)
        planned = (world.unit_costs @ np.asarray(lp_dynamic(world).plan)[:, :, None])[:, :, 0]
        rewards, costs = self.trust * world.unit_rewards, self.trust * world.unit_costs
        return Forecast(frozen(rewards), frozen(costs), frozen(self.trust * planned), world.phase)
