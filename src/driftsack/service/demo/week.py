"""A simulated week of requests to three language models: heavy-tailed costs, a price change, and an outage.

The figures are invented but realistic: a small, a medium and a large model, whose answers are good with
probability 0.62, 0.78 and 0.9 at about 0.0008, 0.005 and 0.02 dollars. On Wednesday the price of the
large model drops by 60%. On Friday it fails all day, and bills its failures.
"""

from __future__ import annotations

import math
import random
from typing import Any, Final, NamedTuple

DAYS: Final = 7
PRICE_CHANGE: Final = 2.5  # days after Monday morning
OUTAGE: Final = (4.0, 5.0)
GOOD: Final = {"small": 0.62, "medium": 0.78, "large": 0.90}
DOLLARS: Final = {"small": 0.0008, "medium": 0.005, "large": 0.02}
SECONDS: Final = {"small": 0.6, "medium": 1.4, "large": 3.0}
MOST_DOLLARS: Final = {"small": 0.01, "medium": 0.05, "large": 0.20}
MOST_SECONDS: Final = 30.0
SPREAD: Final = 0.8  # standard deviation of the logarithm of costs
CHEAPER: Final = 0.4
LOST: Final = 0.002  # share of outcomes that are never told


class SimulatedAnswer(NamedTuple):
    """The answer of a model to a request."""

    reward: float  # 1 for a good answer, 0 for a bad one
    costs: dict[str, str]  # dollars and seconds, as decimal strings
    lost: bool  # whether the outcome is never told


def settings(requests: int) -> dict[str, Any]:
    """Return the settings of a campaign for a week with this number of requests, in the format of the API."""
    return {
        "arms": list(GOOD),
        "horizon": requests,
        "budget": {"usd": f"{0.0055 * requests:.2f}", "seconds": f"{2.4 * requests:.0f}"},
        "cost_max": {
            "usd": {arm: str(most) for arm, most in MOST_DOLLARS.items()},
            "seconds": str(MOST_SECONDS),
        },
        "lease": 20,
    }


def simulate_answer(arm: str, day: float, rng: random.Random) -> SimulatedAnswer:
    """Simulate the answer of a model on a day, counted from Monday morning.

    >>> found = simulate_answer("large", 0.0, random.Random(0))
    >>> found.reward, sorted(found.costs)
    (1.0, ['seconds', 'usd'])
    """
    failing = arm == "large" and OUTAGE[0] <= day < OUTAGE[1]
    good = 0.05 if failing else GOOD[arm]
    price = DOLLARS[arm] * (CHEAPER if arm == "large" and day >= PRICE_CHANGE else 1.0)
    centre = -SPREAD * SPREAD / 2  # so that the mean is the price
    dollars = min(price * rng.lognormvariate(centre, SPREAD), MOST_DOLLARS[arm])
    seconds = min(SECONDS[arm] * rng.lognormvariate(centre, SPREAD), MOST_SECONDS)
    costs = {"usd": f"{dollars:.6f}", "seconds": f"{seconds:.3f}"}
    return SimulatedAnswer(float(rng.random() < good), costs, rng.random() < LOST)


def day_of(request: int, requests: int) -> float:
    """Return the time of a request, counted from 0, in days since Monday morning; most arrive around noon.

    >>> day_of(0, 70), round(day_of(5, 70), 2), day_of(70, 70)
    (0.0, 0.5, 7.0)
    """
    whole, part = divmod(DAYS * request / requests, 1.0)
    low, high = 0.0, 1.0
    for _ in range(40):  # bisection: invert the share of a day's requests that have arrived
        middle = (low + high) / 2
        came = middle - 0.8 * math.sin(2 * math.pi * middle) / (2 * math.pi)
        low, high = (middle, high) if came < part else (low, middle)
    return whole + (0.0 if part == 0 else (low + high) / 2)
