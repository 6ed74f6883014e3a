"""The candidate policies for an instance: Adaptive, then the others from simple to involved."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from driftsack.benchmarks import lp_dynamic
from driftsack.benchmarks.benchmark import plan_spending
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.policies import (
    Adaptive,
    DetectAndRestart,
    NaiveUCB,
    PlanWithForecast,
    Policy,
    PrimalDualBwK,
    SlidingWindowUCB,
    SpendingPlan,
    ThompsonBwK,
)
from driftsack.policies.spending_plan import Curve, NamedCurves

SCALE: Final = 0.05  # of the radii: with the theorem's constant, policies would only explore at the length of most logs
LARGE_SCALE: Final = 0.15  # of the radii, for logs in which a good arm is easily missed
CONFIDENCE: Final = 0.05  # of the primal-dual policy, for the same reason
PERIODS: Final = 50  # of a spending plan

ADAPTS, REMEMBERS, FORGETS, RESTARTS, PLANS = FAMILIES = ("adapts", "remembers", "forgets", "restarts", "plans")


class Candidate(NamedTuple):
    """A policy that may be recommended."""

    name: str  # description of the policy
    family: str  # how it treats the past, one of ``FAMILIES``
    policy: Policy


def candidates(problem: Problem, past: Instance | None = None) -> list[Candidate]:
    """List the candidate policies: Adaptive, which has no setting to choose, then the others from simple to involved.

    Candidates that would warn about the problem, such as UCBs whose bounds are wider than all costs, are left out.
    Plans are made from the instance ``past``; None leaves out policies that assume that its timing repeats.
    """
    horizon = problem.horizon
    ucb = NaiveUCB(scale=SCALE, budget_rule="remaining")
    windows = sorted({max(horizon // share, 1) for share in (4, 8, 16)}, reverse=True)
    listed = [
        Candidate("Adaptive", ADAPTS, Adaptive()),
        Candidate("UCB on all observations", REMEMBERS, ucb),
        Candidate("UCB on all observations, more exploration", REMEMBERS, replace(ucb, scale=LARGE_SCALE)),
        Candidate("Thompson sampling", REMEMBERS, ThompsonBwK(budget_rule="remaining")),
        Candidate("primal-dual", REMEMBERS, PrimalDualBwK(confidence=CONFIDENCE)),
    ]
    for window in windows:
        policy = SlidingWindowUCB(windows=(window, window), scale=SCALE, budget_rule="remaining")
        listed.append(Candidate(f"UCB with a window of {window:,} rounds", FORGETS, policy))
    recent = max(horizon // 8, 1)
    thompson = ThompsonBwK(windows=recent, budget_rule="remaining")
    listed.append(Candidate(f"Thompson sampling with a window of {recent:,} rounds", FORGETS, thompson))
    listed.append(Candidate("UCB that restarts when a change is detected", RESTARTS, DetectAndRestart(base=ucb)))
    if past is not None:
        listed += planning_candidates(past, ucb)
    return [candidate for candidate in listed if suits(candidate.policy, problem)]


def suits(policy: Policy, problem: Problem) -> bool:
    """Whether a policy has nothing to warn about."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        policy.warn_about(problem)
    return not caught


def planning_candidates(instance: Instance, ucb: NaiveUCB) -> list[Candidate]:
    """List the policies that plan their spending on an instance."""
    window = max(instance.horizon // 8, 1)
    windowed = SlidingWindowUCB(windows=(window, window), scale=SCALE)
    curve = spending_curve(instance)
    return [
        Candidate("spending plan, UCB on all observations", PLANS, SpendingPlan(ucb, curve)),
        Candidate(f"spending plan, UCB with a window of {window:,} rounds", PLANS, SpendingPlan(windowed, curve)),
        Candidate("plan with forecast, trust 0.5", PLANS, PlanWithForecast(instance, trust=0.5, scale=SCALE)),
        Candidate("plan with forecast, trust 0.9", PLANS, PlanWithForecast(instance, trust=0.9, scale=SCALE)),
    ]


def spending_curve(instance: Instance) -> Curve | NamedCurves:
    """Return the shares of each budget that the best plan has spent at evenly spaced times; the last is 1.

    The curves are by name if the resources have names.
    """
    plan = np.asarray(lp_dynamic(instance).plan)
    used = plan_spending(instance.unit_costs, plan)[instance.phase]  # (T, d)
    spent = np.vstack([np.zeros(instance.resources), np.cumsum(used, axis=0)])
    times = np.arange(PERIODS + 1) * instance.horizon // PERIODS
    total = np.maximum(spent[-1], 1e-12)
    curve = np.where(spent[-1] > 0, spent[times] / total, times[:, None] / instance.horizon)
    curves = tuple(map(tuple, np.minimum(curve, 1.0).T.tolist()))
    problem = instance.problem
    return dict(zip(problem.resource_names, curves, strict=True)) if problem.named_resources else curves
