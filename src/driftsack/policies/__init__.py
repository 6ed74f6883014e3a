"""Layer 3: one algorithm a file. A policy knows the problem, never the instance."""

from driftsack.policies.discounted_ucb import DiscountedUCB
from driftsack.policies.dual_descent import DualDescent
from driftsack.policies.lagrange_bwk import LagrangeBwK
from driftsack.policies.learner import Learner
from driftsack.policies.naive_ucb import NaiveUCB
from driftsack.policies.policy import Policy, from_spec
from driftsack.policies.primal_dual_bwk import PrimalDualBwK
from driftsack.policies.sliding_window_ucb import SlidingWindowUCB
from driftsack.policies.ucb_bwk import UCBBwK

__all__ = [
    "DiscountedUCB",
    "DualDescent",
    "LagrangeBwK",
    "Learner",
    "NaiveUCB",
    "Policy",
    "PrimalDualBwK",
    "SlidingWindowUCB",
    "UCBBwK",
    "from_spec",
]
