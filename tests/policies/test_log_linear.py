"""Log-linear models against a slow twin, and the problems that they are for."""

from __future__ import annotations

import math

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.arrays import Floats
from driftsack.game.records import new_outcome, new_terms
from driftsack.policies import LinearBwK
from driftsack.policies.parts.linear_bank import LinearBank, estimate, mean_reward, new_bank, observe_context
from driftsack.policies.parts.log_linear import (
    LARGEST_SIZE,
    LogLinear,
    blend,
    is_used,
    learn_product,
    new_log_linear,
    posterior_mode,
    predict,
)
from tests.support.log_linear_twin import SlowProduct


def contexts(rng: np.random.Generator, rounds: int, features: int) -> Floats:
    """Standardised vectors with a constant."""
    return np.column_stack([rng.standard_normal((rounds, features)) / math.sqrt(features), np.ones(rounds)])


def test_the_model_is_that_of_a_slow_twin() -> None:
    """Also for rare outcomes, outcomes of 0 before the first positive one."""
    rng = np.random.default_rng(3)
    rows = contexts(rng, 300, 3)
    rare = (rng.random(300) < 0.1) * rng.uniform(0.5, 2.0, 300)
    dense = np.exp(rows @ np.array([0.5, -0.3, 0.2, -1.0])) * rng.uniform(0.8, 1.2, 300)
    for outcomes in (rare, dense):
        models, twin, largest = new_log_linear(1, 1, 4), SlowProduct(4), 0.0
        for t, (x, y) in enumerate(zip(rows, outcomes, strict=True)):
            largest = max(largest, y)
            mixed = learn_product(models, 0, 0, x, y, y, 0.3, 1.0, t + 1.0)
            if largest == 0.0:
                assert mixed == 0.3
                continue
            twin.observe(x, y, largest, y)
            assert predict(models, 0, 0, rows[0]) == pytest.approx(twin.predict(rows[0], largest), rel=1e-6)
        np.testing.assert_allclose(models.effects[0, 0], twin.effects, rtol=1e-6)
        np.testing.assert_allclose(models.covariance[0, 0], twin.covariance, rtol=1e-6, atol=1e-9)
        assert np.array_equal(models.covariance[0, 0], models.covariance[0, 0].T)


def test_the_mode_is_a_root_for_any_outcome() -> None:
    for before in (-40.0, -3.0, 0.0, 5.0, 40.0):
        for ratio in (1e-6, 1.0, 1e6):
            for outcome in (0.0, 1e-6, 1.0, 1e6):
                mode = posterior_mode(before, ratio, outcome)
                gap = mode - before - ratio * (outcome - math.exp(mode))
                assert abs(gap) <= 1e-6 * (1.0 + abs(before) + ratio * (outcome + math.exp(mode)))


def test_a_rare_large_outcome_does_not_overshoot() -> None:
    """After a hundred zeros, one outcome of 1 raises the mean to at most 1. The planted fault: one explicit step."""
    models, x = new_log_linear(1, 1, 2), np.array([0.0, 1.0])
    learn_product(models, 0, 0, x, 1.0, 0.05, 0.1, 1.0, 1.0)
    for t in range(100):
        learn_product(models, 0, 0, x, 0.0, 0.0, 0.1, 1.0, t + 2.0)
    before, mean = math.log(predict(models, 0, 0, x)), predict(models, 0, 0, x)
    variance, phi = x @ models.covariance[0, 0] @ x, 0.01 * models.squares[0, 0] / models.means[0, 0]
    assert before + variance * (1.0 - mean) / (phi + variance * mean) > math.log(1.0) + 1.0  # if phi were too small
    assert posterior_mode(before, variance / phi, 1.0) < math.log(1.0)


