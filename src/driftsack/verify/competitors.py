"""The trivial competitors of checks on learning policies.

A policy that never plays satisfies every bound above the optimum, uniformly random arms have enough regret for every
lower bound, the best single arm is optimal where no mix is needed, and a policy that does not pace stops early. A check
that one of them passes says nothing about learning.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from driftsack.core.instance import Instance
from driftsack.policies import Policy, UniformRandom
from driftsack.policies.always_arm import AlwaysArm

COMPETITORS: Final = "policies that never play, play uniformly at random, always the best arm, or without pacing"
MOST_ARMS: Final = 4  # single arms that are played, those with the largest mean reward per mean cost


def competitors(world: Instance) -> list[Policy | None]:
    """Return the competitors on an instance; None stands for the policy that never plays.

    The best single arm is one of the arms with the largest mean reward or the largest mean reward per cost. The policy
    that does not pace always pulls the arm with the largest mean reward, which is the first of them.

    >>> world = Instance.stationary([1.0, 0.4], [[1.0, 0.1]], horizon=10, budget=5.0)
    >>> competitors(world)
    [None, UniformRandom(), AlwaysArm(arm=0), AlwaysArm(arm=1)]
    """
    share = world.rounds / world.horizon
    reward, cost = share @ world.rewards, np.tensordot(share, world.unit_costs, 1).sum(axis=0)
    by_reward, by_ratio = np.argsort(-reward)[:2], np.argsort(-reward / np.maximum(cost, 1e-9))
    arms = dict.fromkeys([*by_reward.tolist(), *by_ratio.tolist()])
    return [None, UniformRandom(), *(AlwaysArm(arm) for arm in list(arms)[:MOST_ARMS])]
