"""``Estimates``: what a policy believes about each arm, in a form that every policy shares."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.numerics.simplex import Simplex
from driftsack.policies.parts.beta_posterior import BetaPosterior
from driftsack.policies.parts.means import DiscountedMeans, WindowedMeans

BOUNDS: Final = "bounds"
DRAWS: Final = "draws"


class Estimates(NamedTuple):
    """The estimated means of each arm and the values that the latest plan used in their place.

    Both are normalised as the outcomes that the policy learns from, and both have the reward in the first column.

    Attributes:
        means: (m, 1 + d) estimated means; NaN for an arm without observations.
        used: (m, 1 + d) the values that the latest plan used instead of the means; None if it used the means.
        kind: What ``used`` is: ``"bounds"`` for optimistic confidence bounds, ``"draws"`` for draws from a posterior,
            or another word; None if the plan used the means.
    """

    means: Floats
    used: Floats | None = None
    kind: str | None = None


def planned_values(lp: Simplex, arms: int, resources: int) -> Floats:
    """Read the means that a linear program was solved with.

    Args:
        lp: The program; its first columns are the arms and its first rows the resources.
        arms: Number of arms.
        resources: Number of resources.

    Returns:
        (m, 1 + d) rewards and costs.
    """
    return np.column_stack([lp.objective[:arms], lp.columns[:resources, :arms].T])


def windowed_estimates(means: WindowedMeans, lp: Simplex) -> Estimates:
    """Compare windowed means with the confidence bounds in a step LP.

    Args:
        means: The estimator.
        lp: The step LP of the bounds.
    """
    resources = lp.rhs.size - 1
    with np.errstate(invalid="ignore", divide="ignore"):
        columns = [
            window.sums[:, :size] / window.grid[0] / window.pulls[:, None]  # without sums of squares
            for window, size in ((means.rewards, 1), (means.costs, resources))
        ]
    found = np.hstack(columns)
    return Estimates(found, planned_values(lp, len(found), resources), BOUNDS)


def discounted_estimates(means: DiscountedMeans, lp: Simplex) -> Estimates:
    """Compare discounted means with the confidence bounds in a step LP.

    Args:
        means: The estimator.
        lp: The step LP of the bounds.
    """
    resources = lp.rhs.size - 1
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.asarray(means.sums[:, : 1 + resources] / means.pulls[:, None])
    return Estimates(found, planned_values(lp, len(found), resources), BOUNDS)


def posterior_estimates(posterior: BetaPosterior, lp: Simplex) -> Estimates:
    """Compare the means of Beta posteriors with the draws in a linear program."""
    ones = posterior.outcomes.sums / posterior.outcomes.grid[0]
    found = np.asarray((1.0 + ones) / (2.0 + posterior.outcomes.pulls[:, None]))
    return Estimates(found, planned_values(lp, len(found), found.shape[1] - 1), DRAWS)
