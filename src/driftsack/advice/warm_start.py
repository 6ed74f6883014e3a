"""What the recommended policy learns before its first round: the last rounds of the log, old ones with less weight.

If the log has drift, the weight of a round halves with each half of the last phase: outcomes from before the last
change together weigh about a quarter. A full-information table has an outcome of every arm in every row; one of them is
learnt, the arms taking turns.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from driftsack.advice.fit import Fit
from driftsack.core.arrays import Floats
from driftsack.core.decision import SKIP
from driftsack.logs import Log

MOST_TAUGHT: Final = 100_000  # rounds
SHORTEST_HALF_LIFE: Final = 50.0  # rounds
CONTEXTS: Final = 50  # of the last rounds, over which the first mix of a policy that decides by them is averaged


class Taught(NamedTuple):
    """Rounds of a log that a policy learns, oldest first."""

    arms: tuple[str, ...]
    resources: tuple[str, ...]
    arm: npt.NDArray[np.int32]
    reward: Floats
    costs: Floats
    propensity: Floats | None
    contexts: Floats | None


def taught(log: Log) -> Taught:
    """Return the last rounds of a log."""
    part = slice(-MOST_TAUGHT, None)
    contexts = None if log.contexts is None else log.contexts[part]
    if log.table is not None and not (log.arm != SKIP).any():
        table, arms = log.table[part], len(log.arms)
        turns = np.arange(len(table), dtype=np.int32) % np.int32(arms)
        own = table[np.arange(len(table)), turns]
        even = np.full(len(table), 1.0 / arms)
        return Taught(log.arms, log.resources, turns, own[:, 0], own[:, 1:], even, contexts)
    propensity = None if log.propensity is None else log.propensity[part]
    return Taught(log.arms, log.resources, log.arm[part], log.reward[part], log.costs[part], propensity, contexts)


def half_life(fitted: Fit, rows: int) -> float | None:
    """Return the rounds after which an outcome weighs half as much; None without drift.

    >>> half_life(Fit(np.array([400]), np.zeros((2, 1, 2)), "beta", np.ones(2)), rows=1_000)
    300.0
    """
    if not fitted.changes.size:
        return None
    return max((rows - int(fitted.changes[-1])) / 2.0, SHORTEST_HALF_LIFE)
