r"""Oracles: they know the means and follow the optimum's own plan, as yardsticks for those that must learn.

``DynamicOracle`` plays in round t the mix :math:`x_t` of LP-Dynamic, ``StaticOracle`` the one mix of LP-Static in every
round. Both meet the budgets in expectation only, so a trial may stop a little early: of order :math:`\sqrt T` is lost
against the LP's value, with deterministic outcomes too if the plan mixes arms; nothing only where nothing is random.
They look up a row a round.

They need the instance, so only ``simulate`` can start them.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.benchmarks.lp_dynamic import lp_dynamic
from driftsack.benchmarks.lp_static import lp_static
from driftsack.benchmarks.result import Benchmark
from driftsack.core.arrays import Floats, Phase
from driftsack.core.checks import frozen
from driftsack.core.errors import SettingError
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.game.ledger import Ledger
from driftsack.numerics.compiled import kernel
from driftsack.numerics.sampling import draw
from driftsack.policies.policy import Policy


class State(NamedTuple):
    """What is known from the start; nothing changes."""

    plan: Floats  # (K, m) a mix for each distinct row
    prices: Floats  # (d,)
    phase: Phase  # (T,) the row of each round


@kernel
def choose(state: State, ledger: Ledger, t: int, rng: Generator, mix: Floats, prices: Floats) -> int:  # noqa: ARG001
    """Draw from the plan's mix."""
    row = state.phase[t]
    for i in range(mix.size):
        mix[i] = state.plan[row, i]
    for j in range(prices.size):
        prices[j] = state.prices[j]
    return draw(mix, rng.random())


@kernel
def learn(state: State, t: int, arm: int, chance: float, reward: float, costs: Floats) -> None:
    """Nothing to learn."""


class Oracle(Policy):
    """A policy that is told the instance."""

    @property
    def forgets(self) -> None:
        """It learns nothing."""

    def new_state(self, problem: Problem) -> Any:  # noqa: ARG002
        """A learner cannot be told the means."""
        name = type(self).__name__
        raise SettingError(f"{name} knows the means of an instance, so only simulate(instance, {name}()) can start it.")

    def state_on(self, instance: Instance) -> State:
        """The plan of this oracle's benchmark."""
        best, problem = self.benchmark(instance), instance.problem
        if best.plan is None or best.prices is None:
            raise SettingError(f"{best.name} has no plan that {type(self).__name__} could follow.")
        unit_prices = best.prices * np.asarray(problem.cost_max) / problem.reward_max
        return State(frozen(best.plan), frozen(unit_prices), instance.phase)

    @abc.abstractmethod
    def benchmark(self, instance: Instance) -> Benchmark:
        """The optimum whose plan is played."""


@dataclass(frozen=True)
class DynamicOracle(Oracle):
    """Recipe: plays the plan of LP-Dynamic.

    >>> import driftsack as ds
    >>> world = ds.instances.example_2(noise="deterministic")
    >>> bool(ds.simulate(world, DynamicOracle(), trials=20).reward.mean() > 4_900)
    True
    """

    def benchmark(self, instance: Instance) -> Benchmark:
        """LP-Dynamic."""
        return lp_dynamic(instance)


@dataclass(frozen=True)
class StaticOracle(Oracle):
    """Recipe: plays the one mix of LP-Static.

    >>> StaticOracle().to_spec()
    {'policy': 'StaticOracle'}
    """

    def benchmark(self, instance: Instance) -> Benchmark:
        """LP-Static."""
        return lp_static(instance)
