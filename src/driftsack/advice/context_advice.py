"""The value of the contexts of a log, and whether a policy that decides by them pays off over the horizon.

Two things must hold before such a policy is recommended: the 95% interval of the gain of a plan that sees the contexts
is above 0, on rows of the log that it was not made from; and the policy, which has to learn first, earned more than the
best policy without contexts in simulations on an instance fitted to the log. That instance does not drift, so if a plan
is the best policy without contexts, its gain by timing is added to the reward that must be exceeded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from driftsack.advice.standings import Standing
from driftsack.core.contextual import NOISES, ContextualInstance
from driftsack.core.errors import CannotAnswerError
from driftsack.core.problem import Problem
from driftsack.core.seeding import generator
from driftsack.logs import Log, LoggedContextValue
from driftsack.logs.doubly_robust import FOLDS
from driftsack.logs.outcome_model import cross_fitted, draw_folds
from driftsack.policies import LinearBwK, Policy
from driftsack.simulation import simulate

MAX_CONTEXTS: Final = 4_096  # rows of the log that the fitted instance draws contexts from


class ContextAdvice(NamedTuple):
    """The findings about the contexts of a log."""

    features: tuple[str, ...]  # names of the features
    worth: LoggedContextValue | None  # their value over the horizon; None if the log does not suffice to estimate it
    reason: str  # why it does not suffice; empty if it does
    # Simulated reward of the contextual policy over that of the best one without contexts and plans; 1 if it was not
    # simulated, because contexts have no value.
    ratio: float
    # The ratio that must be exceeded: the share of the optimum that the best policy without contexts earned, over that
    # of the best one without plans.
    needed: float
    policy: Policy  # the contextual policy
    problem: Problem  # the problem with its features

    @property
    def pays(self) -> bool:
        """Whether the contextual policy is recommended."""
        return self.worth is not None and self.worth.pays and self.ratio > self.needed

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        worth = None if self.worth is None else {**self.worth._asdict(), "gain": self.worth.gain}
        return {
            "features": list(self.features),
            "worth": worth,
            "reason": self.reason,
            "ratio": self.ratio,
            "needed": self.needed,
            "pays": self.pays,
            "policy": self.policy.to_spec(),
        }


def context_advice(
    log: Log,
    budget: Sequence[float],
    horizon: int,
    noise: str,
    best: Standing,
    steady: Standing,
    trials: int,
    seed: int,
) -> ContextAdvice | None:
    """Estimate the value of the contexts of a log and, if it is positive, simulate a policy that uses them.

    ``best`` is the best policy without contexts, ``steady`` the best one among them that does not plan. None is
    returned if the log has no contexts.
    """
    if log.contexts is None or log.features is None:
        return None
    # Estimate the value of contexts from the log.
    policy, worth, reason, ratio = LinearBwK(), None, "", 1.0
    problem = Problem(
        horizon,
        log.arms,
        list(budget),
        log.reward_max,
        log.cost_max,
        resource_names=log.resources,
        features=log.features,
    )
    try:
        worth = log.value_of_context(list(budget), horizon, seed)
    except CannotAnswerError as error:
        reason = str(error)
    # If they pay, simulate both policies over the horizon.
    if worth is not None and worth.pays:
        world = _fitted(log, problem, noise, seed)
        earned, other = (
            simulate(world, one, trials=trials, seed=seed).reward.mean() for one in (policy, steady.candidate.policy)
        )
        ratio = float(earned / other) if other > 0 else 1.0 + float(earned > 0)
    needed = best.share / steady.share if steady.share > 0 else 1.0
    return ContextAdvice(log.features.inputs, worth, reason, ratio, max(needed, 1.0), policy, problem)


def _fitted(log: Log, problem: Problem, noise: str, seed: int) -> ContextualInstance:
    """An instance that draws contexts of the log and has the means that are predicted at them."""
    assert log.contexts is not None  # noqa: S101  (checked by the caller)
    rows = generator(seed).permutation(len(log))[:MAX_CONTEXTS]
    means = cross_fitted(log, draw_folds(len(log), FOLDS, seed))[rows]
    return ContextualInstance(
        problem,
        log.contexts[rows],
        means[None, :, :, 0],
        means[None, :, :, 1:].transpose(0, 1, 3, 2),
        np.zeros(problem.horizon, dtype=np.int32),
        noise=noise if noise in NOISES else "bernoulli",
    )
