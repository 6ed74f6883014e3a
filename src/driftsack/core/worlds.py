"""Code shared by instances with and without contexts: sizes, and checks of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftsack.core.arrays import Floats, Phase
from driftsack.core.checks import frozen, within
from driftsack.core.errors import OutOfRangeError, ShapeError
from driftsack.core.problem import Problem


class Sizes:
    """The sizes of an instance, taken from its problem."""

    problem: Problem

    @property
    def horizon(self) -> int:
        """The number T of rounds."""
        return self.problem.horizon

    @property
    def arms(self) -> int:
        """The number m of arms."""
        return self.problem.arms

    @property
    def resources(self) -> int:
        """The number d of resources."""
        return self.problem.resources


def positions_of_rounds(given: Any, name: str, horizon: int, count: int) -> Phase:
    """Return a read-only array (T,) of integers in [0, count), one for each round."""
    values = np.asarray(given)
    if values.shape != (horizon,) or values.dtype.kind not in "iu":
        raise ShapeError(f"{name} must be integers of shape ({horizon},), got {values.dtype} of shape {values.shape}.")
    if values.min() < 0 or values.max() >= count:
        raise OutOfRangeError(f"{name} must lie in [0, {count - 1}], got [{values.min()}, {values.max()}].")
    return frozen(values.astype(np.int32, copy=False))


def means_in_range(problem: Problem, rewards: Floats, costs: Floats) -> tuple[Floats, Floats]:
    """Return mean rewards (..., m) and costs (..., d, m) after checking them against the problem's maxima."""
    most = np.asarray(problem.cost_max)[:, None]
    return (
        within(rewards, 0.0, problem.reward_max, "mean rewards", "; or set reward_max"),
        within(costs, 0.0, most, "mean costs", "; or set cost_max"),
    )


def in_units(problem: Problem, rewards: Floats) -> Floats:
    """Normalise rewards (..., m) to [0, 1]; not copied if they already are."""
    return rewards if problem.reward_max == 1.0 else rewards / problem.reward_max


def costs_in_units(problem: Problem, costs: Floats) -> Floats:
    """Normalise costs (..., d, m) to [0, 1]; not copied if they already are."""
    most = np.asarray(problem.cost_max)
    return costs if (most == 1.0).all() else costs / most[:, None]
