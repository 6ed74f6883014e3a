"""Conversion between the problem's units and normalised units, in which rewards and costs lie in [0, 1].

A reward is divided by ``reward_max``, a cost by ``cost_max``; a price, which is reward per unit of a resource, is
multiplied by ``reward_max`` over ``cost_max`` to convert it back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Floats
from driftsack.core.checks import floats, number, vector
from driftsack.core.errors import OutOfRangeError
from driftsack.core.names import by_name
from driftsack.core.problem import Problem


class Units(NamedTuple):
    """The units of a problem.

    Attributes:
        reward: The reward that is normalised to 1.
        costs: (d,) the cost of each resource that is normalised to 1.
    """

    reward: float
    costs: Floats


def units_of(problem: Problem) -> Units:
    """Return the units of a problem.

    Args:
        problem: The problem.
    """
    return Units(problem.reward_max, np.asarray(problem.cost_max))


def prices_in_units(units: Units, prices: Floats) -> Floats:
    """Convert normalised prices to the problem's units.

    Args:
        units: The units of the problem.
        prices: (d,) normalised prices.

    Returns:
        (d,) reward per unit of each resource.
    """
    converted: Floats = prices * units.reward / units.costs
    return converted


def normalised_prices(units: Units, prices: Floats) -> Floats:
    """Convert prices in the problem's units to normalised ones.

    Args:
        units: The units of the problem.
        prices: (d,) reward per unit of each resource.

    Returns:
        (d,) normalised prices.
    """
    converted: Floats = prices * units.costs / units.reward
    return converted


def checked_outcome(
    problem: Problem, reward: object, costs: npt.ArrayLike | Mapping[str, float]
) -> tuple[float, Floats]:
    """Check an outcome.

    Args:
        problem: The problem.
        reward: The reward, a finite number.
        costs: The costs, (d,), by name, or one number for a single resource; finite and not negative.

    Returns:
        The reward and the costs (d,), in the problem's units.
    """
    amounts = by_name(costs, problem.resource_names, "costs")
    gain = number(reward, "reward")
    single = problem.resources == 1 and np.ndim(amounts) == 0
    uses = vector(amounts, "costs", 1) if single else floats(amounts, "costs", (problem.resources,))
    if (uses < 0.0).any():
        j = int(np.argmin(uses))
        raise OutOfRangeError(
            f"costs must be 0 or more, got {float(uses[j])!r} for {problem.resource_names[j]!r}; a refund is not a "
            "cost: tell the net cost, or add to the budget with grant."
        )
    return gain, uses
