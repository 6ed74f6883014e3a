"""Families of non-stationary instances: change points, seasons, random walks, trends, bursts and an adversarial order.

Mean rewards and costs lie in [0, 1]. Every resource has the budget ``rate`` times the horizon.
"""

from __future__ import annotations

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.checks import at_least_zero, number, whole
from driftsack.core.instance import Instance
from driftsack.core.seeding import generator


def piecewise_random(
    changes: int = 4,
    arms: int = 5,
    resources: int = 2,
    horizon: int = 10_000,
    rate: float = 0.25,
    seed: int = 0,
    noise: str = "bernoulli",
) -> Instance:
    """Draw all means again, uniformly, at random change points.

    Args:
        changes: The number of change points.
        arms: The number of arms.
        resources: The number of resources.
        horizon: The number of rounds.
        rate: The budget per round of every resource.
        seed: The seed of the means and the change points.
        noise: How outcomes are drawn around their means; see :class:`~driftsack.Instance`.

    Returns:
        The instance.

    >>> len(piecewise_random(changes=4, horizon=1_000).rewards)
    5
    """
    whole(changes, "changes", 0, whole(horizon, "horizon", 1) - 1)
    rng = generator(seed)
    rows = rng.random((changes + 1, resources + 1, arms))
    cuts = np.sort(rng.choice(np.arange(1, horizon), changes, replace=False))
    lengths = np.diff(np.concatenate([[0], cuts, [horizon]]))
    return Instance.piecewise(rows[:, 0], rows[:, 1:], lengths.tolist(), rate * horizon, noise)


def sinusoidal(
    periods: float = 2.0,
    swing: float = 0.4,
    arms: int = 5,
    resources: int = 2,
    horizon: int = 10_000,
    rate: float = 0.25,
    seed: int = 0,
    noise: str = "bernoulli",
) -> Instance:
    """Let every mean follow a sine wave about its own level, with its own phase, clipped to [0, 1].

    Args:
        periods: The number of periods over the horizon.
        swing: The amplitude.
        arms: The number of arms.
        resources: The number of resources.
        horizon: The number of rounds.
        rate: The budget per round of every resource.
        seed: The seed of the levels and phases.
        noise: How outcomes are drawn around their means; see :class:`~driftsack.Instance`.

    Returns:
        The instance.
    """
    rng = generator(seed)
    level, phase = rng.random((2, resources + 1, arms))
    cycle = np.arange(horizon)[:, None, None] * (number(periods, "periods") / horizon)
    rows = level + at_least_zero(swing, "swing") * np.sin(2 * np.pi * (cycle + phase))
    return _from_rows(np.clip(rows, 0.0, 1.0), rate, noise)


def random_walk(
    step: float = 0.01,
    arms: int = 5,
    resources: int = 2,
    horizon: int = 10_000,
    rate: float = 0.25,
    seed: int = 0,
    noise: str = "bernoulli",
) -> Instance:
    """Let every mean follow a Gaussian random walk, reflected at 0 and 1.

    Args:
        step: The standard deviation of a step.
        arms: The number of arms.
        resources: The number of resources.
        horizon: The number of rounds.
        rate: The budget per round of every resource.
        seed: The seed of the first means and the steps.
        noise: How outcomes are drawn around their means; see :class:`~driftsack.Instance`.

    Returns:
        The instance.
    """
    rng = generator(seed)
    start = rng.random((1, resources + 1, arms))
    steps = rng.normal(scale=at_least_zero(step, "step"), size=(horizon - 1, resources + 1, arms))
    unreflected = np.concatenate([start, start + np.cumsum(steps, axis=0)])
    return _from_rows(1.0 - np.abs(unreflected % 2.0 - 1.0), rate, noise)


def linear_trend(
    arms: int = 5,
    resources: int = 2,
    horizon: int = 10_000,
    rate: float = 0.25,
    seed: int = 0,
    noise: str = "bernoulli",
) -> Instance:
    """Let every mean change linearly from one random level to another.

    Args:
        arms: The number of arms.
        resources: The number of resources.
        horizon: The number of rounds.
        rate: The budget per round of every resource.
        seed: The seed of the first and last levels.
        noise: How outcomes are drawn around their means; see :class:`~driftsack.Instance`.

    Returns:
        The instance.
    """
    ends = generator(seed).random((2, resources + 1, arms))
    progress = np.linspace(0.0, 1.0, horizon)[:, None, None]
    return _from_rows((1 - progress) * ends[0] + progress * ends[1], rate, noise)


def bursts(
    count: int = 5,
    length: int = 200,
    arms: int = 5,
    resources: int = 2,
    horizon: int = 10_000,
    rate: float = 0.25,
    seed: int = 0,
    noise: str = "bernoulli",
) -> Instance:
    """Interrupt a stationary environment by bursts in which one arm's mean reward is 1 at unchanged costs.

    Args:
        count: The number of bursts. They may overlap.
        length: The rounds of a burst.
        arms: The number of arms.
        resources: The number of resources.
        horizon: The number of rounds.
        rate: The budget per round of every resource.
        seed: The seed of the stationary means and of the start and arm of each burst.
        noise: How outcomes are drawn around their means; see :class:`~driftsack.Instance`.

    Returns:
        The instance.
    """
    rng = generator(seed)
    stationary = rng.random((resources + 1, arms))
    rows = np.tile(stationary, (whole(horizon, "horizon", 1), 1, 1))
    for begin in rng.integers(0, max(horizon - length, 1), whole(count, "count", 0)):
        rows[begin : begin + length, 0, rng.integers(0, arms)] = 1.0
    return _from_rows(rows, rate, noise)


def adversarial_order(
    arms: int = 5,
    resources: int = 2,
    horizon: int = 10_000,
    rate: float = 0.25,
    seed: int = 0,
    noise: str = "bernoulli",
    best_last: bool = True,
) -> Instance:
    """Draw the means of every round independently, then sort the rounds by their reward per cost.

    Args:
        arms: The number of arms.
        resources: The number of resources.
        horizon: The number of rounds.
        rate: The budget per round of every resource.
        seed: The seed of the means.
        noise: How outcomes are drawn around their means; see :class:`~driftsack.Instance`.
        best_last: Whether the rounds with the most reward per cost come last; otherwise they come first.

    Returns:
        The instance.
    """
    rows = generator(seed).random((horizon, resources + 1, arms))
    reward_per_cost = (rows[:, 0] / (0.1 + rows[:, 1:].mean(axis=1))).max(axis=1)
    order = np.argsort(reward_per_cost, kind="stable")
    return _from_rows(rows[order if best_last else order[::-1]], rate, noise)


def _from_rows(rows: Floats, rate: float, noise: str) -> Instance:
    """Build an instance from the means (T, 1 + d, m) of all rounds, rewards first."""
    return Instance.from_arrays(rows[:, 0], rows[:, 1:], at_least_zero(rate, "rate") * len(rows), noise)
