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

*Held draws.* In a round only the arms that were observed since the last one and two others in turn are drawn again. The
draws of the rest are kept, so that few columns of the LP change and its last basis is a good start.

*Choice.* The mix solves the two-speed LP on the draws. Costs are measured in units of the budget rate and rewards and
costs relative to the largest ones observed, so nothing that is learnt depends on ``reward_max`` or ``cost_max``.

*Guarantee*: no bound on the regret is proved; docs/theory.md proves that in no round more than :math:`\theta` times the
remaining rate is planned, and bounds the belief's loss and the number of revisits. docs/policies.md has what was
measured. A round costs O(md), an LP with 2d + 1 rows, and O(Kd) to learn for K = 6 runs.

Late feedback counts for its own round: only the age of the belief when it arrives decides its weight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Bools, Floats, Ints
from driftsack.core.checks import LARGEST_FLOAT, LARGEST_SETTING, Ranges, at_least_zero, number, one_of
from driftsack.core.decision import SKIP
from driftsack.core.errors import OutOfRangeError
from driftsack.core.problem import Problem
from driftsack.game.protocol import STUCK
from driftsack.game.records import Outcome, Round
from driftsack.game.state_growth import grow
from driftsack.numerics.compiled import kernel
from driftsack.numerics.sampling import draw
from driftsack.numerics.simplex import OPTIMAL, STALE, Simplex, column_changed, solve
from driftsack.policies.parts.open_arms import CLOSED, uniform_over_open
from driftsack.policies.parts.pacing import FIXED, REMAINING, TWO_SPEED
from driftsack.policies.parts.run_length import (
    RunLengths,
    changed_unseen,
    new_run_lengths,
    observe_outcome,
    prior_mean,
    variance,
)
from driftsack.policies.parts.two_speed import (
    TwoSpeed,
    draw_from_tiers,
    follow,
    new_tiered_lp,
    new_two_speed,
    set_tiers,
)
from driftsack.policies.policy import Policy

IN_TURN: Final = 2  # arms that are drawn again in each round, besides those that were observed
PACES: Final = (TWO_SPEED, REMAINING, FIXED)


class State(NamedTuple):
    """The belief, the pacer and the LP of the present draws."""

    belief: RunLengths
    pacer: TwoSpeed
    lp: Simplex
    drawn: Floats  # (m, 1 + d) the present draws
    due: Bools  # (m,) arms that are to be drawn again
    turn: Ints  # (1,) the arm whose turn is next
    scale: Floats  # (1 + d,) the largest outcomes when the LP was written
    latest: Floats  # (1,) the latest round for which means were drawn; -1 before the first
    exploration: float  # z

    def ranges(self, rounds: int) -> Ranges:
        """What the fields may hold after some rounds."""
        return {
            "turn": (0, self.due.size - 1),
            "latest": (-1, rounds),
            "drawn": (0.0, LARGEST_FLOAT),
            "scale": (0.0, LARGEST_FLOAT),
        }

    def grow_from(self, old: State) -> None:
        """Keep the belief, the pacer and the draws; ``scale`` stays 0, so that all of the LP is written again."""
        for name in ("belief", "pacer", "lp", "drawn", "due", "turn", "latest"):
            grow(getattr(self, name), getattr(old, name))


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Draw means, solve the LP, draw the arm."""
    if state.belief.observed[0] == 0.0:
        uniform_over_open(round, mix)
        prices[:] = 0.0
        return draw(mix, rng.random())
    if round.t > state.latest[0]:
        state.latest[0] = round.t
        draw_means(state, round.t, rng)
        follow(state.pacer, round, state.drawn, state.belief.overall[0])
        set_program(state, round)
    if solve(state.lp) != OPTIMAL:
        return STUCK
    return draw_from_tiers(state.pacer, state.lp, state.belief.largest, rng, mix, prices)


@kernel
def draw_means(state: State, t: int, rng: Generator) -> None:
    """Thompson sampling over whether each arm that is due has changed, and over its means."""
    belief, arms = state.belief, state.due.size
    for _ in range(min(IN_TURN, max(arms - 1, 1))):
        state.due[state.turn[0]] = True
        state.turn[0] = (state.turn[0] + 1) % arms
    for i in range(arms):
        if not state.due[i]:
            continue
        stale = rng.random() < changed_unseen(belief, i, t)
        for k in range(state.drawn.shape[1]):
            if stale:
                mean = prior_mean(belief, i, k)
                sd = math.sqrt(variance(belief, k, mean, 0.0))
            else:
                mean, sd = belief.mean[i, k], state.exploration * belief.sd[i, k]
            state.drawn[i, k] = min(max(mean + sd * rng.standard_normal(), 0.0), belief.largest[k])


@kernel
def set_program(state: State, round: Round) -> None:
    """Write the new draws into the LP, in units of the largest outcomes; closed arms cannot be chosen."""
    lp, largest, resources = state.lp, state.belief.largest, state.pacer.price.size
    for k in range(largest.size):
        if state.scale[k] != largest[k]:
            state.scale[k] = largest[k]
            state.due[:] = True
            lp.counts[STALE] = 1
    for i in range(state.due.size):
        lp.objective[i] = state.drawn[i, 0] / largest[0] + round.skip_cost if round.open[i] else CLOSED
        if state.due[i]:
            for j in range(resources):
                lp.columns[j, i] = state.drawn[i, 1 + j] / largest[1 + j]
            column_changed(lp, i)
            state.due[i] = False
    set_tiers(state.pacer, lp, largest)


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Update the belief about the arm."""
    if outcome.arm != SKIP:
        observe_outcome(state.belief, outcome)
        state.due[outcome.arm] = True


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

    exploration: float = 0.7
    pacing: str = "two-speed"
    speed: float = 2.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "exploration", at_least_zero(self.exploration, "exploration", LARGEST_SETTING))
        one_of(self.pacing, "pacing", PACES)
        object.__setattr__(self, "speed", number(self.speed, "speed"))
        if self.speed < 1.0:
            raise OutOfRangeError(f"speed must be at least 1, the even pace, got {self.speed:g}.")

    @property
    def forgets(self) -> bool:
        """The belief moves to younger runs after a change."""
        return True

    @property
    def bounded(self) -> bool:
        """False: what it learns does not depend on the maxima."""
        return False

    def follow_rate(self) -> Adaptive:
        """Plan with the rate of each round."""
        return replace(self, pacing=FIXED)

    def new_state(self, problem: Problem) -> State:
        """No observations."""
        speed = self.speed if self.pacing == TWO_SPEED else 1.0
        return State(
            belief=new_run_lengths(problem),
            pacer=new_two_speed(problem, speed, self.pacing != FIXED),
            lp=new_tiered_lp(problem.arms, problem.resources),
            drawn=np.zeros((problem.arms, 1 + problem.resources)),
            due=np.ones(problem.arms, dtype=np.bool_),
            turn=np.zeros(1, dtype=np.int64),
            scale=np.zeros(1 + problem.resources),
            latest=np.full(1, -1.0),
            exploration=self.exploration,
        )
