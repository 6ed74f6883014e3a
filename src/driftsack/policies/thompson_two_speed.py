r"""Thompson sampling at two speeds: the state and the kernels of ``ThompsonBwK(budget_rule="two-speed")``.

The draws are those of :mod:`driftsack.policies.thompson_bwk`; the mix solves the LP of
:mod:`driftsack.game.two_speed` on them. The LP is in units of ``cost_max`` and the pacer in units of the
budget rate b, so a cost of 1 in the LP is a cost of :math:`1/b_j` for the pacer, which keeps snapshots of the draws.

A round costs the Beta draws, an LP with 2d + 1 rows whose columns are all new, and O(Smd/8) for S = 32 snapshots.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.bounds import Constants, NonNegative
from driftsack.core.problem import Problem
from driftsack.game.protocol import STUCK
from driftsack.game.records import Outcome, Round
from driftsack.game.two_speed import (
    TwoSpeed,
    draw_from_tiers,
    follow,
    new_tiered_lp,
    new_two_speed,
    set_tiers,
)
from driftsack.numerics.compiled import kernel
from driftsack.numerics.simplex import OPTIMAL, Simplex, solve
from driftsack.numerics.window import expire
from driftsack.policies.parts.beta_posterior import BetaPosterior, draw_means, new_beta_posterior, observe
from driftsack.policies.parts.open_arms import list_costs, served, set_rewards


class State(NamedTuple):
    """Posteriors, pacer and the LP of the last draw."""

    posterior: BetaPosterior
    pacer: TwoSpeed
    lp: Simplex
    drawn: NonNegative  # (m, 1 + d) the draws in the units of the pacer
    largest: Constants  # (1 + d,) the units of the LP in those of the pacer: 1 for rewards, 1 / b for costs


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Draw means from the posteriors once per round, solve the two-speed LP and draw the arm."""
    pacer, lp = state.pacer, state.lp
    if draw_means(state.posterior, lp, round.t, rng):
        list_costs(lp, round)
        reward = read_draws(state)
        follow(pacer, round, state.drawn, state.drawn, reward)
        set_rewards(lp, round)
        set_tiers(pacer, lp, state.largest)
    if solve(lp) != OPTIMAL:
        return STUCK
    expire(state.posterior.outcomes, round.t)
    return served(lp, round, mix, draw_from_tiers(pacer, lp, state.largest, rng, mix, prices))


@kernel
def read_draws(state: State) -> float:
    """Copy the draws from the LP, in the units of the pacer; return the mean of the drawn rewards."""
    total, arms = 0.0, state.drawn.shape[0]
    for i in range(arms):
        state.drawn[i, 0] = state.lp.objective[i]
        total += state.drawn[i, 0]
        for j in range(state.pacer.price.size):
            state.drawn[i, 1 + j] = state.lp.columns[j, i] * state.largest[1 + j]
    return float(total / arms)


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Update the posteriors of the arm."""
    observe(state.posterior, outcome)


def new_two_speed_state(problem: Problem, windows: int | None) -> State:
    """Return the state without observations, with uniform posteriors and without prices."""
    pacer = new_two_speed(problem)
    return State(
        posterior=new_beta_posterior(problem, windows),
        pacer=pacer,
        lp=new_tiered_lp(problem.arms, problem.resources),
        drawn=np.zeros((problem.arms, 1 + problem.resources)),
        largest=np.concatenate([[1.0], 1.0 / pacer.unit]),
    )
