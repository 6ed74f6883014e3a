"""The policies whose learners' files are attacked."""

from __future__ import annotations

from driftsack.core.instance import Instance
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
from driftsack.policies.linear_bwk import LinearBwK
from driftsack.policies.master import Master
from driftsack.policies.naive_ucb import NaiveUCB
from driftsack.policies.plan_with_forecast import PlanWithForecast
from driftsack.policies.policy import Policy
from driftsack.policies.price_controller import PriceController
from driftsack.policies.primal_dual_bwk import PrimalDualBwK
from driftsack.policies.recent_means_lp import RecentMeansLP
from driftsack.policies.sliding_window_ucb import SlidingWindowUCB
from driftsack.policies.spending_plan import SpendingPlan
from driftsack.policies.square_cb_bwk import SquareCBwK
from driftsack.policies.thompson_bwk import ThompsonBwK
from driftsack.policies.uniform_random import UniformRandom
from driftsack.policies.window_pacing import WindowPacing
from tests.support.learner_files import HORIZON


def victims() -> list[Policy]:
    """Return a policy for each kind of state."""
    flat = Instance.stationary([0.5, 0.4, 0.3], [[0.5, 0.2, 0.4]] * 2, HORIZON, [20.0, 25.0])
    return [
        SlidingWindowUCB(windows=(7, 11), scale=0.2, radius="bernstein", first_pulls=2),
        NaiveUCB(scale=0.1),
        Adaptive(),
        Adaptive(pacing="fixed"),
        ThompsonBwK(windows=9),
        ThompsonBwK(budget_rule="two-speed"),
        DiscountedUCB(scale=0.1, first_pulls=1),
        BanditOverBandit(block=20),
        Master(),
        DetectAndRestart(SlidingWindowUCB(windows=9, scale=0.1)),
        DetectAndRestart(detector="cusum"),
        SpendingPlan(NaiveUCB(scale=0.1), (0.0, 0.3, 1.0)),
        PlanWithForecast(flat, windows=8),
        RecentMeansLP(pulls=4),
        PriceController(),
        EpsilonGreedy(),
        LagrangeBwK(),
        PrimalDualBwK(),
        DualDescent(),
        WindowPacing(window=7),
        InventoryReserving(window=9),
        Exp3BwK(),
        UniformRandom(),
        AlwaysArm(1),
        LinearBwK(),
        DisjointBwK(),
        SquareCBwK(),
    ]
