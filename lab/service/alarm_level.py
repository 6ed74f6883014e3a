"""Choose the level of the dashboard's drift alarms by a budget for false alarms, and measure what they detect.

The budget is one false alarm in a quarter of a year for one campaign with 12,000 requests a week, three arms and two
budgets, that is, with nine streams of outcomes. In stationary problems the first week has the most false alarms, since
every stream is new, so that week is counted. The level is the largest of the list that keeps the budget by two standard
errors on the development seeds. It is then verified once on the final seeds, on which no choice depended.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from driftsack.service.projections.drift import LEVEL, ArmDetector, OutcomeStream

BUDGET: Final = 1 / 13  # false alarms in a campaign-week
LEVELS: Final = (0.3, 0.1, 0.03, 0.01, 0.003)
SHARES: Final = (0.8, 0.15, 0.05)  # of the arms in the requests of the week
REQUESTS: Final = 12_000
DEVELOPMENT: Final = range(200)
FINAL: Final = range(3_000_000, 3_000_600)
TRIALS: Final = 200  # of each drift

Rng = np.random.Generator
Draw = Callable[[Rng, int], np.ndarray]
REWARDS: Final[list[Draw]] = [
    *(lambda rng, n, p=p: (rng.random(n) < p).astype(float) for p in (0.02, 0.3, 0.62, 0.78, 0.9, 0.99)),
    lambda rng, n: rng.beta(0.5, 0.5, n),
    lambda rng, n: rng.beta(8, 2, n),
]
COSTS: Final[list[Draw]] = [
    *(lambda rng, n, spread=spread: rng.lognormal(-4, spread, n) for spread in (0.2, 0.8, 1.5)),
    lambda rng, n: rng.pareto(1.5, n),
    lambda rng, n: rng.choice([0.01, 0.02, 0.05], n),
]


class Rate(NamedTuple):
    """A mean and its standard error."""

    mean: float
    error: float


def rate_of(counts: list[int]) -> Rate:
    """Return the mean of some counts.

    >>> rate_of([0, 1])
    Rate(mean=0.5, error=0.5)
    """
    return Rate(float(np.mean(counts)), float(np.std(counts, ddof=1) / math.sqrt(len(counts))))


def false_alarms(seed: int, level: float) -> int:
    """The number of alarms in a week in which nothing changes."""
    rng, found = np.random.default_rng(seed), 0
    for share in SHARES:
        n, detector = int(share * REQUESTS), ArmDetector(0, 1.0, 2, level)
        kinds = (REWARDS[rng.integers(len(REWARDS))], *(COSTS[k] for k in rng.integers(len(COSTS), size=2)))
        columns = [kind(rng, n).tolist() for kind in kinds]
        for outcomes in zip(*columns, strict=True):
            found += len(detector.observe(0, 0, list(outcomes)))
    return found


class Drift(NamedTuple):
    """A change of one stream: outcomes before and after it, how many of each, and whether they are costs."""

    says: str
    before: Draw
    after: Draw
    first: int
    then: int
    cost: bool = False


def bernoulli(p: float) -> Draw:
    """Draw good answers with a probability."""
    return lambda rng, n: (rng.random(n) < p).astype(float)


def priced(factor: float) -> Draw:
    """Draw heavy-tailed costs at a price."""
    return lambda rng, n: factor * rng.lognormal(-4, 0.8, n)


DRIFTS: Final = [
    Drift("reward 0.9 to 0.05, 8 outcomes after 2,000", bernoulli(0.9), bernoulli(0.05), 2000, 8),
    Drift("reward 0.9 to 0.05, 8 outcomes after 100", bernoulli(0.9), bernoulli(0.05), 100, 8),
    Drift("reward 0.8 to 0.4, 50 outcomes after 1,000", bernoulli(0.8), bernoulli(0.4), 1000, 50),
    Drift("reward 0.8 to 0.6, 200 outcomes after 1,000", bernoulli(0.8), bernoulli(0.6), 1000, 200),
    Drift("reward 0.62 to 0.72, 500 outcomes after 500", bernoulli(0.62), bernoulli(0.72), 500, 500),
    Drift("price × 0.4, 100 outcomes after 60", priced(1), priced(0.4), 60, 100, True),
    Drift("price × 0.4, 100 outcomes after 1,000", priced(1), priced(0.4), 1000, 100, True),
    Drift("price × 1.5, 200 outcomes after 1,000", priced(1), priced(1.5), 1000, 200, True),
    Drift("price × 0.8, 500 outcomes after 1,000", priced(1), priced(0.8), 1000, 500, True),
]


def power(drift: Drift, level: float, seeds: range) -> tuple[Rate, float]:
    """The share of trials in which a change is detected, and the median number of outcomes until then."""
    delays: list[int] = []
    found: list[int] = []
    for seed in seeds:
        rng, stream = np.random.default_rng(seed), OutcomeStream(None if drift.cost else 1.0, level)
        values = [*drift.before(rng, drift.first).tolist(), *drift.after(rng, drift.then).tolist()]
        alarms = [k - drift.first + 1 for k, value in enumerate(values) if stream.observe(value) and k >= drift.first]
        found.append(bool(alarms))
        delays += alarms[:1]
    return rate_of(found), float(np.median(delays)) if delays else math.nan


def chosen_level() -> float:
    """The largest level that keeps the budget on the development seeds."""
    for level in LEVELS:
        rate = rate_of([false_alarms(seed, level) for seed in DEVELOPMENT])
        keeps = rate.mean + 2 * rate.error <= BUDGET
        print(f"level {level:g}: {rate.mean:.4f} ± {rate.error:.4f} false alarms a week {'kept' if keeps else ''}")
        if keeps:
            return level
    raise ValueError(f"no level of {LEVELS} keeps the budget of {BUDGET:.4f} false alarms a week")


def choose_and_verify() -> bool:
    """Choose a level, verify it on the final seeds, and return whether the service uses it and it keeps the budget."""
    level = chosen_level()
    rate = rate_of([false_alarms(seed, level) for seed in FINAL])
    print(f"final seeds, level {level:g}: {rate.mean:.4f} ± {rate.error:.4f} a week, budget {BUDGET:.4f}")
    for drift in DRIFTS:
        share, delay = power(drift, level, FINAL[:TRIALS])
        print(f"{drift.says}: found in {share.mean:.1%} ± {share.error:.1%}, after {delay:.0f}")
    return level == LEVEL and rate.mean <= BUDGET + 2 * rate.error
