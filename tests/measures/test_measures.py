"""The measures V and W, their sharper versions, and the paper's inequalities and bounds."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest
from scipy.optimize import linprog

import driftsack as ds
from driftsack import benchmarks, theory
from driftsack.core.arrays import Floats
from driftsack.core.errors import OutOfRangeError, SettingError, TooLargeError


def random_world(seed: int) -> ds.Instance:
    rng = np.random.default_rng(seed)
    rows, arms, resources = rng.integers(2, 7), rng.integers(1, 4), rng.integers(1, 4)
    means = rng.random((rows, resources + 1, arms))
    return ds.Instance.piecewise(
        means[:, 0], means[:, 1:], rng.integers(1, 5, rows).tolist(), budget=rng.random(resources) * 6 + 0.5
    )


def by_rounds(world: ds.Instance) -> tuple[Floats, Floats]:
    return world.rewards[world.phase], world.costs[world.phase]


def column_sum(matrix: Floats) -> float:
    return float(np.abs(matrix).sum(axis=0).max())


@pytest.mark.parametrize("seed", range(10))
def test_measures_equal_their_definitions(seed: int) -> None:
    world = random_world(seed)
    rewards, costs = by_rounds(world)
    horizon = world.horizon
    variation = ds.variation(world)
    assert variation.v1 == pytest.approx(sum(np.abs(rewards[t + 1] - rewards[t]).max() for t in range(horizon - 1)))
    assert variation.v2 == pytest.approx(
        max(
            sum(np.abs(costs[t + 1, j] - costs[t, j]).max() for t in range(horizon - 1)) for j in range(world.resources)
        )
    )
    changes = np.abs(np.diff(costs, axis=0)).max(axis=2)  # (T - 1, d)
    assert variation.v2_sum == pytest.approx(changes.max(axis=1).sum())
    assert variation.v2 - 1e-12 <= variation.v2_sum <= world.resources * variation.v2 + 1e-12
    assert variation.w1 == pytest.approx(sum(np.abs(row - rewards.mean(axis=0)).max() for row in rewards))
    assert variation.w2 == pytest.approx(sum(column_sum(row - costs.mean(axis=0)) for row in costs))
    assert variation.w1_pair == pytest.approx(sum(np.abs(a - b).max() for a in rewards for b in rewards) / horizon)
    assert variation.w2_pair == pytest.approx(sum(column_sum(a - b) for a in costs for b in costs) / horizon)


def centre_lp(rows: Floats) -> float:
    """The twin: the minimum over c of the sum of ||row - c||_1 as one dense LP."""
    count, resources, arms = rows.shape
    size = resources * arms
    columns = size + count * size + count  # the centre, the absolute values, the norms
    matrix, limits = [], []
    for k in range(count):
        for j in range(resources):
            for i in range(arms):
                for sign in (1.0, -1.0):  # sign (row - c) <= u
                    line = np.zeros(columns)
                    line[j * arms + i] = -sign
                    line[size + k * size + j * arms + i] = -1.0
                    matrix.append(line)
                    limits.append(-sign * rows[k, j, i])
        for i in range(arms):  # sum over resources of u <= norm
            line = np.zeros(columns)
            line[size + k * size + np.arange(resources) * arms + i] = 1.0
            line[size + count * size + k] = -1.0
            matrix.append(line)
            limits.append(0.0)
    cost = np.concatenate([np.zeros(size + count * size), np.ones(count)])
    bounds = [(None, None)] * size + [(0, None)] * (columns - size)
    return float(linprog(cost, A_ub=np.array(matrix), b_ub=np.array(limits), bounds=bounds).fun)


@pytest.mark.parametrize("seed", range(6))
def test_best_centres_are_certified_and_equal_a_dense_lp(seed: int) -> None:
    world = random_world(seed)
    rewards, costs = by_rounds(world)
    variation = ds.variation(world, tolerance=1e-9)
    assert variation.w1_min == pytest.approx(centre_lp(rewards[:, None]), rel=1e-7)
    assert variation.w2_min == pytest.approx(centre_lp(costs), rel=1e-7)
    for best, rows in ((variation.w1_best, rewards[:, None]), (variation.w2_best, costs)):
        assert best.gap <= 1e-9
        centre = best.centre.reshape(rows.shape[1:])
        assert sum(column_sum(row - centre) for row in rows) == pytest.approx(best.value)
    assert variation.w1_min <= variation.w1 + 1e-9
    assert variation.w2_min <= variation.w2 + 1e-9
    assert variation.w1_pair <= 2 * variation.w1_min * (1 + 1e-9)
    assert variation.w2_pair <= 2 * variation.w2_min * (1 + 1e-9)


@pytest.mark.parametrize("k", [1, 2_500, 5_000, 9_000])
def test_step_change(k: int) -> None:
    variation = ds.variation(ds.instances.step_change(k=k))
    assert variation.w1 == pytest.approx(2 * k * (10_000 - k) / 10_000)
    assert variation.w1_min == pytest.approx(min(k, 10_000 - k))
    assert (variation.w1 == pytest.approx(variation.w1_min)) == (k == 5_000)


@pytest.mark.parametrize("seed", range(40))
def test_lemma_1_and_proposition_1(seed: int) -> None:
    """Prices are at most 1/b; the sum of step LPs, LP-Dynamic and LP-Static differ by at most what W allows."""
    world = random_world(seed)
    variation, horizon = ds.variation(world), world.horizon
    rate = float(world.problem.rate.min())
    assert variation.q_bar_full <= 1 / rate + 1e-9
    even, best = benchmarks.single_step(world), benchmarks.lp_dynamic(world).value
    mean = benchmarks.lp_static(world).value
    timing = variation.w1 + variation.q_bar_full * variation.w2
    slack = 1e-7 * horizon
    assert even.value <= best + slack
    assert best <= mean + timing + slack
    assert mean + timing <= even.value + 2 * timing + slack
    assert even.row_prices is not None
    assert best <= even.value + variation.w1_pair + even.row_prices.max() * variation.w2_pair + slack


def test_proposition_1_fails_with_the_printed_prices() -> None:
    """The counterexample to the printed statement: without LP-Static's price the bound is 1.818 and the value 2."""
    world = ds.Instance.from_arrays(rewards=[[1, 1], [1, 1]], costs=[[[0.1, 1]], [[1, 0.1]]], budget=1.0)
    variation, best = ds.variation(world), benchmarks.lp_dynamic(world).value
    mean = benchmarks.lp_static(world).value
    assert best > mean + variation.w1 + variation.q_bar * variation.w2 + 0.1
    assert best <= mean + variation.w1 + variation.q_bar_full * variation.w2


