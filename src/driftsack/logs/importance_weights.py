r"""Off-policy evaluation of a fixed mix by self-normalised importance weights.

A mix :math:`x` is evaluated on all rows of a log with propensities :math:`p_t`,

.. math:: \hat r(x) = \Bigl(\sum_i x_i\Bigr) \frac{\sum_t w_t r_t}{\sum_t w_t}, \qquad w_t = x_{a_t} / p_t,

and likewise for costs, with the effective sample size :math:`(\sum w)^2 / \sum w^2`. The bias is of the order of 1
divided by that size. The log must pass the checks of :mod:`driftsack.logs.propensities`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from driftsack.core.checks import floats, of_type, within
from driftsack.core.decision import SKIP
from driftsack.core.errors import OutOfRangeError
from driftsack.core.names import Amounts, by_name
from driftsack.logs.evaluation import Evaluation, check_sample_size, full_problem, rounds_until_exhausted
from driftsack.logs.log import Log
from driftsack.logs.propensities import check_played, check_propensities, known_propensities


def evaluate_mix(log: Log, mix: npt.ArrayLike | Mapping[str, float], budget: Amounts | None = None) -> Evaluation:
    """Evaluate a fixed mix of the arms by self-normalised importance weights.

    Args:
        log: A log with propensities.
        mix: (m,) Probabilities of the arms, in the order of ``log.arms`` or by name; what is left of 1 is the
            probability of a skip.
        budget: Budget for as many rounds as the log has, one number or one for each resource, in order or by name;
            None without budgets.

    Returns:
        The estimate, with the effective sample size of the weights.

    Raises:
        CannotAnswerError: If the log has no propensities, they are inconsistent with the arms played, or the mix is too
            different from what was played.

    >>> import driftsack as ds
    >>> log = ds.gather(ds.Instance.stationary([0.2, 0.8], [[0.5, 0.5]], horizon=4_000, budget=1_000.0))
    >>> estimate = evaluate_mix(log, [0.25, 0.75], budget=1_000.0)
    >>> abs(estimate.reward - 0.65) < 4 * estimate.reward_se, round(estimate.effective) > 2_000, estimate.lasts < 2_200
    (True, True, True)
    """
    of_type(log, Log, "log")
    shares = within(floats(by_name(mix, log.arms, "mix", "arms"), "mix", (len(log.arms),)), 0.0, 1.0, "mix")
    if shares.sum() > 1.0 + 1e-9:
        raise OutOfRangeError(f"mix must sum to at most 1, got {shares.sum():g}.")
    amounts = None if budget is None else np.asarray(full_problem(log, budget).budget)

    # Refuse a log that cannot answer.
    propensities = known_propensities(log)
    check_played(log, shares > 0, "mix")
    check_propensities(log, propensities, shares > 0)
    weights = np.where(log.arm != SKIP, shares[log.arm] / propensities, 0.0)
    total = weights.sum()
    effective = float(total**2 / (weights**2).sum()) if total > 0 else 0.0
    if total > 0:
        check_sample_size(effective, len(log), "mix")

    # Weighted means of the outcomes; skipped rounds earn and cost nothing.
    active = float(shares.sum())
    normalised = weights / total if total > 0 else weights
    reward = float(normalised @ log.reward)
    error = float(np.sqrt((normalised**2 * (log.reward - reward) ** 2).sum()))
    costs = active * (normalised @ log.costs)
    return Evaluation(
        method="importance weights",
        reward=active * reward,
        reward_se=active * error,
        costs=costs,
        effective=effective,
        rounds=len(log),
        lasts=rounds_until_exhausted(len(log), costs, amounts),
    )
