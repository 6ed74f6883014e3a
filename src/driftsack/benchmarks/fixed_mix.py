"""Simulation of a fixed mix under the hard stop rule."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.instance import Instance
from driftsack.core.seeding import generator, trial_seeds
from driftsack.game.ledger import open_ledger
from driftsack.game.records import Outcome, Round, new_terms
from driftsack.game.trial import Randomness, new_tally, run_trial
from driftsack.game.world import world_of
from driftsack.numerics.compiled import kernel
from driftsack.numerics.sampling import draw


class State(NamedTuple):
    """The mix; the state never changes."""

    mix: Floats  # (m,)


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Draw an arm from the mix."""
    for i in range(mix.size):
        mix[i] = state.mix[i]
    return draw(mix, rng.random())


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Learn nothing."""


def hard_reward(instance: Instance, mix: Floats, seed: int, trial: int) -> float:
    """Return the normalised reward of one trial of the mix, which depends only on ``(seed, trial)``."""
    problem, rng = instance.problem, generator(trial_seeds(seed, trial)[0])
    tally = new_tally(problem, np.zeros(0, dtype=np.int64), np.zeros(0))
    run_trial(State(mix), open_ledger(problem), new_terms(problem), world_of(instance), tally, Randomness(rng, rng))
    return float(tally.reward[0])
