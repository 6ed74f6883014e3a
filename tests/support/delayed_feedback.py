"""Feedback that is late, out of order or missing, for tests that compare a learner with a reference."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import driftsack as ds
from driftsack.core.arrays import Floats


class Feedback(NamedTuple):
    """The outcome of a decision; a cancelled decision has the arm SKIP and only costs."""

    round: int  # of the decision, from 1
    arm: int
    probability: float  # of the arm when it was chosen
    reward: float
    costs: Floats


def give_feedback(learner: ds.Learner, rng: np.random.Generator, most: float = 0.7, latest: int = 5) -> list[Feedback]:
    """Give feedback on about half of the pending decisions, in random order; cancel one in ten.

    Decisions that are ``latest`` rounds old are always included. Rewards are up to ``reward_max`` and drift slowly;
    costs are up to ``most`` times ``cost_max``. Returns the feedback in the order in which it was given.
    """
    given, pending, problem = [], learner.pending, learner.problem
    for index in rng.permutation(len(pending)):
        decision = pending[index]
        if rng.random() < 0.5 and learner.round - decision.round < latest:
            continue
        level = 0.5 + 0.4 * np.sin(decision.round / 30 + decision.arm)
        reward = float(problem.reward_max * level * rng.random())
        costs = most * np.asarray(problem.cost_max) * rng.random(problem.resources)
        if rng.random() < 0.1:
            learner.cancel(decision, costs)
            given.append(Feedback(decision.round, ds.SKIP, 0.0, 0.0, costs))
        else:
            learner.tell(decision, reward, costs)
            given.append(Feedback(decision.round, decision.arm, float(decision.mix[decision.arm]), reward, costs))
    return given
