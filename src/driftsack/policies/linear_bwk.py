r"""LinearBwK: a linear contextual bandit with knapsacks for unknown drift.

The rewards and costs of each arm are modelled as linear in the features of the request, which are standardised and
followed when they shift (:mod:`driftsack.policies.parts.standardiser`). A bank of regressions with and without
forgetting, weighted by how well they predict, adapts to an unknown amount of drift
(:mod:`driftsack.policies.parts.linear_bank`). Thompson sampling explores
(:mod:`driftsack.policies.parts.linear_choice`), and spending is paced by prices at which the randomised policy would
have spent the remaining budget: a long-run price, and one that limits the present pace
(:mod:`driftsack.policies.parts.replayed_price`).

Agrawal and Devanur (2016) study this setting without drift; their algorithm has regret :math:`\tilde O(n \sqrt T)`.
*Guarantee*: none is known for this policy; docs/contexts.md has measurements. A round costs :math:`O(m n^2)`, and so
does the memory.

Late feedback is learnt with the context of its own round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.checks import LARGEST_SETTING, at_least_zero, share
from driftsack.core.problem import Problem
from driftsack.game.records import Outcome, Round
from driftsack.numerics.compiled import kernel
from driftsack.policies.contextual import ContextualPolicy
from driftsack.policies.parts.feature_units import follow_units
from driftsack.policies.parts.linear_bank import checked_forgetting, learn_levels_again
from driftsack.policies.parts.linear_choice import LinearChoice, choose_at, learn_at, new_choice
from driftsack.policies.parts.standardiser import Standardiser, new_standardiser, note_context, standardise


class State(NamedTuple):
    """The standardised features and the linear choice."""

    features: Standardiser
    choice: LinearChoice


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Draw outcomes for the context and choose the best arm at the current prices."""
    if note_context(state.features, round.context):
        learn_levels_again(state.choice.bank)
    follow_units(state.choice, state.features)
    standardise(state.features, round.context)
    arm: int = choose_at(state.choice, round, state.features.x, rng, mix, prices)
    return arm


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Update the belief about the arm."""
    standardise(state.features, outcome.context)
    learn_at(state.choice, outcome, state.features.x)


@dataclass(frozen=True)
class LinearBwK(ContextualPolicy):
    """Linear contextual bandit with knapsacks, for unknown drift.

    Attributes:
        exploration: Factor z on the standard deviations in Thompson sampling.
        forgetting: None for models with and without forgetting, weighted by how well they predict. A number is the
            discount of a single model per observation of an arm; 1 never forgets.
        probe_share: The maximum share of the spending so far that goes into probes of expensive arms.

    >>> import numpy as np
    >>> import driftsack as ds
    >>> world = ds.ContextualInstance.by_table(
    ...     np.eye(2), [[0.9, 0.1], [0.1, 0.9]], [[[0.5, 0.5]]] * 2, budget=500, horizon=2_000
    ... )
    >>> best = ds.benchmarks.value_of_context(world)
    >>> share = ds.simulate(world, LinearBwK(), trials=5).reward.mean() / best.with_context.value
    >>> bool(share > 0.9), best.ratio
    (True, 1.8)
    """

    exploration: float = 0.3
    forgetting: float | None = None
    probe_share: float = 0.01

    def __post_init__(self) -> None:
        object.__setattr__(self, "exploration", at_least_zero(self.exploration, "exploration", LARGEST_SETTING))
        object.__setattr__(self, "forgetting", checked_forgetting(self.forgetting))
        object.__setattr__(self, "probe_share", share(self.probe_share, "probe_share"))

    def new_state(self, problem: Problem) -> State:
        """Return the state without observations."""
        self.check_features(problem)
        size = problem.features + 1
        choice = new_choice(problem, size, self.exploration, self.probe_share, self.forgetting)
        return State(new_standardiser(problem.features), choice)
