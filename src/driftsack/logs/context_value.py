r"""What contexts are worth on a log: what the best rule that sees them earns more than the best mix that does not.

The optimum of means that were estimated from a log is biased upwards, and the more features, the more. So the rows are
divided into folds. For each fold, the fluid problem with contexts (:mod:`driftsack.benchmarks.lp_contextual`) and the
one without are solved with means predicted from the other folds, and both plans are evaluated on the outcomes of the
fold by the doubly robust estimator. A plan whose costs exceed the budget ends early, so it is worth

.. math:: \hat r \min\Bigl(1, \min_j \frac{b_j}{\hat c_j}\Bigr)

a round. The interval is that of the difference if the means of the scores are normal with their empirical covariance.
It holds for rules whose means are linear in the features, and for plans that do not follow drift.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from driftsack.benchmarks import value_of_context as value_of_context_of_instance
from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import whole
from driftsack.core.contextual import ContextualInstance
from driftsack.core.errors import CannotAnswerError
from driftsack.core.names import Amounts
from driftsack.core.problem import Problem
from driftsack.core.seeding import generator
from driftsack.logs.doubly_robust import FOLDS, check_support, row_scores
from driftsack.logs.evaluation import MIN_SAMPLE_SIZE, full_problem
from driftsack.logs.log import Log
from driftsack.logs.outcome_model import cross_fitted, draw_folds, known_contexts

DRAWS: Final = 4_000  # of the means of scores
LEVELS: Final = (0.025, 0.975)
TOLERANCE: Final = 1e-6  # of the optima, far below the errors of the means


class LoggedContextValue(NamedTuple):
    """What contexts are worth on a log, in the problem's units.

    Attributes:
        with_context: What a plan that sees the contexts earns over the horizon, on rows that it was not made from.
        without: What one that does not earns there.
        low: Lower end of the 95% interval of the difference.
        high: Its upper end.
    """

    with_context: float
    without: float
    low: float
    high: float

    @property
    def gain(self) -> float:
        """The difference of the two."""
        return self.with_context - self.without

    @property
    def pays(self) -> bool:
        """Whether the whole interval of the difference is above 0."""
        return self.low > 0.0

    def __str__(self) -> str:
        return (
            f"with contexts {self.with_context:,.4g}, without {self.without:,.4g}: {self.gain:+,.4g} "
            f"(95% interval {self.low:+,.4g} to {self.high:+,.4g})"
        )


def value_of_context(
    log: Log, budget: Amounts, horizon: int | None = None, folds: int = FOLDS, seed: int = 0
) -> LoggedContextValue:
    """Estimate what contexts are worth, as :meth:`Log.value_of_context` documents, with any number of ``folds``."""
    known_contexts(log)
    if len(log) < MIN_SAMPLE_SIZE:
        raise CannotAnswerError(
            f"the value of contexts needs {MIN_SAMPLE_SIZE} rounds or more, got {len(log)}; pass a longer log."
        )
    problem = full_problem(log, budget)
    rounds = len(log) if horizon is None else whole(horizon, "horizon", at_least=1)
    rate = np.asarray(problem.budget) / rounds
    fold = draw_folds(len(log), folds, seed)
    predictions = cross_fitted(log, fold)
    plans = _plans(log, problem, rate, fold, predictions)
    if log.table is None:
        for plan in plans:
            check_support(log, plan)
    scores = np.concatenate([row_scores(log, plan, predictions) for plan in plans], axis=1)
    means, covariance = scores.mean(axis=0), np.cov(scores, rowvar=False) / len(log)
    drawn = generator(seed).multivariate_normal(means, covariance, size=DRAWS, method="eigh")
    earned, others = _earned(means[None], rate)[0], _earned(drawn, rate)
    low, high = np.quantile(others[:, 0] - others[:, 1], LEVELS)
    return LoggedContextValue(*(float(rounds * part) for part in (earned[0], earned[1], low, high)))


def _plans(log: Log, problem: Problem, rate: Floats, fold: Ints, predictions: Floats) -> tuple[Floats, Floats]:
    """(n, m) twice: plans with and without contexts, each row's made without the outcomes of its fold."""
    seeing, blind = np.zeros(predictions.shape[:2]), np.zeros(predictions.shape[:2])
    for k in range(int(fold.max()) + 1):
        own = fold == k
        world = ContextualInstance.by_table(
            known_contexts(log)[own],
            predictions[own, :, 0],
            predictions[own, :, 1:].transpose(0, 2, 1),
            rate * own.sum(),
            reward_max=problem.reward_max,
            cost_max=problem.cost_max,
        )
        best = value_of_context_of_instance(world, TOLERANCE)
        seeing[own], blind[own] = np.asarray(best.with_context.plan), np.asarray(best.without.plan)
    return np.clip(seeing, 0.0, 1.0), np.clip(blind, 0.0, 1.0)


def _earned(means: Floats, rate: Floats) -> Floats:
    """(r, 2) What both plans earn a round, from (r, 2 (1 + d)) mean rewards and costs."""
    pairs = means.reshape(len(means), 2, 1 + len(rate))
    costs = pairs[:, :, 1:]
    lasts = np.divide(rate, costs, out=np.full_like(costs, np.inf), where=costs > 0)
    earned: Floats = pairs[:, :, 0] * np.minimum(lasts.min(axis=2), 1.0)
    return earned
