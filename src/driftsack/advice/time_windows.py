"""Sums and means of a log in windows of time, in the order of the log and with its rows shuffled in time.

Shuffling permutes each arm's outcomes among that arm's own rounds, reward and costs together; in a full-information
table whole rows are permuted, the same way for all arms. If there is no drift and rounds are independent, every order
is equally likely. If neighbouring rounds are correlated without any drift (one late plane delays the next), the rounds
of a correlated block, such as a day, must be merged into one outcome first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.core.errors import SettingError
from driftsack.logs.survey import Series, Survey


class RunningSums(NamedTuple):
    """Running sums of one arm's outcomes, in the order of the log (row 0) and in shuffled orders."""

    prefix: Floats  # (1 + shuffles, 1 + n, 1 + d) sums of the cells before each cell
    rounds: Floats  # (n,) mean round of each cell
    rows: int  # rounds of the whole log


def merge_blocks(survey: Survey, block: int) -> Survey:
    """Merge the cells of about ``block`` rounds, so that they are shuffled and resampled as one outcome.

    Cells after an arm's last whole block are dropped; ``pulls`` still counts them. At least two blocks remain wherever
    there are two cells.

    A block longer than half of the log raises ``SettingError``.
    """
    if block > max(survey.rows // 2, 1):
        raise SettingError(
            f"block must be at most half of the log's {survey.rows:,} rounds, so that there are blocks to compare, got "
            f"{block:,}."
        )
    series = []
    for one in survey.series:
        per_block = cells_per_block(one, survey.rows, block)
        rounds, values = in_blocks(one.rounds[:, None], per_block)[:, 0], in_blocks(one.values, per_block)
        series.append(Series(rounds, values, one.size * per_block, one.pulls))
    return dataclasses.replace(survey, series=tuple(series))


def cells_per_block(one: Series, rows: int, block: int) -> int:
    """Return how many cells of an arm make about ``block`` rounds, at most half of them."""
    cells = len(one.values)
    return max(min(round(block * cells / rows), cells // 2), 1)


def in_blocks(values: Floats, size: int) -> Floats:
    """(n // size, ...) Means of ``size`` successive rows; the rows after the last whole block are dropped."""
    blocks = len(values) // size
    means: Floats = values[: blocks * size].reshape(blocks, size, -1).mean(axis=1)
    return means


def shuffled_sums(survey: Survey, shuffles: int, rng: Generator) -> Iterator[RunningSums]:
    """Yield the running sums of each arm in turn, so that only one arm's shuffles are in memory."""
    shared = permutations(len(survey.series[0].values), shuffles, rng) if survey.table else None
    for one in survey.series:
        orders = permutations(len(one.values), shuffles, rng) if shared is None else shared
        yield RunningSums(_prefix_sums(one, orders), one.rounds, survey.rows)


def ordered_sums(one: Series, rows: int) -> RunningSums:
    """Return the running sums of one arm in the order of the log only."""
    return RunningSums(_prefix_sums(one, np.arange(len(one.values))[None]), one.rounds, rows)


def permutations(count: int, shuffles: int, rng: Generator) -> Ints:
    """Return (1 + shuffles, count) orders, the first of which is the identity."""
    orders = np.tile(np.arange(count), (1 + shuffles, 1))
    orders[1:] = rng.permuted(orders[1:], axis=1)
    return orders


def _prefix_sums(one: Series, orders: Ints) -> Floats:
    """(orders, 1 + n, 1 + d) Sums of the cells before each cell, in each order."""
    prefix = np.zeros((len(orders), 1 + len(one.values), one.values.shape[1]))
    np.cumsum(one.values[orders], axis=1, out=prefix[:, 1:])
    return prefix


def window_sums(sums: RunningSums, windows: int) -> tuple[Floats, Ints]:
    """Return sums (1 + shuffles, windows, 1 + d) in equal windows of time, and the number of cells in each."""
    edges = np.searchsorted(sums.rounds, np.arange(windows + 1) * (sums.rows / windows))
    return np.diff(sums.prefix[:, edges], axis=1), np.diff(edges)


def window_means(sums: RunningSums, windows: int) -> Floats:
    """Return means in equal windows of time; a window without observations gets the previous mean, or else the next."""
    totals, counts = window_sums(sums, windows)
    observed = np.flatnonzero(counts)
    if observed.size == 0:  # cannot happen for an arm that was played: its first pull starts a cell
        return np.zeros_like(totals)
    means: Floats = (totals[:, observed] / counts[observed, None])[:, latest_observed(observed, windows)]
    return means


def latest_observed(observed: Ints, count: int) -> Ints:
    """(count,) For each period, the position in ``observed`` of the latest observed one, or else of the first.

    >>> latest_observed(np.array([1, 3]), 5)
    array([0, 0, 0, 1, 1])
    """
    latest: Ints = np.maximum(np.searchsorted(observed, np.arange(count), side="right") - 1, 0)
    return latest


def default_windows(survey: Survey, cells: int = 100, most: int = 52) -> int:
    """Return the number of windows, 4 to ``most``, for which the median arm has about ``cells`` cells in each."""
    return int(np.clip(np.median([len(one.values) for one in survey.series]) // cells, 4, most))
