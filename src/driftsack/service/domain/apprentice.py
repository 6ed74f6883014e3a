"""Apprentice mode: a watching campaign learns from observations, and reports what it would choose.

Observations are learnt in batches. After each batch a copy of the learner is asked for its next choices and then
discarded, so the learner itself is not changed. The choices are known before the next batch arrives, so they are never
evaluated on outcomes that they were learnt from.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Floats
from driftsack.core.errors import BudgetExhaustedError, HorizonReachedError
from driftsack.policies.learner import Learner
from driftsack.service.domain.book import Observation
from driftsack.service.domain.calendar import SECOND

BATCH: Final = 32  # observations that are learnt together, because copying a learner takes milliseconds
LOOKS: Final = 16  # latest choices of a copy that are averaged, because policies may draw their plans at random


class Past(NamedTuple):
    """Observations, as ``Learner.teach`` reads them."""

    arms: tuple[str, ...]
    resources: tuple[str, ...]
    arm: npt.NDArray[np.int32]
    reward: Floats
    costs: Floats
    propensity: Floats


def teach(learner: Learner, seen: list[Observation]) -> None:
    """Let a learner learn from observations, oldest first; neither budgets nor rounds are used."""
    if not seen:
        return
    problem = learner.problem
    learner.teach(
        Past(
            arms=problem.arm_names,
            resources=problem.resource_names,
            arm=np.array([each.arm for each in seen], dtype=np.int32),
            reward=np.array([each.reward for each in seen]),
            costs=np.array([each.costs for each in seen]),
            propensity=np.array([each.probability or 1.0 for each in seen]),  # as for a log without propensities
        )
    )


def choices(learner: Learner, times: list[int]) -> list[float]:
    """Return the probabilities with which a learner would choose each arm now.

    Args:
        learner: The learner, which is not changed.
        times: The times of hypothetical requests in milliseconds, from which a learner with a period estimates a rate.

    Returns:
        (m,) the mean of the mixes of its latest choices; the remaining probability is that of skipping.
    """
    timed = learner.problem.period is not None
    mixes = []
    with warnings.catch_warnings(), contextlib.suppress(HorizonReachedError, BudgetExhaustedError):
        warnings.simplefilter("ignore")  # about the copy, which is discarded
        copy = Learner.from_bytes(learner.to_bytes())
        for at in times:
            decision = copy.ask(at=at / SECOND if timed else None)
            mixes.append(decision.mix)
            if not decision.skipped:
                copy.cancel(decision)
    return np.mean(mixes[-LOOKS:], axis=0).tolist() if mixes else [0.0] * learner.problem.arms