@pytest.mark.parametrize("seed", range(5))
def test_repeating_and_permuting(seed: int) -> None:
    """With every phase three times as long, W triples and V stays; the order of arms and resources does not matter."""
    world = random_world(seed)
    variation = ds.variation(world)
    budget = np.asarray(world.problem.budget)
    longer = ds.variation(ds.Instance.piecewise(world.rewards, world.costs, (3 * world.rounds).tolist(), 3 * budget))
    mirrored = ds.variation(
        ds.Instance.piecewise(world.rewards[:, ::-1], world.costs[:, ::-1, ::-1], world.rounds.tolist(), budget[::-1])
    )
    for name, factor in (("v1", 1), ("v2", 1), ("w1", 3), ("w2", 3), ("w1_min", 3), ("w2_pair", 3), ("q_bar", 1)):
        assert getattr(longer, name) == pytest.approx(factor * getattr(variation, name), rel=1e-5, abs=1e-9)
        assert getattr(mirrored, name) == pytest.approx(getattr(variation, name), rel=1e-5, abs=1e-9)


def test_pairs_of_too_many_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["driftsack.measures.variation"], "MOST_PAIR_WORK", 100)
    with pytest.raises(TooLargeError, match=r"the pairwise measure of 50 distinct rows needs .* multiplications"):
        _ = ds.variation(ds.instances.random_walk(horizon=50)).w1_pair
    with pytest.raises(SettingError, match="instance must be a driftsack Instance"):
        ds.variation(ds.instances.example_1().problem)  # type: ignore[arg-type]