def product_bank(rng: np.random.Generator, products: bool) -> tuple[LinearBank, Floats, Floats]:
    """A bank that has seen 800 outcomes of one arm, its last contexts and their true mean rewards."""
    problem = ds.Problem(horizon=1_000, arms=1, budget=[500.0], features=4)
    bank, terms, rows = new_bank(problem, 5, None), new_terms(problem), contexts(rng, 1_000, 4)
    effects = np.array([1.2, 0.8, -1.0, 0.0])
    means = 0.1 * np.exp(rows[:, :4] @ effects) if products else 0.5 + 0.25 * (rows[:, :4] @ effects)
    for t in range(800):
        reward = float(np.clip(means[t] * rng.uniform(0.5, 1.5), 0.0, 1.0))
        observe_context(bank, new_outcome(terms, t, 0, 1.0, reward, np.array([0.3])), rows[t])
    return bank, rows[800:], means[800:]


@pytest.mark.parametrize("products", [True, False])
def test_the_belief_finds_the_form_of_the_outcomes(products: bool) -> None:
    """And the mixture predicts products better than the linear models alone."""
    bank, rows, means = product_bank(np.random.default_rng(1), products)
    belief, errors = float(bank.products.belief[0]), []
    assert (belief > 0.9) if products else (belief < 0.1)
    for share in (belief, 0.0):
        bank.products.belief[0] = share
        found = []
        for x in rows:
            estimate(bank, x)
            found.append(bank.mean[0, 0])
        errors.append(float(np.mean((np.array(found) - means) ** 2)))
    assert errors[0] < (0.5 if products else 1.1) * errors[1]


def test_the_mixture_has_the_moments_of_its_parts() -> None:
    rng, models = np.random.default_rng(0), new_log_linear(1, 1, 3)
    for t, x in enumerate(contexts(rng, 30, 2)):
        learn_product(models, 0, 0, x, float(rng.random()), 0.5, 0.5, 0.1, t + 1.0)
    x, models.belief[0] = np.array([0.2, -0.4, 1.0]), 0.3
    mean, sd = blend(models, 0, 0, x, 0.8, 0.1)
    product = predict(models, 0, 0, x)
    own = product**2 * (x @ models.covariance[0, 0] @ x)
    assert mean == pytest.approx(0.7 * 0.8 + 0.3 * product)
    second = 0.7 * (0.8**2 + 0.1**2) + 0.3 * (product**2 + own)
    assert sd**2 == pytest.approx(second - mean**2)


def test_long_vectors_have_linear_models_only() -> None:
    """Which is what keeps the time of a round with many features."""
    for size, used in ((LARGEST_SIZE, True), (LARGEST_SIZE + 1, False)):
        models: LogLinear = new_log_linear(2, 2, size)
        assert is_used(models) == used
        assert models.covariance.size == (4 * size**2 if used else 0)
    problem = ds.Problem(horizon=100, arms=1, budget=[50.0], features=LARGEST_SIZE)
    bank, terms = new_bank(problem, LARGEST_SIZE + 1, None), new_terms(problem)
    for t in range(20):
        observe_context(bank, new_outcome(terms, t, 0, 1.0, 0.5, np.array([0.3])), np.ones(LARGEST_SIZE + 1))
    assert bank.products.belief.max() == 0.0
    assert mean_reward(bank) == 0.5


def test_products_are_learnt_in_a_game() -> None:
    """A reward is a value times a response, and a cost is proportional to a size. Linear models alone earn less."""
    shares = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        rows = rng.standard_normal((3_000, 3))
        value, size = np.exp(0.8 * rows[:, :1]), np.exp(0.8 * rows[:, 1:2])
        rewards = np.minimum(0.05 * value * np.exp(np.array([[0.0, 0.9, -0.9]]) * rows[:, 2:3]), 1.0)
        costs = np.minimum(0.1 * size * np.array([[1.0, 1.2, 1.4]]), 1.0)[:, None, :]
        found = []
        for length in (LARGEST_SIZE, LARGEST_SIZE + 1):  # the latter is too long for log-linear models
            padded = np.hstack([rows, np.zeros((3_000, length - 4))])
            world = ds.ContextualInstance.by_table(padded, rewards, costs, budget=120, horizon=3_000, noise="beta")
            best = ds.benchmarks.lp_contextual(world).value
            found.append(ds.simulate(world, LinearBwK(), trials=4, seed=0).reward.mean() / best)
        shares.append(found)
    ours, without = np.mean(shares, axis=0)
    assert ours > without + 0.02
