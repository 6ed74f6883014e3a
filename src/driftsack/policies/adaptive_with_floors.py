r"""The state of ``Adaptive`` on a problem with floors, which minimises a cost instead of maximising the reward.

Belief, draws and pacer are those of :mod:`driftsack.policies.adaptive`; the program and the prices are those of
:mod:`driftsack.policies.parts.floor_plan`. With the pacing ``"two-speed"`` reward is bought when it is cheap; with
``"remaining"`` and ``"fixed"`` every round plans to reach what is needed from now on.

*Guarantee*: none is known. A round costs O(md), an LP with 2(d + k) + 1 rows for k floors, and what ``Adaptive`` needs.
"""

from __future__ import annotations

from typing import NamedTuple

from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.game.protocol import STUCK
from driftsack.game.records import Outcome, Round
from driftsack.game.two_speed import follow
from driftsack.numerics.compiled import kernel
from driftsack.numerics.sampling import draw
from driftsack.numerics.simplex import OPTIMAL, solve
from driftsack.policies import adaptive
from driftsack.policies.parts.floor_plan import (
    FloorPlan,
    follow_floors,
    new_floor_lp,
    new_floor_plan,
    read_floors,
    write_floors,
)
from driftsack.policies.parts.open_arms import served, uniform_over_open


class State(NamedTuple):
    """The state for the usual goal, whose LP has rows for the floors, and their plan."""

    usual: adaptive.State
    plan: FloorPlan


def with_floors(usual: adaptive.State, problem: Problem) -> State:
    """Return the state for a problem with floors, given that for the usual goal."""
    lp = new_floor_lp(problem.arms, problem.resources, len(problem.floor))
    return State(usual._replace(lp=lp), new_floor_plan(problem))


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Draw means, solve the LP with floors on them and draw the arm."""
    usual, plan = state.usual, state.plan
    belief, pacer = usual.belief, usual.pacer
    # Without any observation, choose uniformly.
    if belief.observed[0] == 0.0:
        uniform_over_open(round, mix)
        prices[:] = 0.0
        return adaptive.chosen(usual, round, draw(mix, rng.random()))
    # Once per round: draw means, update the pace and the price, and write the LP.
    if round.t > usual.latest[0]:
        usual.latest[0] = round.t
        adaptive.draw_means(usual, round, rng)
        planned = usual.drawn
        if round.listed:
            adaptive.plan_at_list(usual, round)
            planned = usual.planned
        follow(pacer, round, planned, belief.mean, belief.overall[0])
        follow_floors(plan, pacer, round, belief.mean, belief.largest)
        adaptive.set_program(usual, round, planned)
        write_floors(plan, pacer, round, usual.lp, planned, usual.scale)
    if solve(usual.lp) != OPTIMAL:
        return STUCK
    for i in range(mix.size):
        mix[i] = usual.lp.solution[i]
    read_floors(plan, pacer, round, usual.lp, usual.scale, prices)
    arm = served(usual.lp, round, mix, draw(mix, rng.random()))
    if arm == SKIP:
        arm = adaptive.first_pull(usual, round, mix)
    return adaptive.chosen(usual, round, arm)


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Update the belief about the arm."""
    adaptive.learn(state.usual, outcome)
