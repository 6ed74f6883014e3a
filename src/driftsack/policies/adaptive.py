r"""Adaptive: a policy for unknown drift, without windows, variation budgets or scales to choose.

Three parts: what is estimated (:mod:`driftsack.policies.parts.run_length`), how arms are explored and revisited
(below), and how spending is paced (:mod:`driftsack.policies.parts.two_speed`).

*Exploration* is Thompson sampling over *whether an arm has changed* as well as over its means. With probability
:math:`s_i`, the chance that arm i has changed since it was last observed (1 without observations), all its outcomes are
drawn from the prior of a new run, otherwise from the belief,

.. math:: \tilde y_{ik} \sim
          \mathcal N\Bigl(q^0_{ik},\; \frac{\varphi_k q^0_{ik} (1 - q^0_{ik}/M_k)}{\kappa_k + 1}\Bigr)
          \qquad \text{or} \qquad \mathcal N(\text{mean}_{ik},\, (z\, \mathrm{sd}_{ik})^2),

clipped to :math:`[0, M_k]`. So an arm that is not pulled is revisited about every :math:`\sqrt{1/h}` rounds.

*Choice.* The mix solves the two-speed LP on the draws; in the first 2% of the rounds, while the long-run price is not
yet known, it solves the LP of the even pace. Costs are measured in units of the budget rate and rewards and costs
relative to the largest ones observed, so nothing that is learnt depends on ``reward_max`` or ``cost_max``.

*Guarantee*: none is proved. In no round is more than :math:`\theta` times the remaining rate planned. docs/policies.md
has what was measured. A round costs O(md) draws, an LP with 2d + 1 rows, and O(Kd) to learn for K = 8 runs.

Late feedback counts for its own round: only the age of the belief when it arrives decides its weight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.checks import at_least_zero, number, one_of
from driftsack.core.decision import SKIP
from driftsack.core.errors import OutOfRangeError
from driftsack.core.problem import Problem
from driftsack.game.protocol import STUCK
from driftsack.game.records import Outcome, Round
from driftsack.numerics.compiled import kernel
from driftsack.numerics.sampling import draw
from driftsack.numerics.simplex import OPTIMAL, STALE, Simplex, solve
from driftsack.policies.parts.run_length import (
    RunLengths,
    changed_unseen,
    new_run_lengths,
    observe_outcome,
    prior_mean,
    variance,
)
from driftsack.policies.parts.two_speed import (
    MARGIN,
    TwoSpeed,
    new_tiered_lp,
    new_two_speed,
    relative_price,
    set_pace,
    set_tiers,
    update_price,
)
from driftsack.policies.policy import Policy

WARM_UP: Final = 0.02  # of the rounds: the even pace, until the long-run price is known
PACES: Final = ("two-speed", "remaining", "fixed")


class State(NamedTuple):
    """The belief, the pacer and the LP of the last draws."""

    belief: RunLengths
    pacer: TwoSpeed
    lp: Simplex
    drawn: Floats  # (m, 1 + d) the draws of the round
    latest: Floats  # (1,) the latest round for which means were drawn; -1 before the first
    exploration: float  # z
    warm_up: int  # rounds


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Draw means, price them, solve the LP, draw the arm."""
    if state.belief.observed[0] == 0.0:
        return any_arm(round, rng, mix, prices)
    two_speed = state.pacer.speed > 1.0 and round.t >= state.warm_up
    if round.t > state.latest[0]:
        state.latest[0] = round.t
        set_pace(state.pacer, round)
        update_price(state.pacer, state.belief.mean, largest_reward(state.belief), rng)
        draw_means(state, round.t, rng)
        set_program(state, round, two_speed)
    if solve(state.lp) != OPTIMAL:
        return STUCK
    largest, unit = state.belief.largest, state.pacer.unit
    for i in range(mix.size):
        mix[i] = state.lp.solution[i]
    for j in range(prices.size):
        price = state.lp.duals[j]
        if two_speed:
            price += (1.0 - MARGIN) * relative_price(state.pacer, largest, j)
        prices[j] = price * largest[0] / (largest[1 + j] * unit[j])
    return draw(mix, rng.random())


