"""One trial, compiled: nature's side of the game and the paper's stop rule."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints, Phase
from driftsack.core.decision import SKIP
from driftsack.game.ledger import Ledger, affordable, breaks, charge
from driftsack.numerics.compiled import kernel
from driftsack.numerics.sampling import outcome
from driftsack.policies.policy import STUCK, choose, learn

FINISHED: Final = 0
NO_SUCH_ARM: Final = -3


class World(NamedTuple):
    """An instance as kernels see it."""

    rewards: Floats  # (K, m) means in [0, 1]
    costs: Floats  # (K, d, m) means in [0, 1]
    phase: Phase  # (T,)
    noise: int


class Tally(NamedTuple):
    """What one trial has earned and used so far; counts only the rounds before the stopping time."""

    clock: Ints  # (3,) rounds played, stopping time, curve points written
    reward: Floats  # (1,)
    pulls: Ints  # (m,)
    overshoot: Floats  # (d,) by how much the breaking round exceeded each budget
    times: Ints  # (p,) rounds after which the curve is read
    curve: Floats  # (p,) cumulative reward
    costs: Floats  # (d,) of the present round
    mix: Floats  # (m,) of the present round
    prices: Floats  # (d,) of the present round


@kernel
def realise(world: World, t: int, arm: int, costs: Floats, rng: Generator) -> float:
    """Draw the outcome of pulling ``arm`` in round ``t``: the costs into ``costs``, the reward returned."""
    row = world.phase[t]
    reward = outcome(world.rewards[row, arm], world.noise, rng)
    for j in range(costs.size):
        costs[j] = outcome(world.costs[row, j, arm], world.noise, rng)
    return reward


@kernel
def settle(tally: Tally, ledger: Ledger, t: int, arm: int, reward: float) -> bool:
    """Book a round's outcome; False if it breaks a budget: then it earns nothing and ends the trial."""
    if breaks(ledger, tally.costs):
        for j in range(tally.costs.size):
            tally.overshoot[j] = max(ledger.spent[j] + tally.costs[j] - ledger.budget[j], 0.0)
        tally.clock[1] = t + 1
        return False
    charge(ledger, tally.costs)
    tally.reward[0] += reward
    tally.pulls[arm] += 1
    return True


@kernel
def note(tally: Tally, played: int) -> None:
    """After ``played`` rounds, write the curve's point if it has one here."""
    tally.clock[0] = played
    point = tally.clock[2]
    if point < tally.times.size and tally.times[point] == played:
        tally.curve[point] = tally.reward[0]
        tally.clock[2] = point + 1


@kernel
def close(tally: Tally) -> int:
    """The trial is over: what was earned stays earned."""
    tally.curve[tally.clock[2] :] = tally.reward[0]
    return FINISHED


@kernel
def play(
    state: Any,
    ledger: Ledger,
    world: World,
    tally: Tally,
    nature: Generator,
    learner: Generator,
    safe: bool,
) -> int:
    """Play until the horizon or the stopping time; ``STUCK`` to be called again once the LP is solved.

    ``NO_SUCH_ARM`` says that the policy chose an arm that there is not.
    """
    for t in range(tally.clock[0], world.phase.size):
        if safe and not affordable(ledger, 1):
            break  # costs never come back: every further round would be skipped
        arm = choose(state, ledger, t, learner, tally.mix, tally.prices)
        if arm == STUCK:
            return STUCK
        if arm < SKIP or arm >= tally.mix.size:
            return NO_SUCH_ARM
        if arm == SKIP:
            tally.costs[:] = 0.0
            learn(state, t, SKIP, 1.0 - tally.mix.sum(), 0.0, tally.costs)
        else:
            reward = realise(world, t, arm, tally.costs, nature)
            if not settle(tally, ledger, t, arm, reward):
                break
            learn(state, t, arm, tally.mix[arm], reward, tally.costs)
        note(tally, t + 1)
    return close(tally)
