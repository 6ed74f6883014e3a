r"""Propensities estimated from the features of the requests, for logs whose recorded ones are those of a draw.

A policy such as ``LinearBwK`` draws the means of all arms and plays the best one, so the mix that it reports is 0 or 1.
The probability over the draws is a smooth function of the features and of time, which is estimated here by a logistic
regression for each arm,

.. math:: \hat p_i(x) = \frac{1}{1 + e^{-\theta_i^\top (x, s, s^2, 1)}}, \qquad s = t / n,

with a penalty of :math:`\lVert\theta\rVert^2 / 2` on the standardised features, by Newton's method. Over the arms and
the skip they are normalised to 1. The doubly robust estimator remains consistent if either these probabilities or the
predictions of the outcomes are right, and its checks refuse a log at whose contexts an arm was never played.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.decision import SKIP
from driftsack.logs.log import Log
from driftsack.logs.outcome_model import known_contexts

STEPS: Final = 25
PENALTY: Final = 1.0
LARGEST: Final = 30.0  # of a linear predictor
LEAST: Final = 1e-9


def estimated_propensities(log: Log) -> Floats:
    """Estimate the probability (n,) with which each arm was chosen, 1 in skipped rounds.

    >>> import driftsack as ds
    >>> world = ds.ContextualInstance.by_table(
    ...     np.eye(2), [[0.9, 0.1], [0.1, 0.9]], [[[0.5, 0.5]]] * 2, budget=500, horizon=2_000
    ... )
    >>> log = ds.gather(world)  # chooses uniformly
    >>> bool(np.abs(estimated_propensities(log) - 0.5).max() < 0.15)
    True
    """
    features = _standardised(log)
    chosen = [log.arm == arm for arm in (*range(len(log.arms)), SKIP)]
    shares = np.column_stack([_fitted(features, own.astype(np.float64)) for own in chosen])
    shares /= shares.sum(axis=1, keepdims=True)
    found: Floats = shares[np.arange(len(log)), log.arm]  # SKIP is -1, the last column
    return np.where(log.arm == SKIP, 1.0, np.maximum(found, LEAST))


def _standardised(log: Log) -> Floats:
    """(n, p) the features, time, its square, and a constant."""
    contexts, share = known_contexts(log), np.linspace(0.0, 1.0, len(log))
    columns = np.column_stack([contexts, share, share**2])
    spread = columns.std(axis=0)
    scaled = (columns - columns.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return np.column_stack([scaled, np.ones(len(log))])


def _fitted(features: Floats, chosen: Floats) -> Floats:
    """(n,) the fitted probabilities of one arm; the constant is not penalised, so they add up to its pulls."""
    if not chosen.any():
        return np.zeros(len(chosen))
    penalties = np.append(np.full(features.shape[1] - 1, PENALTY), LEAST)
    theta = np.zeros(features.shape[1])
    theta[-1] = np.log((chosen.mean() + LEAST) / (1.0 - chosen.mean() + LEAST))
    for _ in range(STEPS):
        fitted = _logistic(features @ theta)
        gradient = features.T @ (chosen - fitted) - penalties * theta
        weights = np.maximum(fitted * (1.0 - fitted), LEAST)
        step = np.linalg.solve((features * weights[:, None]).T @ features + np.diag(penalties), gradient)
        theta += step
        if np.abs(step).max() < LEAST:
            break
    return _logistic(features @ theta)


def _logistic(values: Floats) -> Floats:
    found: Floats = 1.0 / (1.0 + np.exp(-np.clip(values, -LARGEST, LARGEST)))
    return found
