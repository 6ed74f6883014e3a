"""Random problems for the soak, in all units, with and without names, maximum costs and periods."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple

from numpy.random import Generator

from driftsack.core.problem import Problem
from driftsack.policies.policy import Policy
from driftsack.simulation.precompile import Variant
from lab.soak.accounts import grid_places
from lab.soak.features import ENCODER

ARMS: Final = ("small", "medium", "large", "huge")
RESOURCES: Final = ("usd", "seconds", "tokens")
HORIZONS: Final = (1, 10, 100, 1_000, 10_000, 100_000)
LONGEST_FORECAST: Final = 1_000  # rounds; a forecast is saved with its learner
FEATURES: Final = 3
MAXIMA: Final = ("1", "0.25", "3", "0.07", "9.99")
SMALLEST_UNIT, LARGEST_UNIT = -12, 15


class World(NamedTuple):
    """A policy, its problem, and whether its learner is safe."""

    policy: Policy
    problem: Problem
    safe: bool


def random_world(name: str, variant: Variant, rng: Generator) -> World:
    """Draw a problem that suits a policy, and whether its learner is safe."""
    planned, single = name == "PlanWithForecast", name == "Exp3BwK"
    safe = bool(rng.random() < 0.6)
    rounds = int(rng.choice(HORIZONS))
    problem = random_problem(min(rounds, LONGEST_FORECAST) if planned else rounds, 1 if single else None, rng)
    if planned:
        problem = dataclasses.replace(problem, period=None, slots=problem.arms)
    if variant(problem).needs_context:
        features: Any = ENCODER if rng.random() < 0.5 else FEATURES
        problem = dataclasses.replace(problem, features=features)
    if problem.fallback is not None and not problem.bounded:
        safe = False
    if problem.fallback is not None and safe and rng.random() < 0.9:
        problem = dataclasses.replace(problem, budget=budget_for_fallback(problem))
    return World(variant(problem), problem, safe)


def random_problem(horizon: int, resources: int | None, rng: Generator) -> Problem:
    """Draw a problem whose budgets often pay for an integer number of rounds at the maximum cost."""
    d, m = resources or int(rng.integers(1, 4)), int(rng.integers(1, 5))
    exponent = int(rng.integers(SMALLEST_UNIT, LARGEST_UNIT + 1))
    # Exact budgets, some of them one grid unit short, some not multiples of the maximum cost.
    most = [Decimal(str(rng.choice(MAXIMA))).scaleb(exponent) for _ in range(d)]
    rounds = [max(1, int(horizon * rng.choice([0.02, 0.3, 0.7, 1.5]))) for _ in range(d)]
    exact = [cost * count for cost, count in zip(most, rounds, strict=True)]
    if rng.random() < 0.3:
        places = [grid_places(float(exact[j]), float(most[j]), 22) for j in range(d)]
        exact = [exact[j] - Decimal(1).scaleb(-places[j]) for j in range(d)]
    budget = [float(amount) for amount in exact]
    if rng.random() < 0.3:
        budget = [amount * (0.5 + rng.random()) for amount in budget]
    # Maximum costs by resource, by resource and arm, or omitted.
    kind = rng.choice(["vector", "matrix", "omitted"], p=[0.5, 0.35, 0.15])
    cost_max: Any = None if kind == "omitted" else [float(cost) for cost in most]
    if kind == "matrix":
        shares = rng.choice([1.0, 0.5, 0.1, 0.03], size=(d, m))
        shares[:, 0] = 1.0
        cost_max = [
            [float(cost * Decimal(str(share))) for share in row] for cost, row in zip(most, shares, strict=True)
        ]
    names = rng.random() < 0.5
    largest = None if cost_max is None else [1e9 * float(cost) for cost in most]  # no cost of the soak is absurd
    return Problem(
        horizon=horizon,
        arms=m,
        arm_names=ARMS[:m] if names else None,
        budget=budget,
        resource_names=RESOURCES[:d] if names else None,
        reward_max=float(rng.choice([1.0, 0.5, 1e-6, 1e6])),
        cost_max=cost_max,
        refuse_above=largest,
        fallback=int(rng.integers(m)) if rng.random() < 0.2 else None,
        period=timedelta(hours=int(rng.integers(1, 800))) if rng.random() < 0.15 else None,
        slots=m + int(rng.integers(3)) if rng.random() < 0.2 else None,
    )


def budget_for_fallback(problem: Problem) -> tuple[float, ...]:
    """Raise budgets that do not pay for the fallback arm in every round to exactly what it needs."""
    assert problem.fallback is not None
    most = problem.cost_max_by_arm[:, problem.fallback]
    needed = [float(Decimal(repr(cost)) * problem.horizon) for cost in most.tolist()]
    return tuple(max(given, least) for given, least in zip(problem.budget, needed, strict=True))
