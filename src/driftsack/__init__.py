"""driftsack: spend well in a world that moves. Bandits with knapsacks in non-stationary environments."""

from driftsack import instances, lp, policies, theory
from driftsack.core import SKIP, Decision, Instance, Problem
from driftsack.core.errors import DriftsackError
from driftsack.measures import variation
from driftsack.policies import Learner, NaiveUCB, Policy, SlidingWindowUCB
from driftsack.simulation import Run, simulate

__version__ = "0.1.0"
__all__ = [
    "SKIP",
    "Decision",
    "DriftsackError",
    "Instance",
    "Learner",
    "NaiveUCB",
    "Policy",
    "Problem",
    "Run",
    "SlidingWindowUCB",
    "instances",
    "lp",
    "policies",
    "simulate",
    "theory",
    "variation",
]
