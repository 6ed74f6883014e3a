"""``Callables``: a family of convex functions over time, given by Python functions with gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.checks import whole
from driftsack.core.errors import NotFiniteError, ShapeError
from driftsack.oco.families import Family


class Callables(Family):
    """Any convex functions, given as Python functions. Plays with them are not compiled.

    Args:
        value: ``value(t, x)`` returns the m values of round t, from 0, at x.
        gradient: ``gradient(t, x)`` returns the gradients (m, n) of round t at x.
        horizon: The number T of rounds.
        dimension: The number n of variables.
        count: The number m of functions per round.

    >>> drifting = Callables(lambda t, x: np.exp(x[0]) - t, lambda t, x: [np.exp(x[0])], horizon=10, dimension=1)
    >>> drifting.evaluate(3, np.zeros(1))
    (array([-2.]), array([[1.]]))
    """

    def __init__(
        self,
        value: Callable[[int, Floats], Any],
        gradient: Callable[[int, Floats], Any],
        horizon: int,
        dimension: int,
        count: int = 1,
    ) -> None:
        self.value, self.gradient = value, gradient
        self.horizon = whole(horizon, "horizon", at_least=1)
        self.dimension = whole(dimension, "dimension", at_least=1)
        self.count = whole(count, "count", at_least=1)

    def evaluate(self, t: int, x: Floats) -> tuple[Floats, Floats]:
        """Evaluate the functions of one round.

        Args:
            t: The round, from 0.
            x: (n,) the point.

        Returns:
            The values (m,) and gradients (m, n) at x.

        Raises:
            ShapeError: If the functions return another shape.
            NotFiniteError: If they return infinities or NaN.
        """
        values = np.asarray(self.value(t, x), dtype=float).reshape(-1)
        gradients = np.asarray(self.gradient(t, x), dtype=float)
        gradients = gradients.reshape(1, -1) if self.count == 1 else gradients
        if values.shape != (self.count,) or gradients.shape != (self.count, self.dimension):
            raise ShapeError(
                f"in round {t + 1} value must return {self.count} numbers and gradient shape "
                f"({self.count}, {self.dimension}), got shapes {values.shape} and {gradients.shape}."
            )
        if not (np.isfinite(values).all() and np.isfinite(gradients).all()):
            raise NotFiniteError(
                f"round {t + 1}, x = {x}: value and gradient must be finite, got {values} and {gradients}."
            )
        return values, gradients

    def mean(self, x: Floats) -> tuple[Floats, Floats]:
        """Evaluate the mean over all rounds, by calling the functions of every round."""
        value_sum, gradient_sum = np.zeros(self.count), np.zeros((self.count, self.dimension))
        for t in range(self.horizon):
            values, gradients = self.evaluate(t, x)
            value_sum += values
            gradient_sum += gradients
        return value_sum / self.horizon, gradient_sum / self.horizon
