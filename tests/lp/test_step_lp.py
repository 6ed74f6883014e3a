"""The step LP against certificates, HiGHS and exact arithmetic."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp

from driftsack.core.arrays import Floats, Ints
from driftsack.core.errors import NotFiniteError, OutOfRangeError, ShapeError
from driftsack.lp import certificate, step_lp
from driftsack.lp.fallback import solve_program
from driftsack.lp.step import new_step_lp, rescue_failed
from driftsack.numerics import simplex
from tests.support import naive
from tests.support.step_lp_replay import replay

Program = tuple[Floats, Floats, Floats]


@st.composite
def programs(draw: st.DrawFn, most_arms: int = 12, most_resources: int = 5) -> Program:
    """Random, tied, degenerate, negative-cost and badly scaled step LPs."""
    arms = draw(st.integers(1, most_arms))
    resources = draw(st.integers(1, most_resources))
    entries = draw(
        st.sampled_from(
            [
                st.floats(-8, 8).map(lambda x: x if abs(x) > 1e-6 else 0.0),  # unclipped confidence bounds
                st.sampled_from([0.0, 0.5, 1.0]),  # ties and degenerate vertices everywhere
                st.sampled_from([-1.0, 0.0, 1e-4, 1.0, 1e4]),  # huge ratios
                st.just(1.0),
            ]
        )
    )
    rewards = draw(hnp.arrays(np.float64, arms, elements=entries))
    costs = draw(hnp.arrays(np.float64, (resources, arms), elements=entries))
    rates = st.sampled_from([0.0, 0.25, 0.5, 1.0, 10.0]) | st.floats(1e-6, 1)
    return rewards, costs, draw(hnp.arrays(np.float64, resources, elements=rates))


def scaled(program: Program) -> Program:
    """The same program in units in which no coefficient exceeds 1."""
    rewards, costs, rate = program
    most = np.abs(costs).max(axis=1)
    most[most == 0] = 1.0
    return rewards / (np.abs(rewards).max() or 1.0), costs / most[:, None], np.minimum(rate, 2 * most) / most


def by_highs(program: Program) -> Floats:
    rewards, costs, rate = program
    ones = np.ones((1, rewards.size))
    return solve_program(rewards, np.vstack([costs, ones]), np.append(rate, 1.0))[0]


@pytest.mark.slow
@settings(max_examples=1500)
@given(programs())
def test_certificate_and_highs(program: Program) -> None:
    program = scaled(program)
    best = step_lp(*program)
    proof = certificate(*program, best.mix, best.prices)
    assert best.status == "optimal"
    assert max(map(abs, proof)) <= 1e-9
    mix = by_highs(program)
    overspent = np.maximum(program[1] @ mix - program[2], 0.0)  # up to HiGHS's tolerance, valued at the prices
    assert best.value == pytest.approx(program[0] @ mix, abs=1e-9 + float(best.prices @ overspent))
    assert best.value == pytest.approx(program[0] @ best.mix, abs=1e-15)


@settings(max_examples=300)
@given(programs(most_arms=4, most_resources=2))
def test_value_is_exact(program: Program) -> None:
    """It lies between the exact values at rates lower and higher by 1e-9, which bounds the effect of rounding."""
    rewards, costs, rate = scaled(program)
    value = step_lp(rewards, costs, rate).value
    assert value >= naive.step_lp_value(rewards, costs, np.maximum(rate - 1e-9, 0.0)) - 1e-9
    assert value <= naive.step_lp_value(rewards, costs, rate + 1e-9) + 1e-9


def test_certificate_catches_planted_faults() -> None:
    program = (np.array([0.5, 1.0]), np.array([[0.2, 1.0]]), np.array([0.5]))
    best = step_lp(*program)
    assert certificate(*program, best.mix * 0.99, best.prices).gap > 1e-3
    assert certificate(*program, best.mix * 1.01, best.prices).infeasibility > 1e-3
    assert certificate(*program, best.mix, best.prices * 1.01).slackness > 1e-3


def test_permuting_arms_or_resources_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    for _ in range(100):
        rewards, costs, rate = rng.random(6), rng.random((3, 6)) - 0.2, rng.random(3)
        best = step_lp(rewards, costs, rate)
        arms, resources = rng.permutation(6), rng.permutation(3)
        other = step_lp(rewards[arms], costs[resources][:, arms], rate[resources])
        assert other.value == pytest.approx(best.value, abs=1e-12)
        np.testing.assert_allclose(other.mix, best.mix[arms], atol=1e-9)
        np.testing.assert_allclose(other.prices, best.prices[resources], atol=1e-9)


def test_one_rate_serves_every_resource_and_units_do_not_matter() -> None:
    costs = np.array([[0.2, 1.0], [0.6, 0.1]])
    best = step_lp([0.5, 1.0], costs, 0.3)
    assert best.value == step_lp([0.5, 1.0], costs, [0.3, 0.3]).value
    cents = step_lp([0.5, 1.0], costs * [[100.0], [1.0]], [30.0, 0.3])
    assert cents.value == pytest.approx(best.value, rel=1e-12)
    np.testing.assert_allclose(cents.prices * [100.0, 1.0], best.prices, rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (([0.5], [[0.1, 0.2]], 1.0), ShapeError, "costs must be numbers of shape"),
        (([0.5], [[0.1]], [1.0, 2.0]), ShapeError, "rate must be numbers of shape"),
        (([np.nan], [[0.1]], 1.0), NotFiniteError, "rewards must be finite, got nan"),
        (([0.5], [[np.inf]], 1.0), NotFiniteError, "costs must be finite, got inf"),
        (([0.5], [[0.1]], -1.0), OutOfRangeError, "rate must lie in"),
        ((["a"], [[0.1]], 1.0), ShapeError, "rewards must be an array of numbers"),
    ],
)
def test_bad_input(arguments: tuple[object, object, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        step_lp(*arguments)  # type: ignore[arg-type]


class Tape(NamedTuple):
    """Changes of columns, round by round, as ``replay`` reads them."""

    starts: Ints
    arms: Ints
    rewards: Floats
    costs: Floats


def random_rounds(rounds: int, arms: int, resources: int, seed: int) -> Tape:
    """Changes of one or two columns per round; a third of the values lie on a coarse grid, which causes many ties."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0, arms], arms + np.cumsum(rng.integers(1, 3, rounds - 1))])
    values = rng.uniform(-2, 3, (starts[-1], resources + 1))
    coarse = rng.random(values.shape) < 1 / 3
    values[coarse] = np.round(values[coarse])
    changed = rng.integers(0, arms, starts[-1])
    changed[:arms] = np.arange(arms)
    return Tape(starts, changed, values[:, 0].copy(), values[:, 1:].copy())


