"""The windows and the bounds of the paper, and their repaired versions, beside the formulas written out."""

from __future__ import annotations

import numpy as np
import pytest

import driftsack as ds
from driftsack import benchmarks, theory
from driftsack.core.errors import OutOfRangeError, SettingError


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
