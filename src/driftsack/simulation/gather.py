"""``gather``: simulate a policy on an instance and record every round in a log with propensities."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.checks import of_type
from driftsack.core.contextual import ContextualInstance
from driftsack.core.decision import SKIP
from driftsack.core.encoder import Encoder
from driftsack.core.instance import Instance
from driftsack.core.names import default_feature_names
from driftsack.core.seeding import generator, trial_seeds
from driftsack.game.ledger import open_ledger
from driftsack.game.nature import AnyInstance, for_trial, new_world
from driftsack.game.protocol import choose as choose_base
from driftsack.game.protocol import learn as learn_base
from driftsack.game.records import Outcome, Round, new_terms
from driftsack.game.trial import Randomness, new_tally, run_trial
from driftsack.logs import Log
from driftsack.numerics.compiled import kernel
from driftsack.policies import Policy, UniformRandom


class State(NamedTuple):
    """A policy's state and the normalised rows of its log."""

    base: Any
    arm: npt.NDArray[np.int32]  # (T,)
    probability: Floats  # (T,)
    outcomes: Floats  # (T, 1 + d) rewards first


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Return the choice of the policy."""
    return choose_base(state.base, round, rng, mix, prices)


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Record the row and pass the outcome to the policy."""
    t = outcome.t
    state.arm[t] = outcome.arm
    state.probability[t] = outcome.probability
    state.outcomes[t, 0] = outcome.reward
    for j in range(outcome.costs.size):
        state.outcomes[t, 1 + j] = outcome.costs[j]
    learn_base(state.base, outcome)


def gather(instance: AnyInstance, policy: Policy | None = None, seed: int = 0) -> Log:
    """Simulate a policy for all T rounds and return the log; budgets are not enforced.

    Args:
        instance: The instance. The log uses its names; arms and features without names are numbered.
        policy: The policy; None for uniformly random arms. It is given budgets that suffice for every round.
        seed: The seed. The same seed gives the same log.

    Returns:
        The log, with propensities, and with contexts if the instance has them.

    >>> import driftsack as ds
    >>> log = gather(ds.instances.example_2(horizon=100), seed=1)
    >>> len(log), log.arms, float(log.propensity[0])
    (100, ('0', '1'), 0.5)
    """
    contextual = isinstance(instance, ContextualInstance)
    if not contextual:
        of_type(instance, Instance, "instance")
    # Budgets that cannot be exhausted.
    problem, most = instance.problem, np.asarray(instance.problem.cost_max)
    free = replace(problem, budget=tuple((most * (problem.horizon + 1)).tolist()))
    nature, own = (generator(part) for part in trial_seeds(seed, 0))
    # Run one trial, with a state that records every round.
    state = State(
        base=(policy or UniformRandom()).new_state(free),
        arm=np.full(problem.horizon, SKIP, dtype=np.int32),
        probability=np.ones(problem.horizon),
        outcomes=np.zeros((problem.horizon, 1 + problem.resources)),
    )
    tally = new_tally(free, np.zeros(0, dtype=np.int64), np.zeros(0))
    world = for_trial(instance, new_world(instance), nature)
    run_trial(state, open_ledger(free), new_terms(free), world, tally, Randomness(nature, own))
    return Log(
        arms=problem.arm_names,
        resources=problem.resource_names,
        time=np.arange(1.0, problem.horizon + 1),
        arm=state.arm,
        reward=state.outcomes[:, 0] * problem.reward_max,
        costs=state.outcomes[:, 1:] * most,
        propensity=state.probability,
        table=None,
        reward_max=problem.reward_max,
        cost_max=problem.cost_max,
        contexts=world.contexts[world.order] if contextual else None,
        features=(problem.encoder or _by_number(problem.features)) if contextual else None,
    )


def _by_number(features: int) -> Encoder:
    """Return an encoder that names features by their numbers."""
    return Encoder(numbers=default_feature_names(features))