def test_regret_bound_term_by_term() -> None:
    """The bounds equal the formulas as printed, written out independently."""
    horizon, m, d, b, v1, v2, w1, w2, q = 10_000, 3, 2, 0.25, 0.7, 1.3, 900.0, 800.0, 1.5
    log1, log2 = np.log(12 * m * horizon**3.0), np.log(12 * m * d * horizon**3.0)
    printed = (
        4 * horizon**0.5 * log2
        + (14 + 2 * d) * m ** (1 / 3) * v2 ** (1 / 3) * horizon ** (2 / 3) * log2 ** (1 / 3)
        + 8 * (2 * m * horizon) ** 0.5 * log2**0.5
        + 1
    ) / b
    printed += 4 * horizon**0.5 * log1 + 16 * m ** (1 / 3) * v1 ** (1 / 3) * horizon ** (2 / 3) * log1 ** (1 / 3)
    printed += 2 * (w1 + q * w2)
    bound = theory.regret_bound(horizon, m, d, b, (v1, v2), (w1, w2), q)
    assert bound.printed_total == pytest.approx(printed)
    assert bound.total - bound.printed_total == pytest.approx(8 * (2 * m * horizon * log1) ** 0.5 + 1)
    pairs, v2_sum = (1_000.0, 700.0), 2.0
    repaired = theory.repaired_regret_bound(horizon, m, d, b, (v1, v2), v2_sum, pairs, q)
    drift_2 = m ** (1 / 3) * v2 ** (1 / 3) * horizon ** (2 / 3) * log2 ** (1 / 3)
    saved = (2 * d - 2 * v2_sum / v2) * drift_2 / b + 1 / b - 1 + 2 * (w1 + q * w2) - (pairs[0] + q * pairs[1])
    assert bound.total - repaired.total == pytest.approx(saved)
    still = theory.repaired_regret_bound(horizon, m, d, b, (0.0, 0.0), 0.0, (0.0, 0.0), q)
    assert still.cost_drift == still.budget_timing == 0.0
    stop = theory.stopping_time_bound(horizon, m, d, b, v2)
    drift = m ** (1 / 3) * v2 ** (1 / 3) * horizon ** (2 / 3) * log2 ** (1 / 3)
    assert stop == pytest.approx((14 * drift + 8 * (2 * m * horizon) ** 0.5 * log2**0.5 + 4 * horizon**0.5 * log2) / b)
    sums = theory.concentration_bounds(horizon, m, d, (500, 700), (v1, v2))
    assert sums.costs == pytest.approx(
        4 * horizon**0.5 * log2 + 8 * (2 * log2 * m) ** 0.5 * horizon / 700**0.5 + 700 * v2
    )
    least = theory.regret_lower_bounds(horizon, m, b, (v1, v2), (w1, w2), q)
    assert least.cost_drift == pytest.approx((m * v2 * horizon**2) ** (1 / 3) * b ** (-2 / 3))
    assert least.budget_timing == w1 + q * w2
    tight = theory.regret_lower_bounds(horizon, m, 0.01, (v1, v2), (w1, w2), q)
    assert tight.cost_drift == horizon < (m * v2 * horizon**2) ** (1 / 3) * 0.01 ** (-2 / 3)  # the gap would exceed b


