"""Rates of the theorems by simulation up to 10^6 rounds, with tolerances in standard errors of the fit.

The seeds are fixed, so results are reproducible; another seed would exceed three standard errors once in 700 checks.
"""

from __future__ import annotations

import dataclasses
import itertools
from functools import cache

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.statistics import standard_error
from driftsack.policies.parts.run_length import RUNS
from driftsack.sweeps.growth import Growth
from driftsack.theory import regret_bound
from driftsack.verify import adaptive_rates
from driftsack.verify.adaptive_belief import best_partitions, mixture_bound, unpruned_mixture
from tests.support.growth import growth

HORIZONS = (10_000, 31_623, 100_000, 316_228, 1_000_000)
LATE = slice(2, None)  # 10^5 and beyond


def stationary(horizon: int, _: int = 0) -> ds.Instance:
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
    grown = on_stationary(policy)
    slopes = [grown.slope(slice(k, k + 2)) for k in range(grown.horizons.size - 1)]
    assert slopes[0].value > first
    assert slopes[-1].value < last
    for one, two in itertools.pairwise(slopes):
        assert two.value < one.value + 3 * np.hypot(one.error, two.error)


def test_regret_stays_below_theorem_1() -> None:
    grown = on_stationary(ds.NaiveUCB())
    for horizon, regret in zip(HORIZONS, grown.regret, strict=True):
        bound = regret_bound(horizon, 3, 2, rate=0.4, variation=(0, 0), global_variation=(0, 0), q_bar=2.5)
        assert 0 < regret < bound.total


@pytest.mark.slow
def test_thompson_stays_below_its_rate() -> None:
    """Regret is too small to fit a slope; it is below sqrt(m T), its rate without constants, by five errors."""
    grown = on_stationary(ds.ThompsonBwK())
    assert (grown.regret + 5 * grown.error < np.sqrt(3 * grown.horizons)).all()


def switching(horizon: int, draw: int, v1: float = 5.0) -> ds.Instance:
    return ds.instances.reward_switching(arms=2, horizon=horizon, v1=v1, seed=draw)


def growing_variation(horizon: int, draw: int) -> ds.Instance:
    """The planted variant: a variation that grows as the root of the horizon, so that regret grows as T^(5/6)."""
    return switching(horizon, draw, v1=5.0 * (horizon / HORIZONS[0]) ** 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_two_thirds_on_the_switching_family(scale: float) -> None:
    """SW-UCB, given V1 = 5, on the family of Theorem 2 at fixed V1: four draws of the instance, four trials each."""
    policy = ds.SlidingWindowUCB(variation=(5.0, 0.0), scale=scale)
    fixed, growing = (
        growth(policy, world, HORIZONS, trials=4, draws=4).slope() for world in (switching, growing_variation)
    )
    assert abs(fixed.value - 2 / 3) < 3 * fixed.error + 0.02
    assert abs(growing.value - 2 / 3) > 3 * growing.error + 0.1


def on_random_worlds(policy: ds.Policy, seed: int = 0) -> Growth:
    """Mean regret over two random stationary worlds, without the noise of the outcomes."""
    horizons, sizes = (10_000, 100_000, 1_000_000), (8, 4, 2)
    samples = [
        np.mean(
            [
                adaptive_rates.stationary_regret(
                    ds.simulate(adaptive_rates.stationary(horizon, draw), policy, trials=trials, seed=seed + draw)
                )
                for draw in range(2)
            ],
            axis=0,
        )
        for horizon, trials in zip(horizons, sizes, strict=True)
    ]
    errors = [standard_error(sample) for sample in samples]
    return Growth(np.array(horizons), np.array([sample.mean() for sample in samples]), np.array(errors))


@pytest.mark.slow
def test_regret_of_adaptive_grows_no_faster_than_measured() -> None:
    """An exponent of 0.55 or less up to 10^6 rounds; a policy that does not learn has 1."""
    slope = on_random_worlds(ds.Adaptive()).slope()
    assert slope.value <= 0.55
    assert slope.error < 0.1
    assert on_random_worlds(ds.policies.UniformRandom()).slope().value > 0.95


def test_regret_without_the_noise_of_the_outcomes_has_the_same_mean() -> None:
    """The paired difference is within three standard errors of 0, and the error is smaller.

    The planted fault: budgets that are a tenth larger, so that the unspent part is wrong.
    """
    world = adaptive_rates.stationary(2_000, 0)
    run = ds.simulate(world, ds.Adaptive(), trials=200, seed=1)
    estimate, realised = adaptive_rates.stationary_regret(run), adaptive_rates.realised_regret(run)
    difference = estimate - realised
    assert abs(difference.mean()) < 3 * standard_error(difference)
    assert standard_error(estimate) < 0.75 * standard_error(realised)
    richer = ds.Instance.stationary(world.rewards[0], world.costs[0], 2_000, 1.1 * np.asarray(world.problem.budget))
    wrong = adaptive_rates.stationary_regret(dataclasses.replace(run, instance=richer)) - realised
    assert abs(wrong.mean()) > 3 * standard_error(wrong)


def test_the_unpruned_mixture_is_that_of_the_policy() -> None:
    """Until the belief merges or drops a run the weights are equal; with another hazard they are not."""
    problem = ds.Problem(RUNS, 2, [4.0])
    level, own = np.vstack([np.ones((1, 2)), np.full((RUNS - 1, 2), 0.5)]), np.ones(RUNS, dtype=bool)
    mixture, belief = unpruned_mixture(problem, level, own, np.random.default_rng(0))
    assert belief.live[0] == mixture.weights.size == RUNS
    np.testing.assert_allclose(belief.weights[0], mixture.weights, rtol=1e-9)
    other, _ = unpruned_mixture(ds.Problem(RUNS, 5, [4.0]), level, own, np.random.default_rng(0))
    assert not np.allclose(other.weights, mixture.weights, rtol=1e-6)


def test_a_single_run_does_not_have_the_log_loss_of_the_mixture() -> None:
    """The trivial competitor of the bound: a predictor that never believes in a change, on coins that change twice."""
    level = np.repeat([[0.1, 0.9], [0.9, 0.1], [0.1, 0.9]], 50, axis=0)
    own = np.ones(150, dtype=bool)
    mixture, _ = unpruned_mixture(ds.Problem(150, 2, [75.0]), level, own, np.random.default_rng(0))
    bound = best_partitions(mixture.losses, 2)[2] + mixture_bound(150, 2, 2, mixture.changes)
    assert mixture.loss < bound < mixture.losses[0].sum()
