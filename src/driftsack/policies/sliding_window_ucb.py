r"""Sliding-window UCB (Liu, Jiang and Li 2022, Algorithm 1).

With :math:`n^{(w)}_{t,i}` the number of pulls of arm i in rounds :math:`[t-w, t-1]`, estimate (section 3; the summand
is the outcome of round s, see the errata)

.. math:: \hat\mu_{t,i} = \frac{\sum_{s} r_{s,i} 1\{i_s = i\}}{n^{(w_1)}_{t,i} + 1}, \qquad
          \hat C_{t,j,i} = \frac{\sum_{s} c_{s,j,i} 1\{i_s = i\}}{n^{(w_2)}_{t,i} + 1},

add and subtract the radii :math:`\sqrt{2 \log(12 m T^3) / (n+1)}` and :math:`\sqrt{2 \log(12 m d T^3) / (n+1)}`, solve

.. math:: \max_x \; \mathrm{UCB}_t(\mu)^\top x \quad \text{s.t. } \mathrm{LCB}_t(C)\, x \le b,\; x \in \Delta_m,

and draw the arm from x. Only arms that were observed or left a window since the last round have new bounds. A round
costs O(d) to learn and, while the optimal basis does not change, O(md) to choose.

*Guarantee* (Theorem 1, with the paper's windows, scale 1, no clipping, fixed rate, immediate feedback): regret
:math:`\tilde O(\sqrt{mT}/b + m^{1/3} V_1^{1/3} T^{2/3} + m^{1/3} d V_2^{1/3} T^{2/3}/b + W_1 + \bar q W_2)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, cast

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.checks import at_least_zero, pair, share, whole
from driftsack.core.decision import SKIP
from driftsack.core.errors import SettingError
from driftsack.core.problem import Problem
from driftsack.game.protocol import STUCK
from driftsack.game.records import Outcome, Round, usual_skip_cost
from driftsack.lp.step import draw_from, new_step_lp
from driftsack.numerics.compiled import kernel
from driftsack.numerics.index_set import clear, insert
from driftsack.numerics.simplex import OPTIMAL, Simplex, column_changed, solve
from driftsack.numerics.window import Window, check_not_negative, shrunk_mean, shrunk_variance
from driftsack.policies.parts.estimates import Estimates, windowed_estimates
from driftsack.policies.parts.first_pulls import (
    FirstPulls,
    first_pull,
    new_first_pulls,
    repeat_if_skipped,
)
from driftsack.policies.parts.means import (
    WindowedMeans,
    begin_round,
    make_room,
    observe,
    set_windows,
    windowed_means,
)
from driftsack.policies.parts.open_arms import close_column, list_costs, served
from driftsack.policies.parts.pacing import BudgetRule, Pacer, new_pacer, pace
from driftsack.policies.parts.radius import (
    BERNSTEIN,
    Radius,
    RadiusKind,
    lower_bound,
    radius_of,
    upper_bound,
)
from driftsack.policies.ucb_policy import UCBPolicy
from driftsack.theory.refined import epsilon
from driftsack.theory.windows import windows

THEORY: Final = "theory"
TIE: Final = 1e-10  # the size of differences that break ties


class State(NamedTuple):
    """Estimates, their radii, the pacer, the LP of optimistic means, and the remaining first pulls."""

    means: WindowedMeans
    radius: Radius
    pacer: Pacer
    lp: Simplex
    first: FirstPulls

    def check(self) -> None:
        """Raise if a sum of rewards or costs is negative."""
        check_not_negative(self.means.rewards, self.means.costs)


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Run Algorithm 1, lines 6 to 9, and make room in the windows for the outcome of the round."""
    stale, new = state.means.stale, round.t > state.means.latest[0]
    begin_round(state.means, round)
    # First pulls come before the LP.
    arm = first_pull(state.first, round, mix, prices)
    if arm != SKIP:
        make_room(state.means, round.t)
        return arm
    # Update the bounds of arms that were observed, left a window, opened or closed (line 6); of all at listed costs.
    if round.listed and new:
        for i in range(mix.size):
            insert(stale, i)
    for i in range(stale.size[0]):
        arm = stale.members[i]
        if round.open[arm]:
            set_bounds(state, arm, usual_skip_cost(round))
        else:
            close_column(state.lp, arm)
        column_changed(state.lp, arm)
    clear(stale)
    if new:
        list_costs(state.lp, round)
    # Solve the LP and draw the arm (lines 7 to 9).
    pace(state.pacer, state.lp, round)
    return solve_and_draw(state.lp, state.means, round, rng, mix, prices)


