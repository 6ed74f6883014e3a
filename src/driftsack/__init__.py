"""driftsack: spend well in a world that moves. Bandits with knapsacks in non-stationary environments."""

from driftsack import benchmarks, instances, lp, oco, policies, theory
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
from driftsack.simulation import Run, simulate

__all__ = [
    "SKIP",
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
    "benchmarks",
    "instances",
    "lp",
    "oco",
    "policies",
    "simulate",
    "theory",
    "variation",
]
