"""Lognormal costs against SciPy's distribution: the mean despite the ceiling, and the tail below it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

import driftsack as ds
from driftsack.core.arrays import Floats
from driftsack.game.world import World, draw_outcome, world_of
from driftsack.numerics.lognormal import capped_scale

MEANS = [1e-6, 0.005, 0.1, 0.5, 0.95, 0.9999]
DRAWS = 40_000


def slow_mean(scale: float) -> float:
    """E[min(1, s L)], integrated numerically."""
    cost = stats.lognorm(s=1.0, scale=scale)
    below, _ = integrate.quad(lambda log: math.exp(log) * stats.norm.pdf(log, math.log(scale)), -40.0, 0.0, limit=200)
    return float(below + cost.sf(1.0))


@pytest.mark.parametrize("mean", MEANS)
def test_the_scale_gives_the_mean(mean: float) -> None:
    scale = float(capped_scale(np.array([mean]))[0])
    assert slow_mean(scale) == pytest.approx(mean, rel=1e-6)
    if mean >= 0.1:  # the planted fault: a scale that ignores the ceiling
        assert slow_mean(mean * math.exp(-0.5)) < 0.995 * mean


def test_scales_keep_shape_and_order() -> None:
    means = np.array([[0.0, 0.3], [1.0, 0.3]])
    scales = capped_scale(means)
    assert (scales[0, 0], scales[1, 0]) == (0.0, math.inf)
    assert scales[0, 1] == scales[1, 1]
    assert (np.diff(capped_scale(np.linspace(0.0, 1.0, 400))) > 0).all()


def drawn_costs(world: World) -> Floats:
    """(draws, d) costs of arm 0 in round 0."""
    costs, rng = np.zeros((DRAWS, world.costs.shape[1])), np.random.default_rng(5)
    for row in costs:
        assert draw_outcome(world, 0, 0, row, rng) in (0.0, 1.0)
    return costs


def far_from_its_mean(costs: Floats, means: Floats) -> bool:
    """Whether a mean is off by more than 5 standard errors, which happens by chance once in 10^6 runs."""
    errors = costs.std(axis=0) / math.sqrt(DRAWS)
    return bool((np.abs(costs.mean(axis=0) - means) > 5 * errors + 1e-15).any())


def test_drawn_costs_have_the_mean_and_the_tail() -> None:
    """In natural units; each share above a quantile of SciPy's distribution within 5 standard errors."""
    means = np.array([0.0, 0.02, 0.5, 1.0])
    cost_max = np.array([1.0, 30.0, 2.0, 5.0])
    instance = ds.Instance.stationary([0.4], (means * cost_max)[:, None], 5, 9.0, "lognormal", 1.0, cost_max)
    world = world_of(instance)
    np.testing.assert_allclose(world.costs[0, :, 0], means, rtol=1e-15)  # benchmarks and policies read means
    costs = drawn_costs(world)
    assert costs.min() >= 0.0
    assert costs.max() <= 1.0
    assert not far_from_its_mean(costs, means)
    for j in (1, 2):
        law = stats.lognorm(s=1.0, scale=world.scales[0, j, 0])
        for level in (0.5, 0.9, 0.99):
            place = min(float(law.ppf(level)), 1.0 - 1e-12)  # the ceiling holds the rest of the tail
            chance = float(law.sf(place))
            assert abs((costs[:, j] > place).mean() - chance) < 5 * math.sqrt(chance / DRAWS)
    uncapped = world._replace(scales=world.costs * math.exp(-0.5))  # the planted fault
    assert far_from_its_mean(drawn_costs(uncapped), means)


def test_a_simulation_spends_the_mean_in_natural_units() -> None:
    """Spending of a policy with one arm, over 50 trials of 400 rounds, within 5 standard errors of the mean cost."""
    world = ds.Instance.stationary([0.5], [[3.0]], 400, 1e9, "lognormal", cost_max=10.0)
    spent = ds.simulate(world, ds.policies.AlwaysArm(0), trials=50, seed=0).spent[:, 0] / 400
    assert abs(spent.mean() - 3.0) < 5 * spent.std() / math.sqrt(50)
    assert ds.benchmarks.lp_dynamic(world).value == pytest.approx(200.0)
