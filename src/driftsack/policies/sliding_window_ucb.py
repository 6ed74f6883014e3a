r"""Sliding-window UCB (Liu, Jiang and Li 2022, Algorithm 1).

With :math:`n^{(w)}_{t,i}` the pulls of arm i in the rounds :math:`[t-w, t-1]`, estimate (section 3; the summand
is the outcome of round s, see the errata)

.. math:: \hat\mu_{t,i} = \frac{\sum_{s} r_{s,i} 1\{i_s = i\}}{n^{(w_1)}_{t,i} + 1}, \qquad
          \hat C_{t,j,i} = \frac{\sum_{s} c_{s,j,i} 1\{i_s = i\}}{n^{(w_2)}_{t,i} + 1},

add and subtract the radii :math:`\sqrt{2 \log(12 m T^3) / (n+1)}` and :math:`\sqrt{2 \log(12 m d T^3) / (n+1)}`, solve

.. math:: \max_x \; \mathrm{UCB}_t(\mu)^\top x \quad \text{s.t. } \mathrm{LCB}_t(C)\, x \le b,\; x \in \Delta_m,

and draw the arm from x. Only arms that were told or left a window since the last round have new bounds, at most
three when feedback comes at once. A round costs O(d) to learn and, when the basis stands, O(md) to choose.

*Guarantee* (Theorem 1, with the paper's windows, scale 1, no clipping, fixed rate, immediate feedback): regret
:math:`\tilde O(\sqrt{mT}/b + m^{1/3} V_1^{1/3} T^{2/3} + m^{1/3} d V_2^{1/3} T^{2/3}/b + W_1 + \bar q W_2)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import at_least_zero, flag, one_of, pair, share, whole
from driftsack.core.decision import SKIP
from driftsack.core.errors import SettingError
from driftsack.core.problem import Problem
from driftsack.game.ledger import Ledger
from driftsack.lp.step import draw_from, new_step_lp
from driftsack.numerics.compiled import kernel
from driftsack.numerics.index_set import Marks, all_marked, clear, mark
from driftsack.numerics.simplex import OPTIMAL, Simplex, column_changed, solve
from driftsack.numerics.window import Window, admit, open_window, retire, shrunk_mean
from driftsack.policies.pacing import pace
from driftsack.policies.policy import STUCK, Policy
from driftsack.theory.refined import epsilon, gamma
from driftsack.theory.windows import radius_constant, windows

BUDGET_RULES: Final = ("fixed", "remaining")
RADII: Final = ("printed", "refined")
THEORY: Final = "theory"


class Settings(NamedTuple):
    """What the kernels need to know of the recipe and the problem."""

    horizon: int
    refined: bool  # radii that shrink with the mean
    scale: float
    reward_radius: float  # R of R / sqrt(n + 1); refined: gamma
    cost_radius: float
    clip: bool
    remaining: bool  # pace by what is left instead of b = B/T
    kept: float  # 1 - epsilon: the share of the rate that is planned with


class State(NamedTuple):
    """All that changes as the learner plays."""

    settings: Settings
    rewards: Window  # (w1, 1) ring and per-arm sums
    costs: Window  # (w2, d) ring and per-arm sums
    lp: Simplex  # optimistic means, kept basis, mix, prices
    moved: Marks  # arms whose bounds are out of date
    clock: Ints  # (1,) the latest round chosen, from 0
    reward: Floats  # (1,) scratch


@kernel
def choose(state: State, ledger: Ledger, t: int, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Algorithm 1, lines 6 to 9, for round ``t``; then make room in the windows for its outcome."""
    state.clock[0] = t
    for i in range(state.moved.size[0]):
        set_bounds(state, state.moved.members[i])
    clear(state.moved)
    pace(state.lp, ledger, state.settings.kept, state.settings.horizon - t if state.settings.remaining else 0)
    if solve(state.lp) != OPTIMAL:
        return STUCK
    arm = draw_from(state.lp, rng, mix, prices)
    mark(state.moved, retire(state.rewards, t))
    mark(state.moved, retire(state.costs, t))
    return arm


@kernel
def learn(state: State, t: int, arm: int, chance: float, reward: float, costs: Floats) -> None:  # noqa: ARG001
    """Enter the outcome of round ``t``; in a window that the round has left it does not count."""
    if arm == SKIP:
        return
    state.reward[0] = reward
    now = state.clock[0]
    if admit(state.rewards, now, t, arm, state.reward):
        mark(state.moved, arm)
    if admit(state.costs, now, t, arm, costs):
        mark(state.moved, arm)


@kernel
def set_bounds(state: State, arm: int) -> None:
    """UCB of the reward and LCB of the costs of one arm (Algorithm 1, line 6)."""
    settings = state.settings
    mean = shrunk_mean(state.rewards, arm, 0)
    upper = mean + width(settings, settings.reward_radius, mean, state.rewards.pulls[arm] + 1)
    state.lp.objective[arm] = min(upper, 1.0) if settings.clip else upper
    for j in range(state.costs.sums.shape[1]):
        mean = shrunk_mean(state.costs, arm, j)
        lower = mean - width(settings, settings.cost_radius, mean, state.costs.pulls[arm] + 1)
        state.lp.columns[j, arm] = max(lower, 0.0) if settings.clip else lower
    column_changed(state.lp, arm)


