"""Inventory reserving against a twin from its formulas, its price curve, and its guarantee against even pacing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

import driftsack as ds
from driftsack.core.errors import OutOfRangeError
from driftsack.policies import InventoryReserving
from driftsack.policies.inventory_reserving import reserve_price
from driftsack.verify.frontier import late_burst, staged

PROBLEM = ds.Problem(horizon=300, arms=3, budget=[60.0, 90.0])
RATIOS, WINDOW, SCALE = (0.5, 4.0), 40, 0.05


def twin_mistakes(free: float) -> int:
    """The rounds in which the twin chooses another arm or other prices; ``free`` multiplies the free share."""
    kappa = 1 + math.log(RATIOS[1] / RATIOS[0])
    constants = ds.theory.radius_constant(300, 3), ds.theory.radius_constant(300, 3, 2)
    learner, rng = InventoryReserving(RATIOS, WINDOW, SCALE).start(PROBLEM, seed=0), np.random.default_rng(1)
    history: list[tuple[int, float, np.ndarray]] = []
    spent, mistakes = np.zeros(2), 0
    while not learner.done:
        decision, recent = learner.ask(), history[-WINDOW:]
        shares = np.minimum(spent / (np.array([60.0, 90.0]) - 1), 1.0)
        prices = np.where(shares >= free / kappa, RATIOS[0] * np.exp(kappa * shares - 1), 0.0)
        values = []
        for i in range(3):
            own = [(reward, costs) for arm, reward, costs in recent if arm == i]
            n = len(own) + 1
            upper = min(sum(reward for reward, _ in own) / n + SCALE * constants[0] / n**0.5, 1.0)
            lower = sum((costs for _, costs in own), np.zeros(2)) / n - SCALE * constants[1] / n**0.5
            values.append(upper - prices @ np.maximum(lower, 0.0))
        arm = int(np.argmax(values)) if max(values) > 0 else ds.SKIP
        mistakes += decision.arm != arm or not np.allclose(decision.prices, prices, atol=1e-9)
        reward, costs = 0.0, np.zeros(2)
        if not decision.skipped:
            reward, costs = float(rng.random()), (0.2 + 0.3 * decision.arm) * rng.random(2)
            learner.tell(decision, reward, costs)
        spent += costs
        history.append((decision.arm, reward, costs))
    return mistakes


def test_equals_the_twin_and_the_twin_detects_a_wrong_share() -> None:
    assert twin_mistakes(free=1.0) == 0
    assert twin_mistakes(free=0.5) > 10


def test_the_price_curve_is_the_one_of_the_proof() -> None:
    """Ψ(1) = η_max, Ψ = 0 before the share 1/κ, and the integral up to z is (Ψ(z) - η_min)/κ."""
    state = InventoryReserving(RATIOS).new_state(PROBLEM)
    kappa = InventoryReserving(RATIOS).factor - 1
    assert reserve_price(state, 1.0) == pytest.approx(RATIOS[1])
    assert reserve_price(state, 0.99 / kappa) == 0.0
    assert reserve_price(state, 1.0 / kappa) == pytest.approx(RATIOS[0])
    area = quad(lambda z: reserve_price(state, z), 1 / kappa, 0.8)[0]
    assert area == pytest.approx((reserve_price(state, 0.8) - RATIOS[0]) / kappa)


def test_reserves_for_a_late_burst_and_pays_little_if_none_comes() -> None:
    """Even pacing loses a factor that grows with the spread; reserving stays within 2 + ln of it in both futures."""
    for spread in (10.0, 100.0):
        policy = InventoryReserving((0.5 / spread, 1.0), 500, 0.0005)
        for world in (late_burst(spread, 40_000), staged(spread, 1, 40_000)):
            best = ds.benchmarks.lp_dynamic(world).value
            assert best / ds.simulate(world, policy, trials=1).reward[0] < policy.factor
        even = ds.SlidingWindowUCB(windows=500, scale=0.0005)
        burst = late_burst(spread, 40_000)
        assert ds.benchmarks.lp_dynamic(burst).value / ds.simulate(burst, even, trials=1).reward[0] > 0.5 * spread


def test_bad_settings() -> None:
    with pytest.raises(OutOfRangeError, match="ratios must be in increasing order"):
        InventoryReserving(ratios=(2.0, 1.0))
    with pytest.raises(OutOfRangeError, match="each ratio must be above 0"):
        InventoryReserving(ratios=(0.0, 1.0))
    with pytest.raises(OutOfRangeError, match="window"):
        InventoryReserving(window=0)
