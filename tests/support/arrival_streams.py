"""Simulate streams of arrivals, and compare estimates of the rounds left on them.

``python -c "from tests.support.arrival_streams import *; print(table(30 * DAY, 3000, factor=2))"`` shows the errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.game.arrivals import Arrivals

HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
SHARES: Final = (0.05, 0.25, 0.5, 0.75)  # shares of the period at which the rounds left are estimated
KINDS: Final = ("flat", "daily", "weekly", "noisy", "burst", "dead", "trend")
Estimate = Callable[[Floats, Floats, float, float, float], Floats]  # arrivals, times, period, guess, day_start


def stream(kind: str, period: float, expected: float, rng: np.random.Generator) -> tuple[Floats, float]:
    """Draw sorted arrival times in seconds, and the time of the week at which the period begins.

    Args:
        kind: ``flat``; ``daily``: 12 times as many at 2 pm as at 2 am; ``weekly``: that, and a third at weekends;
            ``noisy``: that, and days that differ by 30%; ``burst``: 15 times as many for 1/120 of the period; ``dead``:
            none in the first 15th; ``trend``: twice as many at the end.
        period: The length in seconds.
        expected: The expected number of arrivals.
        rng: The random generator.
    """
    day_start = float(rng.uniform(0.0, 7 * DAY))
    cells = int(np.ceil(period / 600.0))
    middle = (np.arange(cells) + 0.5) * period / cells
    clock = day_start + middle
    rate = np.ones(cells)
    if kind in ("daily", "weekly", "noisy"):
        rate *= 1.0 + 0.85 * np.cos(2 * np.pi * (clock / DAY - 14 / 24))
    if kind in ("weekly", "noisy"):
        rate[(clock // DAY) % 7 >= 5] *= 0.35
    if kind == "noisy":
        rate *= rng.lognormal(0.0, 0.3, int(clock[-1] // DAY) + 1)[(clock // DAY).astype(int)]
    if kind == "burst":
        begin = rng.uniform(0.0, 0.6) * period
        rate[(middle > begin) & (middle < begin + period / 120)] *= 15.0
    if kind == "dead":
        rate[middle < period / 15] = 0.0
    if kind == "trend":
        rate *= 1.0 + middle / period
    counts = rng.poisson(rate / rate.sum() * expected)
    within = rng.random(counts.sum()) * period / cells
    return np.sort(np.repeat(np.arange(cells) * period / cells, counts) + within), day_start


def learnt(times: Floats, nows: Floats, period: float, guess: float, day_start: float) -> Floats:
    """The estimate of the library."""
    arrivals, found, seen = Arrivals(period, guess, day_start), np.zeros(nows.size), 0
    for k, now in enumerate(nows.tolist()):
        until = int(np.searchsorted(times, now, side="right"))
        for at in times[seen:until].tolist():
            arrivals.arrive(at)
        found[k], seen = arrivals.rounds_left(now), until
    return found


def extrapolated(times: Floats, nows: Floats, period: float, *_: float) -> Floats:
    """A competitor: extrapolate the mean rate so far."""
    seen = np.searchsorted(times, nows, side="right").astype(np.float64)
    return np.maximum(seen / nows * (period - nows), 1.0)


def guessed(times: Floats, nows: Floats, _: float, guess: float, *__: float) -> Floats:
    """A competitor: the first guess minus the arrivals so far."""
    return np.maximum(guess - np.searchsorted(times, nows, side="right").astype(np.float64), 1.0)


def errors(estimate: Estimate, kind: str, period: float, expected: float, factor: float, trials: int) -> Floats:
    """Relative errors of the rounds left at ``SHARES`` of the period.

    Args:
        estimate: The estimate to evaluate.
        kind: The kind of the stream, one of ``KINDS``.
        period: The length of the period in seconds.
        expected: The expected number of arrivals.
        factor: The ratio of the guess to the expected number.
        trials: The number of streams.

    Returns:
        (trials, 4) estimate / truth - 1.
    """
    found = np.zeros((trials, len(SHARES)))
    for trial in range(trials):
        times, day_start = stream(kind, period, expected, np.random.default_rng([trial, KINDS.index(kind)]))
        nows = period * np.array(SHARES)
        left = np.maximum(times.size - np.searchsorted(times, nows, side="right"), 1)
        found[trial] = estimate(times, nows, period, factor * expected, day_start) / left - 1.0
    return found


def rms(found: Floats) -> Floats:
    """The root mean square of errors over trials."""
    return np.asarray(np.sqrt((found**2).mean(axis=0)))


def table(period: float, expected: float, factor: float, trials: int = 40) -> str:
    """The root mean square errors, in percent, of the three estimates on every kind of stream."""
    lines = [f"{period / DAY:g} days, {expected:g} arrivals, guess off by {factor:g}; errors in % at {SHARES}"]
    for kind in KINDS:
        for estimate in (learnt, extrapolated, guessed):
            found = 100 * rms(errors(estimate, kind, period, expected, factor, trials))
            lines.append(f"{kind:7}{estimate.__name__:13}" + "".join(f"{error:8.1f}" for error in found))
    return "\n".join(lines)
