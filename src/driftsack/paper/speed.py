"""Estimate the time of the same work in plain Python with ``linprog``, from a short measured run."""

from __future__ import annotations

import time
from typing import Final, NamedTuple

import numpy as np

from driftsack.core.contextual import ContextualInstance
from driftsack.core.instance import Instance
from driftsack.instances import example_2
from driftsack.paper.plain_python import PlainSlidingWindowUCB
from driftsack.policies import Policy
from driftsack.simulation import simulate

SLICE: Final = 300  # rounds of Example 2


class Speed(NamedTuple):
    """A comparison with a plain Python loop that calls ``linprog``."""

    rounds: int  # the number of rounds in which a linear program was solved
    seconds: float  # the total time of the library
    plain_round_seconds: float  # the measured time of a round of the plain loop
    plain_seconds: float  # the estimated time of the plain loop for all rounds
    ratio: float | None  # ``plain_seconds / seconds``, or None if no round was played


def compare_speed(rounds: int, seconds: float) -> Speed:
    """Estimate the time of the plain loop for work that took the library ``seconds``.

    Only the rounds of the UCBs count. LagrangeBwK solves no linear program; its rounds are left out, in favour of the
    plain loop.
    """
    plain = round_seconds(example_2(horizon=SLICE), PlainSlidingWindowUCB(windows=(SLICE // 4, SLICE // 4)), trials=1)
    return Speed(rounds, seconds, plain, plain * rounds, plain * rounds / seconds if rounds else None)


def round_seconds(world: Instance | ContextualInstance, policy: Policy | PlainSlidingWindowUCB, trials: int) -> float:
    """Wall time per simulated round on one thread, everything included."""
    begun = time.perf_counter()
    run = simulate(world, policy, trials=trials, seed=0, threads=1)
    return (time.perf_counter() - begun) / int(np.minimum(run.stopping_time, world.horizon).sum())
