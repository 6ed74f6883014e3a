"""The compiled rounds of an algorithm on a problem; ``ask`` and ``tell`` of ``OnlineLearner`` use the same kernels."""

from __future__ import annotations

from typing import NamedTuple

from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.numerics.compiled import kernel
from driftsack.oco import (
    exponential_penalty,
    online_gradient,
    penalised_primal_dual,
    quadratic_penalty,
    virtual_queue,
)
from driftsack.oco.families import FamilyRows, evaluate
from driftsack.oco.region import Region, project
from driftsack.oco.state import (
    EXPONENTIAL_PENALTY,
    ONLINE_GRADIENT,
    PENALISED_PRIMAL_DUAL,
    QUADRATIC_PENALTY,
    VIRTUAL_QUEUE,
    State,
)


class PlayTotals(NamedTuple):
    """The sums of one trial so far, and the functions of the current round."""

    curve_points: Ints  # (1,) the number of points of the curves written so far
    sums: Floats  # (1 + d,) the sums of the losses and of each constraint's values
    hard: Floats  # (d,) the sums of the positive parts of each constraint's values
    point_sum: Floats  # (n,) the sum of the decisions
    times: Ints  # (p,) the rounds after which a point of the curves is written
    curves: Floats  # (p, 1 + d) ``sums`` after each of ``times``
    values: Floats  # (1 + d,) the loss and the constraints of the current round
    gradients: Floats  # (1 + d, n) their gradients


@kernel
def gradient_step(state: State, values: Floats, gradients: Floats) -> None:
    """Write the next decision, before its projection onto the domain, into ``state.target``."""
    if state.kind == VIRTUAL_QUEUE:
        virtual_queue.gradient_step(state, gradients)
    elif state.kind == ONLINE_GRADIENT:
        online_gradient.gradient_step(state, gradients)
    elif state.kind == EXPONENTIAL_PENALTY:
        exponential_penalty.gradient_step(state, values, gradients)
    elif state.kind == QUADRATIC_PENALTY:
        quadratic_penalty.gradient_step(state, values, gradients)
    else:
        penalised_primal_dual.gradient_step(state, gradients)


@kernel
def finish_round(state: State, values: Floats, gradients: Floats) -> None:
    """Update the prices and move to ``state.target``, which has been projected onto the domain."""
    if state.kind == VIRTUAL_QUEUE:
        virtual_queue.update_prices(state, values, gradients)
    elif state.kind == PENALISED_PRIMAL_DUAL:
        penalised_primal_dual.update_prices(state, values)
    for j in range(state.point.size):
        state.point[j] = state.target[j]
    state.completed[0] += 1


@kernel
def add_noise(noise: float, x: Floats, values: Floats, gradients: Floats, rng: Generator) -> None:
    """Add an independent random linear function with mean zero to each constraint."""
    for i in range(1, values.size):
        values[i] += noise * (2.0 * rng.random() - 1.0)
        for j in range(x.size):
            slope = noise * (2.0 * rng.random() - 1.0)
            gradients[i, j] += slope
            values[i] += slope * x[j]


@kernel
def record_round(tally: PlayTotals, t: int, x: Floats) -> None:
    """Add round t, from 0, to the sums, and write a point of the curves if one is due."""
    for i in range(tally.sums.size):
        tally.sums[i] += tally.values[i]
    for i in range(tally.hard.size):
        tally.hard[i] += max(tally.values[1 + i], 0.0)
    for j in range(x.size):
        tally.point_sum[j] += x[j]
    point = tally.curve_points[0]
    if tally.times[point] == t + 1:
        for i in range(tally.sums.size):
            tally.curves[point, i] = tally.sums[i]
        tally.curve_points[0] = point + 1


@kernel
def play_rounds(
    state: State,
    region: Region,
    losses: FamilyRows,
    constraints: tuple[FamilyRows, ...],
    tally: PlayTotals,
    noise: float,
    rng: Generator,
) -> None:
    """Play all rounds of a problem."""
    for t in range(losses.phase.size):
        evaluate(losses, t, state.point, 0, tally.values, tally.gradients)
        first = 1
        for family in constraints:
            evaluate(family, t, state.point, first, tally.values, tally.gradients)
            first += family.vectors.shape[1]
        if noise > 0.0:
            add_noise(noise, state.point, tally.values, tally.gradients, rng)
        record_round(tally, t, state.point)
        gradient_step(state, tally.values, tally.gradients)
        project(region, state.target)
        finish_round(state, tally.values, tally.gradients)
