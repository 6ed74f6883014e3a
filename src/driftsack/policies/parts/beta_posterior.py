r"""Beta posteriors of the mean outcomes of each arm, based on binarised outcomes.

An outcome :math:`x \in [0, 1]` is binarised, 1 with probability x; with S ones among n outcomes of an arm (its reward,
or one of its costs) and a uniform prior, the posterior is :math:`\mathrm{Beta}(1 + S, 1 + n - S)`. With a window, n and
S count only the last w rounds.

The uniform number that binarises the outcome of round t is a hash of t and a key drawn in the first round, so it does
not depend on when the outcome arrives. O(d) to learn, m (1 + d) Beta draws per round.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.core.bounds import RoundNumbers, within
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.game.records import Outcome
from driftsack.numerics.compiled import kernel
from driftsack.numerics.sampling import hashed_uniform
from driftsack.numerics.simplex import STALE, Simplex
from driftsack.numerics.window import Window, add, open_window


class BetaPosterior(NamedTuple):
    """Counts of binarised outcomes."""

    outcomes: Window  # (w, 1 + d) ring and (m, 1 + d) sums of ones, rewards first
    latest: RoundNumbers  # (1,) the latest round for which means were drawn, from 0
    key: Annotated[Ints, within(0, 2**32)]  # (1,) key of the hash that binarises outcomes; 0 before it is drawn
    ones: Floats  # (1 + d,) scratch

    def check(self) -> None:
        """Raise unless there are at most as many ones as outcomes; the posteriors would not exist."""
        sums, grid = self.outcomes.sums, self.outcomes.grid[0]
        if (sums < 0).any() or (sums > self.outcomes.pulls[:, None] * grid).any():
            raise ValueError("an arm has more ones than outcomes")


def new_beta_posterior(problem: Problem, windows: int | None) -> BetaPosterior:
    """Create uniform posteriors with a window of ``windows`` rounds; None for an infinite window."""
    horizon, kinds = problem.horizon, 1 + problem.resources
    return BetaPosterior(
        outcomes=open_window(windows or horizon, horizon, problem.arms, outcomes=kinds),
        latest=np.full(1, -1, dtype=np.int64),
        key=np.zeros(1, dtype=np.int64),
        ones=np.zeros(kinds),
    )


@kernel
def draw_means(posterior: BetaPosterior, lp: Simplex, t: int, rng: Generator) -> bool:
    """Write a draw from every posterior into the LP, once per round; return whether the round is new."""
    if posterior.key[0] == 0:
        posterior.key[0] = 1 + int(rng.random() * 2.0**32)
    if t <= posterior.latest[0]:
        return False
    posterior.latest[0] = t
    for i in range(posterior.outcomes.pulls.size):
        n = posterior.outcomes.pulls[i]
        for k in range(posterior.ones.size):
            successes = posterior.outcomes.sums[i, k] / posterior.outcomes.grid[0]
            drawn = rng.beta(1.0 + successes, 1.0 + n - successes)
            if k == 0:
                lp.objective[i] = drawn
            else:
                lp.columns[k - 1, i] = drawn
    lp.counts[STALE] = 1
    return True


@kernel
def observe(posterior: BetaPosterior, outcome: Outcome) -> None:
    """Binarise and add an outcome; it is ignored if its round has left the window."""
    if outcome.arm == SKIP:
        return
    key, t = posterior.key[0], outcome.t
    posterior.ones[0] = 1.0 if hashed_uniform(key, t, 0) < outcome.reward else 0.0
    for j in range(outcome.costs.size):
        posterior.ones[1 + j] = 1.0 if hashed_uniform(key, t, 1 + j) < outcome.costs[j] else 0.0
    add(posterior.outcomes, posterior.latest[0], t, outcome.arm, posterior.ones)
