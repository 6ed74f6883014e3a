"""Ten instances for out-of-sample advice: logs come from the first half, and policies play the second half.

Four of them are real or realistic: flights, requests to language models, spot capacity and advertisements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

import driftsack as ds
from driftsack.datasets.flights import flights_world

HALF: Final = 4_000  # rounds of each half


def language_models(half: int = HALF) -> ds.Instance:
    """Three models with dollars and seconds per request; the largest model becomes cheaper halfway through the log."""
    usd = np.array([[0.0006, 0.004, 0.02], [0.0006, 0.004, 0.012]])
    seconds = np.array([[0.8, 1.9, 4.5]] * 2)
    return ds.Instance.piecewise(
        [[0.55, 0.74, 0.88]] * 2,
        np.stack([usd, seconds], axis=1),
        [half // 2, 2 * half - half // 2],
        {"usd": 2 * half * 0.006, "seconds": 2 * half * 2.6},
        "lognormal",
        cost_max={"usd": 0.4, "seconds": 90.0},
        arm_names=["small", "medium", "large"],
    )


def spot_capacity(half: int = HALF, dwell: int = 200, seed: int = 0) -> ds.Instance:
    """Three zones that gain or lose capacity every ``dwell`` rounds on average, with slowly changing prices."""
    rng = np.random.default_rng(seed)
    rounds, zones = 2 * half, 3
    rewards, costs = np.zeros((rounds, zones)), np.zeros((rounds, 1, zones))
    available, price = rng.random(zones) < 0.6, np.zeros(zones)
    for t in range(rounds):
        available ^= rng.random(zones) < 1 / dwell
        price = 0.995 * price + 0.03 * rng.standard_normal(zones)
        rewards[t] = np.where(available, 0.9, 0.05)
        costs[t, 0] = np.clip(0.35 + 0.1 * np.arange(zones) + price, 0.02, 1.0)
    return ds.Instance.from_arrays(rewards, costs, 0.2 * rounds, "deterministic")


def advertisements(half: int = HALF, days: int = 14) -> ds.Instance:
    """Four audiences with a daily pattern of click rates and prices over ``days`` days, and a slow trend."""
    clock = np.arange(2 * half) / (2 * half)
    hour = 2 * np.pi * days * clock[:, None]
    rewards = np.array([0.10, 0.14, 0.08, 0.18]) * (1 + 0.4 * np.sin(hour + np.array([0.0, 0.5, 2.0, 3.0])))
    prices = np.array([0.2, 0.35, 0.15, 0.5]) * (1 + 0.3 * np.sin(hour + 1.0)) * (1 + 0.2 * clock[:, None])
    return ds.Instance.from_arrays(rewards, prices[:, None, :], 0.3 * half, "bernoulli")


WORLDS: Final[dict[str, Callable[[], ds.Instance]]] = {
    "flights": lambda: flights_world("week"),
    "language models": language_models,
    "spot capacity": spot_capacity,
    "advertisements": advertisements,
    "no drift": lambda: ds.instances.piecewise_random(changes=0, arms=4, horizon=2 * HALF, seed=5),
    "changes": lambda: ds.instances.piecewise_random(changes=4, arms=4, horizon=2 * HALF, seed=6),
    "random walk": lambda: ds.instances.random_walk(arms=4, horizon=2 * HALF, seed=7),
    "trend": lambda: ds.instances.linear_trend(arms=4, horizon=2 * HALF, seed=8),
    "seasons": lambda: ds.instances.families.seasonal(horizon=2 * HALF, seed=9),
    "cost jumps": lambda: ds.instances.families.cost_jumps(horizon=2 * HALF, seed=10),
}


def halves(world: ds.Instance) -> tuple[ds.Instance, ds.Instance]:
    """The two halves of an instance, with half of the budget each."""
    half = world.horizon // 2
    problem = replace(world.problem, horizon=half, budget=tuple(0.5 * amount for amount in world.problem.budget))
    phases = world.phase[:half], world.phase[half : 2 * half]
    first, second = (ds.Instance(problem, world.rewards, world.costs, phase, world.noise) for phase in phases)
    return first, second
