r"""Measure section 4: Theorem 3 against T and against W, and both sides of Proposition 2.

The problems of Theorem 3 are drawn several times, with the same draws at every horizon. Exponents are fitted as in
:mod:`driftsack.sweeps.growth`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.statistics import standard_errors
from driftsack.oco import (
    Algorithm,
    Box,
    ConvexProblem,
    Linear,
    Norm,
    Quadratic,
    VirtualQueue,
    global_variation,
    instances,
    restricted_optimum,
    static_optimum,
)
from driftsack.oco.families import Family
from driftsack.sweeps.growth import Growth, Slope

HORIZONS: Final = (1_000, 3_162, 10_000, 31_623, 100_000, 316_228, 1_000_000)
DRAWS: Final = 4
ROUNDING: Final = 1e-6  # smallest relative error of a mean, to avoid overconfident fits
SHIFTS: Final = (0.003, 0.01, 0.03, 0.1, 0.3)
RANDOM: Final = 40  # number of random instances for Proposition 2


class Scenario(NamedTuple):
    """A distribution of problems."""

    name: str  # its name in tables and figures
    make: Callable[[int, int], ConvexProblem]  # ``make(horizon, draw)`` returns the problem


WORLDS: Final = (
    Scenario("still constraints", lambda rounds, k: instances.iid(horizon=rounds, noise=0.0, seed=k)),
    Scenario("drawn constraints", lambda rounds, k: instances.iid(horizon=rounds, noise=0.5, seed=k)),
    Scenario("one switch", lambda rounds, k: instances.one_switch(horizon=rounds, seed=k)),
    Scenario("job scheduling", lambda rounds, k: instances.job_scheduling(horizon=rounds, seed=k)),
    Scenario("fair losses", lambda rounds, k: instances.iid(horizon=rounds, noise=0.0, bias=0.0, seed=k)),
)


@dataclass(frozen=True, eq=False)
class Study:
    """Regret and violation of one algorithm in one scenario, at each horizon."""

    world: str  # the name of the scenario
    horizons: Ints  # (p,) rounds
    regret: Floats  # (draws, p) Reg1 against OPT
    violation: Floats  # (draws, p) Reg2
    allowance: Floats  # (draws, p) q̄W

    def exponent(self, values: Floats) -> Slope | None:
        """Fit the exponent of T, over the horizons from which on the means exceed their standard errors.

        None if the means at the two longest horizons are not above their standard errors.
        """
        mean, error = values.mean(axis=0), standard_errors(values)
        unclear = np.flatnonzero(mean <= error)
        first = int(unclear[-1]) + 1 if unclear.size else 0
        if first > mean.size - 2:
            return None
        part = slice(first, None)
        return Growth(self.horizons, mean, np.maximum(error, ROUNDING * np.abs(mean))).slope(part)


def study(
    world: Scenario,
    algorithm: Algorithm,
    horizons: Sequence[int] = HORIZONS,
    draws: int = DRAWS,
    progress: Callable[[str, int, int], None] | None = None,
) -> Study:
    """Play every draw at every horizon; violation is measured on the outcomes, benchmarks on the means."""
    shape = (draws, len(horizons))
    regret, violation, allowance = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for p, horizon in enumerate(horizons):
        if progress is not None:
            progress(world.name, p, len(horizons))
        for k in range(draws):
            problem = world.make(horizon, k)
            best, restricted = static_optimum(problem), restricted_optimum(problem)
            play = algorithm.play(problem, seed=k)
            regret[k, p], violation[k, p] = play.regret(best)[0], play.violation[0]
            price = max(best.prices.max(), restricted.prices.max())
            allowance[k, p] = price * global_variation(problem).value
    return Study(world.name, np.array(horizons), regret, violation, allowance)


class AgainstW(NamedTuple):
    """Measurements at one horizon for each size of the change."""

    shifts: Floats  # (s,) sizes of the change
    variation: Floats  # (s,) W
    regret: Floats  # (s,) Reg1 of the virtual queue
    violation: Floats  # (s,) Reg2 of the virtual queue
    between: Floats  # (s,) OPT' - OPT
    allowance: Floats  # (s,) q̄W


def against_w(make: Callable[[float], ConvexProblem], shifts: Sequence[float] = SHIFTS) -> AgainstW:
    """Play ``make(shift)`` for each shift."""
    rows = []
    for shift in shifts:
        problem = make(shift)
        best, restricted, drift = static_optimum(problem), restricted_optimum(problem), global_variation(problem)
        play = VirtualQueue().play(problem)
        price = max(best.prices.max(), restricted.prices.max())
        between = restricted.value - best.value
        rows.append((shift, drift.value, play.regret(best)[0], play.violation[0], between, price * drift.value))
    return AgainstW(*np.array(rows).T)


class RandomInstances(NamedTuple):
    """Proposition 2 on random instances."""

    instances: int  # the number of instances
    least: float  # the smallest OPT' - OPT
    largest_share: float  # the largest (OPT' - OPT) / q̄W
    gap: float  # the largest duality gap of an optimum


def random_constraints(family: str, rng: np.random.Generator, shape: tuple[int, int, int], phase: Ints) -> Family:
    """Draw constraints (K, d, n) that hold strictly at 0: ``"linear"``, ``"quadratic"`` or ``"norm"``."""
    limits = -rng.uniform(0.1, 1.0, shape[:2])
    if family == "norm":  # ‖x - c‖ - ‖c‖ + limit
        centres = rng.uniform(-0.5, 0.5, shape)
        return Norm(centres, np.linalg.norm(centres, axis=2) - limits, phase)
    slopes = rng.uniform(-0.5, 1.0, shape)
    if family == "linear":
        return Linear(slopes, limits, phase)
    roots = rng.uniform(-0.5, 0.5, (*shape, shape[2]))
    return Quadratic(np.einsum("kdij,kdlj->kdil", roots, roots), slopes, limits, phase)


def random_instances(count: int = RANDOM, seed: int = 0, family: str = "linear") -> RandomInstances:
    """Solve problems of 2 to 4 variables, up to 3 constraints and 2 to 5 distinct rounds, each feasible at 0.

    ``family`` is that of the constraints: ``"linear"``, ``"quadratic"`` or ``"norm"``; losses are linear. W is a lower
    bound where it is not exact.
    """
    rng = np.random.default_rng(seed)
    between, shares, gaps = [], [], []
    for _ in range(count):
        n, d, rows, horizon = (int(size) for size in (*rng.integers((2, 1, 2), (5, 4, 6)), 100))
        phase = rng.integers(0, rows, horizon)
        constraints = random_constraints(family, rng, (rows, d, n), phase)
        problem = ConvexProblem(Linear(rng.uniform(-1.0, 0.3, (horizon, n))), constraints, Box(0.0, 1.0, size=n))
        best, restricted = static_optimum(problem), restricted_optimum(problem)
        price = max(best.prices.max(), restricted.prices.max())
        allowed = price * global_variation(problem).lower
        between.append(restricted.value - best.value)
        shares.append(between[-1] / allowed if allowed > ROUNDING else 0.0)
        gaps.append(max(best.gap, restricted.gap))
    return RandomInstances(count, min(between), max(shares), max(gaps))


@dataclass(frozen=True, eq=False)
class Section4:
    """The measurements behind the figure and the claims of section 4."""

    studies: tuple[Study, ...]  # the virtual queue in every scenario
    printed: Study  # the virtual queue with the printed parameters in the first scenario
    swing: AgainstW  # the problem with a limit that rises halfway, against W
    example: AgainstW  # the example of Proposition 2, against W
    example_horizon: int  # the horizon of these two
    random: RandomInstances  # Proposition 2 on random instances


def measure_section_4(
    horizons: Sequence[int] = HORIZONS,
    draws: int = DRAWS,
    random: int = RANDOM,
    progress: Callable[[str, int, int], None] | None = None,
) -> Section4:
    """Take every measurement; this takes about a minute for T up to a million.

    ``horizons`` are in ascending order, ``draws`` is the number of problems drawn in each scenario, and ``random`` the
    number of random instances for Proposition 2. ``progress`` is called with the name of the current measurement, the
    amount done and the total.
    """
    studies = tuple(study(world, VirtualQueue(), horizons, draws, progress) for world in WORLDS)
    with_printed = WORLDS[0]._replace(name=f"{WORLDS[0].name}, printed")
    printed = study(with_printed, VirtualQueue(parameters="printed"), horizons, draws, progress)
    if progress is not None:
        progress("against W", 0, 1)
    horizon = min(100_000, max(horizons))
    swing = against_w(lambda shift: instances.tight_then_loose(horizon, shift))
    example = against_w(lambda shift: instances.proposition_2(horizon, shift=shift))
    return Section4(studies, printed, swing, example, horizon, random_instances(random))