@kernel
def any_arm(round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Before the first observation: any open arm with the same probability."""
    count = 0
    for i in range(mix.size):
        count += round.open[i]
    for i in range(mix.size):
        mix[i] = 1.0 / count if round.open[i] else 0.0
    prices[:] = 0.0
    return draw(mix, rng.random())


@kernel
def largest_reward(belief: RunLengths) -> float:
    """The largest estimated reward; an arm without observations has the overall mean."""
    best = 0.0
    for i in range(belief.last.size):
        if belief.last[i] < 0:
            for k in range(belief.overall.size):
                belief.mean[i, k] = belief.overall[k]
        best = max(best, belief.mean[i, 0])
    return best


@kernel
def draw_means(state: State, t: int, rng: Generator) -> None:
    """Thompson sampling over whether each arm has changed, and over its means."""
    belief = state.belief
    for i in range(state.drawn.shape[0]):
        stale = rng.random() < changed_unseen(belief, i, t)
        for k in range(state.drawn.shape[1]):
            if stale:
                mean = prior_mean(belief, i, k)
                sd = math.sqrt(variance(belief, k, mean, 0.0))
            else:
                mean, sd = belief.mean[i, k], state.exploration * belief.sd[i, k]
            state.drawn[i, k] = min(max(mean + sd * rng.standard_normal(), 0.0), belief.largest[k])


@kernel
def set_program(state: State, round: Round, two_speed: bool) -> None:
    """Write the draws into the LP, in units of the largest outcomes; closed arms cannot be chosen."""
    lp, largest, pacer = state.lp, state.belief.largest, state.pacer
    for i in range(state.drawn.shape[0]):
        value = state.drawn[i, 0] / largest[0]
        for j in range(pacer.price.size):
            cost = state.drawn[i, 1 + j] / largest[1 + j]
            lp.columns[j, i] = cost if round.open[i] else 0.0
            if two_speed:
                value -= (1.0 - MARGIN) * relative_price(pacer, largest, j) * cost
        lp.objective[i] = value if round.open[i] else -1.0
    set_tiers(pacer, lp, largest, two_speed)
    lp.counts[STALE] = 1


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Update the belief about the arm."""
    if outcome.arm != SKIP:
        observe_outcome(state.belief, outcome)


@dataclass(frozen=True)
class Adaptive(Policy):
    """A policy for unknown drift that needs no tuning.

    Attributes:
        exploration: Factor z on the standard deviations in Thompson sampling.
        pacing: ``"two-speed"`` saves when rewards are low for their cost and spends up to ``speed`` times the even pace
            when they are high; ``"remaining"`` spends what is left evenly over the rounds left; ``"fixed"`` spends the
            rate of each round.
        speed: The most that a round may plan to spend with ``"two-speed"``, in units of the even pace.

    >>> import driftsack as ds
    >>> world = ds.instances.example_2()
    >>> share = ds.simulate(world, Adaptive(), trials=20).reward.mean() / ds.benchmarks.lp_dynamic(world).value
    >>> bool(share > 0.9)
    True
    """

    exploration: float = 0.5
    pacing: str = "two-speed"
    speed: float = 2.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "exploration", at_least_zero(self.exploration, "exploration"))
        one_of(self.pacing, "pacing", PACES)
        object.__setattr__(self, "speed", number(self.speed, "speed"))
        if self.speed < 1.0:
            raise OutOfRangeError(f"speed must be at least 1, the even pace, got {self.speed:g}.")

    @property
    def forgets(self) -> bool:
        """The belief moves to younger runs after a change."""
        return True

    def follow_rate(self) -> Adaptive:
        """Plan with the rate of each round."""
        return replace(self, pacing="fixed")

    def new_state(self, problem: Problem) -> State:
        """No observations."""
        speed = self.speed if self.pacing == "two-speed" else 1.0
        return State(
            belief=new_run_lengths(problem),
            pacer=new_two_speed(problem, speed, self.pacing != "fixed"),
            lp=new_tiered_lp(problem.arms, problem.resources),
            drawn=np.zeros((problem.arms, 1 + problem.resources)),
            latest=np.full(1, -1.0),
            exploration=self.exploration,
            warm_up=math.ceil(WARM_UP * problem.horizon),
        )
