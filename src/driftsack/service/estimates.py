"""What a policy believes about each arm, by name instead of as arrays of its state."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.game.state_tree import parts
from driftsack.numerics.simplex import Simplex
from driftsack.policies.adaptive import State as AdaptiveState
from driftsack.policies.parts.beta_posterior import BetaPosterior
from driftsack.policies.parts.means import DiscountedMeans, WindowedMeans

BOUNDS: Final = "bounds"
DRAWS: Final = "draws"


class Estimates(NamedTuple):
    """Means of each arm and what a decision was computed from, normalised, rewards first.

    Attributes:
        means: (m, 1 + d) estimated means; NaN for an arm without observations.
        used: (m, 1 + d) what stood for the means in the plan.
        kind: What ``used`` is: ``"bounds"``, optimistic confidence bounds, or ``"draws"`` from a posterior.
    """

    means: Floats
    used: Floats
    kind: str


def estimates_of(state: Any, resources: int) -> Estimates | None:
    """Read the estimates of a policy that has just made a decision.

    Args:
        state: The state of the policy.
        resources: The number of resources.

    Returns:
        The estimates; None if the policy has none, or several sets of them.
    """
    if isinstance(state, AdaptiveState):
        units = np.concatenate([[1.0], state.belief.unit])
        seen = (state.belief.last >= 0)[:, None]
        return Estimates(np.where(seen, state.belief.mean, np.nan) * units, state.drawn * units, DRAWS)
    every = [part for _, part in parts(state)]
    estimators = [part for part in every if isinstance(part, (WindowedMeans, DiscountedMeans, BetaPosterior))]
    programs = [part for part in every if isinstance(part, Simplex)]
    if len(estimators) != 1 or len(programs) != 1:
        return None
    means, lp = _means(estimators[0], resources), programs[0]
    arms = len(means)
    used = np.column_stack([lp.objective[:arms], lp.columns[:resources, :arms].T])
    return Estimates(means, used, DRAWS if isinstance(estimators[0], BetaPosterior) else BOUNDS)


def _means(part: Any, resources: int) -> Floats:
    """(m, 1 + d) estimated means; columns with sums of squares are left out."""
    if isinstance(part, BetaPosterior):
        ones = part.outcomes.sums / part.outcomes.grid[0]
        return np.asarray((1.0 + ones) / (2.0 + part.outcomes.pulls[:, None]))
    with np.errstate(invalid="ignore", divide="ignore"):
        if isinstance(part, DiscountedMeans):
            return np.asarray(part.sums[:, : 1 + resources] / part.pulls[:, None])
        windows = ((part.rewards, 1), (part.costs, resources))
        return np.hstack([kept.sums[:, :size] / kept.grid[0] / kept.pulls[:, None] for kept, size in windows])
