r"""Two-speed pacing: spend less than the even pace when rewards are low for their cost, and more when they are high.

Costs are in units of the budget rate. With :math:`\rho` what is left of each budget over the rounds left, a *long-run
price* :math:`\lambda` of each resource, :math:`\theta` the most that a round may spend in units of the even pace, and
:math:`\epsilon = 0.15`, the mix solves

.. math:: \max_{x, u} \; \mu^\top x - (1 - \epsilon) \lambda^\top C x - 2 \epsilon \lambda^\top u \quad
          \text{s.t. } C x - u \le \rho,\; 0 \le u \le (\theta - 1) \rho,\; x \in \Delta_m .

The first :math:`\rho` units cost :math:`(1 - \epsilon) \lambda`, so they are saved if the present price is lower; the
next ones cost :math:`(1 + \epsilon) \lambda`, so they are spent if it is higher. In no round is more than
:math:`\theta \rho` planned.

*Long-run price.* A reservoir keeps snapshots of the estimates, drawn evenly from all rounds so far. In each round one
of them is taken at random; with a its best response to :math:`\lambda`,

.. math:: \lambda_j \leftarrow \lambda_j \exp\bigl(0.01 \min(C_{ja}/\rho_j - 1,\; 3)\bigr),

so that :math:`\lambda` is the price at which spending as in the past would just use up what is left.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.core.problem import Problem
from driftsack.game.records import Round
from driftsack.lp.step import LOOSE
from driftsack.numerics.compiled import kernel
from driftsack.numerics.simplex import Simplex, new_simplex

SNAPSHOTS: Final = 64
MARGIN: Final = 0.15  # epsilon
STEP: Final = 0.01  # of the long-run price
LARGEST_STEP: Final = 3.0
RANGE: Final = 1e3  # prices stay within this factor of the largest estimated reward
TINY: Final = 1e-12


class TwoSpeed(NamedTuple):
    """The long-run price and the reservoir behind it."""

    price: Floats  # (d,) lambda, in reward per unit of the budget rate; 0 before the first estimate
    pace: Floats  # (d,) rho of the present round, in units of the budget rate
    snapshots: Floats  # (S, m, 1 + d) estimates, rewards first
    taken: Ints  # (1,) estimates that were offered to the reservoir
    unit: Floats  # (d,) the budget rate
    horizon: int
    speed: float  # theta
    remaining: bool  # pace by what is left, instead of the round's rate


def new_two_speed(problem: Problem, speed: float, remaining: bool) -> TwoSpeed:
    """A pacer without a price."""
    arms, resources = problem.arms, problem.resources
    return TwoSpeed(
        price=np.zeros(resources),
        pace=np.ones(resources),
        snapshots=np.zeros((SNAPSHOTS, arms, 1 + resources)),
        taken=np.zeros(1, dtype=np.int64),
        unit=np.maximum(problem.rate, TINY),
        horizon=problem.horizon,
        speed=speed,
        remaining=remaining,
    )


def new_tiered_lp(arms: int, resources: int) -> Simplex:
    """The program above: columns of the arms, then of u; rows of the resources, of the mix, and of the bounds on u."""
    lp = new_simplex(2 * resources + 1, arms + resources)
    for j in range(resources):
        lp.columns[j, arms + j] = -1.0
        lp.columns[resources + 1 + j, arms + j] = 1.0
    lp.columns[resources, :arms] = 1.0
    lp.rhs[resources] = 1.0
    return lp


@kernel
def set_pace(pacer: TwoSpeed, round: Round) -> None:
    """What a round may spend on average, in units of the budget rate."""
    ledger = round.ledger
    for j in range(pacer.pace.size):
        rate = round.rate[j]
        if pacer.remaining:
            rate = max(ledger.budget[j] - ledger.spent[j], 0.0) / (pacer.horizon - round.t)
        pacer.pace[j] = rate / pacer.unit[j]


@kernel
def update_price(pacer: TwoSpeed, estimates: Floats, reward: float, rng: Generator) -> None:
    """One step of the long-run price; ``reward`` is the largest estimated reward, which sets its scale."""
    kept = min(pacer.taken[0], pacer.snapshots.shape[0])
    if kept == 0:
        for j in range(pacer.price.size):
            pacer.price[j] = reward
    else:
        chosen = min(int(rng.random() * kept), kept - 1)
        arm = best_response(pacer.snapshots[chosen], pacer.price)
        for j in range(pacer.price.size):
            used = pacer.snapshots[chosen, arm, 1 + j] / max(pacer.pace[j], TINY) if arm >= 0 else 0.0
            price = pacer.price[j] * math.exp(STEP * min(used - 1.0, LARGEST_STEP))
            pacer.price[j] = min(max(price, reward / RANGE), reward * RANGE)
    keep_snapshot(pacer, estimates, rng)


@kernel
def best_response(estimates: Floats, price: Floats) -> int:
    """The arm with the largest reward less the price of its costs, or -1 if none is above 0."""
    best, arm = 0.0, -1
    for i in range(estimates.shape[0]):
        value = estimates[i, 0]
        for j in range(price.size):
            value -= price[j] * estimates[i, 1 + j]
        if value > best:
            best, arm = value, i
    return arm


@kernel
def keep_snapshot(pacer: TwoSpeed, estimates: Floats, rng: Generator) -> None:
    """Reservoir sampling: every round so far is kept with the same probability."""
    taken, size = pacer.taken[0], pacer.snapshots.shape[0]
    slot = taken if taken < size else int(rng.random() * (taken + 1))
    if slot < size:
        for i in range(estimates.shape[0]):
            for k in range(estimates.shape[1]):
                pacer.snapshots[slot, i, k] = estimates[i, k]
    pacer.taken[0] = taken + 1


@kernel
def set_tiers(pacer: TwoSpeed, lp: Simplex, largest: Floats, two_speed: bool) -> None:
    """Write u and the right-hand sides; rewards and costs of the LP are in units of ``largest (1 + d,)``."""
    resources = pacer.pace.size
    arms = lp.solution.size - resources
    for j in range(resources):
        pace = min(pacer.pace[j] / largest[1 + j], LOOSE)
        lp.rhs[j] = pace
        lp.rhs[resources + 1 + j] = (pacer.speed - 1.0) * pace if two_speed else 0.0
        lp.objective[arms + j] = -2.0 * MARGIN * relative_price(pacer, largest, j)


@kernel
def relative_price(pacer: TwoSpeed, largest: Floats, j: int) -> float:
    """The long-run price of resource ``j`` in the units of the LP."""
    return float(pacer.price[j] * largest[1 + j] / largest[0])
