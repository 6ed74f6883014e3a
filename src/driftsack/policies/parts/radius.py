r"""Confidence radii of estimated means, and the resulting optimistic bounds.

- *Printed* (paper, section 3): :math:`R/\sqrt{n}` with :math:`R = \sqrt{2 \log(12 m T^3)}` for rewards and
  :math:`R = \sqrt{2 \log(12 m d T^3)}` for costs.
- *Refined* (last appendix): :math:`2\,\mathrm{rad}(\hat\nu, n)` with :math:`\mathrm{rad}(\nu, n) = \sqrt{\gamma\nu/n} +
  \gamma/n`, which shrinks with the mean.

Both are multiplied by ``scale``. With ``clip`` the bounds are kept in [0, 1].
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

from driftsack.core.checks import at_least_zero, flag
from driftsack.core.problem import Problem
from driftsack.numerics.compiled import kernel
from driftsack.theory.refined import gamma
from driftsack.theory.windows import radius_constant

RADII: Final = ("printed", "refined")


class Radius(NamedTuple):
    """The constants of the radii.

    Attributes:
        reward: R for rewards, or γ if refined.
        cost: R for costs, or γ if refined.
        scale: Factor on the radii.
        refined: Whether the radii shrink with the mean.
        clip: Whether bounds are kept in [0, 1].
    """

    reward: float
    cost: float
    scale: float
    refined: bool
    clip: bool


def new_radius(problem: Problem, scale: float, clip: bool = False, refined: bool = False) -> Radius:
    """The radii for a problem.

    Args:
        problem: The problem.
        scale: Factor on the radii.
        clip: Whether bounds are kept in [0, 1].
        refined: Whether the radii shrink with the mean.

    Returns:
        The constants.
    """
    constant = gamma if refined else radius_constant
    reward = constant(problem.horizon, problem.arms)
    cost = constant(problem.horizon, problem.arms, problem.resources)
    return Radius(reward, cost, scale, refined, clip)


def check_radius_settings(recipe: Any) -> None:
    """Check the settings ``scale`` and ``clip`` of a policy and store them as plain values."""
    object.__setattr__(recipe, "scale", at_least_zero(recipe.scale, "scale"))
    object.__setattr__(recipe, "clip", flag(recipe.clip, "clip"))


@kernel
def upper_bound(radius: Radius, mean: float, n: float) -> float:
    """UCB of a mean reward after ``n`` observations.

    Args:
        radius: The constants.
        mean: The estimate.
        n: The number of observations, at least 1.

    Returns:
        The bound.
    """
    upper = mean + width(radius, radius.reward, mean, n)
    return min(upper, 1.0) if radius.clip else upper


@kernel
def lower_bound(radius: Radius, mean: float, n: float) -> float:
    """LCB of a mean cost after ``n`` observations.

    Args:
        radius: The constants.
        mean: The estimate.
        n: The number of observations, at least 1.

    Returns:
        The bound.
    """
    lower = mean - width(radius, radius.cost, mean, n)
    return max(lower, 0.0) if radius.clip else lower


@kernel
def width(radius: Radius, constant: float, mean: float, n: float) -> float:
    """The confidence radius of an estimate."""
    if radius.refined:
        return radius.scale * 2.0 * rad(constant, mean, n)
    return radius.scale * constant / math.sqrt(n)


@kernel
def rad(constant: float, mean: float, n: float) -> float:
    """Compute sqrt(C mean / n) + C / n."""
    return math.sqrt(constant * mean / n) + constant / n
