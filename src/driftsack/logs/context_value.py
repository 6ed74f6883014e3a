r"""The value of contexts on a log: how much more the best rule that sees them earns than the best mix that does not.

An optimum over estimated means is biased upwards, and the bias grows with the number of features. So the rows are
divided into folds at random. For each fold after the first, the fluid problem with contexts
(:mod:`driftsack.benchmarks.lp_contextual`) and the one without are solved with means predicted from the folds before
it, and both plans are evaluated on the outcomes of the fold by the doubly robust estimator. Each plan has prices
:math:`q`: spending above the budget rate is charged at these prices and spending below it is credited, so the value of
a round is

.. math:: \hat r + q^\top (b - \hat c).

The difference of two plans, summed over the folds, minus its expectation given the folds before, is a martingale, so
its mean has a normal interval whatever the plans are. (With plans made from *all* other folds it is not: if two folds
agree by chance that an arm suits a context, each confirms the plan of the other, and without any value of contexts the
variance is twice that of independent folds.) It holds for plans whose means are linear in the features and that do not
follow drift, for the contexts that the log has, and for plans made from half of its rows on average.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from driftsack.benchmarks import value_of_context as value_of_context_of_instance
from driftsack.core.arrays import Bools, Floats, Ints
from driftsack.core.checks import whole
from driftsack.core.contextual import ContextualInstance
from driftsack.core.errors import CannotAnswerError
from driftsack.core.names import Amounts
from driftsack.core.problem import Problem
from driftsack.logs.doubly_robust import FOLDS, check_support, row_scores
from driftsack.logs.evaluation import MIN_SAMPLE_SIZE, full_problem
from driftsack.logs.log import Log
from driftsack.logs.outcome_model import cross_fitted, draw_folds, known_contexts

QUANTILE: Final = 1.96  # of the standard normal distribution: an interval of 95%
TOLERANCE: Final = 1e-6  # of the optima, far below the errors of the means


class ContextPlan(NamedTuple):
    """A plan for every row of a log, with its prices."""

    shares: Floats  # (n, m) probabilities of the arms
    prices: Floats  # (n, d) reward per unit of each resource


class LoggedContextValue(NamedTuple):
    """The value of contexts on a log, in the problem's units.

    Attributes:
        with_context: Reward over the horizon of a plan that sees the contexts, on rows after those it was made from.
        without: Reward of a plan that does not see them, on the same rows.
        low: Lower end of the 95% interval of the difference.
        high: Upper end of that interval.
    """

    with_context: float
    without: float
    low: float
    high: float

    @property
    def gain(self) -> float:
        """The difference of the two rewards."""
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
    """Estimate the value of contexts with any number of ``folds``; see :meth:`Log.value_of_context`."""
    known_contexts(log)
    if len(log) < MIN_SAMPLE_SIZE:
        raise CannotAnswerError(
            f"the value of contexts needs {MIN_SAMPLE_SIZE} rounds or more, got {len(log)}; pass a longer log."
        )
    problem = full_problem(log, budget)
    rounds = len(log) if horizon is None else whole(horizon, "horizon", at_least=1)
    rate = np.asarray(problem.budget) / rounds
    fold = draw_folds(len(log), folds, seed)
    predictions = cross_fitted(log, fold, earlier=True)
    later = fold > 0
    seeing, blind = (
        _row_values(log, later, plan, rate, predictions) for plan in _plans(log, problem, rate, fold, predictions)
    )
    gain, error = (seeing - blind).mean(), (seeing - blind).std(ddof=1) / np.sqrt(len(seeing))
    values = (seeing.mean(), blind.mean(), gain - QUANTILE * error, gain + QUANTILE * error)
    return LoggedContextValue(*(float(rounds * one) for one in values))


def _plans(
    log: Log, problem: Problem, rate: Floats, fold: Ints, predictions: Floats
) -> tuple[ContextPlan, ContextPlan]:
    """Plans with and without contexts for the rows after the first fold, made from the outcomes before their fold."""
    seeing, blind = (ContextPlan(np.zeros(predictions.shape[:2]), np.zeros((len(log), len(rate)))) for _ in range(2))
    for k in range(1, int(fold.max()) + 1):
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
        for plan, found in ((seeing, best.with_context), (blind, best.without)):
            plan.shares[own] = np.clip(np.asarray(found.plan), 0.0, 1.0)
            plan.prices[own] = np.where(
                rate > 0, np.asarray(found.prices), 0.0
            )  # resources without a budget are not spent
    return seeing, blind


def _row_values(log: Log, rows: Bools, plan: ContextPlan, rate: Floats, predictions: Floats) -> Floats:
    """Estimated value of each of some rounds of a plan."""
    part, shares = log.part(rows), plan.shares[rows]
    if log.table is None:
        check_support(part, shares)
    scores = row_scores(part, shares, predictions[rows])
    values: Floats = scores[:, 0] + (plan.prices[rows] * (rate - scores[:, 1:])).sum(axis=1)
    return values
