"""Draw small random instances, and search locally for those closest to violating a statement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.verify.statement import Effort, Sides

BothSides = Callable[[Instance], Sides]
ZERO_MARGIN: Final = 1e-9


class Shape(NamedTuple):
    """The largest size of a random instance."""

    rounds: int = 6  # the largest number of rounds
    arms: int = 3  # the largest number of arms
    resources: int = 2  # the largest number of resources


def random_instance(rng: np.random.Generator, shape: Shape = Shape()) -> Instance:  # noqa: B008  (immutable)
    """Draw an instance whose means are uniform, or 0 and 1, or multiples of 1/4.

    Some instances have repeated rows, and some have a small rate.
    """
    rounds, arms, resources = (int(rng.integers(1, most + 1)) for most in shape)
    values = rng.random((rounds, 1 + resources, arms))
    kind = rng.integers(3)
    if kind > 0:
        values = np.round(values * (1, 1, 4)[kind]) / (1, 1, 4)[kind]
    values = values[np.sort(rng.integers(0, rounds, rounds))] if rng.random() < 0.3 else values
    rate = rng.choice([rng.random(), 0.25, 0.5, 1.0]) * rng.random() ** rng.integers(2)
    return instance_of(values, max(float(rate), 0.02))


def instance_of(values: Floats, rate: float) -> Instance:
    """The deterministic instance with these rewards and costs (T, 1 + d, m), rewards first, and one rate for all."""
    rounds, kinds, arms = values.shape
    problem = Problem(rounds, arms, np.full(kinds - 1, rate * rounds))
    return Instance(problem, values[:, 0], values[:, 1:], np.arange(rounds, dtype=np.int32), "deterministic")


def means_of(world: Instance) -> Floats:
    """Rewards and costs (K, 1 + d, m), rewards first."""
    return np.concatenate([world.rewards[:, None], world.costs], axis=1)


def searched_sides(
    sides: BothSides,
    effort: Effort,
    salt: int,
    shape: Shape = Shape(),  # noqa: B008  (immutable)
) -> Iterator[Sides]:
    """Yield the sides of an inequality on random instances, and on local searches from the tightest ones."""
    rng = effort.rng(salt)
    seen: list[tuple[float, Instance]] = []
    for _ in range(effort.pick(80, 2_000)):
        world = random_instance(rng, shape)
        found = sides(world)
        seen.append((found.margin, world))
        yield found
    # Where both sides of a statement are equal, a small change of the instance mostly leaves them equal.
    starts = [pair for pair in seen if abs(pair[0]) > ZERO_MARGIN] or seen
    starts.sort(key=lambda pair: pair[0])
    for start, world in starts[: effort.pick(2, 12)]:
        yield from _local_search(sides, start, world, rng, effort.pick(40, 250))


def _local_search(
    sides: BothSides, start: float, world: Instance, rng: np.random.Generator, steps: int
) -> Iterator[Sides]:
    """Change one entry or the rate slightly at a time, and keep changes that do not increase the margin."""
    least = start
    values = means_of(world)
    rate = float(world.problem.rate[0])
    for step in range(steps):
        width = 0.5 * 0.98**step
        other, other_rate = values.copy(), rate
        if rng.random() < 0.15:
            other_rate = float(np.clip(rate + width * rng.standard_normal(), 0.02, 1.5))
        else:
            entry = tuple(int(rng.integers(size)) for size in values.shape)
            other[entry] = np.clip(other[entry] + width * rng.standard_normal(), 0.0, 1.0)
        current = sides(instance_of(other, other_rate))
        yield current
        if current.margin <= least:
            least, values, rate = current.margin, other, other_rate
