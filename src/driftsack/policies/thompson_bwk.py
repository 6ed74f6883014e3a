r"""Thompson sampling for BwK (Ferreira, Simchi-Levi and Wang 2018): solve the LP of a draw from the posterior.

An outcome :math:`x \in [0, 1]` is binarised, 1 with probability x; with S ones among n outcomes of an arm (its reward,
or one of its costs) and a uniform prior, the posterior is :math:`\mathrm{Beta}(1 + S, 1 + n - S)`. Each round draws
:math:`\tilde\mu_i` and :math:`\tilde C_{j,i}` from the posteriors, solves

.. math:: \max_x \; \tilde\mu^\top x \quad \text{s.t. } \tilde C x \le b,\; x \in \Delta_m,

and draws the arm from x. ``budget_rule="fixed"`` is their TS-fixed, ``"remaining"`` (the remaining budget per remaining
round) their TS-update. With ``windows`` the posterior uses the last w rounds only; this variant is not in their paper.

*Guarantee* (stationary environment, Bayesian regret under the prior): :math:`\tilde O(\sqrt{m T})`, up to the prices of
the resources. No guarantee under drift is known. A round takes m (1 + d) Beta draws and an LP whose columns are all
new, which makes it the most expensive of the LP policies. Late feedback counts for the round it belongs to. The uniform
number that binarises the outcome of round t is a hash of t and a key drawn in the first round, so it does not depend on
when the outcome arrives.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import Ranges, whole
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.game.protocol import STUCK
from driftsack.game.records import Outcome, Round
from driftsack.lp.step import draw_from, new_step_lp
from driftsack.numerics.compiled import kernel
from driftsack.numerics.sampling import hashed_uniform
from driftsack.numerics.simplex import OPTIMAL, STALE, Simplex, solve
from driftsack.numerics.window import Window, add, expire, open_window
from driftsack.policies.parts.pacing import FIXED, Pacer, check_budget_rule, new_pacer, pace
from driftsack.policies.policy import Policy, renamed_settings


class State(NamedTuple):
    """Counts of binarised outcomes and the LP of the last draw."""

    outcomes: Window  # (w, 1 + d) ring and (m, 1 + d) sums of ones, rewards first
    lp: Simplex
    pacer: Pacer
    latest: Ints  # (1,) the latest round chosen, from 0
    key: Ints  # (1,) key of the hash that binarises outcomes; 0 before it is drawn
    ones: Floats  # (1 + d,) scratch

    def ranges(self, rounds: int) -> Ranges:
        """What the fields may hold after some rounds."""
        return {"latest": (-1, rounds), "key": (0, 2**32)}

    def check(self) -> None:
        """Raise unless there are at most as many ones as outcomes; the posteriors would not exist."""
        sums, grid = self.outcomes.sums, self.outcomes.grid[0]
        if (sums < 0).any() or (sums > self.outcomes.pulls[:, None] * grid).any():
            raise ValueError("an arm has more ones than outcomes")


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Draw means from the posteriors once per round, solve the LP and draw the arm."""
    if state.key[0] == 0:
        state.key[0] = 1 + int(rng.random() * 2.0**32)
    if round.t > state.latest[0]:
        state.latest[0] = round.t
        draw_means(state, rng)
    pace(state.pacer, state.lp, round)
    if solve(state.lp) != OPTIMAL:
        return STUCK
    expire(state.outcomes, round.t)
    return draw_from(state.lp, rng, mix, prices)


@kernel
def draw_means(state: State, rng: Generator) -> None:
    """Write a draw from every posterior into the LP."""
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
def learn(state: State, outcome: Outcome) -> None:
    """Binarise and add an outcome; it does not count in a window that its round has left."""
    if outcome.arm == SKIP:
        return
    key, t = state.key[0], outcome.t
    state.ones[0] = 1.0 if hashed_uniform(key, t, 0) < outcome.reward else 0.0
    for j in range(outcome.costs.size):
        state.ones[1 + j] = 1.0 if hashed_uniform(key, t, 1 + j) < outcome.costs[j] else 0.0
    add(state.outcomes, state.latest[0], t, outcome.arm, state.ones)


@renamed_settings(window="windows")
@dataclass(frozen=True)
class ThompsonBwK(Policy):
    """Thompson sampling.

    Attributes:
        windows: Rounds to remember, one number for rewards and costs; None remembers everything.
        budget_rule: ``"fixed"`` paces by b = B/T, ``"remaining"`` by the remaining budget per remaining round.

    >>> ThompsonBwK(windows=500).to_spec()
    {'policy': 'ThompsonBwK', 'windows': 500, 'budget_rule': 'fixed'}
    """

    windows: int | None = None
    budget_rule: str = "fixed"

    def __post_init__(self) -> None:
        if self.windows is not None:
            object.__setattr__(self, "windows", whole(self.windows, "windows", at_least=1))
        check_budget_rule(self)

    @property
    def forgets(self) -> bool:
        """With ``windows``, observations older than them are dropped."""
        return self.windows is not None

    def follow_rate(self) -> ThompsonBwK:
        """Plan with the rate of each round."""
        return replace(self, budget_rule=FIXED)

    def rounds_kept(self, problem: Problem) -> int:
        """The rounds of the window; one that never forgets keeps none."""
        return self.windows if self.windows is not None and self.windows < problem.horizon else 0

    def new_state(self, problem: Problem) -> State:
        """The state without observations, with uniform posteriors."""
        horizon, kinds = problem.horizon, 1 + problem.resources
        return State(
            outcomes=open_window(self.windows or horizon, horizon, problem.arms, outcomes=kinds),
            lp=new_step_lp(problem.arms, problem.rate),
            pacer=new_pacer(horizon, self.budget_rule),
            latest=np.full(1, -1, dtype=np.int64),
            key=np.zeros(1, dtype=np.int64),
            ones=np.zeros(kinds),
        )
