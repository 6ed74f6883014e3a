r"""Section 4, measured: Theorem 3 against T, Theorem 3 against W, and Proposition 2's two sides.

Worlds of Theorem 3 are drawn several times; the same draws serve every horizon. Exponents are fitted as in
:mod:`growth`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.oco import (
    Algorithm,
    Box,
    Linear,
    Problem,
    VirtualQueue,
    global_variation,
    instances,
    restricted_optimum,
    static_optimum,
)
from driftsack.sweeps.growth import Growth, Slope

HORIZONS: Final = (1_000, 3_162, 10_000, 31_623, 100_000, 316_228, 1_000_000)
DRAWS: Final = 4
ROUNDING: Final = 1e-6  # a relative error below this is not believed
SHIFTS: Final = (0.003, 0.01, 0.03, 0.1, 0.3)
RANDOM: Final = 40  # instances on which Proposition 2 is checked


class World(NamedTuple):
    """A family of problems: ``make(horizon, draw)``."""

    name: str
    make: Callable[[int, int], Problem]


WORLDS: Final = (
    World("still constraints", lambda rounds, k: instances.iid(horizon=rounds, noise=0.0, seed=k)),
    World("drawn constraints", lambda rounds, k: instances.iid(horizon=rounds, noise=0.5, seed=k)),
    World("one switch", lambda rounds, k: instances.one_switch(horizon=rounds, seed=k)),
    World("job scheduling", lambda rounds, k: instances.job_scheduling(horizon=rounds, seed=k)),
    World("fair losses", lambda rounds, k: instances.iid(horizon=rounds, noise=0.0, bias=0.0, seed=k)),
)


@dataclass(frozen=True, eq=False)
class Study:
    """Regret and violation of one algorithm on one world, at each horizon."""

    world: str
    horizons: Ints  # (p,)
    regret: Floats  # (draws, p) Reg1 against OPT
    violation: Floats  # (draws, p) Reg2
    allowance: Floats  # (draws, p) q̄W

    def exponent(self, values: Floats) -> Slope | None:
        """The fitted exponent of T of ``values`` (draws, p), from where their means stay above their standard error.

        None if the means of the two longest horizons are not above it: then there is nothing that grows.
        """
        mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))
        unclear = np.flatnonzero(mean <= error)
        first = int(unclear[-1]) + 1 if unclear.size else 0
        if first > mean.size - 2:
            return None
        part = slice(first, None)
        return Growth(self.horizons, mean, np.maximum(error, ROUNDING * np.abs(mean))).slope(part)


def study(
    world: World,
    algorithm: Algorithm,
    horizons: Sequence[int] = HORIZONS,
    draws: int = DRAWS,
    said: Callable[[str], None] = lambda _: None,
) -> Study:
    """Play every draw at every horizon; violation is of what was drawn, benchmarks are of the means."""
    shape = (draws, len(horizons))
    regret, violation, allowance = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for p, horizon in enumerate(horizons):
        said(f"{world.name}, T = {horizon:,}")
        for k in range(draws):
            problem = world.make(horizon, k)
            best, restricted = static_optimum(problem), restricted_optimum(problem)
            play = algorithm.play(problem, seed=k)
            regret[k, p], violation[k, p] = play.regret(best)[0], play.violation[0]
            price = max(best.prices.max(), restricted.prices.max())
            allowance[k, p] = price * global_variation(problem).value
    return Study(world.name, np.array(horizons), regret, violation, allowance)


class AgainstW(NamedTuple):
    """At one horizon, a row for each size of the change."""

    shifts: Floats  # (s,)
    variation: Floats  # (s,) W
    regret: Floats  # (s,) Reg1 of the virtual queue
    violation: Floats  # (s,) Reg2
    between: Floats  # (s,) OPT' - OPT
    allowance: Floats  # (s,) q̄W


def against_w(make: Callable[[float], Problem], shifts: Sequence[float] = SHIFTS) -> AgainstW:
    """Play ``make(shift)`` for each shift."""
    rows = []
    for shift in shifts:
        problem = make(shift)
        best, restricted, moves = static_optimum(problem), restricted_optimum(problem), global_variation(problem)
        play = VirtualQueue().play(problem)
        price = max(best.prices.max(), restricted.prices.max())
        between = restricted.value - best.value
        rows.append((shift, moves.value, play.regret(best)[0], play.violation[0], between, price * moves.value))
    return AgainstW(*np.array(rows).T)


class Random(NamedTuple):
    """Proposition 2 on random instances: the least and the largest (OPT' - OPT) / q̄W, and the least OPT' - OPT."""

    instances: int
    least: float
    largest_share: float
    gap: float  # the largest certificate's gap


def random_instances(count: int = RANDOM, seed: int = 0) -> Random:
    """Linear problems of 2 to 4 variables with up to 3 constraints and 2 to 5 distinct rounds, each feasible at 0."""
    rng = np.random.default_rng(seed)
    between, shares, gaps = [], [], []
    for _ in range(count):
        n, d, rows, horizon = rng.integers(2, 5), rng.integers(1, 4), rng.integers(2, 6), 100
        phase = rng.integers(0, rows, horizon)
        limits = -rng.uniform(0.1, 1.0, (rows, d))
        constraints = Linear(rng.uniform(-0.5, 1.0, (rows, d, n)), limits, phase)
        problem = Problem(Linear(rng.uniform(-1.0, 0.3, (horizon, n))), constraints, Box(0.0, 1.0, size=int(n)))
        best, restricted = static_optimum(problem), restricted_optimum(problem)
        price = max(best.prices.max(), restricted.prices.max())
        allowed = price * global_variation(problem).value
        between.append(restricted.value - best.value)
        shares.append(between[-1] / allowed if allowed > 0 else 0.0)
        gaps.append(max(best.gap, restricted.gap))
    return Random(count, min(between), max(shares), max(gaps))


@dataclass(frozen=True, eq=False)
class Section4:
    """All that the figure and the claims are made of."""

    studies: tuple[Study, ...]
    printed: Study
    swing: AgainstW
    example: AgainstW
    example_horizon: int
    random: Random


def run(
    horizons: Sequence[int] = HORIZONS, draws: int = DRAWS, said: Callable[[str], None] = lambda _: None
) -> Section4:
    """Every measurement; about a minute for T up to a million."""
    studies = tuple(study(world, VirtualQueue(), horizons, draws, said) for world in WORLDS)
    said("printed parameters")
    printed = study(WORLDS[0], VirtualQueue(parameters="printed"), horizons, draws, said)
    said("against W")
    horizon = min(100_000, max(horizons))
    swing = against_w(lambda shift: instances.tight_then_loose(horizon, shift))
    example = against_w(lambda shift: instances.proposition_2(horizon, shift=shift))
    return Section4(studies, printed, swing, example, horizon, random_instances(RANDOM))
