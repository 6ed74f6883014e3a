"""``gather``: play a policy on an instance and keep every round as a log, with the probability of its arm."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import of_type
from driftsack.core.decision import SKIP
from driftsack.core.instance import NOISES, Instance
from driftsack.core.problem import Problem
from driftsack.core.seeding import generator, trial_seeds
from driftsack.game.ledger import Ledger, charge, open_ledger
from driftsack.logs import Log
from driftsack.numerics.compiled import OPTIONS, kernel
from driftsack.policies import Policy, UniformRandom
from driftsack.policies.policy import STUCK, choose, covered, learn, unstick
from driftsack.simulation.loop import FINISHED, World, realise


class Rows(NamedTuple):
    """What a log keeps, as kernels see it."""

    arm: npt.NDArray[np.int32]  # (T,)
    chance: Floats  # (T,)
    outcomes: Floats  # (T, 1 + d)
    clock: Ints  # (1,) rounds played
    mix: Floats  # (m,) of the present round
    prices: Floats  # (d,) of the present round


@kernel
def record(state: Any, ledger: Ledger, world: World, rows: Rows, nature: Generator, learner: Generator) -> int:
    """Play every round, whatever it costs; ``STUCK`` to be called again once the LP is solved."""
    for t in range(rows.clock[0], rows.arm.size):
        arm = choose(state, ledger, t, learner, rows.mix, rows.prices)
        if arm == STUCK:
            return STUCK
        costs = rows.outcomes[t, 1:]
        rows.arm[t] = arm
        rows.chance[t] = 1.0 - rows.mix.sum() if arm == SKIP else rows.mix[arm]
        if arm != SKIP:
            rows.outcomes[t, 0] = realise(world, t, arm, costs, nature)
            charge(ledger, costs)
        learn(state, t, arm, rows.chance[t], rows.outcomes[t, 0], costs)
        rows.clock[0] = t + 1
    return FINISHED


_fresh_record = njit(**OPTIONS)(getattr(record, "py_func", record))  # for states written outside the package


def gather(instance: Instance, policy: Policy | None = None, seed: int = 0) -> Log:
    """A log of all T rounds, by default of uniform random choices; while it is gathered, budgets do not end the game.

    The policy is told of budgets that suffice for every round; arms are named by their numbers.

    >>> import driftsack as ds
    >>> log = gather(ds.instances.example_2(horizon=100), seed=1)
    >>> len(log), log.arms, float(log.propensity[0])
    (100, ('0', '1'), 0.5)
    """
    of_type(instance, Instance, "instance")
    told, most = instance.problem, np.asarray(instance.problem.cost_max)
    free = Problem(told.horizon, told.arms, most * (told.horizon + 1), told.reward_max, most)
    nature, learner = (generator(part) for part in trial_seeds(seed, 0))
    state = (policy or UniformRandom()).new_state(free)
    world = World(instance.unit_rewards, instance.unit_costs, instance.phase, NOISES.index(instance.noise))
    rows = _new_rows(told)
    loop = record if covered(state) else _fresh_record
    ledger = open_ledger(free.unit_budget, free.horizon)
    while loop(state, ledger, world, rows, nature, learner) == STUCK:
        unstick(state)
    return Log(
        arms=tuple(str(i) for i in range(told.arms)),
        resources=tuple(f"cost_{j}" for j in range(told.resources)),
        time=np.arange(1.0, told.horizon + 1),
        arm=rows.arm,
        reward=rows.outcomes[:, 0] * told.reward_max,
        costs=rows.outcomes[:, 1:] * most,
        propensity=rows.chance,
        table=None,
        reward_max=told.reward_max,
        cost_max=told.cost_max,
    )


def _new_rows(problem: Problem) -> Rows:
    """Room for every round."""
    horizon, resources = problem.horizon, problem.resources
    return Rows(
        arm=np.full(horizon, SKIP, dtype=np.int32),
        chance=np.ones(horizon),
        outcomes=np.zeros((horizon, 1 + resources)),
        clock=np.zeros(1, dtype=np.int64),
        mix=np.zeros(problem.arms),
        prices=np.zeros(resources),
    )