def worst_certificate(lp: simplex.Simplex, tape: Tape, first: int, last: int) -> float:
    """The largest gap, infeasibility or slackness product of the rounds from first to last, one at a time."""
    count, worst = lp.solution.size, 0.0
    for r in range(first, last):
        replay(lp, tape.starts[r : r + 2], tape.arms, tape.rewards, tape.costs, False, np.zeros(1))
        rescue_failed(lp)
        proof = certificate(lp.objective[:count], lp.columns[:-1, :count], lp.rhs[:-1], lp.solution, lp.duals[:-1])
        worst = max(worst, *map(abs, proof))
    return worst


@pytest.mark.slow
def test_certificates_do_not_degrade_over_a_million_warm_starts() -> None:
    rounds, arms, resources = 1_000_000, 6, 3
    tape = random_rounds(rounds, arms, resources, seed=0)
    lp = new_step_lp(arms, np.array([0.3, 0.5, 0.0]))
    first = worst_certificate(lp, tape, 0, 1000)
    failed = 0
    for begin in range(1000, rounds - 1000, 1000):  # the rates change too, as under the remaining-budget rule
        lp.rhs[:-1] = [0.3 + 0.2 * np.sin(begin), 0.5 * np.cos(begin) ** 2, 1e-3 * (begin % 3000)]
        part = tape.starts[begin : begin + 1001]
        failed += replay(lp, part, tape.arms, tape.rewards, tape.costs, False, np.zeros(1000))
    last = worst_certificate(lp, tape, rounds - 1000, rounds)
    assert failed == 0
    assert first <= 1e-10
    assert last <= 1e-10
    assert lp.counts[simplex.PIVOTS] > 100_000  # the sequence requires many pivots


@pytest.mark.parametrize(("arms", "resources"), [(2, 2), (10, 3), (40, 10)])
def test_warm_equals_cold(arms: int, resources: int) -> None:
    tape = random_rounds(3000, arms, resources, seed=1)
    values = [np.zeros(3000), np.zeros(3000)]
    for cold, into in zip((False, True), values, strict=True):
        lp = new_step_lp(arms, np.full(resources, 0.3))
        assert replay(lp, tape.starts, tape.arms, tape.rewards, tape.costs, cold, into) == 0
    np.testing.assert_allclose(values[0], values[1], atol=1e-9)
    assert np.unique(values[0]).size > 1000  # the values do change


