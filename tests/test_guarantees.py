"""Rates of the theorems by simulation up to 10^6 rounds, with tolerances in standard errors of the fit.

The seeds are fixed, so results are reproducible; another seed would exceed three standard errors once in 700 checks.
"""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest

import driftsack as ds
from driftsack.sweeps.growth import Growth, growth
from driftsack.theory import regret_bound

HORIZONS = (10_000, 31_623, 100_000, 316_228, 1_000_000)
LATE = slice(2, None)  # 10^5 and beyond


def stationary(horizon: int, draw: int = 0) -> ds.Instance:  # noqa: ARG001
    """A stationary instance of three arms and two resources, both binding in the optimum."""
    costs = [[0.9, 0.4, 0.1], [0.3, 0.6, 0.2]]
    return ds.Instance.stationary([0.8, 0.5, 0.3], costs, horizon, 0.4 * horizon)


@cache
def on_stationary(policy: ds.Policy) -> Growth:
    return growth(policy, stationary, HORIZONS, trials=10)


def grows_as_root(grown: Growth) -> bool:
    """Whether regret grows at most as sqrt(T log T) from 10^5 on, to three standard errors."""
    late = grown.slope(LATE, logarithms=0.5)
    return late.value <= 0.5 + 3 * late.error


@pytest.mark.parametrize(
    "policy",
    [
        ds.NaiveUCB(scale=0.3),
        ds.policies.UCBBwK(),
        ds.policies.PrimalDualBwK(),
        ds.policies.PrimalDualBwK(confidence=0.3),
    ],
    ids=str,
)
def test_regret_grows_as_the_root_of_the_horizon(policy: ds.Policy) -> None:
    grown = on_stationary(policy)
    assert grows_as_root(grown)
    assert grown.slope(LATE).value > 0.3  # regret does grow, so the bound is not trivial


def test_linear_regret_is_distinguished_from_a_root() -> None:
    """The planted fault: a policy that does not learn."""
    assert not grows_as_root(on_stationary(ds.policies.UniformRandom()))
    assert on_stationary(ds.policies.UniformRandom()).slope().value == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize(
    ("policy", "first", "last"),
    [
        (ds.NaiveUCB(), 0.70, 0.60),  # the printed radius
        (ds.policies.LagrangeBwK(form="stochastic"), 0.80, 0.72),  # EXP3.P's constants
        (ds.policies.DualDescent(), 0.80, 0.72),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_local_slope_falls_where_constants_still_dominate(policy: ds.Policy, first: float, last: float) -> None:
    """From above ``first`` to below ``last``, and no increase in between by more than three standard errors."""
    slopes = on_stationary(policy).local_slopes()
    assert slopes[0].value > first
    assert slopes[-1].value < last
    for one, two in itertools.pairwise(slopes):
        assert two.value < one.value + 3 * np.hypot(one.error, two.error)


def test_regret_stays_below_theorem_1() -> None:
    grown = on_stationary(ds.NaiveUCB())
    for horizon, regret in zip(HORIZONS, grown.regret, strict=True):
        bound = regret_bound(horizon, 3, 2, rate=0.4, variation=(0, 0), global_variation=(0, 0), q_bar=2.5)
        assert 0 < regret < bound.total


def test_thompson_stays_below_its_rate() -> None:
    """Regret is too small to fit a slope; it is below sqrt(m T), its rate without constants, by five errors."""
    grown = on_stationary(ds.ThompsonBwK())
    assert (grown.regret + 5 * grown.error < np.sqrt(3 * grown.horizons)).all()


def switching(horizon: int, draw: int, v1: float = 5.0) -> ds.Instance:
    return ds.instances.reward_switching(arms=2, horizon=horizon, v1=v1, seed=draw)


def growing_variation(horizon: int, draw: int) -> ds.Instance:
    """The planted variant: a variation that grows as the root of the horizon, so that regret grows as T^(5/6)."""
    return switching(horizon, draw, v1=5.0 * (horizon / HORIZONS[0]) ** 0.5)


@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_two_thirds_on_the_switching_family(scale: float) -> None:
    """SW-UCB, given V1 = 5, on the family of Theorem 2 at fixed V1: four draws of the instance, four trials each."""
    policy = ds.SlidingWindowUCB(variation=(5.0, 0.0), scale=scale)
    fixed, growing = (
        growth(policy, world, HORIZONS, trials=4, draws=4).slope() for world in (switching, growing_variation)
    )
    assert abs(fixed.value - 2 / 3) < 3 * fixed.error + 0.02
    assert abs(growing.value - 2 / 3) > 3 * growing.error + 0.1
