r"""Confidence radii of estimated means, and the resulting optimistic bounds.

- *Printed* (paper, section 3): :math:`R/\sqrt{n}` with :math:`R = \sqrt{2 \log(12 m T^3)}` for rewards and
  :math:`R = \sqrt{2 \log(12 m d T^3)}` for costs.
- *Refined* (last appendix): :math:`2\,\mathrm{rad}(\hat\nu, n)` with :math:`\mathrm{rad}(\nu, n) = \sqrt{\gamma\nu/n} +
  \gamma/n`, which shrinks with the mean.
- *Bernstein*: :math:`\sqrt{2 \hat v L/n} + 3 L/n` with the empirical variance :math:`\hat v` and
  :math:`L = \log(12 m T^3)` for rewards, :math:`L = \log(12 m d T^3)` for costs. It shrinks with the variance, which
  is small if outcomes are small relative to their maximum. This is the empirical Bernstein bound of Audibert, Munos and
  Szepesvári (2009): the mean of n outcomes is off by more than :math:`\sqrt{2 \hat v x/n} + 3x/n` with probability at
  most :math:`3 e^{-x}`. The estimator counts one more outcome of 0, which shifts it by at most :math:`1/(n+1)`. With
  :math:`x = L - 1/3` the bound with n + 1 in place of n still holds: the pseudo-outcome does not make
  :math:`(n+1) \hat v` smaller.

All are multiplied by ``scale``, those of costs by ``cost_scale`` if it is given. ``clip`` clips the bounds to [0, 1].
"""

from __future__ import annotations

import math
import warnings
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from driftsack.core.checks import LARGEST_SETTING, at_least_zero, flag, one_of
from driftsack.core.errors import LooseCostMaxWarning
from driftsack.core.problem import Problem
from driftsack.numerics.compiled import kernel
from driftsack.theory.refined import gamma
from driftsack.theory.windows import log_term, radius_constant

RADII: Final = ("printed", "refined", "bernstein")
RadiusKind = Literal["printed", "refined", "bernstein"]
PRINTED, REFINED, BERNSTEIN = range(3)
LOOSE_RATIO: Final = 2.0  # ratio of the radius at half time to the rate above which costs carry no information
LARGEST_RADIUS: Final = 0.5  # radius at half time above which a tighter cost_max would not help


class Radius(NamedTuple):
    """The constants of the radii.

    Attributes:
        reward: The constant for rewards: R if printed, γ if refined, L if Bernstein.
        cost: The constant for costs.
        scale: Factor on the radii of rewards.
        cost_scale: Factor on the radii of costs.
        kind: ``PRINTED``, ``REFINED`` or ``BERNSTEIN``.
        clip: Whether to clip bounds to [0, 1].
    """

    reward: float
    cost: float
    scale: float
    cost_scale: float
    kind: int
    clip: bool


def new_radius(
    problem: Problem, scale: float, clip: bool = False, kind: str = "printed", cost_scale: float | None = None
) -> Radius:
    """Compute the constants of the radii for a problem.

    Args:
        problem: The problem to play.
        scale: Factor on the radii.
        clip: Whether to clip bounds to [0, 1].
        kind: ``"printed"``, ``"refined"`` or ``"bernstein"``.
        cost_scale: Factor on the radii of costs; None for ``scale``.
    """
    index = RADII.index(kind)
    constant = (radius_constant, gamma, log_term)[index]
    reward = constant(problem.horizon, problem.arms)
    cost = constant(problem.horizon, problem.arms, problem.resources)
    return Radius(reward, cost, scale, scale if cost_scale is None else cost_scale, index, clip)


def radius_of(recipe: Any, problem: Problem) -> Radius:
    """Return the radii of a policy with settings ``scale``, ``clip``, ``radius`` and ``cost_scale`` on a problem."""
    return new_radius(problem, recipe.scale, recipe.clip, recipe.radius, recipe.cost_scale)


def check_radius_settings(recipe: Any) -> None:
    """Check the settings ``scale`` and ``clip`` of a policy and store them as plain values."""
    object.__setattr__(recipe, "scale", at_least_zero(recipe.scale, "scale", LARGEST_SETTING))
    object.__setattr__(recipe, "clip", flag(recipe.clip, "clip"))