def test_compiled_and_python_agree() -> None:
    python = getattr(simplex.solve, "py_func", None)
    assert python is not None
    rng = np.random.default_rng(3)
    for _ in range(50):
        pair = [new_step_lp(5, np.full(3, 0.4)) for _ in range(2)]
        rewards, costs = rng.random(5), rng.random((3, 5)) - 0.3
        for lp, function in zip(pair, (simplex.solve, python), strict=True):
            lp.objective[:5], lp.columns[:-1, :5] = rewards, costs
            assert function(lp) == simplex.OPTIMAL
        np.testing.assert_array_equal(pair[0].solution, pair[1].solution)
        np.testing.assert_array_equal(pair[0].duals, pair[1].duals)


def test_refactorisation_repairs_a_planted_error_in_the_inverse() -> None:
    lp = new_step_lp(2, np.array([0.5]))
    lp.objective[:2], lp.columns[0, :2] = [0.5, 1.0], [0.2, 1.0]
    assert simplex.solve(lp) == simplex.OPTIMAL
    right = lp.solution.copy()
    lp.inverse[:] += 1e-7
    assert simplex.solve(lp) == simplex.OPTIMAL
    np.testing.assert_allclose(lp.solution, right, atol=1e-14)
    assert lp.counts[simplex.REFACTORISATIONS] == 1
    assert lp.counts[simplex.RESTARTS] == 0


def test_refactorisation_inverts_any_basis() -> None:
    rng = np.random.default_rng(8)
    for rows in (1, 2, 3, 7):
        for _ in range(50):
            lp = simplex.new_simplex(rows, rows + 2)
            lp.columns[:, : rows + 2] = rng.normal(size=(rows, rows + 2)) * 10.0 ** rng.integers(-2, 3)
            lp.basis[:] = rng.permutation(2 * rows + 2)[:rows]
            basis = lp.columns[:, lp.basis]
            if np.linalg.cond(basis) < 1e8:
                assert simplex.refactorise(lp)
                np.testing.assert_allclose(lp.inverse @ basis, np.eye(rows), atol=1e-7)
    lp = simplex.new_simplex(2, 2)
    lp.columns[:, :2] = 1.0
    lp.basis[:] = [0, 1]
    assert not simplex.refactorise(lp)  # the planted fault: two equal columns


@pytest.mark.parametrize(
    ("rewards", "costs"),
    [
        ([2.4641, 0.0363], [[-0.0106, 1.8296], [0.0016, -0.275]]),
        ([3.3787, -0.036, -0.036], [[-1.5602, 7.5242, 7.5242], [0.0028, -0.0135, -0.0135]]),
    ],
)
def test_degenerate_programs_with_large_prices(rewards: list[float], costs: list[list[float]]) -> None:
    """At rate zero, near-parallel and identical columns: rounding in the reduced costs must not cause cycling."""
    lp = new_step_lp(len(rewards), np.zeros(2))
    lp.objective[: len(rewards)], lp.columns[:-1, : len(rewards)] = rewards, costs
    assert simplex.solve(lp) == simplex.OPTIMAL
    assert lp.counts[simplex.PIVOTS] < 20
    exact = naive.step_lp_value(np.array(rewards), np.array(costs), np.zeros(2))
    assert rewards @ lp.solution == pytest.approx(float(exact), abs=1e-9)


def test_a_failed_program_is_solved_by_highs() -> None:
    lp = new_step_lp(2, np.array([0.5]))
    lp.objective[:2], lp.columns[0, :2] = [0.5, 1.0], [0.2, 1.0]
    lp.counts[simplex.STATUS] = simplex.FAILED
    assert rescue_failed(lp)
    assert simplex.solve(lp) == simplex.OPTIMAL  # accepts the given solution
    np.testing.assert_allclose(lp.solution, [0.625, 0.375], atol=1e-9)
    np.testing.assert_allclose(lp.duals, [0.625, 0.375], atol=1e-9)
    assert not rescue_failed(lp)


