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
from driftsack.core.checks import floats, number, vector, within
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

    Returns:
        Its units.
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


def normalised_outcome(
    problem: Problem, units: Units, reward: object, costs: npt.ArrayLike | Mapping[str, float]
) -> tuple[float, Floats]:
    """Check an outcome in the problem's units and normalise it.

    Args:
        problem: The problem.
        units: Its units.
        reward: The reward, in [0, reward_max].
        costs: The costs, (d,), by name, or one number for a single resource, in [0, cost_max].

    Returns:
        The reward and the costs (d,) in [0, 1].
    """
    amounts = by_name(costs, problem.resource_names, "costs")
    gain = number(reward, "reward")
    if not 0.0 <= gain <= units.reward:
        gain = float(within(np.asarray(gain), 0.0, units.reward, "reward", "; clip it or set reward_max"))
    single = problem.resources == 1 and np.ndim(amounts) == 0
    uses = vector(amounts, "costs", 1) if single else floats(amounts, "costs", (problem.resources,))
    if not ((uses >= 0.0).all() and (uses <= units.costs).all()):
        uses = within(uses, 0.0, units.costs, "costs", "; clip it or set cost_max, the most that one round may cost")
    return gain / units.reward, uses / units.costs
