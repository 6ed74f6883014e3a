"""Worlds that drift in ways that people recognise, for studies: each takes sizes, a rate, a seed and a noise.

Means start from uniform draws in [0, 1]. All budgets are ``rate`` times the horizon.
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
    """All means are drawn anew at ``changes`` random rounds.

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
    """Every mean swings about its level by up to ``swing``, each with its own phase, kept in [0, 1]."""
    rng = generator(seed)
    level, start = rng.random((2, resources + 1, arms))
    cycle = np.arange(horizon)[:, None, None] * (number(periods, "periods") / horizon)
    rows = level + at_least_zero(swing, "swing") * np.sin(2 * np.pi * (cycle + start))
    return from_rows(np.clip(rows, 0.0, 1.0), rate, noise)


def random_walk(
    step: float = 0.01,
    arms: int = 5,
    resources: int = 2,
    horizon: int = 10_000,
    rate: float = 0.25,
    seed: int = 0,
    noise: str = "bernoulli",
) -> Instance:
    """Every mean takes Gaussian steps of standard deviation ``step``, reflected at 0 and 1."""
    rng = generator(seed)
    start = rng.random((1, resources + 1, arms))
    moves = rng.normal(scale=at_least_zero(step, "step"), size=(horizon - 1, resources + 1, arms))
    free = np.concatenate([start, start + np.cumsum(moves, axis=0)])
    return from_rows(1.0 - np.abs(free % 2.0 - 1.0), rate, noise)


def linear_trend(
    arms: int = 5,
    resources: int = 2,
    horizon: int = 10_000,
    rate: float = 0.25,
    seed: int = 0,
    noise: str = "bernoulli",
) -> Instance:
    """Every mean goes in a straight line from one random level to another."""
    ends = generator(seed).random((2, resources + 1, arms))
    way = np.linspace(0.0, 1.0, horizon)[:, None, None]
    return from_rows((1 - way) * ends[0] + way * ends[1], rate, noise)


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
    """A still world but for ``count`` bursts of ``length`` rounds, in each of which one arm earns 1 at no more cost."""
    rng = generator(seed)
    calm = rng.random((resources + 1, arms))
    rows = np.tile(calm, (whole(horizon, "horizon", 1), 1, 1))
    for begin in rng.integers(0, max(horizon - length, 1), whole(count, "count", 0)):
        rows[begin : begin + length, 0, rng.integers(0, arms)] = 1.0
    return from_rows(rows, rate, noise)


def adversarial_order(
    arms: int = 5,
    resources: int = 2,
    horizon: int = 10_000,
    rate: float = 0.25,
    seed: int = 0,
    noise: str = "bernoulli",
    best_last: bool = True,
) -> Instance:
    """Independent random rounds, sorted by how much reward they give for their costs: the best come last, or first."""
    rows = generator(seed).random((horizon, resources + 1, arms))
    worth = (rows[:, 0] / (0.1 + rows[:, 1:].mean(axis=1))).max(axis=1)
    order = np.argsort(worth, kind="stable")
    return from_rows(rows[order if best_last else order[::-1]], rate, noise)


def from_rows(rows: Floats, rate: float, noise: str) -> Instance:
    """An instance from means (T, 1 + d, m), rewards first."""
    return Instance.from_arrays(rows[:, 0], rows[:, 1:], at_least_zero(rate, "rate") * len(rows), noise)
