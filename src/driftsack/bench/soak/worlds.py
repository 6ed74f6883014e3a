"""Random policies and problems for the soak: every policy, all units, with and without names, maxima and periods."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack import policies
from driftsack.bench.soak.accounts import grid_places
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.policies.oracles import Oracle
from driftsack.policies.policy import Policy, recipes

ARMS: Final = ("small", "medium", "large", "huge")
RESOURCES: Final = ("usd", "seconds", "tokens")
HORIZONS: Final = (1, 10, 100, 1_000, 10_000, 100_000)
LONGEST_FORECAST: Final = 1_000  # rounds; a forecast is saved with its learner
FEATURES: Final = 3
MAXIMA: Final = ("1", "0.25", "3", "0.07", "9.99")
SMALLEST_UNIT, LARGEST_UNIT = -12, 15

Variant = Callable[[Problem], Policy]


class World(NamedTuple):
    """A policy and what it is started on."""

    policy: Policy
    problem: Problem
    safe: bool


def flat_forecast(problem: Problem) -> Instance:
    """A forecast that fits a problem: every mean is a third of its maximum."""
    rewards = np.full((1, problem.arms), problem.reward_max / 3)
    costs = np.tile(np.asarray(problem.cost_max)[:, None] / 3, (1, 1, problem.arms))
    return Instance(problem, rewards, costs, np.zeros(problem.horizon, dtype=np.int32))


def paid_block(problem: Problem) -> int:
    """Blocks of 200 rounds, or as many as pay for a round at the highest cost."""
    return max(200, 1 + math.ceil(min(1.0 / float(problem.rate.min()), problem.horizon)))


# Settings of policies that have no defaults, and further variants with states of their own.
NEEDED: Final[dict[str, Variant]] = {
    "SlidingWindowUCB": lambda _: policies.SlidingWindowUCB(windows=(30, 40)),
    "BanditOverBandit": lambda problem: policies.BanditOverBandit(block=paid_block(problem)),
    "PlanWithForecast": lambda problem: policies.PlanWithForecast(flat_forecast(problem)),
}
FURTHER: Final[dict[str, Variant]] = {
    "ThompsonBwK, two-speed": lambda _: policies.ThompsonBwK(budget_rule="two-speed"),
}


def variants() -> dict[str, Variant]:
    """Every policy of the library except for oracles, by name; a new one is found as soon as it is imported."""
    found: dict[str, Variant] = {}
    for recipe in recipes():
        ours = recipe.__module__.startswith("driftsack.policies.")
        if ours and not inspect.isabstract(recipe) and not issubclass(recipe, Oracle):
            found[recipe.__name__] = NEEDED.get(recipe.__name__, _with_defaults(recipe))
    return dict(sorted((found | FURTHER).items()))


def _with_defaults(recipe: type[Policy]) -> Variant:
    """The policy without settings."""
    return lambda _: recipe()


def random_world(name: str, variant: Variant, rng: Generator) -> World:
    """A random problem that suits a policy, and whether its learner is safe."""
    planned, single = name == "PlanWithForecast", name == "Exp3BwK"
    safe = bool(rng.random() < 0.6)  # noqa: PLR2004
    rounds = int(rng.choice(HORIZONS))
    problem = random_problem(min(rounds, LONGEST_FORECAST) if planned else rounds, 1 if single else None, rng)
    if planned:
        problem = dataclasses.replace(problem, period=None, slots=problem.arms)
    if variant(problem).needs_context:
        problem = dataclasses.replace(problem, features=FEATURES)
    if problem.fallback is not None and not problem.bounded:
        safe = False
    if problem.fallback is not None and safe and rng.random() < 0.9:  # noqa: PLR2004
        problem = dataclasses.replace(problem, budget=budget_for_fallback(problem))
    return World(variant(problem), problem, safe)


def random_problem(horizon: int, resources: int | None, rng: Generator) -> Problem:
    """A random problem; its budgets last for some of the rounds, often for a whole number of the most costly ones."""
    d, m = resources or int(rng.integers(1, 4)), int(rng.integers(1, 5))
    exponent = int(rng.integers(SMALLEST_UNIT, LARGEST_UNIT + 1))
    most = [Decimal(str(rng.choice(MAXIMA))).scaleb(exponent) for _ in range(d)]
    rounds = [max(1, int(horizon * rng.choice([0.02, 0.3, 0.7, 1.5]))) for _ in range(d)]
    exact = [cost * count for cost, count in zip(most, rounds, strict=True)]
    if rng.random() < 0.3:  # noqa: PLR2004  (a grid unit less, so that the last of these rounds must not begin)
        places = [grid_places(float(exact[j]), float(most[j]), 22) for j in range(d)]
        exact = [exact[j] - Decimal(1).scaleb(-places[j]) for j in range(d)]
    budget = [float(amount) for amount in exact]
    if rng.random() < 0.3:  # noqa: PLR2004
        budget = [amount * (0.5 + rng.random()) for amount in budget]
    kind = rng.choice(["vector", "matrix", "omitted"], p=[0.5, 0.35, 0.15])
    cost_max: Any = None if kind == "omitted" else [float(cost) for cost in most]
    if kind == "matrix":
        shares = rng.choice([1.0, 0.5, 0.1, 0.03], size=(d, m))
        shares[:, 0] = 1.0
        cost_max = [
            [float(cost * Decimal(str(share))) for share in row] for cost, row in zip(most, shares, strict=True)
        ]
    names = rng.random() < 0.5  # noqa: PLR2004
    return Problem(
        horizon=horizon,
        arms=m,
        arm_names=ARMS[:m] if names else None,
        budget=budget,
        resource_names=RESOURCES[:d] if names else None,
        reward_max=float(rng.choice([1.0, 0.5, 1e-6, 1e6])),
        cost_max=cost_max,
        fallback=int(rng.integers(m)) if rng.random() < 0.2 else None,  # noqa: PLR2004
        period=timedelta(hours=int(rng.integers(1, 800))) if rng.random() < 0.15 else None,  # noqa: PLR2004
        slots=m + int(rng.integers(3)) if rng.random() < 0.2 else None,  # noqa: PLR2004
    )


def budget_for_fallback(problem: Problem) -> tuple[float, ...]:
    """Budgets that pay for the fallback arm in every round, exactly in some resources and with room in others."""
    assert problem.fallback is not None  # noqa: S101
    most = problem.cost_max_by_arm[:, problem.fallback]
    needed = [float(Decimal(repr(cost)) * problem.horizon) for cost in most.tolist()]
    return tuple(max(given, least) for given, least in zip(problem.budget, needed, strict=True))
