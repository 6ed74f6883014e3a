"""Small random worlds, and a search among them for the one that comes nearest to breaking a statement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.verify.statement import Effort

Margin = Callable[[Instance], float]
FLAT: Final = 1e-9


class Shape(NamedTuple):
    """The largest a random world may be."""

    rounds: int = 6
    arms: int = 3
    resources: int = 2


def random_world(rng: np.random.Generator, shape: Shape = Shape()) -> Instance:  # noqa: B008  (a value)
    """Means that are anything, or 0 and 1 only, or quarters; rows that may repeat; a rate that may be tight."""
    rounds, arms, resources = (int(rng.integers(1, most + 1)) for most in shape)
    values = rng.random((rounds, 1 + resources, arms))
    kind = rng.integers(3)
    if kind > 0:
        values = np.round(values * (1, 1, 4)[kind]) / (1, 1, 4)[kind]
    values = values[np.sort(rng.integers(0, rounds, rounds))] if rng.random() < 0.3 else values  # noqa: PLR2004
    rate = rng.choice([rng.random(), 0.25, 0.5, 1.0]) * rng.random() ** rng.integers(2)
    return world_of(values, max(float(rate), 0.02))


def world_of(values: Floats, rate: float) -> Instance:
    """Rewards and costs (T, 1 + d, m), rewards first, and one rate for every resource."""
    rounds, kinds, arms = values.shape
    problem = Problem(rounds, arms, np.full(kinds - 1, rate * rounds))
    return Instance(problem, values[:, 0], values[:, 1:], np.arange(rounds, dtype=np.int32), "deterministic")


def margins(margin: Margin, effort: Effort, salt: int, shape: Shape = Shape()) -> Iterator[float]:  # noqa: B008
    """The margin on random worlds, and then wherever climbing down from the tightest of them leads."""
    rng = effort.rng(salt)
    seen: list[tuple[float, Instance]] = []
    for _ in range(effort.of(150, 2_000)):
        world = random_world(rng, shape)
        seen.append((margin(world), world))
        yield seen[-1][0]
    telling = [pair for pair in seen if abs(pair[0]) > FLAT] or seen  # where both sides are equal there is no slope
    telling.sort(key=lambda pair: pair[0])
    for start, world in telling[: effort.of(2, 12)]:
        yield from _climb(margin, start, world, rng, effort.of(40, 250))


def _climb(margin: Margin, start: float, world: Instance, rng: np.random.Generator, steps: int) -> Iterator[float]:
    """Change an entry or the rate a little, keep what is worse for the statement."""
    best = start
    values = np.concatenate([world.rewards[:, None], world.costs], axis=1)
    rate = float(world.problem.rate[0])
    for step in range(steps):
        width = 0.5 * 0.98**step
        other, other_rate = values.copy(), rate
        if rng.random() < 0.15:  # noqa: PLR2004
            other_rate = float(np.clip(rate + width * rng.standard_normal(), 0.02, 1.5))
        else:
            place = tuple(int(rng.integers(size)) for size in values.shape)
            other[place] = np.clip(other[place] + width * rng.standard_normal(), 0.0, 1.0)
        found = margin(world_of(other, other_rate))
        yield found
        if found <= best:
            best, values, rate = found, other, other_rate
