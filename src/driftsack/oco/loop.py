"""The rounds of a play, compiled; the same kernels serve ``ask`` and ``tell``."""

from __future__ import annotations

from typing import Final, NamedTuple

from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.numerics.compiled import kernel
from driftsack.oco import online_gradient, penalised, virtual_queue
from driftsack.oco.families import Rows, evaluate
from driftsack.oco.region import Region, project
from driftsack.oco.state import GRADIENT, QUEUE, State

FINISHED: Final = 0


class Tally(NamedTuple):
    """What one trial has lost and overdrawn so far."""

    clock: Ints  # (1,) curve points written
    sums: Floats  # (1 + d,) losses, then constraints
    points: Floats  # (n,) sum of the decisions
    times: Ints  # (p,) rounds after which the curves are read
    curves: Floats  # (p, 1 + d)
    values: Floats  # (1 + d,) of the present round
    gradients: Floats  # (1 + d, n) of the present round


@kernel
def aim(state: State, gradients: Floats) -> None:
    """Write where the next decision would be without the domain."""
    if state.kind == QUEUE:
        virtual_queue.aim(state, gradients)
    elif state.kind == GRADIENT:
        online_gradient.aim(state, gradients)
    else:
        penalised.aim(state, gradients)


@kernel
def settle(state: State, values: Floats, gradients: Floats) -> None:
    """Once the target lies in the domain: update the prices, move there, end the round."""
    if state.kind == QUEUE:
        virtual_queue.settle(state, values, gradients)
    elif state.kind != GRADIENT:
        penalised.settle(state, values)
    for j in range(state.point.size):
        state.point[j] = state.target[j]
    state.clock[0] += 1


@kernel
def disturb(noise: float, x: Floats, values: Floats, gradients: Floats, rng: Generator) -> None:
    """Add an independent random linear function to each constraint: what is seen has the given mean."""
    for i in range(1, values.size):
        values[i] += noise * (2.0 * rng.random() - 1.0)
        for j in range(x.size):
            slope = noise * (2.0 * rng.random() - 1.0)
            gradients[i, j] += slope
            values[i] += slope * x[j]


@kernel
def book(tally: Tally, t: int, x: Floats) -> None:
    """Add up round t, from 0, and write the curves' points if they have one here."""
    for i in range(tally.sums.size):
        tally.sums[i] += tally.values[i]
    for j in range(x.size):
        tally.points[j] += x[j]
    point = tally.clock[0]
    if tally.times[point] == t + 1:
        for i in range(tally.sums.size):
            tally.curves[point, i] = tally.sums[i]
        tally.clock[0] = point + 1


@kernel
def run(
    state: State,
    region: Region,
    losses: Rows,
    constraints: tuple[Rows, ...],
    tally: Tally,
    noise: float,
    rng: Generator,
) -> int:
    """Play every round."""
    for t in range(losses.phase.size):
        evaluate(losses, t, state.point, 0, tally.values, tally.gradients)
        first = 1
        for family in constraints:
            evaluate(family, t, state.point, first, tally.values, tally.gradients)
            first += family.vectors.shape[1]
        if noise > 0.0:
            disturb(noise, state.point, tally.values, tally.gradients, rng)
        book(tally, t, state.point)
        aim(state, tally.gradients)
        project(region, state.target)
        settle(state, tally.values, tally.gradients)
    return FINISHED
