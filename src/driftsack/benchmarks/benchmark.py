"""``Benchmark``, the result type of every benchmark, and helpers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.checks import of_type
from driftsack.core.contextual import ContextualInstance
from driftsack.core.errors import SettingError
from driftsack.core.instance import Instance

SMALLEST_VALUE: Final = 1e-6  # per round: the smallest denominator of a relative gap


def check_instance(instance: object, benchmark: str, floors: bool = False) -> None:
    """Raise unless ``instance`` is an instance without contexts, and without floors unless the benchmark has them."""
    if isinstance(instance, ContextualInstance):
        raise SettingError(
            f"{benchmark} is for instances without contexts, got a ContextualInstance; use "
            "ds.benchmarks.lp_contextual(instance), or value_of_context(instance).without for the optimum of "
            "policies that do not see the contexts."
        )
    of_type(instance, Instance, "instance")
    if isinstance(instance, Instance) and instance.problem.floor and not floors:
        raise SettingError(
            f"{benchmark} maximises the reward, got an instance with floors; use lp_dynamic, lp_static or single_step, "
            "or remove minimise and floor from its problem."
        )


def relative_gap(upper: float, lower: float, rounds: float) -> float:
    """Compute (upper - lower) / upper for sums over ``rounds``, with a denominator of at least 1e-6 per round."""
    return max(upper - lower, 0.0) / max(upper, SMALLEST_VALUE * rounds)


def plan_spending(costs: Floats, plan: Floats) -> Floats:
    """Return the expected costs (K, d) of a round of each row under a plan (K, m), given mean costs (K, d, m)."""
    spending: Floats = np.einsum("kji,ki->kj", costs, plan)
    return spending


@dataclass(frozen=True, eq=False)
class Benchmark:
    """The value of a benchmark with a certificate, in the problem's units.

    Attributes:
        name: The name of the benchmark.
        value: The value: the total reward, or with floors the total cost of the minimised resource. For an LP this is
            the dual value, so no plan earns more, or costs less.
        gap: The certified relative gap: (value - reward of the plan) / value; with floors (cost of the plan - value) /
            value, where the plan buys what it lacks of a floor at its price.
        prices: (d,) the dual variables: reward per unit of each resource, or with floors the cost that one more unit of
            its budget saves. None if the benchmark has none.
        plan: (K, m) the mix of arms for each distinct row of the instance. None if the benchmark has none.
        passes: The number of passes over the rows that the computation took.
        floor_prices: (k,) with floors: the total cost of one more unit of reward, or of one more request that an arm
            with a minimum share answers, for each floor.
        reachable: With floors: the largest share of all floors that a plan can reach; 1 if it can reach the floors.
            Otherwise value and plan are those for floors multiplied by this share.
    """

    name: str
    value: float
    gap: float
    prices: Floats | None = None
    plan: Floats | None = None
    passes: int = 0
    floor_prices: Floats | None = None
    reachable: float = 1.0

    def __str__(self) -> str:
        return f"{self.name}: {self.value:,.6g} (relative gap {self.gap:.1e})"
