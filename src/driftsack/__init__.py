"""driftsack: spend well in a world that moves. Bandits with knapsacks in non-stationary environments."""

from driftsack import benchmarks, instances, lp, policies, theory
from driftsack.core import SKIP, Decision, Instance, Problem
from driftsack.core.errors import DriftsackError
from driftsack.core.release import __version__
from driftsack.measures import variation
from driftsack.policies import (
    DiscountedUCB,
    DualDescent,
    LagrangeBwK,
    Learner,
    NaiveUCB,
    Policy,
    PrimalDualBwK,
    SlidingWindowUCB,
    UCBBwK,
)
from driftsack.simulation import Run, simulate

__all__ = [
    "SKIP",
    "Decision",
    "DiscountedUCB",
    "DriftsackError",
    "DualDescent",
    "Instance",
    "LagrangeBwK",
    "Learner",
    "NaiveUCB",
    "Policy",
    "PrimalDualBwK",
    "Problem",
    "Run",
    "SlidingWindowUCB",
    "UCBBwK",
    "__version__",
    "benchmarks",
    "instances",
    "lp",
    "policies",
    "simulate",
    "theory",
    "variation",
]
