"""Apprentice mode: a watching campaign learns from observations, and reports what it would choose.

Observations are learnt in batches. After each batch a copy of the learner is asked for its next choices and then
discarded, so the learner itself is not changed. The choices are known before the next batch arrives, so they are never
evaluated on outcomes that they were learnt from.

In a campaign with features choices depend on the request. So a copy is asked at the context of each observation of a
batch, a few times because policies may draw at random, before the batch is learnt.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Floats
from driftsack.core.errors import BudgetExhaustedError, HorizonReachedError
from driftsack.policies.learner import Learner
from driftsack.service.domain.book import Observation
from driftsack.service.domain.calendar import SECOND
from driftsack.service.domain.features import vector_of

BATCH: Final = 32  # observations that are learnt together, because copying a learner takes milliseconds
DRAWS: Final = 4  # mixes that are averaged at each context
LOOKS: Final = 16  # latest choices of a copy that are averaged, because policies may draw their plans at random


class Past(NamedTuple):
    """Observations, as ``Learner.teach`` reads them."""

    arms: tuple[str, ...]
    resources: tuple[str, ...]
    arm: npt.NDArray[np.int32]
    reward: Floats
    costs: Floats
    propensity: Floats
    contexts: Floats | None = None


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
            contexts=np.array([vector_of(each.context or b"") for each in seen]) if problem.features else None,
        )
    )


def choices(learner: Learner, times: list[int], contexts: Sequence[bytes | None]) -> list[float]:
    """Return the probabilities with which a learner would choose each arm now.

    Args:
        learner: The learner, which is not changed.
        times: The times of hypothetical requests in milliseconds, from which a learner with a period estimates a rate.
        contexts: The encoded features of each of these requests; None without features.

    Returns:
        (m,) the mean of the mixes of its latest choices; the remaining probability is that of skipping.
    """
    timed = learner.problem.period is not None
    mixes = []
    with warnings.catch_warnings(), contextlib.suppress(HorizonReachedError, BudgetExhaustedError):
        warnings.simplefilter("ignore")  # about the copy, which is discarded
        copy = Learner.from_bytes(learner.to_bytes())
        for at, context in zip(times, contexts, strict=True):
            mixes.append(_mix_of(copy, at / SECOND if timed else None, context))
    return np.mean(mixes[-LOOKS:], axis=0).tolist() if mixes else [0.0] * learner.problem.arms


def choices_at(learner: Learner, seen: list[Observation]) -> list[list[float]]:
    """Return the probabilities with which a learner would choose each arm at the contexts of observations.

    Args:
        learner: The learner, which is not changed.
        seen: The observations.

    Returns:
        (k, m) the means of several mixes at each context; empty if the learner cannot decide.
    """
    timed, rounds = learner.problem.period is not None, [each for each in seen for _ in range(DRAWS)]
    mixes: list[Floats] = []
    with warnings.catch_warnings(), contextlib.suppress(HorizonReachedError, BudgetExhaustedError):
        warnings.simplefilter("ignore")
        copy = Learner.from_bytes(learner.to_bytes())
        mixes.extend(_mix_of(copy, each.at / SECOND if timed else None, each.context) for each in rounds)
    if len(mixes) < len(rounds):
        return []
    found: list[list[float]] = np.reshape(mixes, (len(seen), DRAWS, -1)).mean(axis=1).tolist()
    return found


def _mix_of(copy: Learner, at: float | None, context: bytes | None) -> Floats:
    """The mix of a copy of a learner for one request, which is given up."""
    decision = copy.ask(at=at, context=None if context is None else vector_of(context))
    if not decision.skipped:
        copy.cancel(decision)
    return decision.mix
