r"""Off-policy evaluation of a rule that decides by the context, by the doubly robust estimator.

A rule plays arm i at context x with probability :math:`\pi_i(x)`. With predictions :math:`\hat y_i(x)` of the outcomes
(:mod:`driftsack.logs.outcome_model`) and the propensities :math:`p_t` of the log, each row has the score

.. math:: \psi_t = \sum_i \pi_i(x_t)\, \hat y_i(x_t) + \frac{\pi_{a_t}(x_t)}{p_t} \bigl(y_t - \hat y_{a_t}(x_t)\bigr),

whose mean estimates the reward, or a cost, of a round (Dudík, Langford and Li 2011). With the correct propensities it
is unbiased whatever the predictions are, and good predictions make it precise. In a full-information table the score is
:math:`\sum_i \pi_i(x_t)\, y_{t,i}`, and propensities are not needed.

Propensities that are correct on average may be wrong at single contexts, such as frequencies of the arms in a log whose
arms were chosen by context. So besides the checks of :mod:`driftsack.logs.propensities`, the weighted pulls of each arm
must add up for every feature.

A learner in its present state is a rule too: it is asked at each context and then restored
(:mod:`driftsack.policies.learner.bookmark`), so it neither learns nor spends. Each row is drawn again. A policy that
plays the best arm of a draw, such as ``LinearBwK``, has :math:`\pi_i(x_t)` of 0 or 1 there; their means are its
probabilities, so the estimate stays unbiased.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Bools, Floats
from driftsack.core.checks import floats, of_type, within
from driftsack.core.decision import SKIP
from driftsack.core.errors import NamesError, OutOfRangeError, SettingError
from driftsack.core.names import Amounts
from driftsack.logs.evaluation import Evaluation, check_sample_size, full_problem, rounds_until_exhausted
from driftsack.logs.log import Log
from driftsack.logs.outcome_model import cross_fitted, draw_folds, known_contexts
from driftsack.logs.propensities import (
    check_played,
    check_propensities,
    check_propensities_by_feature,
    known_propensities,
)
from driftsack.policies import Policy
from driftsack.policies.learner import Learner
from driftsack.policies.learner.bookmark import Bookmark

Rule = Callable[[Floats], npt.ArrayLike] | npt.ArrayLike | Learner
"""A function of the contexts (n, features) of a log, its result: (n, m) probabilities of the arms, or a learner."""
FOLDS: Final = 5


def evaluate_rule(log: Log, rule: Rule, budget: Amounts | None = None, folds: int = FOLDS, seed: int = 0) -> Evaluation:
    """Evaluate a fixed rule that decides by the context, by the doubly robust estimator.

    Args:
        log: A log with contexts, and with propensities or the outcomes of every arm.
        rule: A function that is given the contexts (n, features) of the log, encoded as in ``log.features``, and
            returns the probabilities (n, m) of the arms in the order of ``log.arms``; or these probabilities. What is
            left of 1 is the probability of a skip. Or a learner, which is asked at each context in its present state
            and is unchanged afterwards; about 0.1 ms a row. It must not have learnt from the same rows.
        budget: Budget for as many rounds as the log has, one number or one for each resource, in order or by name;
            None without budgets.
        folds: Number of folds for the predictions of outcomes.
        seed: Seed of the folds.

    Returns:
        The estimate, with the effective sample size of the importance weights.

    Raises:
        CannotAnswerError: If the log has no contexts or no propensities, they are inconsistent with the arms played, or
            the rule is too different from what was played.
        NamesError: If a learner has other arms than the log.
        SettingError: If a learner encodes features in another way than the log.

    >>> import driftsack as ds
    >>> world = ds.ContextualInstance.by_table(
    ...     np.eye(2), [[0.9, 0.1], [0.1, 0.9]], [[[0.5, 0.5]]] * 2, budget=500, horizon=4_000
    ... )
    >>> value = evaluate_rule(ds.gather(world), lambda contexts: contexts)  # each context has its own best arm
    >>> abs(value.reward - 0.9) < 4 * value.reward_se, value.reward_se < 0.01
    (True, True)
    """
    of_type(log, Log, "log")
    amounts = None if budget is None else np.asarray(full_problem(log, budget).budget)
    shares = _probabilities(log, rule)
    effective = float(len(log)) if log.table is not None else check_support(log, shares)
    scores = row_scores(log, shares, cross_fitted(log, draw_folds(len(log), folds, seed)))
    reward, *costs = scores.mean(axis=0)
    return Evaluation(
        method="doubly robust" if log.table is None else "full information",
        reward=float(reward),
        reward_se=float(scores[:, 0].std(ddof=1) / np.sqrt(len(log))),
        costs=np.array(costs),
        effective=effective,
        rounds=len(log),
        lasts=rounds_until_exhausted(len(log), np.array(costs), amounts),
    )


def row_scores(log: Log, shares: Floats, predictions: Floats) -> Floats:
    """Compute the score (1 + d,) of each row: estimates of the reward, then of the costs, of its round.

    The rule plays the arms with the probabilities ``shares`` (n, m). ``predictions`` (n, m, 1 + d) of the outcomes are
    unused if the log has those of every arm.
    """
    if log.table is not None:
        exact: Floats = np.einsum("ni,nik->nk", shares, log.table)
        return exact
    scores: Floats = np.einsum("ni,nik->nk", shares, predictions)
    rows = np.flatnonzero(log.arm != SKIP)
    arms = log.arm[rows]
    weights = shares[rows, arms] / known_propensities(log)[rows]
    outcomes = np.column_stack([log.reward, log.costs])[rows]
    scores[rows] += weights[:, None] * (outcomes - predictions[rows, arms])
    return scores


def check_support(log: Log, shares: Floats) -> float:
    """Check that the log can answer for a rule and return the effective sample size of its weights."""
    propensities = known_propensities(log)
    used: Bools = np.any(shares > 0, axis=0)
    check_played(log, used, "rule")
    check_propensities(log, propensities, used)
    check_propensities_by_feature(log, propensities, used)
    weights = np.where(log.arm != SKIP, shares[np.arange(len(log)), log.arm] / propensities, 0.0)
    effective = float(weights.sum() ** 2 / max((weights**2).sum(), 1e-300))
    if used.any():
        check_sample_size(effective, len(log), "rule")
    return effective


def _probabilities(log: Log, rule: Rule) -> Floats:
    """(n, m) The probabilities of the arms at each context of the log, checked."""
    contexts = known_contexts(log)
    if isinstance(rule, Policy):
        raise SettingError(
            f"rule must be a function of contexts, its probabilities or a learner, got the policy {rule}; start it and "
            "let it learn from other rows first, or use ds.logs.evaluate, in which it learns by itself."
        )
    if isinstance(rule, Learner):
        return _asked(log, rule, contexts)
    given = rule(contexts) if callable(rule) else rule
    shares = within(floats(given, "rule", (len(log), len(log.arms))), 0.0, 1.0, "rule")
    most = float(shares.sum(axis=1).max())
    if most > 1.0 + 1e-9:
        raise OutOfRangeError(f"the probabilities of a rule must sum to at most 1 at each context, got {most:g}.")
    return shares


def _asked(log: Log, learner: Learner, contexts: Floats) -> Floats:
    """(n, m) The mix of a learner at each context, in the order of the log's arms; the learner is restored."""
    problem = learner.problem
    if sorted(problem.arm_names) != sorted(log.arms):
        raise NamesError(f"the learner must have the arms {list(log.arms)} of the log, got {list(problem.arm_names)}.")
    same = problem.encoder is None or problem.encoder == log.features
    if problem.features and not (same and problem.features == contexts.shape[1]):
        raise SettingError(
            f"the learner must encode features as the log does, by {log.features}, got "
            f"{problem.encoder or problem.features}; read the log with features=learner.problem.encoder."
        )
    order = [problem.arm_names.index(arm) for arm in log.arms]
    shares, start = np.zeros((len(log), len(order))), Bookmark(learner)
    try:
        for row, context in enumerate(contexts):
            shares[row] = learner.ask(context=context if problem.features else None).mix[order]
            start.go_back(redraw=True)
    finally:
        start.go_back()
    return shares
