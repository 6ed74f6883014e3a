"""Families of non-stationary instances: change points, seasons, random walks, trends, bursts and an adversarial order.

Mean rewards and costs lie in [0, 1]. The budget of a resource is its rate times the horizon.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.checks import at_least_zero, floats, number, share, whole, within
from driftsack.core.errors import OutOfRangeError
from driftsack.core.instance import Instance, Noise
from driftsack.core.seeding import generator

Range = Sequence[float]
UNIT: Final = (0.0, 1.0)


def piecewise_random(
    changes: int = 4,
    arms: int = 5,
    resources: int = 2,
    horizon: int = 10_000,
    rate: float | Range = 0.25,
    seed: int = 0,
    noise: Noise = "bernoulli",
    reward_range: Range = UNIT,
    cost_range: Range = UNIT,
) -> Instance:
    """Draw all means again, uniformly, at random change points.

    Args:
        changes: The number of change points.
        arms: The number of arms.
        resources: The number of resources.
        horizon: The number of rounds.
        rate: The budget per round of every resource, or a range from which it is drawn for each resource.
        seed: The seed of the means and the change points.
        noise: The distribution of outcomes around their means; see :class:`~driftsack.Instance`.
        reward_range: The lowest and the highest mean reward.
        cost_range: The lowest and the highest mean cost.

    >>> len(piecewise_random(changes=4, horizon=1_000).rewards)
    5
    """
    whole(changes, "changes", 0, whole(horizon, "horizon", 1) - 1)
    rng = generator(seed)
    rows = _scaled(rng.random((changes + 1, resources + 1, arms)), reward_range, cost_range)
    lengths = random_lengths(rng, changes, horizon)
    return Instance.piecewise(rows[:, 0], rows[:, 1:], lengths, horizon * budget_rates(rng, rate, resources), noise)


def sinusoidal(
    periods: float = 2.0,
    swing: float = 0.4,
    arms: int = 5,
    resources: int = 2,
    horizon: int = 10_000,
    rate: float = 0.25,
    seed: int = 0,
    noise: Noise = "bernoulli",
) -> Instance:
    """Let every mean follow a sine wave around its own level, with its own phase, clipped to [0, 1].

    Args:
        periods: The number of periods over the horizon.
        swing: The amplitude of the sine waves.
        arms: The number of arms.
        resources: The number of resources.
        horizon: The number of rounds.
        rate: The budget per round of every resource.
        seed: The seed of the levels and phases.
        noise: The distribution of outcomes around their means; see :class:`~driftsack.Instance`.
    """
    rng = generator(seed)
    level, phase = rng.random((2, resources + 1, arms))
    cycle = np.arange(horizon)[:, None, None] * (number(periods, "periods") / horizon)
    rows = level + at_least_zero(swing, "swing") * np.sin(2 * np.pi * (cycle + phase))
    return from_rows(np.clip(rows, 0.0, 1.0), budget_rates(rng, rate, resources), noise)


def random_walk(
    step: float = 0.01,
    arms: int = 5,
    resources: int = 2,
    horizon: int = 10_000,
    rate: float | Range = 0.25,
    seed: int = 0,
    noise: Noise = "bernoulli",
    reward_range: Range = UNIT,
    cost_range: Range = UNIT,
) -> Instance:
    """Let every mean follow a Gaussian random walk, reflected at the ends of its range.

    Args:
        step: The standard deviation of a step.
        arms: The number of arms.
        resources: The number of resources.
        horizon: The number of rounds.
        rate: The budget per round of every resource, or a range from which it is drawn for each resource.
        seed: The seed of the first means and the steps.
        noise: The distribution of outcomes around their means; see :class:`~driftsack.Instance`.
        reward_range: The lowest and the highest mean reward.
        cost_range: The lowest and the highest mean cost.
    """
    rng = generator(seed)
    start = rng.random((1, resources + 1, arms))
    steps = rng.normal(scale=at_least_zero(step, "step"), size=(horizon - 1, resources + 1, arms))
    steps[:, 0] /= _width(reward_range, "reward_range")  # walks stay in [0, 1] and are scaled to their ranges below
    steps[:, 1:] /= _width(cost_range, "cost_range")
    unreflected = np.concatenate([start, start + np.cumsum(steps, axis=0)])
    rows = _scaled(1.0 - np.abs(unreflected % 2.0 - 1.0), reward_range, cost_range)
    return from_rows(rows, budget_rates(rng, rate, resources), noise)


def linear_trend(
    arms: int = 5,
    resources: int = 2,
    horizon: int = 10_000,
    rate: float | Range = 0.25,
    seed: int = 0,
    noise: Noise = "bernoulli",
    reward_range: Range = UNIT,
    cost_range: Range = UNIT,
) -> Instance:
    """Let every mean change linearly from one random level to another.

    Args:
        arms: The number of arms.
        resources: The number of resources.
        horizon: The number of rounds.
        rate: The budget per round of every resource, or a range from which it is drawn for each resource.
        seed: The seed of the first and last levels.
        noise: The distribution of outcomes around their means; see :class:`~driftsack.Instance`.
        reward_range: The lowest and the highest mean reward.
        cost_range: The lowest and the highest mean cost.
    """
    rng = generator(seed)
    ends = _scaled(rng.random((2, resources + 1, arms)), reward_range, cost_range)
    progress = np.linspace(0.0, 1.0, horizon)[:, None, None]
    rows = (1 - progress) * ends[0] + progress * ends[1]
    return from_rows(rows, budget_rates(rng, rate, resources), noise)


def bursts(
    count: int = 5,
    length: float = 200,
    arms: int = 5,
    resources: int = 2,
    horizon: int = 10_000,
    rate: float | Range = 0.25,
    seed: int = 0,
    noise: Noise = "bernoulli",
    reward_range: Range = UNIT,
    cost_range: Range = UNIT,
    height: float = 1.0,
) -> Instance:
    """Interrupt a stationary environment with bursts in which one arm's mean reward is high at unchanged costs.

    Args:
        count: The number of bursts. They may overlap.
        length: The number of rounds of a burst; a number below 1 is a share of the horizon.
        arms: The number of arms.
        resources: The number of resources.
        horizon: The number of rounds.
        rate: The budget per round of every resource, or a range from which it is drawn for each resource.
        seed: The seed of the stationary means and of the start and arm of each burst.
        noise: The distribution of outcomes around their means; see :class:`~driftsack.Instance`.
        reward_range: The lowest and the highest mean reward.
        cost_range: The lowest and the highest mean cost.
        height: The mean reward of the arm in a burst.
    """
    rng = generator(seed)
    whole(horizon, "horizon", 1)
    size = int(horizon * at_least_zero(length, "length")) if length < 1 else whole(length, "length", 1)
    stationary = _scaled(rng.random((1, resources + 1, arms)), reward_range, cost_range)
    rows = np.tile(stationary, (horizon, 1, 1))
    for begin in rng.integers(0, max(horizon - size, 1), whole(count, "count", 0)):
        rows[begin : begin + size, 0, rng.integers(0, arms)] = share(height, "height")
    return from_rows(rows, budget_rates(rng, rate, resources), noise)


def adversarial_order(
    arms: int = 5,
    resources: int = 2,
    horizon: int = 10_000,
    rate: float = 0.25,
    seed: int = 0,
    noise: Noise = "bernoulli",
    best_last: bool = True,
) -> Instance:
    """Draw the means of every round independently, then sort the rounds by reward per cost.

    Args:
        arms: The number of arms.
        resources: The number of resources.
        horizon: The number of rounds.
        rate: The budget per round of every resource.
        seed: The seed of the means.
        noise: The distribution of outcomes around their means; see :class:`~driftsack.Instance`.
        best_last: Whether the rounds with the most reward per cost come last; otherwise they come first.
    """
    rng = generator(seed)
    rows = rng.random((horizon, resources + 1, arms))
    reward_per_cost = (rows[:, 0] / (0.1 + rows[:, 1:].mean(axis=1))).max(axis=1)
    order = np.argsort(reward_per_cost, kind="stable")
    return from_rows(rows[order if best_last else order[::-1]], budget_rates(rng, rate, resources), noise)


def from_rows(rows: Floats, rates: Floats, noise: Noise) -> Instance:
    """Build an instance from the means (T, 1 + d, m) of all rounds, rewards first, and the rates (d,)."""
    return Instance.from_arrays(rows[:, 0], rows[:, 1:], rates * len(rows), noise)


def budget_rates(rng: Generator, rate: float | Range, resources: int) -> Floats:
    """Return the budget per round of each resource (d,): the given rate, or draws from the given range."""
    if np.ndim(rate) == 0:
        return np.full(resources, at_least_zero(rate, "rate"))
    low, high = floats(rate, "rate", (2,)).tolist()
    if not 0.0 <= low <= high:
        raise OutOfRangeError(f"a range of rates must be (low, high) with 0 <= low <= high, got {rate}.")
    return rng.uniform(low, high, resources)


def random_lengths(rng: Generator, changes: int, horizon: int) -> list[int]:
    """Draw change points without replacement and return the lengths of the phases between them."""
    cuts = np.sort(rng.choice(np.arange(1, horizon), changes, replace=False))
    lengths: list[int] = np.diff(np.concatenate([[0], cuts, [horizon]])).tolist()
    return lengths


def _scaled(rows: Floats, reward_range: Range, cost_range: Range) -> Floats:
    """Map means (K, 1 + d, m) from [0, 1] to their ranges."""
    scaled = np.empty_like(rows)
    scaled[:, 0] = reward_range[0] + _width(reward_range, "reward_range") * rows[:, 0]
    scaled[:, 1:] = cost_range[0] + _width(cost_range, "cost_range") * rows[:, 1:]
    return scaled


def _width(ends: Range, name: str) -> float:
    """Return the width of a range of means."""
    low, high = within(floats(ends, name, (2,)), 0.0, 1.0, name).tolist()
    if low >= high:
        raise OutOfRangeError(f"{name} must be (low, high) with low < high, got {ends}.")
    return float(high - low)
