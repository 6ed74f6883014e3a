"""Building blocks of the scenarios: arrival times, drifting levels, windows of time and noise."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from lab.scenarios.scenario import NEVER, Bools, Floats, Ints


def stream(seed: int, name: str) -> np.random.Generator:
    """A generator for a scenario and a seed."""
    return np.random.default_rng([seed, *name.encode()])


def persistent(rng: np.random.Generator, n: int, memory: float, spread: float) -> Floats:
    """A stationary AR(1) series with a memory in steps and a standard deviation.

    >>> x = persistent(np.random.default_rng(0), 20_000, 50.0, 2.0)
    >>> bool(1.5 < x.std() < 2.5), bool(np.corrcoef(x[1:], x[:-1])[0, 1] > 0.95)
    (True, True)
    """
    keep = np.exp(-1.0 / memory)
    steps = rng.normal(0.0, spread * np.sqrt(1.0 - keep**2), n)
    level = np.empty(n)
    now = rng.normal(0.0, spread)
    for t in range(n):
        now = keep * now + steps[t]
        level[t] = now
    return level


def arrivals(rng: np.random.Generator, n: int, days: int, by_hour: Floats, weekend: float = 1.0) -> Floats:
    """Sorted arrival times in hours, with the shape of a day (24 weights) and a factor for days 6 and 7 of a week."""
    weights = np.concatenate([by_hour * (weekend if day % 7 >= 5 else 1.0) for day in range(days)])
    hours = rng.choice(24 * days, size=n, p=weights / weights.sum())
    return np.sort(hours + rng.random(n))


def day_shape(low: float, peak: float) -> Floats:
    """Weights of the 24 hours: a cosine with a low at four in the morning and a peak at sixteen."""
    hours = np.arange(24, dtype=np.float64)
    return np.asarray(low + (peak - low) * 0.5 * (1.0 - np.cos((hours - 4.0) / 24.0 * 2.0 * np.pi)))


def is_weekend(times: Floats) -> Bools:
    """Whether a time lies on day 6 or 7 of a week."""
    return np.asarray((times // 24).astype(np.int64) % 7 >= 5, dtype=np.bool_)


def by_step(values: Floats, times: Floats, hours: float) -> Floats:
    """Values that change every so many hours, at the times of the requests."""
    return np.asarray(values[np.minimum((times // hours).astype(np.int64), len(values) - 1)], dtype=np.float64)


def within(times: Floats, start: float, length: float) -> Bools:
    """Whether a time lies in a window."""
    return np.asarray((times >= start) & (times < start + length), dtype=np.bool_)


def delays_in_requests(rng: np.random.Generator, times: Floats, arms: int, hours: float, lost: float = 0.0) -> Ints:
    """Delays with a gamma distribution of a mean in hours, as numbers of requests; a share of the outcomes is lost."""
    n = len(times)
    wait = rng.gamma(2.0, hours / 2.0, (n, arms))
    arrives = np.searchsorted(times, times[:, None] + wait)
    delays = np.asarray(arrives - 1 - np.arange(n)[:, None], dtype=np.int64)
    delays[rng.random((n, arms)) < lost] = NEVER
    return delays


def around_one(rng: np.random.Generator, shape: tuple[int, ...], spread: float) -> Floats:
    """Log-normal factors with mean 1."""
    return rng.lognormal(-0.5 * spread**2, spread, shape)


def happens(rng: np.random.Generator, chance: Floats) -> Floats:
    """Bernoulli outcomes as 0.0 and 1.0."""
    return (rng.random(chance.shape) < chance).astype(np.float64)


def logistic(x: Floats) -> Floats:
    """The logistic function."""
    return np.asarray(1.0 / (1.0 + np.exp(-x)), dtype=np.float64)


def clipped_mean(median: Floats, spread: Floats, most: Floats) -> Floats:
    """Mean of a log-normal variable that is cut off at a maximum.

    >>> float(clipped_mean(np.array(1.0), np.array(1.0), np.array(1e9)).round(3))  # exp(1 / 2)
    1.649
    """
    distance = np.log(most / median) / spread
    below = median * np.exp(0.5 * spread**2) * norm.cdf(distance - spread)
    return np.asarray(below + most * norm.cdf(-distance), dtype=np.float64)
