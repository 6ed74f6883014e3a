r"""Oracles, which know the means and follow the plan of an optimum: a reference for policies that must learn.

``DynamicOracle`` uses the mix :math:`x_t` of LP-Dynamic in round t, ``StaticOracle`` the mix of LP-Static in every
round. Both meet the budgets in expectation only, so a trial may stop early and lose :math:`O(\sqrt T)` compared with
the value of the LP, even with deterministic outcomes if the plan mixes arms. A round is a table lookup.

They need the instance, so only ``simulate`` can start them.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.random import Generator

from driftsack.benchmarks.benchmark import Benchmark
from driftsack.benchmarks.lp_dynamic import lp_dynamic
from driftsack.benchmarks.lp_static import lp_static
from driftsack.core.arrays import Floats, Phase
from driftsack.core.checks import frozen
from driftsack.core.contextual import ContextualInstance
from driftsack.core.errors import SettingError
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.game.records import Outcome, Round
from driftsack.game.units import normalised_prices, units_of
from driftsack.numerics.compiled import kernel
from driftsack.numerics.sampling import draw
from driftsack.policies.policy import Policy


class State(NamedTuple):
    """The plan, which never changes."""

    plan: Floats  # (K, m) a mix for each distinct row
    prices: Floats  # (d,)
    phase: Phase  # (T,) the row of each round


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Draw an arm from the plan's mix for the round."""
    row = state.phase[round.t]
    for i in range(mix.size):
        mix[i] = state.plan[row, i]
    for j in range(prices.size):
        prices[j] = state.prices[j]
    return draw(mix, rng.random())


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Ignore the outcome."""


class Oracle(Policy):
    """A policy that knows the instance."""

    @property
    def forgets(self) -> None:
        """None: the policy learns nothing."""

    def follow_rate(self) -> Policy:
        """Raise: an oracle has its own spending plan."""
        raise SettingError(f"{type(self).__name__} has its own spending plan and cannot follow another one.")

    def new_state(self, problem: Problem) -> Any:
        """Raise: a learner cannot know the means."""
        name = type(self).__name__
        raise SettingError(f"{name} knows the means of an instance, so only simulate(instance, {name}()) can start it.")

    def state_on(self, instance: Instance | ContextualInstance) -> State:
        """Compute the plan of the benchmark."""
        if isinstance(instance, ContextualInstance):
            raise SettingError(
                f"{type(self).__name__} plans without contexts, got a ContextualInstance; compare with "
                "ds.benchmarks.lp_contextual(instance) instead."
            )
        best = self.benchmark(instance)
        if best.plan is None or best.prices is None:
            raise SettingError(f"{best.name} has no plan for {type(self).__name__} to follow.")
        unit_prices = normalised_prices(units_of(instance.problem), best.prices)
        return State(frozen(best.plan), frozen(unit_prices), instance.phase)

    @abc.abstractmethod
    def benchmark(self, instance: Instance) -> Benchmark:
        """Compute the benchmark whose plan the oracle follows.

        Args:
            instance: The instance that is simulated.

        Returns:
            The benchmark, with plan and prices.
        """


@dataclass(frozen=True)
class DynamicOracle(Oracle):
    """Follows the plan of LP-Dynamic; no settings.

    >>> import driftsack as ds
    >>> world = ds.instances.example_2(noise="deterministic")
    >>> bool(ds.simulate(world, DynamicOracle(), trials=20).reward.mean() > 4_900)
    True
    """

    def benchmark(self, instance: Instance) -> Benchmark:
        """Compute LP-Dynamic."""
        return lp_dynamic(instance)


@dataclass(frozen=True)
class StaticOracle(Oracle):
    """Follows the single mix of LP-Static; no settings.

    >>> StaticOracle().to_spec()
    {'policy': 'StaticOracle'}
    """

    def benchmark(self, instance: Instance) -> Benchmark:
        """Compute LP-Static."""
        return lp_static(instance)
