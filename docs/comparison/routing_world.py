"""A simulated stream of requests to three language models, on which routers of any library can be compared.

Answers are good with a probability of their own for each model; dollars and seconds are lognormal. Two things change
without notice: the large model becomes cheaper after 40% of the requests, the medium one worse after 70%. A budget that
is exhausted ends the stream: the requests that are left get no answer.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

import driftsack as ds

sys.path.insert(0, str(Path(__file__).parents[2]))

from lab.rivals import Router

REQUESTS: Final = 10_000
MODELS: Final = ("small", "medium", "large")
CHANGES: Final = (4_000, 7_000)  # requests before the price cut, and before the medium model gets worse
QUALITY: Final = np.array([[0.55, 0.74, 0.88], [0.55, 0.74, 0.88], [0.55, 0.60, 0.88]])
USD: Final = np.array([[0.0006, 0.004, 0.02], [0.0006, 0.004, 0.012], [0.0006, 0.004, 0.012]])
SECONDS: Final = np.array([[0.8, 1.6, 4.5]] * 3)
SIGMA: Final = 0.7  # of the logarithms of dollars and seconds


@dataclass(frozen=True)
class Budgets:
    """What may be spent on all requests together; without seconds, time does not matter."""

    usd: float = 60.0
    seconds: float | None = None

    def amounts(self) -> NDArray[np.float64]:
        """The budgets as an array."""
        return np.array([self.usd] if self.seconds is None else [self.usd, self.seconds])


@dataclass
class Stream:
    """What happened: the cumulative good answers and the money that was left after each request."""

    good: list[float] = field(default_factory=list)
    left: list[float] = field(default_factory=list)


def phases() -> NDArray[np.int64]:
    """The phase of each request."""
    return np.searchsorted(np.array(CHANGES), np.arange(REQUESTS), side="right")


def draw(seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The outcomes of every model for every request: good or not (T, 3), and dollars and seconds (T, 2, 3)."""
    rng, phase = np.random.default_rng(seed), phases()
    good = (rng.random((REQUESTS, 3)) < QUALITY[phase]).astype(float)
    means = np.stack([USD[phase], SECONDS[phase]], axis=1)
    return good, means * rng.lognormal(-SIGMA * SIGMA / 2, SIGMA, means.shape)


def instance(budgets: Budgets) -> ds.Instance:
    """The means of the stream."""
    resources = len(budgets.amounts())
    maxima = [1.0, 100.0][:resources]
    costs = np.stack([USD, SECONDS], axis=1)[:, :resources]
    lengths = np.diff([0, *CHANGES, REQUESTS]).tolist()
    return ds.Instance.piecewise(QUALITY, costs, lengths, budgets.amounts().tolist(), cost_max=maxima)


def optimum(budgets: Budgets) -> float:
    """The expected good answers of the best plan that knows all means and both changes (LP-Dynamic)."""
    return float(ds.benchmarks.lp_dynamic(instance(budgets)).value)


def play(router: Router, seed: int, budgets: Budgets) -> Stream:
    """Send every request until a budget is exhausted; the answer that breaks a budget does not count."""
    good, costs = draw(seed)
    left, total, stream = budgets.amounts(), 0.0, Stream()
    for request in range(REQUESTS):
        arm = router.choose()
        if arm >= 0:
            used = costs[request, : left.size, arm]
            left = left - used
            if (left < 0).any():
                break
            router.learn(arm, good[request, arm], used)
            total += good[request, arm]
        stream.good.append(total)
        stream.left.append(float(left[0]))
    return stream