def check_radius_choice(recipe: Any) -> None:
    """Check the settings ``radius``, ``cost_scale``, ``scale`` and ``clip`` of a policy."""
    check_radius_settings(recipe)
    one_of(recipe.radius, "radius", RADII)
    if recipe.cost_scale is not None:
        object.__setattr__(recipe, "cost_scale", at_least_zero(recipe.cost_scale, "cost_scale", LARGEST_SETTING))


def warn_if_loose(problem: Problem, radius: Radius, memory: float) -> None:
    r"""Warn if ``cost_max`` is so loose that the printed radius of costs is uninformative for most of the horizon.

    After half of the horizon, an arm with an equal share of the remembered pulls, n = min(w, T/2)/m, has the radius
    :math:`\rho = R/\sqrt{n + 1}`, and costs up to :math:`\rho` look like 0. The warning is issued if :math:`\rho > 2b`
    for a resource: the LP then treats arms that cost twice the rate as free. A larger :math:`\rho` makes no further
    difference (docs/policies.md). No warning is issued if :math:`\rho > 1/2`: then the window or the horizon is too
    short for the radius at any ``cost_max``. Hence there is no warning if b is at least 1/4.

    ``memory`` is the number of rounds whose costs are remembered.
    """
    pulls, rate = min(memory, problem.horizon / 2) / problem.arms, problem.rate
    halfway = radius.cost_scale * radius.cost / math.sqrt(pulls + 1.0)
    loose = np.flatnonzero((rate > 0.0) & (halfway > LOOSE_RATIO * rate))
    if radius.kind != PRINTED or halfway > LARGEST_RADIUS or loose.size == 0:
        return
    j = int(loose[np.argmin(rate[loose])])
    enough = radius.cost_scale * rate[j] / halfway
    warnings.warn(
        f"expected a confidence radius of costs below the rate B/T of resource {j}, {rate[j]:.2g} of cost_max; after "
        f"half of the horizon, with {pulls:.0f} pulls of each arm, it is {halfway:.2g} of cost_max, so the "
        f"policy treats expensive arms as free. Set cost_max, now {problem.cost_max[j]:g}, closer to the highest cost "
        f'that occurs, set cost_scale to {enough:.1g} or less, use radius="bernstein" with a small scale, or use '
        "Adaptive, which does not depend on cost_max.",
        LooseCostMaxWarning,
        stacklevel=4,
    )


@kernel
def upper_bound(radius: Radius, mean: float, n: float, variance: float = 0.0) -> float:
    """Return the UCB of a mean reward after ``n`` observations.

    Args:
        radius: The constants of the radii.
        mean: The estimated mean.
        n: The number of observations, at least 1.
        variance: The empirical variance; only Bernstein radii use it.
    """
    upper = mean + width(radius, radius.scale, radius.reward, mean, variance, n)
    return min(upper, 1.0) if radius.clip else upper


@kernel
def lower_bound(radius: Radius, mean: float, n: float, variance: float = 0.0) -> float:
    """Return the LCB of a mean cost after ``n`` observations.

    Args:
        radius: The constants of the radii.
        mean: The estimated mean.
        n: The number of observations, at least 1.
        variance: The empirical variance; only Bernstein radii use it.
    """
    lower = mean - width(radius, radius.cost_scale, radius.cost, mean, variance, n)
    return max(lower, 0.0) if radius.clip else lower


@kernel
def width(radius: Radius, scale: float, constant: float, mean: float, variance: float, n: float) -> float:
    """Return the confidence radius of an estimate."""
    if radius.kind == REFINED:
        return scale * 2.0 * rad(constant, mean, n)
    if radius.kind == BERNSTEIN:
        return scale * (math.sqrt(2.0 * variance * constant / n) + 3.0 * constant / n)
    return scale * constant / math.sqrt(n)


@kernel
def rad(constant: float, mean: float, n: float) -> float:
    """Compute sqrt(C mean / n) + C / n."""
    return math.sqrt(constant * mean / n) + constant / n
