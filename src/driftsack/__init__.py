"""driftsack: spend well in a world that moves. Bandits with knapsacks in non-stationary environments."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from driftsack import benchmarks, datasets, instances, logs, lp, policies, theory
from driftsack.advice import Advice, advise
from driftsack.core import SKIP, Decision, Instance, Problem
from driftsack.core.errors import DriftsackError
from driftsack.core.release import __version__
from driftsack.measures import variation
from driftsack.policies import (
    AlwaysArm,
    BanditOverBandit,
    DetectAndRestart,
    DiscountedUCB,
    DualDescent,
    DynamicOracle,
    Exp3BwK,
    LagrangeBwK,
    Learner,
    Master,
    NaiveUCB,
    PlanWithForecast,
    Policy,
    PrimalDualBwK,
    SlidingWindowUCB,
    SpendingPlan,
    StaticOracle,
    ThompsonBwK,
    UCBBwK,
    UniformRandom,
)
from driftsack.simulation import Run, gather, simulate

if TYPE_CHECKING:
    from driftsack import oco

__all__ = [
    "SKIP",
    "Advice",
    "AlwaysArm",
    "BanditOverBandit",
    "Decision",
    "DetectAndRestart",
    "DiscountedUCB",
    "DriftsackError",
    "DualDescent",
    "DynamicOracle",
    "Exp3BwK",
    "Instance",
    "LagrangeBwK",
    "Learner",
    "Master",
    "NaiveUCB",
    "PlanWithForecast",
    "Policy",
    "PrimalDualBwK",
    "Problem",
    "Run",
    "SlidingWindowUCB",
    "SpendingPlan",
    "StaticOracle",
    "ThompsonBwK",
    "UCBBwK",
    "UniformRandom",
    "__version__",
    "advise",
    "benchmarks",
    "datasets",
    "gather",
    "instances",
    "logs",
    "lp",
    "oco",
    "policies",
    "simulate",
    "theory",
    "variation",
]


def __getattr__(name: str) -> ModuleType:
    """Load ``oco``, the half of the library that most programs do not use, when it is first asked for."""
    if name == "oco":
        return import_module("driftsack.oco")
    raise AttributeError(f"driftsack has no {name!r}")