def test_repaired_refined_bound() -> None:
    """The drift of the costs is priced by OPT/B and by 1/b times the ratio of the two local measures."""
    horizon, m, budget, optimum, v2 = 10_000, 3, 2_500.0, 4_000.0, 0.5
    sizes = horizon, m, 2, budget, optimum
    printed = theory.refined_regret_bound(*sizes, (0.5, v2), (10.0, 20.0), 0.0)
    repaired = theory.repaired_refined_bound(*sizes, (0.5, v2, 0.75), (10.0, 20.0), 0.0)
    drift = (m * v2 * horizon**2) ** (1 / 3) * np.log(m * 2 * horizon**2.0) ** (1 / 3)
    assert printed.cost_drift == 0.0
    assert repaired.cost_drift == pytest.approx((optimum / budget + 1.5 * horizon / budget) * drift)
    assert repaired.total - repaired.cost_drift == pytest.approx(printed.total)


def vertices_of_prices(rewards: Floats, costs: Floats, rate: Floats, value: float) -> list[Floats]:
    """The twin: the optimal vertices of the dual of one step LP, from every choice of active constraints."""
    resources, arms = costs.shape
    size = resources + 1  # prices, then alpha; every constraint as row @ point >= limit
    rows = [np.append(costs[:, i], 1.0) for i in range(arms)] + list(np.eye(size))
    limits = np.concatenate([rewards, np.zeros(size)])
    found = []
    for active in itertools.combinations(range(len(rows)), size):
        matrix = np.array([rows[k] for k in active])
        if abs(np.linalg.det(matrix)) > 1e-9:
            point = np.linalg.solve(matrix, limits[list(active)])
            feasible = (np.array(rows) @ point >= limits - 1e-9).all()
            if feasible and abs(np.append(rate, 1.0) @ point - value) < 1e-9:
                found.append(point[:-1])
    return found


@pytest.mark.parametrize("seed", range(12))
def test_the_interval_of_prices_of_one_row(seed: int) -> None:
    """The largest is that of a vertex; the least is at most that of every vertex, and is attained by mixing them."""
    rng = np.random.default_rng(seed)
    rewards, costs = rng.integers(1, 5, (1, 2)) / 4, rng.integers(1, 5, (1, 2, 2)) / 4  # a coarse grid: degenerate
    rate = np.array([0.5, 0.5])
    world = ds.Instance.from_arrays(rewards, costs, budget=rate)
    value = benchmarks.single_step(world).value
    vertices = np.array(vertices_of_prices(rewards[0], costs[0], rate, value))
    interval = ds.variation(world).q_bar_interval
    assert interval.largest == pytest.approx(vertices.max(), abs=1e-6)
    shares = np.random.default_rng(0).dirichlet(np.ones(len(vertices)), 5_000)
    mixed = (shares @ vertices).max(axis=1).min() if len(vertices) > 1 else vertices.max()
    assert interval.least <= min(mixed, vertices.max(axis=1).min()) + 1e-6
    assert interval.least >= mixed - 0.05


def test_prices_of_the_examples_are_not_unique() -> None:
    """On Example 1 both 0 and 1 are optimal, and a tiny change of the budget decides; with 0 Proposition 1 is false."""
    world = ds.instances.example_1()
    moves = ds.variation(world)
    assert list(moves.q_bar_interval) == pytest.approx([0.0, 1.0], abs=1e-6)
    assert list(moves.q_bar_full_interval) == pytest.approx([2 / 3, 1.0], abs=1e-6)
    assert ds.variation(ds.instances.example_2()).q_bar_interval.largest > 0.99
    problem = ds.Problem(world.horizon, 2, [5_000 * (1 - 1e-6)])
    less = ds.Instance(problem, world.rewards, world.costs, world.phase, world.noise)
    assert [moves.q_bar, ds.variation(less).q_bar] == pytest.approx([0.0, 1.0])
    mean, best = benchmarks.lp_static(world).value, benchmarks.lp_dynamic(world).value
    assert best > mean + moves.w1 + moves.q_bar_interval.least * moves.w2 + 1_600  # 5,000 and 3,333
    assert best <= mean + moves.w1 + moves.q_bar_full_interval.least * moves.w2 + 1e-6  # equal: the repair is tight


