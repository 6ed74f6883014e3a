"""The measures V and W, their sharper versions, and the paper's inequalities."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest
from scipy.optimize import linprog

import driftsack as ds
from driftsack import benchmarks
from driftsack.core.arrays import Floats
from driftsack.core.errors import SettingError, TooLargeError


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
