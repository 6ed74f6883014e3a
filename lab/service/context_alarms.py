"""How often the dashboard says that the requests of a campaign changed although they did not, and what it finds.

A campaign has 12,000 requests a week with two numbers and two categories, of which one value is missing now and then:
ten streams in which changes are looked for. All of them together have the level of one stream of an arm. Weeks in
which nothing changes are counted, the first of a campaign, in which there are most false alarms because every stream is
new; and a planted change of the mix of requests, or of a number, is to be found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from driftsack.core.decision import SKIP
from driftsack.core.encoder import Encoder
from driftsack.service.domain.features import bytes_of
from driftsack.service.projections.segments import ContextTrack
from lab.service.alarm_level import BUDGET, REQUESTS, Rate, rate_of
from lab.service.speed import row

WEEKS: Final = range(5_000_000, 5_000_200)
TRIALS: Final = range(6_000_000, 6_000_100)  # of each change
WEEKS_OF_A_SEASON: Final = 52 / 12
ENCODER: Final = Encoder(
    numbers=["tokens", "age"],
    categories={"kind": ["chat", "code", "maths"], "tier": ["free", "paid", "trial"]},
    optional=["age"],
)

Rng = np.random.Generator
Row = dict[str, Any]


class Mix(NamedTuple):
    """How the requests of a time are distributed."""

    kinds: tuple[float, ...] = (0.6, 0.3, 0.07, 0.03)  # the last one is not known
    tiers: tuple[float, ...] = (0.7, 0.25, 0.05)
    tokens: float = 1.0  # factor on log-normal numbers
    missing: float = 0.1  # share of requests without age


class Change(NamedTuple):
    """A change of the requests."""

    says: str
    after: Mix
    then: int  # requests in which it is to be found
    least: float = 0.0  # share of trials in which it must be found


CHANGES: Final = (
    Change("code 30% → 50%, 500 requests", Mix(kinds=(0.4, 0.5, 0.07, 0.03)), 500, 0.9),
    Change("code 30% → 40%, 1,000 requests", Mix(kinds=(0.5, 0.4, 0.07, 0.03)), 1000),
    Change("maths 7% → 14%, 1,000 requests", Mix(kinds=(0.53, 0.3, 0.14, 0.03)), 1000),
    Change("code 30% → 35%, 1,000 requests", Mix(kinds=(0.55, 0.35, 0.07, 0.03)), 1000),
    Change("tokens × 2, 400 requests", Mix(tokens=2.0), 400, 0.9),
    Change("tokens × 1.2, 1,000 requests", Mix(tokens=1.2), 1000),
)
BEFORE: Final = 2000  # requests before the change


def requests(rng: Rng, mix: Mix, count: int) -> list[bytes]:
    """Draw encoded requests."""
    kinds = rng.choice(["chat", "code", "maths", "poem"], count, p=mix.kinds).tolist()
    tiers = rng.choice(["free", "paid", "trial"], count, p=mix.tiers).tolist()
    tokens = (mix.tokens * rng.lognormal(5.0, 1.0, count)).tolist()
    ages = np.where(rng.random(count) < mix.missing, np.nan, rng.integers(18, 90, count)).tolist()
    rows = zip(tokens, ages, kinds, tiers, strict=True)
    return [
        bytes_of(ENCODER.encode({"tokens": t, "age": None if math.isnan(a) else a, "kind": k, "tier": s}, [50.0]))
        for t, a, k, s in rows
    ]


def alarms(stream: list[bytes]) -> list[int]:
    """Return the requests at which a change was reported, from 1."""
    track = ContextTrack(ENCODER, 2, 1)
    for number, context in enumerate(stream, start=1):
        track.ask(number, number, SKIP, context)
    return [change.decision for change in track.changes]


def false_alarms(seed: int) -> int:
    """The number of alarms in a week in which nothing changes."""
    return len(alarms(requests(np.random.default_rng(seed), Mix(), REQUESTS)))


def found(change: Change, seeds: range) -> tuple[Rate, float]:
    """The share of trials in which a change is found in time, and the median number of requests until then."""
    shares, delays = [], []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        stream = requests(rng, Mix(), BEFORE) + requests(rng, change.after, change.then)
        late = [at - BEFORE for at in alarms(stream) if at > BEFORE]
        shares.append(int(bool(late)))
        delays += late[:1]
    return rate_of(shares), float(np.median(delays)) if delays else math.nan


def alarm_rows(weeks: range, trials: range, progress: Callable[[str], None]) -> list[Row]:
    """Measure false alarms and what is found.

    Args:
        weeks: The seeds of weeks without a change.
        trials: The seeds of the trials of each change.
        progress: Called with the current measurement.

    Returns:
        One row for each figure, with its bar and whether it is reached.
    """
    counts = []
    for k, seed in enumerate(weeks):
        progress(f"weeks without a change, {k + 1} of {len(weeks)}")
        counts.append(false_alarms(seed))
    rate = rate_of(counts)
    most = rate.mean + 2 * max(rate.error, 1.5 / len(weeks))  # without any alarm, 3 / n is the 95% bound
    rows = [
        row(f"false alarms a week, {len(weeks)} weeks: upper bound", "", most, BUDGET, most=True),
        row("the same in a monthly season: mean", "", rate.mean * WEEKS_OF_A_SEASON, BUDGET * WEEKS_OF_A_SEASON, True),
    ]
    for change in CHANGES:
        progress(change.says)
        share, delay = found(change, trials)
        what = f"{change.says}: found, ± {share.error:.2f}; median after {delay:.0f}"
        rows.append(row(what, "", share.mean, change.least))
    return rows
