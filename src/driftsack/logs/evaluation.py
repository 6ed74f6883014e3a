"""The result of off-policy evaluation: the performance of a policy estimated from a log that another policy gathered.

There are four methods, and each refuses with ``CannotAnswerError`` if the log does not support an answer:

- *Replay* (:meth:`Log.as_instance`) needs the outcomes of every arm in every round.
- *Rejection sampling* (:mod:`driftsack.logs.rejection_sampling`) evaluates any policy, including learning ones, on a
  log with propensities.
- *Self-normalised importance weights* (:mod:`driftsack.logs.importance_weights`) evaluate a fixed mix on a log with
  propensities, using all rows.
- *The doubly robust estimator* (:mod:`driftsack.logs.doubly_robust`) evaluates a fixed rule that decides by the context
  on a log with contexts and propensities.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.checks import vector
from driftsack.core.errors import CannotAnswerError
from driftsack.core.names import Amounts, by_name
from driftsack.core.problem import Problem
from driftsack.logs.log import Log

MIN_SAMPLE_SIZE: Final = 50  # effective sample size below which a log is refused


class Evaluation(NamedTuple):
    """An off-policy estimate, per round and in the problem's units.

    Attributes:
        method: Name of the estimator.
        reward: Mean reward per round.
        reward_se: Standard error of ``reward``.
        costs: (d,) Mean costs per round.
        effective: Effective sample size: the rounds that counted, or that of the importance weights.
        rounds: Number of rounds of the log.
        lasts: Rounds until the first budget is exhausted at these costs, at most those of the log; all rounds of the
            log if there are no budgets.
    """

    method: str
    reward: float
    reward_se: float
    costs: Floats
    effective: float
    rounds: int
    lasts: float

    @property
    def total(self) -> float:
        """Total reward until a budget is exhausted or the log ends."""
        return self.reward * self.lasts


def check_sample_size(effective: float, rounds: int, what: str) -> None:
    """Raise if the importance weights of ``what``, a mix or a rule, leave too small a sample."""
    if effective < MIN_SAMPLE_SIZE:
        raise CannotAnswerError(
            f"the {what} differs so much from what was played that the effective sample size of {rounds:,} rounds is "
            f"{effective:.0f}, and {MIN_SAMPLE_SIZE} are needed; evaluate a {what} closer to the log's, or gather a "
            "log that plays its arms more often."
        )


def rounds_until_exhausted(rounds: int, costs: Floats, budget: Floats | None) -> float:
    """Rounds until the first budget is exhausted at these costs per round, at most ``rounds``."""
    if budget is None:
        return float(rounds)
    lasts = np.divide(budget, costs, out=np.full(len(budget), np.inf), where=costs > 0)
    return float(min(lasts.min(), rounds))


def full_problem(log: Log, budget: Amounts) -> Problem:
    """Return the problem over all rounds of the log, with its names and checked budgets."""
    amounts = vector(by_name(budget, log.resources, "budget"), "budget", len(log.resources))
    return Problem(len(log), log.arms, amounts, log.reward_max, log.cost_max, resource_names=log.resources)