def test_the_interval_of_a_unique_price_is_a_point() -> None:
    interval = ds.variation(ds.instances.motivating(delta=0.5)).q_bar_interval
    assert interval.least == pytest.approx(interval.largest)


def test_the_interval_without_a_budget_and_of_too_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = ds.Instance.stationary([0.5], [[0.5]], horizon=5, budget=0.0)
    assert ds.variation(nothing).q_bar_interval.largest == np.inf
    monkeypatch.setattr(sys.modules["driftsack.measures.price_interval"], "MOST_ENTRIES", 10)
    with pytest.raises(TooLargeError, match=r"interval of q_bar needs a program of .* at most 10 are allowed"):
        _ = ds.variation(ds.instances.random_walk(horizon=50)).q_bar_interval


def test_factor_d_cannot_be_dropped() -> None:
    """Resources that drift in turn: V2 is that of one of them, its sum form that of all of them."""
    for d in (1, 2, 8):
        moves = ds.variation(ds.instances.drift_in_turn(resources=d, horizon=400, jump=0.1))
        assert [moves.v2, moves.v2_sum] == pytest.approx([0.2, 0.2 * d])


def test_refined_bound_and_shrinkage() -> None:
    horizon, m, d, budget, v2 = 10_000, 3, 2, 2_500.0, 0.5
    g = np.log(m * d * horizon**2.0)
    alpha = (g * m * budget) ** 0.5 + m * g
    beta = (g * budget) ** 0.5 + (m * v2 * horizon**2) ** (1 / 3) * g ** (1 / 3)
    assert theory.epsilon(horizon, m, d, budget, v2, constant=0.1) == pytest.approx(0.1 * (alpha + beta) / budget)
    assert theory.epsilon(100, m, d, 1.0, v2) == 1.0
    bound = theory.refined_regret_bound(horizon, m, d, budget, 1_000.0, (0.5, v2), (10.0, 20.0), 2.0)
    learning = ((m / budget) ** 0.5 * 1_000 + (m * 1_000) ** 0.5 + m * g**0.5) * g**0.5
    assert bound.learning == pytest.approx(learning)
    assert bound.budget_timing == 50.0
    tracking = (m * 0.5 * horizon**2) ** (1 / 3) * np.log(m * horizon**2.0) ** (1 / 3)
    tracking += 2.0 * d * (m * v2 * horizon**2) ** (1 / 3) * g ** (1 / 3)
    assert bound.total == pytest.approx(learning + tracking + 10.0 + 2.0 * 20.0)


def test_bounds_refuse_invalid_arguments() -> None:
    with pytest.raises(OutOfRangeError, match="rate must be above 0"):
        theory.regret_bound(100, 2, 1, 0.0, (0, 0), (0, 0), 0)
    with pytest.raises(OutOfRangeError, match="variation must be 0 or more"):
        theory.stopping_time_bound(100, 2, 1, 0.5, -1.0)
    with pytest.raises(OutOfRangeError, match="arms must be at least 1"):
        theory.radius_constant(100, 0)
    with pytest.raises(SettingError, match="variation must be a pair"):
        theory.windows(100, 2, 1, 0.5)  # type: ignore[arg-type]


def test_theorem_1_holds_for_the_algorithm() -> None:
    """The regret of SW-UCB with the paper's windows is below the bound (far below: its constants are large)."""
    world = ds.instances.example_2(horizon=2_000)
    variation, best = ds.variation(world), benchmarks.lp_dynamic(world)
    run = ds.simulate(world, ds.SlidingWindowUCB(variation=(variation.v1, variation.v2)), trials=50, seed=0)
    bound = theory.regret_bound(
        world.horizon, 2, 2, 0.5, (variation.v1, variation.v2), (variation.w1, variation.w2), variation.q_bar_full
    )
    assert 0 < run.regret(best).mean() < bound.total
