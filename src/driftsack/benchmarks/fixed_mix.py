"""A fixed mix under the hard stop rule: what it earns in one simulated trial."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.instance import Instance
from driftsack.core.seeding import generator, trial_seeds
from driftsack.game.ledger import open_ledger
from driftsack.game.records import Outcome, Round, new_terms
from driftsack.game.trial import new_tally, run_trial
from driftsack.game.world import world_of
from driftsack.numerics.compiled import kernel
from driftsack.numerics.sampling import draw


class State(NamedTuple):
    """The mix; the state never changes."""

    mix: Floats  # (m,)


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:  # noqa: ARG001
    """Draw from the mix."""
    for i in range(mix.size):
        mix[i] = state.mix[i]
    return draw(mix, rng.random())


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Nothing is learnt."""


def hard_reward(instance: Instance, mix: Floats, seed: int, trial: int) -> float:
    """The normalised reward of one trial of the mix; it depends on ``(seed, trial)`` alone."""
    problem, rng = instance.problem, generator(trial_seeds(seed, trial)[0])
    tally = new_tally(problem, np.zeros(0, dtype=np.int64), np.zeros(0))
    run_trial(State(mix), open_ledger(problem), new_terms(problem), world_of(instance), tally, rng, rng)
    return float(tally.reward[0])