def test_a_given_solution_is_dropped_when_the_data_change() -> None:
    lp = new_step_lp(1, np.array([0.2]))
    lp.objective[0], lp.columns[0, 0] = 1.0, 0.5
    lp.counts[simplex.STATUS] = simplex.FAILED
    rescue_failed(lp)
    lp.columns[0, 0] = 1.0
    simplex.column_changed(lp, 0)
    assert simplex.solve(lp) == simplex.OPTIMAL
    np.testing.assert_allclose(lp.solution, [0.2])


@pytest.mark.parametrize(
    ("rewards", "costs"),
    [
        ([2.0, 3.0, -1.0, -12.0], [[-2.0, -9.0, 1.0, 9.0], [1 / 3, 1.0, -1 / 3, -2.0]]),  # Kuhn
        ([10.0, -57.0, -9.0, -24.0], [[0.5, -5.5, -2.5, 9.0], [0.5, -1.5, -0.5, 1.0]]),  # Marshall and Suurballe
    ],
)
def test_blands_rule_prevents_cycling(rewards: list[float], costs: list[list[float]]) -> None:
    """Textbook examples in which the rule of the largest reduced cost cycles and Bland's rule does not."""
    lp = new_step_lp(4, np.zeros(2))
    lp.objective[:4], lp.columns[:-1, :4] = rewards, costs
    assert simplex.solve(lp) == simplex.OPTIMAL
    assert lp.counts[simplex.PIVOTS] > 20 + 5 * 3  # it still cycled when Bland's rule took over
    exact = naive.step_lp_value(np.array(rewards), np.array(costs), np.zeros(2))
    assert rewards @ lp.solution == pytest.approx(float(exact), abs=1e-9)


def test_badly_scaled_programs_are_solved_or_fall_back() -> None:
    rng = np.random.default_rng(5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(300):
            costs = rng.random((4, 9)) * 10.0 ** rng.integers(-12, 12, (4, 9))
            program = scaled((rng.random(9), costs, rng.random(4) * 10.0 ** rng.integers(-6, 6, 4)))
            best = step_lp(*program)
            proof = certificate(*program, best.mix, best.prices)
            limit = 1e-9 if best.status == "optimal" else 1e-7  # HiGHS's own tolerance
            assert max(proof.gap, proof.infeasibility, proof.slackness) <= limit


def random_state(seed: int) -> simplex.Simplex:
    """A program with random data, some weights of zero, and reduced costs of every size, also of basic columns."""
    rng = np.random.default_rng(seed)
    lp = simplex.new_simplex(int(rng.integers(1, 7)), int(rng.integers(1, 40)))
    lp.columns[:] = rng.standard_normal(lp.columns.shape)
    lp.objective[:] = rng.standard_normal(lp.objective.size)
    lp.duals[:] = rng.standard_normal(lp.rhs.size) * (rng.random(lp.rhs.size) < 0.6)
    lp.reduced[:] = rng.standard_normal(lp.reduced.size) * 10.0 ** rng.integers(-14, 1, lp.reduced.size)
    lp.reduced[lp.basis] *= 10.0 ** rng.integers(-6, 0)
    return lp


def entering_by_definition(lp: simplex.Simplex, bland: bool) -> int:
    """The slow twin of ``pick_entering``: nonbasic columns whose reduced cost exceeds the noise of basic ones."""
    noise = np.abs(lp.reduced[lp.basis]).max()
    least = max(simplex.TOLERANCE, min(4.0 * noise, simplex.LARGEST_RESIDUAL))
    enter = np.flatnonzero((lp.reduced > least) & (lp.position < 0))
    if not enter.size:
        return -1
    return int(enter[0] if bland else enter[np.argmax(lp.reduced[enter])])


def test_two_rows_at_a_time_give_the_bits_of_row_by_row_and_the_right_column_enters() -> None:
    """A column that never enters, or the largest one under Bland's rule, would be noticed."""
    entered = []
    for seed in range(300):
        lp = random_state(seed)
        slow, fast = lp.objective.copy(), lp.objective.copy()
        for i in range(lp.rhs.size):
            slow -= lp.duals[i] * lp.columns[i]
        simplex.subtract_rows(lp, lp.duals, fast)
        assert (slow == fast).all()
        found = [simplex.pick_entering(lp, bland) for bland in (False, True)]
        assert found == [entering_by_definition(lp, bland) for bland in (False, True)]
        entered.append(found)
    largest, lowest = np.array(entered).T
    assert (largest < 0).any()
    assert (largest >= 0).any()
    assert (largest != lowest).any()
