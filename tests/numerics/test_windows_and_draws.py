"""Windows, ledger, index sets and draws against their definitions."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from driftsack.core.arrays import Floats
from driftsack.core.decision import SKIP
from driftsack.core.instance import NOISES
from driftsack.game.world import noisy
from driftsack.numerics.compiled import kernel
from driftsack.numerics.index_set import clear, full_set, insert
from driftsack.numerics.sampling import draw
from driftsack.numerics.window import Window, add, expire, open_window, shrunk_mean, shrunk_variance


@settings(max_examples=200)
@given(
    length=st.integers(1, 12),
    rounds=st.lists(st.tuples(st.integers(-1, 2), st.floats(0, 1), st.integers(0, 6)), min_size=1, max_size=40),
)
def test_window_equals_its_history(length: int, rounds: list[tuple[int, float, int]]) -> None:
    """Each round has an arm, an outcome and a delay; late outcomes may have left the window."""
    horizon, window = len(rounds) + 1, open_window(length, len(rounds) + 1, arms=3, outcomes=1)
    arrived: dict[int, tuple[int, float]] = {}
    for now in range(len(rounds)):
        expire(window, now)
        for t, (arm, value, delay) in enumerate(rounds[: now + 1]):
            if t + delay == now and arm != SKIP:
                arrived[t] = (arm, value)
                assert add(window, now, t, arm, np.array([value])) == (t > now - length or length >= horizon)
        inside = [v for t, v in arrived.items() if t > now - length or length >= horizon]
        for arm in range(3):
            values = [value for pulled, value in inside if pulled == arm]
            assert window.pulls[arm] == len(values)
            assert shrunk_mean(window, arm, 0) == pytest.approx(math.fsum(values) / (len(values) + 1), abs=1e-12)


def test_sums_are_exact_after_ten_million_rounds() -> None:
    """When every round has left the window, the sums are exactly 0; a floating-point sum would not be."""
    window = open_window(1_000, 10**9, arms=2, outcomes=1)
    values = np.random.default_rng(0).random(10_007)
    end = churn(window, values, 10_000_000)
    assert window.pulls.sum() == 1_000
    inside = [values[t % values.size] for t in range(end - 1_000, end)]
    for arm in range(2):
        expected = [inside[k] for k in range(1_000) if (end - 1_000 + k) % 2 == arm]
        assert window.sums[arm, 0] / window.grid[0] == pytest.approx(math.fsum(expected), abs=1_000 * 2.0**-49)
    for t in range(end, end + 1_000):
        expire(window, t)
    assert not window.sums.any()
    running = 0.0
    for t in range(100_000):
        running += values[t % values.size]
        if t >= 1_000:
            running -= values[(t - 1_000) % values.size]
    assert running != math.fsum(values[t % values.size] for t in range(99_000, 100_000))  # the planted fault


def test_variances_of_a_window_are_exact_for_small_outcomes() -> None:
    """Outcomes of about 1e-5 in a window of 50, after 5,000 rounds; the variance without the square is a wrong one."""
    window, values = open_window(50, 10**9, arms=1, outcomes=2), 2e-5 * np.random.default_rng(0).random(5_000)
    for t, value in enumerate(values):
        expire(window, t)
        add(window, t, t, 0, np.array([value, value**2]))
    expected = np.var([*values[-50:], 0.0])
    assert shrunk_variance(window, 0, 0) == pytest.approx(expected, rel=1e-3)
    assert shrunk_mean(window, 0, 1) != pytest.approx(expected, rel=0.1)
    for t in range(5_000, 5_050):
        expire(window, t)
    assert shrunk_variance(window, 0, 0) == 0.0


@kernel
def churn(window: Window, values: Floats, rounds: int) -> int:
    """Alternate between two arms for many rounds."""
    for t in range(rounds):
        expire(window, t)
        slot = t % values.size
        add(window, t, t, t % 2, values[slot : slot + 1])
    return rounds


@pytest.mark.parametrize("length", [1, 10**4, 10**7, 2**40])
def test_grid_is_fine_and_cannot_overflow(length: int) -> None:
    window = open_window(length, length, arms=1, outcomes=1)
    assert window.grid[0] * length < 2.0**62
    assert window.grid[0] >= min(2.0**50, 2.0**61 / length / 2)


def test_a_window_without_end_outlasts_its_grid() -> None:
    """Far beyond the horizon that the grid was chosen for, means stay right and no sum overflows."""
    window, rng = open_window(4, 4, arms=1, outcomes=2), np.random.default_rng(0)
    window.grid[0] = 2.0**57  # a grid that 32 outcomes of 1 would fill
    for t in range(500):
        add(window, t, t, 0, np.array([1.0, 0.25 + 0.5 * (rng.random() < 0.5)]))
        assert (window.sums >= 0).all()
    means = window.sums[0] / (window.grid[0] * window.pulls[0])
    assert means[0] == pytest.approx(1.0)
    assert means[1] == pytest.approx(0.5, abs=4 * 0.25 / np.sqrt(16))  # 4 standard errors of 16 outcomes
    assert 16 <= window.pulls[0] <= 33


def test_an_index_set_is_a_set() -> None:
    items = full_set(4)
    assert items.size[0] == 4
    clear(items)
    for item in (2, 0, 2, SKIP):
        insert(items, item)
    assert items.members[: items.size[0]].tolist() == [2, 0]
    clear(items)
    assert not items.present.any()


def test_draw_follows_the_mix() -> None:
    """40,000 draws: each share within 5 standard errors, which fails by chance less than once in a million runs."""
    mix, rng = np.array([0.1, 0.0, 0.6]), np.random.default_rng(0)
    drawn = np.array([draw(mix, rng.random()) for _ in range(40_000)])
    assert not (drawn == 1).any()
    for arm, share in ((0, 0.1), (2, 0.6), (SKIP, 0.3)):
        assert abs((drawn == arm).mean() - share) < 5 * math.sqrt(share * (1 - share) / drawn.size)
    assert draw(np.array([0.5, 0.5]), math.nextafter(1.0, 0.0)) == 1
    assert draw(np.zeros(2), 0.0) == SKIP


@pytest.mark.parametrize("noise", range(len(NOISES)))
@pytest.mark.parametrize("mean", [0.0, 1e-12, 0.03, 0.5, 0.9, 1.0])
def test_noise_keeps_the_mean_and_the_range(noise: int, mean: float) -> None:
    """20,000 draws within 5 standard errors of the mean, all in [0, 1]."""
    rng = np.random.default_rng(1)
    drawn = np.array([noisy(mean, noise, rng) for _ in range(20_000)])
    assert drawn.min() >= 0.0
    assert drawn.max() <= 1.0
    assert abs(drawn.mean() - mean) <= 5 * math.sqrt(mean * (1 - mean) / drawn.size) + 1e-15
    if NOISES[noise] != "deterministic" and 0.01 < mean < 0.99:
        assert drawn.std() > 0.01
