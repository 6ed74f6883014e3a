r"""Discounted UCB: a discount in place of a window (after Garivier and Moulines 2008), with Algorithm 1's LP.

Before round t an outcome of round s has the weight :math:`\rho^{t-s}`, :math:`\rho < 1`: with discounted pulls
:math:`N_i = \sum_{s<t} \rho^{t-s} 1\{i_s = i\}`,

.. math:: \hat\mu_i = \frac{\sum_{s<t} \rho^{t-s} r_s 1\{i_s = i\}}{N_i + 1}, \qquad
          \mathrm{UCB}_i = \hat\mu_i + \sqrt{2 \log(12 m T^3) / (N_i + 1)},

likewise for the lower bounds of costs, and the mix solves the step LP. A discount of :math:`1 - 1/w` remembers about
w rounds. The bounds of every arm change in every round, so a round costs O(md + d³). *No guarantee with budgets is
known.* Without budgets, regret is :math:`\tilde O(\sqrt{m \Upsilon T})` for :math:`\Upsilon` abrupt changes and the
right :math:`\rho`.

Late feedback is added with the weight that its round has when it arrives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.checks import number
from driftsack.core.decision import SKIP
from driftsack.core.errors import OutOfRangeError
from driftsack.core.problem import Problem
from driftsack.game.protocol import STUCK
from driftsack.game.records import Outcome, Round, usual_skip_cost
from driftsack.lp.step import draw_from, new_step_lp
from driftsack.numerics.compiled import kernel
from driftsack.numerics.simplex import OPTIMAL, STALE, Simplex, solve
from driftsack.policies.parts.estimates import Estimates, discounted_estimates
from driftsack.policies.parts.first_pulls import (
    FirstPulls,
    first_pull,
    new_first_pulls,
    repeat_if_skipped,
)
from driftsack.policies.parts.means import (
    DiscountedMeans,
    discount_arm,
    discounted_means,
    discounted_variance,
    observe_discounted,
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


class State(NamedTuple):
    """Discounted estimates, their radii, the pacer, the LP of optimistic means, and the remaining first pulls."""

    means: DiscountedMeans
    radius: Radius
    pacer: Pacer
    lp: Simplex
    first: FirstPulls


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Discount once per round, solve the LP on optimistic means, and draw the arm."""
    # Once per round: discount all arms and update their bounds.
    if round.t > state.means.latest[0]:
        state.means.latest[0] = round.t
        for i in range(mix.size):
            discount_arm(state.means, i)
            set_bounds(state, round, i)
        list_costs(state.lp, round)
        state.lp.counts[STALE] = 1
        arm = first_pull(state.first, round, mix, prices)
        if arm != SKIP:
            return arm
    pace(state.pacer, state.lp, round)
    if solve(state.lp) != OPTIMAL:
        return STUCK
    return served(state.lp, round, mix, draw_from(state.lp, rng, mix, prices))


@kernel
def set_bounds(state: State, round: Round, arm: int) -> None:
    """Set the UCB of the reward and the LCB of the costs of one arm, or close it."""
    if not round.open[arm]:
        close_column(state.lp, arm)
        return
    sums, n = state.means.sums, state.means.pulls[arm] + 1.0
    bound = upper_bound(state.radius, sums[arm, 0] / n, n, variance(state, arm, 0))
    state.lp.objective[arm] = bound + usual_skip_cost(round)
    for j in range(state.lp.rhs.size - 1):
        state.lp.columns[j, arm] = lower_bound(state.radius, sums[arm, 1 + j] / n, n, variance(state, arm, 1 + j))


@kernel
def variance(state: State, arm: int, k: int) -> float:
    """Return the empirical variance if the radii use it, else 0."""
    return discounted_variance(state.means, arm, k) if state.radius.kind == BERNSTEIN else 0.0


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Add the outcome with its discounted weight."""
    if outcome.arm == SKIP:
        repeat_if_skipped(state.first, outcome.t)
    else:
        observe_discounted(state.means, outcome)


@dataclass(frozen=True)
class DiscountedUCB(UCBPolicy):
    """UCB on discounted means, in Algorithm 1's LP.

    Attributes:
        discount: The factor ρ in (0, 1); 1 - 1/w remembers about w rounds.
        scale: Factor on both radii; see ``SlidingWindowUCB``.
        clip: Whether to clip confidence bounds to [0, 1].
        budget_rule: ``"fixed"`` paces by b = B/T, ``"remaining"`` by the remaining budget per remaining round.
        radius: ``"printed"``, ``"refined"`` or ``"bernstein"``; see ``SlidingWindowUCB``.
        cost_scale: Factor on the radii of costs; None for ``scale``.
        first_pulls: The number of pulls of each arm before the LP decides.

    >>> DiscountedUCB(discount=0.999).to_spec()["discount"]
    0.999
    """

    discount: float = 0.999
    scale: float = 1.0
    clip: bool = False
    budget_rule: BudgetRule = "fixed"
    radius: RadiusKind = "printed"
    cost_scale: float | None = None
    first_pulls: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "discount", number(self.discount, "discount"))
        if not 0.0 < self.discount < 1.0:
            raise OutOfRangeError(f"discount must lie between 0 and 1, got {self.discount:g}.")
        super().__post_init__()

    @property
    def forgets(self) -> bool:
        """True: the weight of an observation decays with its age."""
        return True

    def cost_memory(self, problem: Problem) -> float:
        """Return the sum of all weights, 1 / (1 - ρ)."""
        return 1.0 / (1.0 - self.discount)

    def new_state(self, problem: Problem) -> State:
        """Return the state without observations, in which every arm has its most optimistic bounds."""
        radius = radius_of(self, problem)
        return State(
            means=discounted_means(problem, self.discount, squares=radius.kind == BERNSTEIN),
            radius=radius,
            pacer=new_pacer(self.budget_rule),
            lp=new_step_lp(problem.arms, problem.rate),
            first=new_first_pulls(problem.arms, self.first_pulls),
        )

    def estimates(self, state: State) -> Estimates:
        """Discounted means and their confidence bounds."""
        return discounted_estimates(state.means, state.lp)
