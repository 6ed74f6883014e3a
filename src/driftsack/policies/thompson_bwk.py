r"""Thompson sampling for BwK (Ferreira, Simchi-Levi and Wang 2018): solve the LP of a draw from the posterior.

Each round draws :math:`\tilde\mu_i` and :math:`\tilde C_{j,i}` from their posteriors,
:math:`\mathrm{Beta}(1 + S, 1 + n - S)` for S ones among n binarised outcomes
(:mod:`driftsack.policies.parts.beta_posterior`), solves

.. math:: \max_x \; \tilde\mu^\top x \quad \text{s.t. } \tilde C x \le b,\; x \in \Delta_m,

and draws the arm from x. ``budget_rule="fixed"`` is their TS-fixed, ``"remaining"`` (the remaining budget per remaining
round) their TS-update. With ``windows`` the posterior uses only the last w rounds; this variant is not in their paper.
Nor is ``budget_rule="two-speed"``, which uses the LP of :mod:`driftsack.game.two_speed` instead: with
:math:`\rho` the remaining budget per remaining round and :math:`\lambda` a long-run price of each resource, it
solves, after :math:`2 \sqrt T` rounds at the pace of ``"remaining"``,

.. math:: \max_{x, u} \; \tilde\mu^\top x - 0.85\, \lambda^\top \tilde C x - 0.3\, \lambda^\top u \quad
          \text{s.t. } \tilde C x - u \le \rho,\; 0 \le u \le \rho,\; x \in \Delta_m .

*Guarantee* (stationary environment, Bayesian regret under the prior, ``"fixed"`` or ``"remaining"``):
:math:`\tilde O(\sqrt{m T})`, up to the prices of the resources. No guarantee under drift is known. A round takes
m (1 + d) Beta draws and an LP whose columns are all new, which makes it the most expensive of the LP policies. Late
feedback counts for the round it belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.checks import whole
from driftsack.core.problem import Problem
from driftsack.game.protocol import STUCK
from driftsack.game.records import Outcome, Round
from driftsack.lp.step import draw_from, new_step_lp
from driftsack.numerics.compiled import kernel
from driftsack.numerics.simplex import OPTIMAL, Simplex, solve
from driftsack.numerics.window import expire
from driftsack.policies import thompson_two_speed
from driftsack.policies.parts.beta_posterior import BetaPosterior, draw_means, new_beta_posterior, observe
from driftsack.policies.parts.estimates import Estimates, posterior_estimates
from driftsack.policies.parts.open_arms import list_costs, served, set_rewards
from driftsack.policies.parts.pacing import BUDGET_RULES, FIXED, TWO_SPEED, Pacer, check_budget_rule, new_pacer, pace
from driftsack.policies.policy import Policy


class State(NamedTuple):
    """Posteriors, pacer and the LP of the last draw."""

    posterior: BetaPosterior
    lp: Simplex
    pacer: Pacer


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Draw means from the posteriors once per round, solve the LP and draw the arm."""
    if draw_means(state.posterior, state.lp, round.t, rng):
        set_rewards(state.lp, round)
        list_costs(state.lp, round)
    pace(state.pacer, state.lp, round)
    if solve(state.lp) != OPTIMAL:
        return STUCK
    expire(state.posterior.outcomes, round.t)
    return served(state.lp, round, mix, draw_from(state.lp, rng, mix, prices))


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Update the posteriors of the arm."""
    observe(state.posterior, outcome)


@dataclass(frozen=True)
class ThompsonBwK(Policy):
    """Thompson sampling: solves the LP of a draw from the posterior.

    Attributes:
        windows: The window of rewards and costs in rounds; None never forgets.
        budget_rule: ``"fixed"`` paces by b = B/T, ``"remaining"`` by the remaining budget per remaining round;
            ``"two-speed"`` saves when rewards per cost are low and spends up to twice the remaining budget per
            remaining round when they are high, as ``Adaptive`` does.

    >>> ThompsonBwK(windows=500).to_spec()
    {'policy': 'ThompsonBwK', 'windows': 500, 'budget_rule': 'fixed'}
    """

    windows: int | None = None
    budget_rule: Literal["fixed", "remaining", "two-speed"] = "fixed"

    def __post_init__(self) -> None:
        if self.windows is not None:
            object.__setattr__(self, "windows", whole(self.windows, "windows", at_least=1))
        check_budget_rule(self, (*BUDGET_RULES, TWO_SPEED))

    @property
    def forgets(self) -> bool:
        """Whether ``windows`` are given; older observations are dropped."""
        return self.windows is not None

    @property
    def known_costs(self) -> bool:
        """True: it plans with its estimates times the factors of the list."""
        return True

    def follow_rate(self) -> ThompsonBwK:
        """Return a copy that plans with the rate of each round."""
        return replace(self, budget_rule=FIXED)

    def rounds_kept(self, problem: Problem) -> int:
        """Return the number of rounds in the window; an infinite window keeps none."""
        return self.windows if self.windows is not None and self.windows < problem.horizon else 0

    def new_state(self, problem: Problem) -> State | thompson_two_speed.State:
        """Return the state without observations and with uniform posteriors."""
        if self.budget_rule == TWO_SPEED:
            return thompson_two_speed.new_two_speed_state(problem, self.windows)
        return State(
            posterior=new_beta_posterior(problem, self.windows),
            lp=new_step_lp(problem.arms, problem.rate),
            pacer=new_pacer(self.budget_rule),
        )

    def estimates(self, state: State | thompson_two_speed.State) -> Estimates:
        """Means of the posteriors and the draws of the latest decision."""
        return posterior_estimates(state.posterior, state.lp)