@kernel
def solve_and_draw(lp: Simplex, means: WindowedMeans, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Solve the step LP, draw the arm from its mix, and drop the rounds that leave the windows."""
    if solve(lp) != OPTIMAL:
        return STUCK
    arm = served(lp, round, mix, draw_from(lp, rng, mix, prices))
    make_room(means, round.t)
    return arm


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Add the outcome to both windows."""
    if outcome.arm == SKIP:
        repeat_if_skipped(state.first, outcome.t)
    else:
        observe(state.means, outcome.t, outcome.arm, outcome.reward, outcome.costs)


@kernel
def set_bounds(state: State, arm: int, skip_cost: float) -> None:
    """Set the UCB of the reward and the LCB of the costs of one arm (Algorithm 1, line 6)."""
    rewards, costs, radius = state.means.rewards, state.means.costs, state.radius
    n = rewards.pulls[arm] + 1.0
    bound = upper_bound(radius, shrunk_mean(rewards, arm, 0), n, variance(radius, rewards, arm, 0))
    state.lp.objective[arm] = bound + skip_cost
    n = costs.pulls[arm] + 1.0
    for j in range(state.lp.rhs.size - 1):
        low = lower_bound(radius, shrunk_mean(costs, arm, j), n, variance(radius, costs, arm, j))
        state.lp.columns[j, arm] = low


@kernel
def variance(radius: Radius, window: Window, arm: int, i: int) -> float:
    """Return the empirical variance if the radius uses it, else 0."""
    return shrunk_variance(window, arm, i) if radius.kind == BERNSTEIN else 0.0


@kernel
def update_bounds(state: State, round: Round, rng: Generator) -> None:
    """Update the bounds of the round's stale arms before ``choose`` does, with tiny random differences.

    Arms without observations have the same bounds, and the LP takes the one with the lowest number. A policy whose
    learners start again and again, or have very short windows, would favour it.
    """
    stale = state.means.stale
    begin_round(state.means, round)
    for i in range(stale.size[0]):
        arm = stale.members[i]
        if round.open[arm]:
            set_bounds(state, arm, usual_skip_cost(round) + TIE * rng.random())
        else:
            close_column(state.lp, arm)
        column_changed(state.lp, arm)
    clear(stale)


@kernel
def use_windows(state: State, length: int) -> None:
    """Set both windows to ``length`` rounds, at most those of the rings (0: infinite); requires no observations."""
    set_windows(state.means, length)


def uses_windows(state: State, length: int | None) -> bool:
    """Return whether both windows have ``length`` rounds; None stands for the length of the rings."""
    windows = (state.means.rewards, state.means.costs)
    return all(window.length[0] == (window.arms.size if length is None else length) for window in windows)


@kernel
def optimistic_value(state: State, round: Round) -> float:
    """Return the optimistic reward of the last solved LP, computed from its prices."""
    resources = state.lp.rhs.size - 1
    value = float(state.lp.duals[resources])
    for j in range(resources):
        value += state.lp.duals[j] * state.lp.rhs[j]
    served = 0.0
    for i in range(state.lp.solution.size):  # NumPy's sum adds in another order than compiled code
        served += state.lp.solution[i]
    return float(value - usual_skip_cost(round) * served)


@kernel
def reward_bound(state: State, arm: int) -> float:
    """Return the UCB of an arm's reward."""
    rewards, radius = state.means.rewards, state.radius
    n = rewards.pulls[arm] + 1.0
    return float(upper_bound(radius, shrunk_mean(rewards, arm, 0), n, variance(radius, rewards, arm, 0)))


@kernel
def planned_reward(state: State, arm: int) -> float:
    """Return the UCB of an open arm's reward in the last LP, if skipping costs nothing."""
    return float(state.lp.objective[arm])


@kernel
def planned_cost(state: State, j: int, arm: int) -> float:
    """Return the LCB of an open arm's cost in resource ``j`` in the last LP."""
    return float(state.lp.columns[j, arm])


@kernel
def estimated_reward(state: State, arm: int) -> float:
    """Return the estimate of an arm's reward."""
    return shrunk_mean(state.means.rewards, arm, 0)


@kernel
def estimated_cost(state: State, j: int, arm: int) -> float:
    """Return the estimate of an arm's cost in resource ``j``."""
    return shrunk_mean(state.means.costs, arm, j)


@kernel
def cost_bound(state: State, j: int, arm: int) -> float:
    """Return the LCB of an arm's cost in resource ``j``."""
    costs, radius = state.means.costs, state.radius
    n = costs.pulls[arm] + 1.0
    return float(lower_bound(radius, shrunk_mean(costs, arm, j), n, variance(radius, costs, arm, j)))


def estimates_of(state: State) -> Estimates:
    """Return windowed means and their confidence bounds."""
    return windowed_estimates(state.means, state.lp)


@dataclass(frozen=True)
class SlidingWindowUCB(UCBPolicy):
    """Sliding-window UCB; give either ``windows`` or ``variation``.

    Attributes:
        windows: The windows (w1, w2) of rewards and costs in rounds, or one number for both.
        variation: The variation budgets (V1, V2), from which the paper's windows are computed.
        scale: Factor on both radii. 1, as printed, gives the theorem's guarantee and explores for thousands of rounds;
            0.1 to 0.2 usually earns more. The bound of an untried arm is about 8 times the scale: if ``scale`` is too
            small, untried arms may never be explored.
        clip: Whether to clip confidence bounds to [0, 1]; not in the printed algorithm.
        budget_rule: ``"fixed"`` paces by b = B/T, as printed; ``"remaining"`` by the remaining budget per remaining
            round.
        radius: ``"printed"``, ``"refined"`` for the last appendix's radii, which shrink with the mean, or
            ``"bernstein"`` for radii that shrink with the empirical variance.
        shrink: Plan with (1 - ε) b: the number ε, or ``"theory"`` for the last appendix's ε, which needs ``variation``.
        cost_scale: Factor on the radii of costs; None for ``scale``. If budgets are small against ``cost_max``, radii
            of costs make expensive arms look free; a smaller factor, down to 0, prevents this.
        first_pulls: The number of pulls of each arm before the LP decides; 0 as printed.

    >>> from driftsack.core import Problem
    >>> policy = SlidingWindowUCB(variation=(0.5, 1.0))
    >>> policy.window_lengths(Problem(horizon=10_000, arms=3, budget=[500, 800]))
    (3346, 2124)
    """

    windows: int | tuple[int, int] | None = None
    variation: tuple[float, float] | None = None
    scale: float = 1.0
    clip: bool = False
    budget_rule: BudgetRule = "fixed"
    radius: RadiusKind = "printed"
    shrink: float | str = 0.0
    cost_scale: float | None = None
    first_pulls: int = 0

    def __post_init__(self) -> None:
        if (self.windows is None) == (self.variation is None):
            raise SettingError(
                "SlidingWindowUCB needs either windows=(w1, w2) or variation=(V1, V2), "
                f"got windows={self.windows!r} and variation={self.variation!r}."
            )
        if self.windows is not None:
            object.__setattr__(self, "windows", checked_windows(self.windows))
        if self.variation is not None:
            drifts = pair(self.variation, "variation")
            object.__setattr__(self, "variation", tuple(at_least_zero(v, "each variation") for v in drifts))
        if self.shrink != THEORY:
            object.__setattr__(self, "shrink", share(self.shrink, "shrink"))
        elif self.variation is None:
            raise SettingError('shrink="theory" needs variation=(V1, V2); give ε as a number with windows.')
        super().__post_init__()

    @property
    def forgets(self) -> bool:
        """True: observations older than the windows are dropped."""
        return True

    def window_lengths(self, problem: Problem) -> tuple[int, int]:
        """Return the window lengths on a problem.

        Args:
            problem: The problem to play.

        Returns:
            The windows (w1, w2) of rewards and costs in rounds.
        """
        if self.windows is not None:
            return cast("tuple[int, int]", self.windows)
        drifts = cast("tuple[float, float]", self.variation)  # the constructor accepted exactly one of the two
        return windows(problem.horizon, problem.arms, problem.resources, drifts)

    def rounds_kept(self, problem: Problem) -> int:
        """Return the number of rounds in both windows; an infinite window keeps none."""
        return sum(length for length in self.window_lengths(problem) if length < problem.horizon)

    def cost_memory(self, problem: Problem) -> float:
        """Return the window of costs."""
        return self.window_lengths(problem)[1]

    def new_state(self, problem: Problem) -> State:
        """Return the state without observations, in which every arm has its most optimistic bounds."""
        lengths, shrink = self.window_lengths(problem), self._shrink(problem)
        return ucb_state(problem, lengths, radius_of(self, problem), self.budget_rule, shrink, self.first_pulls)

    def estimates(self, state: State) -> Estimates:
        """Windowed means and their confidence bounds."""
        return estimates_of(state)

    def _shrink(self, problem: Problem) -> float:
        """Return the share ε by which the right-hand side shrinks."""
        if self.shrink != THEORY or self.variation is None:
            return float(self.shrink)
        budget = float(problem.unit_budget.min())
        return epsilon(problem.horizon, problem.arms, problem.resources, budget, self.variation[1]) if budget else 0.0


def checked_windows(lengths: object) -> tuple[int, int]:
    """Return the window lengths of rewards and costs after checking them; one number applies to both."""
    first, second = (lengths, lengths) if isinstance(lengths, (int, np.integer)) else pair(lengths, "windows")
    return whole(first, "each window", at_least=1), whole(second, "each window", at_least=1)


def ucb_state(
    problem: Problem,
    lengths: tuple[int, int],
    radius: Radius,
    budget_rule: BudgetRule,
    shrink: float = 0.0,
    first_pulls: int = 0,
) -> State:
    """Return the state of a UCB learner with windows of ``lengths`` rounds; windows of at least T never forget."""
    kept = 1.0 - shrink
    return State(
        means=windowed_means(problem, lengths, squares=radius.kind == BERNSTEIN),
        radius=radius,
        pacer=new_pacer(budget_rule, kept),
        lp=new_step_lp(problem.arms, kept * problem.rate),
        first=new_first_pulls(problem.arms, first_pulls),
    )
