"""The instances of the paper have the numbers of its text, and the random families their named properties."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import DriftsackError
from driftsack.core.instance import Noise
from driftsack.instances.families import FAMILIES
from tests.support import reference_lps as reference


@pytest.mark.parametrize(
    ("instance", "optimum"),
    [
        (ds.instances.example_1(), 5_000),
        (ds.instances.example_2(), 5_000),
        (ds.instances.example_3(alpha=0.5), 2_500),
        (ds.instances.example_3(alpha=0.9), 2_500),
        (ds.instances.example_3(alpha=0.3), 0.5 * 3_000 + 0.7 * (2_500 - 1_500)),  # not the printed 2,500
        (ds.instances.example_4(periods=1, horizon=2_000), 750),
        (ds.instances.example_4(periods=10, horizon=2_000), 750),
        (ds.instances.motivating(delta=0.5, better=True), 7_500),
        (ds.instances.motivating(delta=0.5, better=False), 5_000),
        (ds.instances.nonbinding(), 10_000),
    ],
)
def test_dynamic_optimum(instance: ds.Instance, optimum: float) -> None:
    assert reference.lp_dynamic(instance) == pytest.approx(optimum, rel=1e-6)


def test_examples_change_where_the_text_says() -> None:
    one = ds.instances.example_1()
    assert one.phase[4_999] == 0
    assert one.phase[5_000] == 1
    assert (one.horizon, one.problem.budget) == (10_000, (5_000.0,))
    three = ds.instances.example_3(alpha=0.37)
    assert int((three.phase == 0).sum()) == 3_700
    assert three.problem.budget == (2_500.0, 2_500.0)
    assert ds.instances.example_4(periods=10).problem.budget == (3_125.0, 3_125.0)


def test_variation_of_the_examples() -> None:
    """V is the same for every alpha of Example 3 and grows with the periods of Example 4."""
    threes = [ds.variation(ds.instances.example_3(alpha=a)) for a in (0.1, 0.5, 0.9)]
    assert {(variation.v1, variation.v2) for variation in threes} == {(0.5, 0.7)}
    assert threes[0].w2 < threes[1].w2 > threes[2].w2
    two = ds.variation(ds.instances.example_2())
    assert (two.v1, two.v2) == (0.5, 1.0)
    variations = [ds.variation(ds.instances.example_4(periods=p)).v2 for p in (1, 5, 25)]
    np.testing.assert_allclose(
        variations, [2 * p + 1 for p in (1, 5, 25)], rtol=0.02
    )  # 2 per period, 1 for the change of arm 0
    step = ds.variation(ds.instances.step_change(k=30, horizon=100))
    assert (step.v1, step.v2) == (1.0, 0.0)


def test_variation_is_a_sum_over_rounds() -> None:
    """Compared with the definition, on a random instance."""
    rng = np.random.default_rng(0)
    rewards, costs = rng.random((50, 3)), rng.random((50, 2, 3))
    world = ds.Instance.from_arrays(rewards, costs, budget=5.0)
    first = sum(np.abs(rewards[t] - rewards[t + 1]).max() for t in range(49))
    second = max(sum(np.abs(costs[t, j] - costs[t + 1, j]).max() for t in range(49)) for j in range(2))
    variation = ds.variation(world)
    assert variation.v1 == pytest.approx(first)
    assert variation.v2 == pytest.approx(second)


@pytest.mark.parametrize("noise", ["deterministic", "beta"])
def test_every_instance_takes_a_horizon_and_a_noise(noise: Noise) -> None:
    for build in (
        ds.instances.example_1,
        ds.instances.example_2,
        lambda **k: ds.instances.example_3(alpha=0.4, **k),
        lambda **k: ds.instances.example_4(periods=2, **k),
        ds.instances.motivating,
        lambda **k: ds.instances.step_change(k=7, **k),
        ds.instances.nonbinding,
        ds.instances.drift_in_turn,
        ds.instances.free_best_arm,
        ds.instances.flipping_costs,
    ):
        world = build(horizon=21, noise=noise)
        assert (world.horizon, world.noise) == (21, noise)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: ds.instances.example_3(alpha=1.5), r"alpha must lie in \[0, 1\], got 1.5"),
        (lambda: ds.instances.example_4(periods=0), "periods must be at least 1"),
        (lambda: ds.instances.motivating(delta=2.0), "delta must lie in"),
        (lambda: ds.instances.step_change(k=101, horizon=100), "k must be at least 0 and at most 100, got 101"),
        (lambda: ds.instances.example_1(horizon=1), "horizon must be at least 2"),
        (lambda: ds.instances.drift_in_turn(rate=0.95), r"rate must lie in \(0, 0.9\], so that b \+ Δ is at most 1"),
        (lambda: ds.instances.flipping_costs(drift=-1.0), "drift must be 0 or more"),
    ],
)
def test_bad_parameters(build: Any, words: str) -> None:
    with pytest.raises(DriftsackError, match=words):
        build()


FACTORIES = [
    ds.instances.piecewise_random,
    ds.instances.sinusoidal,
    ds.instances.random_walk,
    ds.instances.linear_trend,
    ds.instances.bursts,
    ds.instances.adversarial_order,
    ds.instances.common_shocks,
    ds.instances.cost_jumps,
    ds.instances.rich_and_poor,
    ds.instances.rotating_best_arm,
    ds.instances.seasonal,
    ds.instances.smooth_random,
    ds.instances.unseen_improvement,
]


@pytest.mark.parametrize("build", FACTORIES)
def test_families_take_sizes_and_seeds(build: Any) -> None:
    sizes: dict[str, Any] = {"arms": 3, "resources": 2, "horizon": 400, "rate": 0.3, "noise": "beta"}
    worlds = [build(**sizes, seed=seed) for seed in (1, 1, 2)]
    for world in worlds:
        assert (world.horizon, world.arms, world.resources, world.noise) == (400, 3, 2, "beta")
        assert world.problem.budget == (120.0, 120.0)
        assert ds.variation(world).v1 + ds.variation(world).v2 > 0
    np.testing.assert_array_equal(worlds[0].costs, worlds[1].costs)
    assert not np.array_equal(worlds[0].costs[0], worlds[2].costs[0])


def test_families_drift_as_their_names_say() -> None:
    assert len(ds.instances.piecewise_random(changes=7, horizon=500).rewards) == 8
    stationary = ds.instances.bursts(count=0, horizon=100)
    assert len(stationary.rewards) == 1
    walk = ds.instances.random_walk(step=0.01, horizon=2_000)
    steps = np.diff(walk.rewards, axis=0)
    assert np.abs(steps).max() < 0.06  # reflected, not clipped: no jump is larger than a step
    assert np.abs(steps).std() < 0.01
    trend = ds.instances.linear_trend(horizon=300)
    np.testing.assert_allclose(np.diff(trend.rewards, n=2, axis=0), 0.0, atol=1e-12)
    fast, slow = (ds.variation(ds.instances.sinusoidal(periods=p)).v1 for p in (8, 2))
    assert fast == pytest.approx(4 * slow, rel=0.1)
    late, early = (ds.instances.adversarial_order(best_last=last, horizon=500) for last in (True, False))
    assert late.rewards[-50:].max(axis=1).mean() > early.rewards[-50:].max(axis=1).mean()


def drawn(family: str, seed: int, horizon: int = 2_000) -> ds.Instance:
    settings = dict(FAMILIES[family])
    build = getattr(ds.instances, settings.pop("instance"))
    world: ds.Instance = build(**settings, seed=seed, horizon=horizon)
    return world


@pytest.mark.parametrize("family", FAMILIES)
def test_registered_families_bind_and_stay_in_their_ranges(family: str) -> None:
    """Budgets bind in every draw, so that there is something to pace; rates differ between resources."""
    for seed in range(4):
        world = drawn(family, seed)
        assert (world.arms, world.resources) == (20 if family == "many arms" else 5, 2)
        low, high = (0.01, 0.03) if family == "heavy-tailed costs" else (0.12, 0.4)
        assert (world.problem.rate >= low).all()
        assert (world.problem.rate <= high).all()
        assert world.problem.rate[0] != world.problem.rate[1]
        prices = ds.benchmarks.lp_dynamic(world).prices
        assert prices is not None
        assert prices.max() > 0
        assert world.noise == ("lognormal" if family == "heavy-tailed costs" else "bernoulli")


def test_registered_families_are_what_their_names_say() -> None:
    """A property of each family, on three draws; the stationary family has none of them."""
    properties: dict[str, Callable[[ds.Instance], bool]] = {
        "piecewise": lambda w: len(w.rewards) == 6 and w.rewards.min() >= 0.05 and w.costs.min() >= 0.1,
        "seasonal": lambda w: len(w.rewards) == 2_000 and np.abs(np.diff(w.rewards, axis=0)).max() < 0.01,
        "random walk": lambda w: (
            len(w.costs) == 2_000 and 0.003 < np.diff(w.costs, axis=0).std() < 0.005 and w.rewards.max() <= 0.95
        ),
        "common shocks": lambda w: bool(np.ptp(w.costs, axis=0).max() == 0) and len(w.rewards) == 6 and proportional(w),
        "rich and poor": lambda w: len(w.rewards) >= 4 and np.ptp(w.costs, axis=0).max() == 0 and proportional(w),
        "rotating best arm": lambda w: bool(((w.rewards >= 0.7).sum(axis=1) == 1).all()) and len(w.rewards) >= 4,
        "cost jumps": lambda w: len(w.costs) == 5 and np.ptp(w.rewards, axis=0).max() == 0,
        "sparse rewards": lambda w: w.rewards.max() <= 0.12,
        "many arms": lambda w: w.arms == 20,
        "smooth": lambda w: len(w.costs) == 2_000 and int((np.abs(np.diff(w.rewards[:, 0], n=2)) > 1e-12).sum()) <= 12,
        "unseen improvement": lambda w: (
            len(w.rewards) == 2 and w.rewards[1].max() == 0.95 and w.rewards[1].argmax() == w.rewards[0].argmin()
        ),
        "linear trend": lambda w: len(w.costs) == 2_000 and np.abs(np.diff(w.costs, n=2, axis=0)).max() < 1e-12,
        "bursts": lambda w: w.rewards.max() == 0.95 and 0.05 < (w.rewards[w.phase] == 0.95).any(axis=1).mean() <= 0.3,
        "heavy-tailed costs": lambda w: w.costs.max() <= 0.1 and w.costs.min() >= 0.005,
    }
    assert {*properties, "stationary"} == set(FAMILIES)
    for family, holds in properties.items():
        assert all(holds(drawn(family, seed)) for seed in range(3)), family
        assert not holds(drawn("stationary", 0)), family
    assert len(drawn("stationary", 0).rewards) == 1


def proportional(world: ds.Instance) -> bool:
    """Whether the rewards of all rows are multiples of each other, unless they reached 1."""
    ratios = world.rewards / world.rewards[world.rewards.max(axis=1).argmin()]
    return len(ratios) > 1 and bool((np.ptp(ratios, axis=1)[world.rewards.max(axis=1) < 1] < 1e-12).all())


@pytest.mark.parametrize("arms", [2, 5])
@pytest.mark.parametrize("drift", [1.0, 10.0, 40.0])
def test_switching_instances_keep_to_their_variation(arms: int, drift: float) -> None:
    """V is at most the requested one, and at least a quarter of it."""
    rewards = ds.variation(ds.instances.reward_switching(arms=arms, horizon=10_000, v1=drift, seed=3))
    costs = ds.variation(ds.instances.cost_switching(arms=arms, horizon=10_000, v2=drift, rate=0.25, seed=3))
    assert drift / 4 <= rewards.v1 <= drift
    assert (rewards.v2, costs.v1) == (0.0, 0.0)
    assert drift / 4 <= costs.v2 <= drift + 0.5  # and one more change, into the second half


def test_cost_switching_costs_the_rate_in_the_second_half() -> None:
    world = ds.instances.cost_switching(arms=3, horizon=1_000, v2=3.0, rate=0.25)
    half = world.costs[world.phase[500:]]
    assert (half == 0.25).all()
    assert (world.rewards == 1.0).all()
    assert ds.benchmarks.lp_dynamic(world).value == pytest.approx(1_000)


@pytest.mark.parametrize("better", [True, False])
def test_budget_trap_has_the_global_variation_asked_for(better: bool) -> None:
    world = ds.instances.budget_trap(horizon=1_000, w1=50.0, w2=20.0, rate=0.25, better=better)
    variation = ds.variation(world)
    assert variation.w1 == pytest.approx(50.0)
    assert variation.w2 == pytest.approx(20.0)
    plan = np.asarray(ds.benchmarks.lp_dynamic(world).plan)
    assert plan[1, 0] == pytest.approx(1.0 if better else 0.0)  # spend in the second half only if it is better


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: ds.instances.reward_switching(v1=0.0), "variation must be above 0"),
        (lambda: ds.instances.cost_switching(rate=0.99), r"rate must lie in \(0, "),
        (lambda: ds.instances.budget_trap(rate=0.5), r"rate must lie in \(0, 1/2\)"),
        (lambda: ds.instances.budget_trap(w1=1e6), "mean rewards must lie in"),
        (lambda: ds.instances.piecewise_random(changes=10, horizon=10), "changes must be at least 0 and at most 9"),
        (lambda: ds.instances.random_walk(step=-1.0), "step must be 0 or more"),
        (
            lambda: ds.instances.random_walk(cost_range=(0.5, 0.5)),
            r"cost_range must be \(low, high\) with low < high",
        ),
        (lambda: ds.instances.linear_trend(reward_range=(0.0, 1.5)), r"reward_range must lie in \[0, 1\], got 1.5"),
        (lambda: ds.instances.piecewise_random(rate=(0.4, 0.1)), r"a range of rates must be \(low, high\)"),
        (lambda: ds.instances.common_shocks(changes=10, horizon=10), "changes must be at least 0 and at most 9"),
        (lambda: ds.instances.bursts(length=-0.5), "length must be 0 or more, got -0.5"),
        (lambda: ds.instances.smooth_random(knots=1), "knots must be at least 2, got 1"),
        (lambda: ds.instances.unseen_improvement(height=2.0), "height must lie in"),
        (lambda: ds.instances.rotating_best_arm(horizon=0), "horizon must be at least 1"),
    ],
)
def test_bad_parameters_of_families(build: Any, words: str) -> None:
    with pytest.raises(DriftsackError, match=words):
        build()
