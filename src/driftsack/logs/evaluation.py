"""The result of off-policy evaluation: the performance of a policy estimated from a log that another policy gathered.

There are three methods, and each refuses with ``CannotAnswerError`` if the log does not support an answer:

- *Replay* (:meth:`Log.as_instance`) needs the outcomes of every arm in every round.
- *Rejection sampling* (:mod:`driftsack.logs.rejection_sampling`) evaluates any policy, including learning ones, on a
  log with propensities.
- *Self-normalised importance weights* (:mod:`driftsack.logs.importance_weights`) evaluate a fixed mix on a log with
  propensities, using all rows.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from driftsack.core.arrays import Floats
from driftsack.core.checks import vector
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


def full_problem(log: Log, budget: Amounts) -> Problem:
    """Return the problem over all rounds of the log, with its names and checked budgets."""
    amounts = vector(by_name(budget, log.resources, "budget"), "budget", len(log.resources))
    return Problem(len(log), log.arms, amounts, log.reward_max, log.cost_max, resource_names=log.resources)
