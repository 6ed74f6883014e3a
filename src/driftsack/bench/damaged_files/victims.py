"""Learners of every kind of policy, whose files are corrupted."""

from __future__ import annotations

from typing import Final

from numpy.random import Generator

from driftsack.bench.damaged_files.corruptions import opened
from driftsack.core import file_format
from driftsack.core.arrays import Floats
from driftsack.core.decision import SKIP
from driftsack.core.errors import BudgetExhaustedError, HorizonReachedError
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.policies import learner_file
from driftsack.policies.adaptive import Adaptive
from driftsack.policies.always_arm import AlwaysArm
from driftsack.policies.bandit_over_bandit import BanditOverBandit
from driftsack.policies.detect_and_restart import DetectAndRestart
from driftsack.policies.discounted_ucb import DiscountedUCB
from driftsack.policies.disjoint_bwk import DisjointBwK
from driftsack.policies.dual_descent import DualDescent
from driftsack.policies.epsilon_greedy import EpsilonGreedy
from driftsack.policies.exp3_bwk import Exp3BwK
from driftsack.policies.lagrange_bwk import LagrangeBwK
from driftsack.policies.learner import Learner
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

HORIZON: Final = 60


def victims() -> list[Policy]:
    """A policy for each kind of state."""
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
        Exp3BwK(),
        UniformRandom(),
        AlwaysArm(1),
        LinearBwK(),
        DisjointBwK(),
        SquareCBwK(),
    ]


def started(policy: Policy, rng: Generator) -> bytes:
    """The file of a learner in the middle of its rounds, with pending decisions."""
    budget = [20.0] if isinstance(policy, Exp3BwK) else [20.0, 25.0]
    features = 2 if policy.needs_context else 0
    learner = Learner(policy, Problem(horizon=HORIZON, arms=3, budget=budget, cost_max=1.0, features=features), seed=1)
    go_on(learner, 25, rng)
    for _ in range(3):
        learner.ask(context=some_context(learner, rng))
    content, arrays = opened(learner.to_bytes())
    content["lineage"] = "0" * len(content["lineage"])  # random otherwise; the same seed gives the same files
    for name in arrays:
        if name.endswith("epoch"):
            arrays[name][:] = 0
    return file_format.encode(learner_file.KIND, learner_file.LAYOUT, content, arrays)


def go_on(learner: Learner, rounds: int, rng: Generator) -> None:
    """Tell what is pending, and ask and tell for some rounds, while the budgets last."""
    for decision in learner.pending:
        learner.tell(decision, float(rng.random()), 0.6 * rng.random(learner.problem.resources))
    caps = None if learner.problem.bounded else [1.0] * learner.problem.resources
    for _ in range(rounds):
        try:
            decision = learner.ask(caps=caps, context=some_context(learner, rng))
        except (BudgetExhaustedError, HorizonReachedError):
            return
        if decision.arm != SKIP:
            learner.tell(decision, float(rng.random()), 0.6 * rng.random(learner.problem.resources))


def some_context(learner: Learner, rng: Generator) -> Floats | None:
    """The features of a request, if requests have some."""
    return rng.standard_normal(learner.problem.features) if learner.problem.features else None
