"""The problems on which two versions of ``Adaptive`` are compared. Everything is drawn from the seed of the set.

The programs of this package run on the package ``driftsack`` of another checkout as well, so they use only what both
have: instances, policies and ``simulate``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.random import SeedSequence

from driftsack.core.arrays import Floats
from driftsack.core.instance import Instance
from driftsack.core.seeding import generator
from driftsack.datasets.flights import RATE, SLOTS, flights
from driftsack.sweeps.held_out import held_out_worlds

ARMS: Final = 5
NOISE: Final = 0.15  # standard deviation of persistent noise
PERSISTENCE: Final = (0.5, 0.7, 0.9)
WEEK: Final = 7 * SLOTS
ONE_WAY: Final = {
    "rewards halve": (0.5, 1.0),
    "rewards double": (2.0, 1.0),
    "costs halve": (1.0, 0.5),
    "costs double": (1.0, 2.0),
}
"""Factors on all rewards and on all costs, from some round until the end."""


class StudySize(NamedTuple):
    """The amount of simulation: problems of each kind, trials on each, and runs for each absurd bill."""

    per_kind: int
    trials: int
    runs: int
    horizon: int


WHOLE: Final = StudySize(per_kind=6, trials=8, runs=24, horizon=10_000)
QUICK: Final = StudySize(per_kind=1, trials=2, runs=4, horizon=4_000)
SHORT: Final = StudySize(per_kind=1, trials=1, runs=2, horizon=2_000)


class Play(NamedTuple):
    """One instance, and how its outcomes arrive."""

    group: str
    world: Instance
    delay: int = 0
    lost: float = 0.0  # share of the outcomes that never arrive


def families(seed: int, size: StudySize) -> Iterator[Play]:
    """Fresh environments of all families: short and long, with late outcomes, and with lost ones."""
    for horizon in (size.horizon // 10, size.horizon):
        for worlds in held_out_worlds(seed, size.per_kind, horizon).values():
            for world in (one.build() for one in worlds):
                for delay in (0, horizon // 50):
                    yield Play(f"families, T = {horizon:,}, {delay} rounds late", world, delay)
                if horizon == size.horizon:
                    yield Play(f"families, T = {horizon:,}, 10% lost", world, 20, 0.1)


def ar1(rng: np.random.Generator, rounds: int, columns: int, memory: float) -> Floats:
    """Stationary AR(1) series (rounds, columns) with standard deviation 1.

    >>> x = ar1(np.random.default_rng(0), 20_000, 2, 0.7)
    >>> bool(abs(x.std() - 1.0) < 0.05), bool(abs(np.corrcoef(x[1:, 0], x[:-1, 0])[0, 1] - 0.7) < 0.05)
    (True, True)
    """
    series = rng.standard_normal((rounds, columns))
    for t in range(1, rounds):
        series[t] = memory * series[t - 1] + np.sqrt(1.0 - memory**2) * series[t]
    return series


def table_world(outcomes: Floats, rate: Floats) -> Instance:
    """An instance of fixed outcomes (T, m, 1 + d), rewards first."""
    costs = np.ascontiguousarray(outcomes[:, :, 1:].transpose(0, 2, 1))
    return Instance.from_arrays(outcomes[:, :, 0], costs, rate * len(outcomes), "deterministic")


def persistent(seed: int, size: StudySize) -> Iterator[Play]:
    """Means that are still or change once, with AR(1) noise of each arm or common to all."""
    for memory in PERSISTENCE:
        for common in (False, True):
            rng = generator(seed * 1_000 + round(10 * memory) + 100 * common)
            for k in range(2 * size.per_kind):
                means = rng.uniform(0.3, 0.7, (2, ARMS, 3))
                late = np.arange(size.horizon) >= (0.5 if k % 2 else 2.0) * size.horizon
                noise = ar1(rng, size.horizon, 3 if common else 3 * ARMS, memory)
                noise = np.tile(noise, ARMS) if common else noise
                outcomes = means[late.astype(int)] + NOISE * noise.reshape(size.horizon, ARMS, 3)
                group = f"AR(1) noise, φ = {memory:g}, {'common' if common else 'of each arm'}"
                yield Play(group, table_world(np.clip(outcomes, 0.0, 1.0), rng.uniform(0.2, 0.4, 2)))


def bootstrap(seed: int, size: StudySize) -> Iterator[Play]:
    """Real flights in a new order: blocks of a week, drawn with replacement."""
    table = flights().table
    assert table is not None
    rng = generator(seed)
    blocks = size.horizon // WEEK + 1
    for _ in range(2 * size.per_kind):
        first = rng.integers(0, len(table) - WEEK, blocks)
        rows = (first[:, None] + np.arange(WEEK)).ravel()[: size.horizon]
        yield Play("flights, weeks in random order", table_world(table[rows], np.array(RATE)))


def one_way(seed: int, size: StudySize) -> Iterator[Play]:
    """All rewards or all costs halve or double permanently, in the middle third of the rounds."""
    for name, factors in ONE_WAY.items():
        rng = generator(SeedSequence([seed, *name.encode()]))
        for _ in range(size.per_kind):
            rewards, costs = rng.uniform(0.1, 0.45, ARMS), rng.uniform(0.1, 0.45, (2, ARMS))
            change = int(size.horizon * rng.uniform(1 / 3, 2 / 3))
            yield Play(
                f"{name} for good",
                Instance.piecewise(
                    np.stack([rewards, factors[0] * rewards]),
                    np.stack([costs, factors[1] * costs]),
                    [change, size.horizon - change],
                    size.horizon * rng.uniform(0.1, 0.25, 2),
                ),
            )


SECTIONS: Final[dict[str, Callable[[int, StudySize], Iterator[Play]]]] = {
    "families": families,
    "persistent": persistent,
    "flights": bootstrap,
    "one-way": one_way,
}
"""The kinds of problems by name."""
