"""``python -m lab.adaptive.play SECTION SIZE SEED PLAYER``: play one section of problems, and print the rewards.

The result is a JSON document with one list of rewards for each group of problems, in the same order for every version.
``PYTHONPATH`` decides which version of ``driftsack`` plays. The *planted* player is ``Adaptive`` with far too much
exploration: a comparison that does not find it worse proves nothing.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections import deque
from typing import Any, Final

import numpy as np

from driftsack.core.seeding import generator
from driftsack.policies import Adaptive
from driftsack.simulation import simulate
from driftsack.simulation.feedback import Feedback
from lab.adaptive.problems import QUICK, SECTIONS, SHORT, WHOLE, Play

PLAYERS: Final = {"adaptive": Adaptive(), "planted": Adaptive(exploration=6.0, pacing="remaining")}
SIZES: Final = {"whole": WHOLE, "quick": QUICK, "short": SHORT}


def rewards(section: str, size: str, seed: int, player: str) -> dict[str, list[float]]:
    """The mean reward of a player on each problem of a section, by group."""
    found: dict[str, list[float]] = {}
    for play in SECTIONS[section](seed, SIZES[size]):
        trials = SIZES[size].trials
        if play.lost > 0.0:
            earned = np.mean([with_losses(play, PLAYERS[player], trial) for trial in range((trials + 3) // 4)])
        else:
            feedback = Feedback(delay=play.delay)
            run = simulate(play.world, PLAYERS[player], trials=trials, seed=seed, threads=1, feedback=feedback)
            earned = run.reward.mean()
        found.setdefault(play.group, []).append(float(earned))
    return found


def with_losses(play: Play, policy: Adaptive, trial: int) -> float:
    """The reward until a budget is exceeded, if a share of the outcomes never arrives and the others are late."""
    world, rng = play.world, generator(trial)
    problem, phase = world.problem, world.phase
    learner = policy.start(problem, seed=trial)
    left, earned = np.array(problem.budget), 0.0
    pending: deque[tuple[int, Any, float, Any]] = deque()
    lost, draws = rng.random(len(phase)) < play.lost, rng.random((len(phase), 1 + problem.resources))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for t, k in enumerate(phase):
            while pending and pending[0][0] <= t:
                _, earlier, reward, costs = pending.popleft()
                learner.tell(earlier, reward, costs)
            decision = learner.ask()
            if decision.skipped:
                continue
            arm = int(decision.arm)
            reward = float(draws[t, 0] < world.rewards[k, arm])
            costs = (draws[t, 1:] < world.costs[k, :, arm]).astype(np.float64)
            if np.any(costs > left):
                break
            left -= costs
            earned += reward
            if not lost[t]:
                pending.append((t + play.delay, decision, reward, costs))
    return earned


if __name__ == "__main__":
    json.dump(rewards(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]), sys.stdout)
