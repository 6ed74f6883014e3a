"""Apprentice mode: what a campaign that watches learns, and what it would choose.

Observations are learnt in batches. After each batch a copy of the learner is asked what it would choose next, and the
copy is thrown away, so that looking changes nothing. What it would choose is known before the next batch is seen:
outcomes never judge choices that were learnt from them.
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
from driftsack.service.book import Seen

BATCH: Final = 32  # observations that are learnt at once: a copy of a learner takes milliseconds
LOOKS: Final = 16  # the latest choices of a copy, whose mean is taken, since policies draw their plans at random
SECOND: Final = 1000


class Past(NamedTuple):
    """Observations, as ``Learner.teach`` reads them."""

    arms: tuple[str, ...]
    resources: tuple[str, ...]
    arm: npt.NDArray[np.int32]
    reward: Floats
    costs: Floats
    propensity: Floats


def teach(learner: Learner, seen: list[Seen]) -> None:
    """Let a learner learn what was observed; neither budgets nor rounds are used.

    Args:
        learner: The learner.
        seen: The observations, oldest first.
    """
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
    """Return with which probabilities a learner would choose each arm now.

    Args:
        learner: The learner, which is not changed.
        times: When requests would come, in milliseconds: a problem with a period estimates their number from that.

    Returns:
        (m,) the mean of the mixes of its choices; what is left of 1 is the probability to skip.
    """
    timed = learner.problem.period is not None
    mixes = []
    with warnings.catch_warnings(), contextlib.suppress(HorizonReachedError, BudgetExhaustedError):
        warnings.simplefilter("ignore")  # about the copy, which nobody uses
        copy = Learner.from_bytes(learner.to_bytes())
        for at in times:
            decision = copy.ask(at=at / SECOND if timed else None)
            mixes.append(decision.mix)
            if not decision.skipped:
                copy.cancel(decision)
    return np.mean(mixes[-LOOKS:], axis=0).tolist() if mixes else [0.0] * learner.problem.arms
