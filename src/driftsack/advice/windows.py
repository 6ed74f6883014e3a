"""Windowed sums of a survey, as the log has them and with its rows shuffled in time.

Shuffling moves each arm's outcomes among that arm's own rounds, reward and costs together; in a full-information table
whole rows move, all arms alike. If nothing drifts, every order was as likely as the one that came. That takes rounds to
be independent of each other. Where neighbours resemble each other without any drift (one late plane delays the next),
rounds that hang together, such as those of a day, are joined to one outcome first.
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


class Order(NamedTuple):
    """One arm's running sums in the order that came (row 0) and in shuffled ones."""

    prefix: Floats  # (1 + shuffles, 1 + n, 1 + d) sums of the cells before each
    rounds: Floats  # (n,) mean round of each cell
    rows: int  # of the whole log


def joined(survey: Survey, block: int) -> Survey:
    """The survey with the cells of about ``block`` rounds joined to one, so that they are shuffled and drawn as one.

    Cells after an arm's last whole block are left out; ``pulls`` still counts them. Two cells stay two blocks.
    """
    if block > max(survey.rows // 2, 1):
        raise SettingError(
            f"block must be at most half of the log's {survey.rows:,} rounds, so that there are blocks to compare, got "
            f"{block:,}."
        )
    series = []
    for one in survey.series:
        cells = len(one.values)
        together = max(min(round(block * cells / survey.rows), cells // 2), 1)  # cells of a block
        blocks = cells // together
        rounds = one.rounds[: blocks * together].reshape(blocks, together).mean(axis=1)
        values = one.values[: blocks * together].reshape(blocks, together, -1).mean(axis=1)
        series.append(Series(rounds, values, one.size * together, one.pulls))
    return dataclasses.replace(survey, series=tuple(series))


def orders(survey: Survey, shuffles: int, rng: Generator) -> Iterator[Order]:
    """Running sums of each arm, one after the other: memory for one arm at a time."""
    shared = _shuffled(len(survey.series[0].values), shuffles, rng) if survey.table else None
    for one in survey.series:
        index = _shuffled(len(one.values), shuffles, rng) if shared is None else shared
        yield Order(_running(one, index), one.rounds, survey.rows)


def _shuffled(count: int, shuffles: int, rng: Generator) -> Ints:
    """(1 + shuffles, n) orders, the first as it came."""
    index = np.tile(np.arange(count), (1 + shuffles, 1))
    index[1:] = rng.permuted(index[1:], axis=1)
    return index


def _running(one: Series, index: Ints) -> Floats:
    prefix = np.zeros((len(index), 1 + len(one.values), one.values.shape[1]))
    np.cumsum(one.values[index], axis=1, out=prefix[:, 1:])
    return prefix


def window_sums(order: Order, windows: int) -> tuple[Floats, Ints]:
    """Sums (1 + shuffles, windows, 1 + d) in equal windows of time, and how many cells each holds (windows,)."""
    edges = np.searchsorted(order.rounds, np.arange(windows + 1) * (order.rows / windows))
    return np.diff(order.prefix[:, edges], axis=1), np.diff(edges)


def window_means(order: Order, windows: int) -> Floats:
    """Means in equal windows of time; a window in which the arm was not seen has the last one's, or the next one's."""
    sums, counts = window_sums(order, windows)
    seen = np.flatnonzero(counts)
    if seen.size == 0:  # fewer pulls than a cell holds: cannot be, a cell begins with one
        return np.zeros_like(sums)
    latest = np.maximum(np.searchsorted(seen, np.arange(windows), side="right") - 1, 0)
    means: Floats = (sums[:, seen] / counts[seen, None])[:, latest]
    return means


def usual_windows(survey: Survey, cells: int = 100, most: int = 52) -> int:
    """How many windows to look through: so many that an arm has about ``cells`` outcomes, or cells of them, in each."""
    return int(np.clip(np.median([len(one.values) for one in survey.series]) // cells, 4, most))
