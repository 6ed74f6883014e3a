"""Policies, one algorithm per file. A policy is given the problem; only oracles are given the instance."""

from driftsack.policies.adaptive import Adaptive
from driftsack.policies.always_arm import AlwaysArm
from driftsack.policies.bandit_over_bandit import BanditOverBandit
from driftsack.policies.detect_and_restart import DetectAndRestart
from driftsack.policies.discounted_ucb import DiscountedUCB
from driftsack.policies.disjoint_bwk import DisjointBwK
from driftsack.policies.dual_descent import DualDescent
from driftsack.policies.epsilon_greedy import EpsilonGreedy
from driftsack.policies.exp3_bwk import Exp3BwK
from driftsack.policies.inventory_reserving import InventoryReserving
from driftsack.policies.lagrange_bwk import LagrangeBwK
from driftsack.policies.lagrange_cbwk import LagrangeCBwK
from driftsack.policies.learner import Learner
from driftsack.policies.linear_bwk import LinearBwK
from driftsack.policies.master import Master
from driftsack.policies.naive_ucb import NaiveUCB
from driftsack.policies.oracles import DynamicOracle, StaticOracle
from driftsack.policies.per_segment import PerSegment
from driftsack.policies.plan_with_forecast import PlanWithForecast
from driftsack.policies.policy import Policy, from_spec
from driftsack.policies.price_controller import PriceController
from driftsack.policies.primal_dual_bwk import PrimalDualBwK
from driftsack.policies.recent_means_lp import RecentMeansLP
from driftsack.policies.sliding_window_ucb import SlidingWindowUCB
from driftsack.policies.spending_plan import SpendingPlan
from driftsack.policies.square_cb_bwk import SquareCBwK
from driftsack.policies.thompson_bwk import ThompsonBwK
from driftsack.policies.ucb_bwk import UCBBwK
from driftsack.policies.uniform_random import UniformRandom
from driftsack.policies.window_pacing import WindowPacing
from driftsack.policies.with_exploration import WithExploration

__all__ = [
    "Adaptive",
    "AlwaysArm",
    "BanditOverBandit",
    "DetectAndRestart",
    "DiscountedUCB",
    "DisjointBwK",
    "DualDescent",
    "DynamicOracle",
    "EpsilonGreedy",
    "Exp3BwK",
    "InventoryReserving",
    "LagrangeBwK",
    "LagrangeCBwK",
    "Learner",
    "LinearBwK",
    "Master",
    "NaiveUCB",
    "PerSegment",
    "PlanWithForecast",
    "Policy",
    "PriceController",
    "PrimalDualBwK",
    "RecentMeansLP",
    "SlidingWindowUCB",
    "SpendingPlan",
    "SquareCBwK",
    "StaticOracle",
    "ThompsonBwK",
    "UCBBwK",
    "UniformRandom",
    "WindowPacing",
    "WithExploration",
    "from_spec",
]
