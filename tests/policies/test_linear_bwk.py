"""LinearBwK, DisjointBwK, SquareCBwK and PerSegment against slow references, and what they must achieve."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.arrays import Floats, Ints
from driftsack.core.decision import SKIP
from driftsack.core.errors import NamesError, OutOfRangeError, SettingError
from driftsack.game.ledger import open_ledger
from driftsack.game.records import new_outcome, new_terms, open_round
from driftsack.instances.contextual import linear_contexts, segments
from driftsack.policies import DisjointBwK, LinearBwK, PerSegment, SquareCBwK
from driftsack.policies.parts.kept_rounds import replay
from driftsack.policies.parts.linear_bank import (
    LATELY,
    PLAIN,
    PRIOR_ERRORS,
    estimate,
    mix_coefficients,
    new_bank,
    observe_context,
)
from driftsack.policies.parts.linear_choice import draw_outcomes, new_choice
from driftsack.policies.parts.replayed_price import (
    ALL,
    LATEST,
    SPEED,
    actual_share,
    committed,
    correct_prices,
    fresh_share,
    keep_round,
    move_price,
    new_replayed_price,
    next_price,
    note_choice,
    note_costs,
    note_fresh,
    rate_left,
    use_best_arms,
)
from driftsack.policies.parts.ridge import combine_rows, multiply, observe_direction
from driftsack.policies.parts.standardiser import new_standardiser, note_context, standardise
from driftsack.policies.square_cb_bwk import weigh_by_gap
from driftsack.simulation import Feedback
from tests.support.learner_parts import terms_of

PROBLEM = ds.Problem(horizon=1_000, arms=3, budget=[200.0, 300.0], features=4)


def observed(gamma: float, rows: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Coefficients and covariance by the updates of rank one."""
    covariance, theta, product = np.eye(rows.shape[1]), np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    for x, y in zip(rows, values, strict=True):
        variance = multiply(covariance, x, product)
        observe_direction(covariance, product, variance, gamma)
        theta += product * (y - theta @ x) / (gamma + variance)
    return theta, covariance


