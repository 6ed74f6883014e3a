r"""A model of the outcomes of every arm at every context of a log, for doubly robust estimates.

Rewards and costs of each arm are regressed on the standardised features by ridge regression,

.. math:: \hat\theta = \arg\min_\theta \sum_{t: a_t = i} (y_t - \theta^\top (x_t, 1))^2 + \lVert\theta\rVert^2,

where the constant is not penalised. Predictions are *cross-fitted*: those for a row come from a model that was fitted
without the rows of its fold, or with the folds before it only, so they are independent of its outcome. Memory is
:math:`n m (1 + d)`.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import whole
from driftsack.core.errors import CannotAnswerError
from driftsack.core.seeding import generator
from driftsack.logs.log import Log

PENALTY: Final = 1.0
TINY: Final = 1e-9  # the penalty of the constant, which keeps the matrix of an arm without pulls invertible


def draw_folds(rows: int, folds: int, seed: int) -> Ints:
    """Draw the fold (from 0) of each row, of equal sizes; the same seed gives the same folds."""
    count = whole(folds, "folds", at_least=2, at_most=rows)
    return generator(seed).permutation(rows) % count


def known_contexts(log: Log) -> Floats:
    """Return the contexts (n, features), or raise if the log has none."""
    if log.contexts is None:
        raise CannotAnswerError(
            "the log has no contexts: record the features of each request in columns such as context_kind and "
            "context_tokens, or use ds.logs.evaluate_mix."
        )
    return log.contexts


def cross_fitted(log: Log, fold: Ints, earlier: bool = False) -> Floats:
    """Predict the outcomes (n, m, 1 + d) of every arm at the context of each row, by models that did not see its fold.

    Mean rewards come first, then costs; all are in [0, max]. With ``earlier``, models see only the folds before it, and
    the predictions for the first fold are 0.
    """
    contexts = known_contexts(log)
    spread = contexts.std(axis=0)
    scaled = (contexts - contexts.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    features = np.column_stack([scaled, np.ones(len(log))])
    penalties = np.diag([*[PENALTY] * scaled.shape[1], TINY])
    most = np.array([log.reward_max, *log.cost_max])
    played = np.column_stack([log.reward, log.costs])
    predictions = np.zeros((len(log), len(log.arms), len(most)))
    for i in range(len(log.arms)):
        outcomes, own = (played, log.arm == i) if log.table is None else (log.table[:, i], np.ones(len(log), bool))
        for k in range(1 if earlier else 0, int(fold.max()) + 1):
            seen = own & (fold < k if earlier else fold != k)
            x, y = features[seen], outcomes[seen]
            coefficients = np.linalg.solve(x.T @ x + penalties, x.T @ y)
            predictions[fold == k, i] = np.clip(features[fold == k] @ coefficients, 0.0, most)
    return predictions
