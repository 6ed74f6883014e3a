"""Feedback that comes late and out of order, or never: what twins of learners are told."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import driftsack as ds
from driftsack.core.arrays import Floats


class Told(NamedTuple):
    """An outcome in the order of its arrival; of a decision that was cancelled the costs alone, under arm SKIP."""

    round: int  # of the decision, from 1
    arm: int
    chance: float  # of the arm when it was chosen
    reward: float
    costs: Floats


def answer(learner: ds.Learner, rng: np.random.Generator, most: float = 0.7, latest: int = 5) -> list[Told]:
    """Tell about half of what waits, in any order, and all that is ``latest`` rounds old; cancel one in ten.

    Rewards are up to ``reward_max``, costs up to ``most`` of ``cost_max``, both moving slowly.
    """
    told, waiting, problem = [], learner.pending, learner.problem
    for place in rng.permutation(len(waiting)):
        decision = waiting[place]
        if rng.random() < 0.5 and learner.round - decision.round < latest:
            continue
        level = 0.5 + 0.4 * np.sin(decision.round / 30 + decision.arm)
        reward = float(problem.reward_max * level * rng.random())
        costs = most * np.asarray(problem.cost_max) * rng.random(problem.resources)
        if rng.random() < 0.1:
            learner.cancel(decision, costs)
            told.append(Told(decision.round, ds.SKIP, 0.0, 0.0, costs))
        else:
            learner.tell(decision, reward, costs)
            told.append(Told(decision.round, decision.arm, float(decision.mix[decision.arm]), reward, costs))
    return told