def test_without_forgetting_it_is_ridge_regression() -> None:
    rng = np.random.default_rng(0)
    rows, values = rng.standard_normal((200, 7)), rng.standard_normal(200)
    theta, covariance = observed(1.0, rows, values)
    exact = np.linalg.inv(np.eye(7) + rows.T @ rows)
    np.testing.assert_allclose(covariance, exact, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(theta, exact @ rows.T @ values, rtol=1e-9)
    assert not np.allclose(observed(0.97, rows, values)[1], exact, rtol=0.01)


@pytest.mark.parametrize("gamma", [1.0, 0.97, 0.5])
def test_the_covariance_stays_symmetric_positive_and_bounded(gamma: float) -> None:
    """Also if one direction is hardly ever seen, where plain forgetting would wind up without bound."""
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((20_000, 5)) / np.sqrt(5)
    rows[:, 4] *= rng.random(20_000) < 1e-3
    _, covariance = observed(gamma, rows, rng.standard_normal(20_000))
    assert np.array_equal(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance)[0] > 0.0
    assert np.linalg.eigvalsh(covariance)[-1] < 3.0
    if gamma < 1.0:
        plain = np.eye(5)
        for x in rows[:400]:  # the planted fault: all directions are forgotten
            v = plain @ x
            plain = (plain - np.outer(v, v) / (gamma + x @ v)) / gamma
        assert np.linalg.eigvalsh(plain)[-1] > 1e3


def test_rows_are_combined_whatever_their_number() -> None:
    rng = np.random.default_rng(0)
    for size in range(1, 11):
        table, x, total = rng.random((size, 6)), rng.random(size), np.zeros(6)
        combine_rows(table, x, 1, 5, total)
        np.testing.assert_allclose(total[1:5], x @ table[:, 1:5])
        assert total[0] == total[5] == 0.0


def test_contexts_are_standardised_on_the_first_hundred() -> None:
    rng, features = np.random.default_rng(0), new_standardiser(3)
    rows = np.column_stack([rng.normal(50.0, 9.0, 200), np.full(200, 7.0), rng.normal(0.0, 1e-3, 200)])
    for row in rows:
        note_context(features, row)
    first = rows[:100]
    standardise(features, rows[150])
    expected = (rows[150] - first.mean(axis=0)) / np.where(first.std(axis=0) > 1e-9, first.std(axis=0), 1.0)
    np.testing.assert_allclose(features.x, [*np.clip(expected, -5, 5) / np.sqrt(3), 1.0], rtol=1e-9)
    standardise(features, np.array([1e9, 7.0, 0.0]))
    assert features.x[0] == pytest.approx(5 / np.sqrt(3))


def test_a_feature_that_shifts_is_measured_again() -> None:
    """Its mean and scale become those of the contexts after the shift; an outlier is no shift."""
    rng, features = np.random.default_rng(0), new_standardiser(2)
    rows = np.column_stack([rng.normal(50.0, 9.0, 600), rng.normal(0.0, 1.0, 600)])
    rows[300:, 0] = 10.0 * rows[300:, 0] + 40.0
    rows[200, 1] = 1e9
    shifts = [t for t, row in enumerate(rows) if note_context(features, row)]
    assert len(shifts) == 1
    assert 300 < shifts[0] < 310  # soon enough
    own = rows[shifts[0] : shifts[0] + 100, 0]
    assert features.mean[0] == pytest.approx(own.mean())
    spread = np.sqrt((((own - own.mean()) ** 2).sum() + rows[:100, 0].var()) / 100)
    assert features.scale[0] == pytest.approx(1.0 / (spread * np.sqrt(2)))
    assert features.mean[1] == pytest.approx(rows[:100, 1].mean())


def test_indicators_do_not_shift() -> None:
    """Requests in the order of their categories: each category is a block of ones, far from its first mean."""
    features, rows = new_standardiser(3), np.repeat(np.eye(3), 200, axis=0)
    assert not any(note_context(features, row) for row in rows)
    others = new_standardiser(3)  # the planted fault: the same as numbers
    assert any(note_context(others, 10.0 * row) for row in rows)


def slow_bank(arms: Ints, rows: Floats, rewards: Floats, costs: Floats, unit: float) -> tuple[Floats, Floats, Floats]:
    """Weights, usefulness and noise of a bank for one cost, by the formulas and from the history."""
    gammas, count, size = (1.0, 0.97), int(arms.max()) + 1, rows.shape[1]
    outcomes = np.column_stack([rewards, costs / unit])
    P = np.tile(np.eye(size), (count, 2, 1, 1))  # noqa: N806
    theta, weights = np.zeros((count, 2, 2, size)), np.full((count, 2, 2), 0.5)
    useful, noise = np.full(2, 0.99), np.zeros((count, 2))
    for t, (arm, x, y) in enumerate(zip(arms, rows, outcomes, strict=True)):
        before = outcomes[:t][arms[:t] == arm]
        n, top, last = len(before), rewards[: t + 1].max(), rewards[:t].max(initial=0.0)
        # The prior noise of the reward grows with the largest reward.
        for other in range(count):
            pulls = (arms[:t] == other).sum()
            if pulls:
                noise[other, 0] += 0.25 * (top**2 - last**2) * 4.0 / (pulls + 3.0)
        if n == 0:
            theta[arm, :, 0, -1] = rewards[: t + 1].mean()
            noise[arm] = 0.25 * np.array([top, 1.0 + y[1]]) ** 2
        # Predictions of the two regressions and of the plain mean, then the update of the regressions.
        variance = np.array([x @ P[arm, 0] @ x, x @ P[arm, 1] @ x, 1.0 / (n + 1.0)])
        member = np.vstack([theta[arm] @ x, before.mean(axis=0) if n else np.zeros(2)])
        for g, gamma in enumerate(gammas):
            v, a = P[arm, g] @ x, variance[g]
            theta[arm, g] += np.outer((y - theta[arm, g] @ x) / (gamma + a), v)
            P[arm, g] -= (a - a / (gamma + a)) / a**2 * np.outer(v, v)
        for k in range(2):
            loss = (y[k] - member[:, k]) ** 2 / (2.0 * noise[arm, k] * (1.0 + variance))
            likelihood = np.exp(-np.minimum(loss - loss.min(), 3.0)) / np.sqrt(1.0 + variance)
            shares = np.append(useful[k] * weights[arm, k], 1.0 - useful[k])
            if n >= 1:
                noise[arm, k] += ((y[k] - shares @ member[:, k]) ** 2 - noise[arm, k]) / min(n + 4.0, 200.0)
            if n >= 2:
                shares *= likelihood
                fresh, spread, back = shares[:2] / shares[:2].sum(), min(0.01, 1.0 / n), min(0.01, 1.0 / (t + 1.0))
                weights[arm, k] = (1.0 - spread) * fresh + spread / 2
                useful[k] = (1.0 - back) * shares[:2].sum() / shares.sum() + back * 0.99
    return weights, useful, noise


def test_the_bank_is_that_of_a_slow_reference() -> None:
    problem = ds.Problem(horizon=100, arms=2, budget=[25.0], features=2)
    rng, bank, terms = np.random.default_rng(4), new_bank(problem, 3, None), new_terms(problem)
    rows = np.column_stack([rng.standard_normal((160, 2)), np.ones(160)])
    arms, rewards, costs = rng.integers(0, 2, 160), rng.random(160), rng.random(160)
    for t in range(160):
        observe_context(bank, new_outcome(terms, t, int(arms[t]), 1.0, rewards[t], costs[t : t + 1]), rows[t])
    assert bank.changes[0] == 0
    weights, useful, noise = slow_bank(arms, rows, rewards, costs, 0.25)
    np.testing.assert_allclose(bank.weights, weights, rtol=1e-8)
    np.testing.assert_allclose(bank.usefulness, useful, rtol=1e-8)
    np.testing.assert_allclose(bank.noise, noise, rtol=1e-8)
    np.testing.assert_allclose(bank.levels[0, PLAIN, 0], rewards[arms == 0].mean(), rtol=1e-8)
    shifted = slow_bank(arms, rows, np.roll(rewards, 1), costs, 0.25)[0]
    assert not np.allclose(bank.weights, shifted, rtol=1e-3)  # the comparison notices other outcomes


def test_estimates_are_those_of_the_mixture() -> None:
    """Mean and variance over the members, and the same mean from the mixed coefficients."""
    rng, bank = np.random.default_rng(5), new_bank(PROBLEM, 5, None)
    bank.coefficients[:], bank.levels[:] = rng.standard_normal((5, 18)), rng.standard_normal((3, 2, 3))
    bank.weights[:] = rng.dirichlet([1.0, 1.0], (3, 3))
    bank.usefulness[:], bank.noise[:], bank.pulls[:] = rng.random(3), rng.random((3, 3)), [3.0, 5.0, 8.0]
    x = np.append(rng.standard_normal(4), 1.0)
    estimate(bank, x)
    mix_coefficients(bank)
    np.testing.assert_allclose(x @ bank.mixed, bank.mean.ravel())
    for i, k in np.ndindex(3, 3):
        member = np.append(x @ bank.coefficients.reshape(5, 3, 2, 3)[:, i, :, k], bank.levels[i, PLAIN, k])
        share = np.append(bank.usefulness[k] * bank.weights[i, k], 1.0 - bank.usefulness[k])
        variance = bank.noise[i, k] * np.array([x @ x, x @ x + 0.03, 1.0 / (bank.pulls[i] + 1.0)])
        assert bank.mean[i, k] == pytest.approx(share @ member)
        assert bank.sd[i, k] ** 2 == pytest.approx(share @ (variance + (member - share @ member) ** 2))


def test_the_usefulness_of_contexts_is_learnt_by_all_arms_together() -> None:
    """Of rewards that depend on the context and of costs that do not; an arm without pulls has the same."""
    rng, bank, terms = np.random.default_rng(0), new_bank(PROBLEM, 21, None), new_terms(PROBLEM)
    for t in range(600):
        x = np.append(rng.standard_normal(20) / np.sqrt(20), 1.0)
        reward = float(np.clip(0.5 + 0.5 * x[0] + 0.1 * rng.standard_normal(), 0.0, 1.0))
        observe_context(bank, new_outcome(terms, t, t % 2, 1.0, reward, rng.random(2)), x)
    assert bank.usefulness[0] > 0.95
    assert bank.usefulness[1:].max() < 0.5


def test_the_bank_notices_a_change_and_begins_again() -> None:
    rng, terms = np.random.default_rng(0), new_terms(PROBLEM)
    bank, still = new_bank(PROBLEM, 5, None), new_bank(PROBLEM, 5, 1.0)
    for t in range(900):
        x = np.append(rng.standard_normal(4) / 2, 1.0)
        mean = 0.5 + 0.3 * x[0] if t < 400 else 0.5 - 0.3 * x[0]
        outcome = new_outcome(terms, t, 0, 1.0, mean + 0.05 * rng.standard_normal(), np.array([0.2, 0.1]))
        observe_context(bank, outcome, x)
        observe_context(still, outcome, x)
    assert bank.changes[0] >= 1
    assert still.changes[0] == 0
    x = np.array([1.0, 0.0, 0.0, 0.0, 1.0])
    estimate(bank, x)
    estimate(still, x)
    assert bank.mean[0, 0] == pytest.approx(0.2, abs=0.06)
    assert still.mean[0, 0] > 0.3  # the one that never forgets
    assert bank.trust[1] < 1.0


def test_the_price_rises_when_spending_is_too_high_and_settles() -> None:
    problem = ds.Problem(horizon=1_000, arms=1, budget=[100.0])
    price, round_ = (
        new_replayed_price(problem, 2, problem.rate),
        open_round(0, open_ledger(problem), new_terms(problem)),
    )
    price.latest.filled[0] = price.sample.filled[0] = 1
    for one, limit in ((LATEST, 0.4), (ALL, 0.7)):
        for _ in range(60):
            value = price.both[one, 0]
            price.used[0] = 0.0 if value > limit else 10.0  # an arm that is alone: all or nothing
            move_price(price, new_bank(problem, 2, None), round_, 0.5, one)
        assert price.both[one, 0] == pytest.approx(limit, rel=0.01)
        assert price.price[0] == price.both.max()


def test_the_latest_rounds_may_spend_twice_the_pace() -> None:
    """And all rounds together once: at 1.5 times the pace the one price falls and the other rises."""
    problem = ds.Problem(horizon=1_000, arms=1, budget=[100.0])
    bank, round_ = new_bank(problem, 2, None), open_round(0, open_ledger(problem), new_terms(problem))
    for one, rises in ((LATEST, False), (ALL, True)):
        price = new_replayed_price(problem, 2, problem.rate)
        price.both[:], price.latest.filled[0], price.sample.filled[0] = 0.5, 1, 1
        price.used[0] = 1.5
        move_price(price, bank, round_, 0.5, one)
        assert (price.both[one, 0] > 0.5) == rises
    assert SPEED == 2.0


def test_the_last_rounds_spend_what_is_left() -> None:
    """The price is that of the latest rounds at the even pace, although the long-run price is higher."""
    problem = ds.Problem(horizon=100, arms=1, budget=[100.0])
    bank, round_ = new_bank(problem, 2, None), open_round(0, open_ledger(problem), new_terms(problem))
    price = new_replayed_price(problem, 2, problem.rate)
    price.both[:], price.latest.filled[0], price.used[0] = [[0.5], [0.9]], 1, 1.5
    move_price(price, bank, round_, 0.5, LATEST)
    assert 0.5 < price.price[0] == price.both[LATEST, 0] < price.both[ALL, 0]


def test_the_prices_take_turns() -> None:
    """Both are corrected in the first rounds and after an announcement, otherwise one of them."""
    price = new_replayed_price(PROBLEM, 2, PROBLEM.rate)
    assert next_price(price, 5) == next_price(price, 200) == (LATEST, ALL)
    price.held[0] = 1_000
    assert sorted(next_price(price, 5) for _ in range(4)) == [(LATEST, LATEST)] * 2 + [(ALL, ALL)] * 2


def test_new_rounds_correct_the_sample() -> None:
    """A sample that happens to be cheap does not spend too much for long: new rounds cost 3, the sample says 1."""
    problem = ds.Problem(horizon=8_000, arms=1, budget=[800.0])
    price, round_ = (
        new_replayed_price(problem, 2, problem.rate),
        open_round(0, open_ledger(problem), new_terms(problem)),
    )
    assert fresh_share(price, 0) == 1.0
    price.modelled[0] = 1.0
    for k in range(2_000):
        price.held[0] = k + 1
        note_fresh(price, round_, np.array([[5.0, 3.0]]))
    assert fresh_share(price, 0) == pytest.approx((1.0 + 3.0) / (1.0 + 1.0), rel=1e-6)


def test_the_price_counts_what_was_spent() -> None:
    """Half of the pulls that the draws want are withheld: the price settles where the rest spends the budget."""
    problem = ds.Problem(horizon=1_000, arms=1, budget=[100.0])
    price, draws = new_replayed_price(problem, 2, problem.rate), np.array([[0.5, 3.0]])
    assert actual_share(price, 0) == 1.0
    for k in range(2_000):
        note_choice(price, draws, 0, SKIP if k % 2 else 0)
        note_costs(price, draws[0], k + 1.0)
    assert actual_share(price, 0) == pytest.approx((1.0 + 1.5) / (1.0 + 3.0), rel=0.01)
    note_costs(price, np.array([0.5, 1e6]), 2_001.0)
    assert actual_share(price, 0) == 1.0  # an absurd bill does not raise the price


def test_a_large_cost_corrects_the_price_at_once() -> None:
    """Not only at the next of the usual rounds: two more such costs could exhaust the budget before it."""
    problem = ds.Problem(horizon=1_000, arms=1, budget=[100.0])
    price, ledger, values = new_replayed_price(problem, 2, problem.rate), open_ledger(problem), np.ones((1, 2))
    price.held[0], price.latest.filled[0], bank = 100, 100, new_bank(problem, 2, None)
    move_price(price, bank, open_round(100, ledger, new_terms(problem)), 0.5, LATEST)
    ledger.spent[0] = 5.0
    assert keep_round(price, bank, open_round(101, ledger, new_terms(problem)), np.ones(2), values, values) == 0
    ledger.spent[0] = 25.0
    assert keep_round(price, bank, open_round(102, ledger, new_terms(problem)), np.ones(2), values, values) > 0


def test_the_pace_counts_pending_decisions_at_their_recent_cost() -> None:
    """What will be charged later is not there to spend; outcomes that never arrive do not count for ever."""
    problem = ds.Problem(horizon=1_000, arms=2, budget=[100.0])
    bank, price = new_bank(problem, 2, None), new_replayed_price(problem, 2, problem.rate)
    bank.levels[:, LATELY, 1] = [2.0, 5.0]  # in rounds' budgets
    terms = new_terms(problem)
    terms.delay[0], terms.unpaid[:] = 30.0, [10.0, 20.0]
    round_ = open_round(500, open_ledger(problem), terms)
    assert committed(round_, bank, 0) == pytest.approx(10 * 2 + 20 * 5)
    assert rate_left(price, bank, round_, 0) == pytest.approx((1_000 - 120) / 500)
    terms.unpaid[:] *= 4.0
    round_ = open_round(500, open_ledger(problem), terms)
    assert committed(round_, bank, 0) == pytest.approx((10 * 2 + 20 * 5) * 4 / 2)  # 60 of 120 are expected to arrive


def test_prices_replay_each_round_with_the_arms_that_were_open_in_it() -> None:
    """An arm that is closed now was bought in the kept rounds, and one that was closed in them was not."""
    problem = ds.Problem(horizon=1_000, arms=2, budget=[100.0])
    bank, price = new_bank(problem, 2, None), new_replayed_price(problem, 2, problem.rate)
    terms, means = new_terms(problem), np.array([[0.5, 1.0], [0.9, 3.0]])
    drawn = means + 0.01
    for closed in (1, 0):
        terms.open[:] = True
        terms.open[closed] = False
        keep_round(price, bank, open_round(0, open_ledger(problem), terms), np.array([0.0, 1.0]), means, drawn)
    bank.levels[:, PLAIN] = means
    bank.usefulness[:] = 0.0
    mix_coefficients(bank)
    for kept in (price.latest, price.sample):
        replay(kept, bank)
        use_best_arms(price, kept, price.price, open_round(2, open_ledger(problem), terms))
        assert price.used[0] == pytest.approx(1.01 + 3.01)
    correct_prices(price, bank, open_round(2, open_ledger(problem), terms), 0.5, 1)
    assert (price.both > 0.0).all()


def test_pending_pulls_narrow_the_draws() -> None:
    """The spread of the draws is the one that the arm will have when its pending outcomes have arrived."""
    problem = ds.Problem(horizon=1_000, arms=1, budget=[100.0], features=1)
    choice, terms = new_choice(problem, 2, 1.0, 0.01, None), new_terms(problem)
    bank, rng = choice.bank, np.random.default_rng(0)
    bank.pulls[:], bank.last[:], bank.mean[:], bank.sd[:] = 9.0, 100, 10.0, 1.0
    terms.delay[0] = 30.0
    spread = []
    for pending in (0.0, 30.0):
        terms.pending[:] = pending
        values = []
        for _ in range(4_000):
            draw_outcomes(choice, open_round(100, open_ledger(problem), terms), rng)
            values.append(choice.drawn[0, 0])
        spread.append(float(np.std(values)))
    assert spread[0] == pytest.approx(1.0, rel=0.05)  # 4.5 standard errors
    assert spread[1] == pytest.approx(np.sqrt(10 / 40), rel=0.05)


def test_probabilities_fall_with_the_gap() -> None:
    state = SquareCBwK(learning_rate=4.0).new_state(PROBLEM)
    state.choice.bank.overall[:] = [1.0, 1.0, 1.0]
    round_, mix = open_round(3, open_ledger(PROBLEM), new_terms(PROBLEM)), np.zeros(3)
    values = np.array([[0.9, 0, 0], [0.5, 0, 0], [0.1, 0, 0]], dtype=np.float64)
    weigh_by_gap(state.choice, round_, values, state.choice.price.price, False, mix)
    others = [1 / (4 + 8 * 0.4), 1 / (4 + 8 * 0.8)]
    skip = 1 / (4 + 8 * 0.9)
    assert mix.tolist() == pytest.approx([1 - sum(others) - skip, *others])


@pytest.mark.parametrize("policy", [LinearBwK(), DisjointBwK(), SquareCBwK(), PerSegment()], ids=str)
def test_it_uses_the_context_and_beats_the_flagship_without_it(policy: ds.Policy) -> None:
    world = segments(horizon=4_000, count=4, seed=3)
    best = ds.benchmarks.lp_contextual(world).value
    reward = ds.simulate(world, policy, trials=4, seed=0).reward
    blind = ds.simulate(world, ds.Adaptive(), trials=4, seed=0).reward
    assert reward.mean() / best > 0.8
    assert reward.min() > blind.max()


def test_on_linear_worlds_the_share_of_the_optimum_is_high_also_after_jumps() -> None:
    for drift, least in (("none", 0.85), ("jump", 0.75)):
        world = linear_contexts(horizon=8_000, drift=drift, seed=1)
        best = ds.benchmarks.lp_contextual(world, tolerance=1e-6).value
        share = ds.simulate(world, LinearBwK(), trials=4, seed=0).reward.mean() / best
        assert share > least
        late = ds.simulate(world, LinearBwK(), trials=4, seed=0, feedback=Feedback(delay=20)).reward.mean() / best
        assert late > share - 0.05


def test_features_that_shift_are_followed() -> None:
    """By 6 standard deviations halfway, in a problem whose means stay. Without following them the share was 0.79."""
    world, rng = linear_contexts(horizon=6_000, seed=1), np.random.default_rng(0)
    order = world.drawn_order(rng).astype(np.int64)
    means = world.means_at(np.zeros_like(order), order)
    rewards, costs = ((rng.random(part.shape) < part).astype(np.float64) for part in means)
    shares = []
    for shift in (0.0, 6.0):
        contexts = world.contexts[order] + shift * (np.arange(6_000) >= 3_000)[:, None]
        shown = ds.ContextualInstance.by_table(contexts, rewards, costs, world.problem.budget, noise="deterministic")
        shares.append(ds.simulate(shown, LinearBwK(), trials=6, seed=0).reward.mean())
    assert shares[1] / shares[0] > 0.95


@pytest.mark.parametrize("policy", [LinearBwK(), DisjointBwK()], ids=lambda policy: type(policy).__name__)
def test_the_budget_is_spent_where_offers_are_expensive_and_rewards_are_rare(policy: ds.Policy) -> None:
    """An offer costs ten rounds' budgets and is rewarded in one of fifty cases, twice as often as no offer."""
    rewards = np.array([[0.01, 0.02, 0.01], [0.01, 0.01, 0.03]])
    costs = np.array([[[0.0, 1.0, 1.0]]] * 2)
    world = ds.ContextualInstance.by_table(np.eye(2), rewards, costs, budget=800, horizon=8_000)
    assert (ds.simulate(world, policy, trials=12, seed=2).spent / 800).min() > 0.98


def learner_of(policy: ds.Policy, **settings: Any) -> ds.Learner:
    encoder = ds.Encoder(numbers=["tokens"], categories={"kind": ["chat", "code"]})
    given = {"horizon": 400, "arms": ["small", "large"], "budget": {"usd": 40.0}, "features": encoder, **settings}
    return policy.start(ds.Problem(**given), seed=1)


def play(learner: ds.Learner, rounds: int, factor: float = 1.0) -> list[int]:
    """Chat is answered as well by the small arm, code only by the large one."""
    rng, arms = np.random.default_rng(learner.round), []
    for _ in range(rounds):
        kind = ("chat", "code")[int(rng.integers(2))]
        decision = learner.ask(context={"tokens": float(rng.integers(1, 1_000)), "kind": kind})
        arms.append(decision.arm)
        if not decision.skipped:
            good = kind == "chat" or decision.name == "large"
            learner.tell(decision, float(good), {"usd": (0.05, 0.2 * factor, 0.1)[decision.arm]})
    return arms


@pytest.mark.parametrize("policy", [LinearBwK(), DisjointBwK(feature="kind"), SquareCBwK(), PerSegment()], ids=str)
def test_a_learner_with_an_encoder_is_saved_grows_and_goes_on(policy: ds.Policy) -> None:
    learner = learner_of(policy)
    play(learner, 120)
    other = ds.Learner.from_bytes(learner.to_bytes())
    assert other.state_hash() == learner.state_hash()
    assert play(learner, 40) == play(other, 40)
    learner.add_arm("new")
    play(copy.deepcopy(learner), 40)
    assert "new" in {learner.problem.arm_names[arm] for arm in _arms_after(learner)}


def _arms_after(learner: ds.Learner) -> set[int]:
    """The arms of further rounds, all of which are told the same."""
    arms = set()
    for k in range(100):
        decision = learner.ask(context={"tokens": 10.0, "kind": ("chat", "code")[k % 2]})
        arms.add(decision.arm)
        if not decision.skipped:
            learner.tell(decision, 0.9, {"usd": 0.01})
    return arms - {ds.SKIP}


@pytest.mark.parametrize("policy", [LinearBwK(), DisjointBwK()], ids=lambda policy: type(policy).__name__)
def test_no_trial_gives_an_arm_up_for_good(policy: ds.Policy) -> None:
    """Every arm begins with rewards of 0 in some of the trials. A policy without contexts misses the bar in all."""
    world = ds.ContextualInstance.by_table(
        np.eye(2), [[0.9, 0.1], [0.1, 0.9]], [[[0.5, 0.2]], [[0.2, 0.5]]], budget=2_000, horizon=5_000
    )
    best = ds.benchmarks.lp_contextual(world).value
    assert (ds.simulate(world, policy, trials=40, seed=2).reward / best).min() > 0.9
    assert (ds.simulate(world, ds.Adaptive(), trials=40, seed=2).reward / best).max() < 0.9


@pytest.mark.parametrize("policy", [LinearBwK(), DisjointBwK()], ids=lambda policy: type(policy).__name__)
def test_rare_rewards_are_learnt(policy: ds.Policy) -> None:
    """One request in twenty is rewarded: the weights must prefer the mean of such rewards, not 0, their median."""
    rng = np.random.default_rng(7)
    rewards, costs = 0.1 * rng.random((4, 3)), 0.2 + 0.6 * rng.random((4, 1, 3))
    world = ds.ContextualInstance.by_table(np.eye(4), rewards, costs, budget=8_000, horizon=20_000)
    best = ds.benchmarks.lp_contextual(world).value
    assert ds.simulate(world, policy, trials=8, seed=2).reward.mean() / best > 0.9
    assert ds.simulate(world, ds.Adaptive(), trials=8, seed=2).reward.mean() / best < 0.9


@pytest.mark.parametrize("policy", [LinearBwK(), DisjointBwK()], ids=lambda policy: type(policy).__name__)
def test_scarce_budgets_are_no_reason_not_to_explore(policy: ds.Policy) -> None:
    """A pull costs 5 to 45 rounds' budgets, so few probes are expensive. Without contexts the bar is missed."""
    shares = {}
    for name, one in (("ours", policy), ("blind", ds.Adaptive())):
        found = []
        for seed in range(3):
            rng = np.random.default_rng(seed)
            rewards, costs = rng.random((3, 3)), 0.1 + 0.8 * rng.random((3, 1, 3))
            world = ds.ContextualInstance.by_table(np.eye(3), rewards, costs, budget=100, horizon=5_000)
            best = ds.benchmarks.lp_contextual(world).value
            found.append(ds.simulate(world, one, trials=16, seed=3).reward.mean() / best)
        shares[name] = np.mean(found)
    assert shares["ours"] > 0.65
    assert shares["blind"] < 0.65


def test_a_larger_reward_raises_the_noise_of_every_arm() -> None:
    """As if the largest reward had been known: the twin sees it first, and then the same outcomes."""
    problem = ds.Problem(horizon=100, arms=2, budget=50, features=1)
    late, early, terms = new_bank(problem, 2, None), new_bank(problem, 2, None), new_terms(problem)
    x, costs = np.array([0.3, 1.0]), np.array([0.5])
    for bank, rewards in ((late, [(0, 0.0)] * 6 + [(1, 1.0)]), (early, [(1, 1.0)] + [(0, 0.0)] * 6)):
        for t, (arm, reward) in enumerate(rewards):
            observe_context(bank, new_outcome(terms, t, arm, 1.0, reward, costs), x)
    share = PRIOR_ERRORS / (PRIOR_ERRORS + 5.0)  # of the prior, after six outcomes
    assert late.noise[0, 0] == pytest.approx(0.25 * share, rel=1e-6)
    assert late.noise[0, 0] < early.noise[0, 0] < late.noise[0, 0] + 0.1  # the twin was surprised by zeros


def test_an_announced_price_is_believed_at_once() -> None:
    told, not_told = learner_of(LinearBwK(), horizon=4_000), learner_of(LinearBwK(), horizon=4_000)
    for learner in (told, not_told):
        play(learner, 300)
    told.announce("large", cost_factor=0.1)
    assert terms_of(told).prices.usual[0].tolist() == pytest.approx([1.0, 0.1])
    assert play(told, 200, 0.1).count(1) > play(not_told, 200, 1.0).count(1)
    with pytest.raises(OutOfRangeError, match="above 0"):
        told.announce("large", cost_factor=0.0)
    with pytest.raises(NamesError):
        told.announce("huge", cost_factor=2.0)
    with pytest.raises(SettingError, match="cannot use an announcement"):
        learner_of(ds.policies.DualDescent()).announce("large", cost_factor={"usd": 2.0})


def test_dear_probes_are_capped() -> None:
    """An arm that costs fifty rounds' budgets and earns no more is hardly ever tried again."""
    world = ds.ContextualInstance.by_table(
        np.eye(2), [[0.8, 0.82]] * 2, [[[0.01, 0.5]]] * 2, budget=20.0, horizon=2_000, noise="beta"
    )
    expensive = ds.simulate(world, LinearBwK(), trials=4, seed=0).pulls[:, 1].mean()
    assert expensive <= 3
    assert expensive <= ds.simulate(world, LinearBwK(probe_share=1.0), trials=4, seed=0).pulls[:, 1].mean()


def test_what_makes_no_sense_is_refused() -> None:
    plain = ds.Problem(horizon=10, arms=2, budget=3)
    two = ds.Encoder(categories={"a": ["x"], "b": ["y"]})
    for policy in (LinearBwK(), DisjointBwK(), SquareCBwK(), PerSegment()):
        with pytest.raises(SettingError, match="features"):
            policy.start(plain)
    with pytest.raises(SettingError, match="name the one"):
        DisjointBwK().start(ds.Problem(horizon=10, arms=2, budget=3, features=two))
    with pytest.raises(NamesError, match="categories"):
        DisjointBwK(feature="c").start(ds.Problem(horizon=10, arms=2, budget=3, features=two))
    with pytest.raises(SettingError, match="no category"):
        DisjointBwK(feature="c").start(ds.Problem(horizon=10, arms=2, budget=3, features=3))
    with pytest.raises(OutOfRangeError, match="at most 1"):
        LinearBwK(forgetting=1.5)
    with pytest.raises(SettingError, match="without contexts"):
        PerSegment(base=LinearBwK())


@pytest.mark.parametrize("policy", [DisjointBwK(), PerSegment()], ids=lambda policy: type(policy).__name__)
def test_segments_that_cannot_be_told_are_refused(policy: ds.Policy) -> None:
    """Their largest number would be taken for the segment; one-hot rows without names, and spare slots, are fine."""
    bare = ds.Encoder(categories={"kind": ["chat", "code"]}, spare=0)
    for features, problem in ((bare, "no slot for unknown"), (["size", "age"], "which are numbers")):
        with pytest.raises(SettingError, match=problem):
            policy.start(ds.Problem(horizon=10, arms=2, budget=3, features=features))
    with pytest.raises(SettingError, match="which are numbers"):
        policy.start(ds.Problem(horizon=10, arms=2, budget=3, features=ds.Encoder(embeddings={"text": 4})))
    policy.start(ds.Problem(horizon=10, arms=2, budget=3, features=2)).ask(context=[0.0, 1.0])
    spare = ds.Encoder(categories={"kind": ["chat", "code"]})
    policy.start(ds.Problem(horizon=10, arms=2, budget=3, features=spare)).ask(context={"kind": "poem"})


def test_a_spending_plan_passes_announcements_on() -> None:
    """To what it wraps, if that can use them; other wrappers say that they cannot."""
    alone, paced = (learner_of(policy, horizon=4_000) for policy in (LinearBwK(), ds.SpendingPlan(LinearBwK())))
    for learner, choice in ((alone, alone.state.choice), (paced, paced.state.base.choice)):
        play(learner, 100)
        learner.announce("large", cost_factor=0.1)
        assert choice.price.announced[0] > 0
        assert terms_of(learner).prices.usual[0].tolist() == pytest.approx([1.0, 0.1])
    unable = ds.policies.DualDescent()
    for policy, name in ((ds.SpendingPlan(unable), "DualDescent"), (PerSegment(unable), "PerSegment")):
        with pytest.raises(SettingError, match=f"{name} cannot use an announcement.*alone or in a SpendingPlan"):
            learner_of(policy).announce("large", cost_factor=2.0)


@pytest.mark.parametrize("policy", [LinearBwK(), SquareCBwK()], ids=lambda policy: type(policy).__name__)
def test_an_announced_price_moves_the_prices_before_the_next_decision(policy: ds.Policy) -> None:
    """The best arm becomes 50 times as expensive. The planted fault: prices are corrected at the usual times."""
    used = {}
    for announced in (1, 0):
        learner = policy.start(ds.Problem(horizon=4_000, arms=2, budget=200, features=1), seed=3)
        for _ in range(2_110):  # of the next 40 rounds none is one in which prices are due
            _serve(learner, expensive=0.02)
        learner.announce(1, cost_factor=50.0)
        learner.state.choice.price.announced[0] *= announced
        before = float(learner.remaining[0])
        for _ in range(35):
            decision = _serve(learner, expensive=1.0)
            np.testing.assert_allclose(
                decision.prices, learner.state.choice.price.price / learner.state.choice.bank.unit
            )
        used[announced] = (before - float(learner.remaining[0])) / (35 * before / learner.rounds_left)
    assert used[1] < 1.5
    assert used[0] > 2.0 * used[1]


def _serve(learner: ds.Learner, expensive: float) -> ds.Decision:
    """One request: the second arm is better, and costs ``expensive``."""
    decision = learner.ask(context=[1.0])
    if not decision.skipped:
        learner.tell(decision, (0.4, 0.8)[decision.arm], [(0.1, expensive)[decision.arm]])
    return decision


def test_announcements_of_any_size_leave_a_sound_learner() -> None:
    """Costs that are announced to shrink or grow without end stay within what a bank and a file can hold."""
    for factor in (1e-6, 1e6):
        learner = LinearBwK().start(ds.Problem(horizon=4_000, arms=2, budget=200, features=1), seed=3)
        for _ in range(50):
            _serve(learner, expensive=0.5)
        for _ in range(60):
            learner.announce(1, cost_factor=factor)
        _serve(learner, expensive=0.5)
        assert ds.Learner.from_bytes(learner.to_bytes()).state_hash() == learner.state_hash()