@kernel
def width(settings: Settings, constant: float, mean: float, n: int) -> float:
    """R / sqrt(n) as printed; refined, 2 rad(mean, n) with rad(a, n) = sqrt(gamma a / n) + gamma / n."""
    if settings.refined:
        return settings.scale * 2.0 * (math.sqrt(constant * mean / n) + constant / n)
    return settings.scale * constant / math.sqrt(n)


@dataclass(frozen=True)
class SlidingWindowUCB(Policy):
    """Recipe: windows given, or computed from the variation budgets (V1, V2); exactly one of the two.

    ``scale`` multiplies both radii: 1, as printed, keeps the theorem's promise and explores for thousands of rounds;
    0.1 to 0.2 usually earns more (an untried arm's bound is about 8 times the scale: too little, and it stays untried).
    ``clip`` keeps the bounds in [0, 1] (off as printed). ``budget_rule`` paces by
    b = B/T (``"fixed"``, as printed) or by what is left over the rounds left (``"remaining"``).

    ``radius="refined"`` takes the last appendix's radii, 2 rad(mean, n + 1), and ``shrink`` plans with (1 - ε) b: a
    number ε, or ``"theory"`` for that appendix's ε, which needs ``variation``.

    >>> from driftsack.core import Problem
    >>> policy = SlidingWindowUCB(variation=(0.5, 1.0))
    >>> policy.window_lengths(Problem(horizon=10_000, arms=3, budget=[500, 800]))
    (3346, 2124)
    """

    windows: tuple[int, int] | None = None
    variation: tuple[float, float] | None = None
    scale: float = 1.0
    clip: bool = False
    budget_rule: str = "fixed"
    radius: str = "printed"
    shrink: float | str = 0.0

    def __post_init__(self) -> None:
        if (self.windows is None) == (self.variation is None):
            raise SettingError(
                "SlidingWindowUCB needs either windows=(w1, w2) or variation=(V1, V2), "
                f"got windows={self.windows!r} and variation={self.variation!r}."
            )
        if self.windows is not None:
            lengths = pair(self.windows, "windows")
            object.__setattr__(self, "windows", tuple(whole(w, "each window", at_least=1) for w in lengths))
        if self.variation is not None:
            drifts = pair(self.variation, "variation")
            object.__setattr__(self, "variation", tuple(at_least_zero(v, "each variation") for v in drifts))
        one_of(self.radius, "radius", RADII)
        if self.shrink != THEORY:
            object.__setattr__(self, "shrink", share(self.shrink, "shrink"))
        elif self.variation is None:
            raise SettingError('shrink="theory" needs variation=(V1, V2); give ε as a number with windows.')
        check_optimism(self)

    @property
    def forgets(self) -> bool:
        """Yes."""
        return True

    def window_lengths(self, problem: Problem) -> tuple[int, int]:
        """The windows (w1, w2) in rounds on this problem."""
        if self.windows is not None:
            return self.windows
        drifts = cast("tuple[float, float]", self.variation)  # the constructor took exactly one of the two
        return windows(problem.horizon, problem.arms, problem.resources, drifts)

    def new_state(self, problem: Problem) -> State:
        """Empty windows, every arm at its most optimistic."""
        lengths = self.window_lengths(problem)
        recipe = Optimism(self.scale, self.clip, self.budget_rule, self.radius == "refined", self._shrink(problem))
        return new_state(problem, lengths, recipe)

    def _shrink(self, problem: Problem) -> float:
        """The ε of the right-hand side."""
        if self.shrink != THEORY or self.variation is None:
            return float(self.shrink)
        budget = float(problem.unit_budget.min())
        return epsilon(problem.horizon, problem.arms, problem.resources, budget, self.variation[1]) if budget else 0.0


def check_optimism(recipe: Any) -> None:
    """Check the settings that windowed and unwindowed UCB share, and keep them as plain numbers."""
    object.__setattr__(recipe, "scale", at_least_zero(recipe.scale, "scale"))
    object.__setattr__(recipe, "clip", flag(recipe.clip, "clip"))
    one_of(recipe.budget_rule, "budget_rule", BUDGET_RULES)


class Optimism(NamedTuple):
    """The settings that windowed and unwindowed UCB share, checked."""

    scale: float
    clip: bool
    budget_rule: str
    refined: bool = False
    shrink: float = 0.0  # epsilon


def new_state(problem: Problem, lengths: tuple[int, int], recipe: Optimism) -> State:
    """The state of a UCB learner with windows of ``lengths`` rounds; T rounds or more never forget."""
    horizon, arms, resources = problem.horizon, problem.arms, problem.resources
    constant = gamma if recipe.refined else radius_constant
    kept = 1.0 - recipe.shrink
    settings = Settings(
        horizon=horizon,
        refined=recipe.refined,
        scale=recipe.scale,
        reward_radius=constant(horizon, arms),
        cost_radius=constant(horizon, arms, resources),
        clip=recipe.clip,
        remaining=recipe.budget_rule == "remaining",
        kept=kept,
    )
    return State(
        settings,
        open_window(lengths[0], horizon, arms, outcomes=1),
        open_window(lengths[1], horizon, arms, outcomes=resources),
        new_step_lp(arms, kept * problem.rate),
        all_marked(arms),
        np.full(1, -1, dtype=np.int64),
        np.zeros(1),
    )
