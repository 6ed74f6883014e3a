r"""Thompson sampling for BwK (Ferreira, Simchi-Levi and Wang 2018): believe a draw from the posterior, solve its LP.

An outcome :math:`x \in [0, 1]` is binarised, 1 with probability x; with S ones among n outcomes of an arm (its reward,
or one of its costs) and a uniform prior, the posterior is :math:`\mathrm{Beta}(1 + S, 1 + n - S)`. Each round draws
:math:`\tilde\mu_i` and :math:`\tilde C_{j,i}` from the posteriors, solves

.. math:: \max_x \; \tilde\mu^\top x \quad \text{s.t. } \tilde C x \le b,\; x \in \Delta_m,

and draws the arm from x. ``budget_rule="fixed"`` is their TS-fixed, ``"remaining"`` (what is left over the rounds left)
their TS-update. With a ``window`` the posterior counts the last w rounds only: that variant is ours.

*Guarantee* (stationary world, Bayesian regret under the prior): :math:`\tilde O(\sqrt{m T})`, up to the prices of the
resources. None is known for a world that moves. m (1 + d) Beta draws and an LP whose columns are all new: the dearest
round of the LP policies. Late feedback counts for its own round. The coin that binarises the outcome of round t is a
hash of t and a key drawn in the first round, so it does not depend on when the outcome comes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import one_of, whole
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.game.ledger import Ledger
from driftsack.lp.step import draw_from, new_step_lp
from driftsack.numerics.compiled import kernel
from driftsack.numerics.sampling import coin
from driftsack.numerics.simplex import OPTIMAL, STALE, Simplex, solve
from driftsack.numerics.window import Window, admit, open_window, retire
from driftsack.policies.pacing import pace
from driftsack.policies.policy import STUCK, Policy
from driftsack.policies.sliding_window_ucb import BUDGET_RULES


class State(NamedTuple):
    """All that changes as the learner plays."""

    outcomes: Window  # (w, 1 + d) ring and (m, 1 + d) sums of ones, rewards first
    lp: Simplex
    clock: Ints  # (2,) the latest round chosen, from 0; the key of the coins, 0 before it is drawn
    ones: Floats  # (1 + d,) scratch
    horizon: int
    remaining: bool


@kernel
def choose(state: State, ledger: Ledger, t: int, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Draw means from the posteriors once a round, solve, draw the arm."""
    if state.clock[1] == 0:
        state.clock[1] = 1 + int(rng.random() * 2.0**32)
    if t > state.clock[0]:
        state.clock[0] = t
        believe(state, rng)
    pace(state.lp, ledger, 1.0, state.horizon - t if state.remaining else 0)
    if solve(state.lp) != OPTIMAL:
        return STUCK
    retire(state.outcomes, t)
    return draw_from(state.lp, rng, mix, prices)


@kernel
def believe(state: State, rng: Generator) -> None:
    """A draw from every posterior becomes the LP's data."""
    for i in range(state.outcomes.pulls.size):
        n = state.outcomes.pulls[i]
        for k in range(state.ones.size):
            successes = state.outcomes.sums[i, k] / state.outcomes.grid[0]
            drawn = rng.beta(1.0 + successes, 1.0 + n - successes)
            if k == 0:
                state.lp.objective[i] = drawn
            else:
                state.lp.columns[k - 1, i] = drawn
    state.lp.counts[STALE] = 1


@kernel
def learn(state: State, t: int, arm: int, chance: float, reward: float, costs: Floats) -> None:  # noqa: ARG001
    """Binarise and enter an outcome; in a window that the round has left it does not count."""
    if arm == SKIP:
        return
    key = state.clock[1]
    state.ones[0] = 1.0 if coin(key, t, 0) < reward else 0.0
    for j in range(costs.size):
        state.ones[1 + j] = 1.0 if coin(key, t, 1 + j) < costs[j] else 0.0
    admit(state.outcomes, state.clock[0], t, arm, state.ones)


@dataclass(frozen=True)
class ThompsonBwK(Policy):
    """Recipe: ``window`` in rounds, or None to remember everything; ``budget_rule`` as for ``SlidingWindowUCB``.

    >>> ThompsonBwK(window=500).to_spec()
    {'policy': 'ThompsonBwK', 'window': 500, 'budget_rule': 'fixed'}
    """

    window: int | None = None
    budget_rule: str = "fixed"

    def __post_init__(self) -> None:
        if self.window is not None:
            object.__setattr__(self, "window", whole(self.window, "window", at_least=1))
        one_of(self.budget_rule, "budget_rule", BUDGET_RULES)

    @property
    def forgets(self) -> bool:
        """With a window."""
        return self.window is not None

    def new_state(self, problem: Problem) -> State:
        """Uniform posteriors."""
        horizon, kinds = problem.horizon, 1 + problem.resources
        return State(
            outcomes=open_window(self.window or horizon, horizon, problem.arms, outcomes=kinds),
            lp=new_step_lp(problem.arms, problem.rate),
            clock=np.array([-1, 0]),
            ones=np.zeros(kinds),
            horizon=horizon,
            remaining=self.budget_rule == "remaining",
        )
