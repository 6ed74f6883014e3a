"""Theorem 3 as fitted exponents of T, and the regret that W causes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from driftsack import oco
from driftsack.paper import oco as work
from driftsack.sweeps.growth import Growth

HORIZONS = (1_000, 10_000, 100_000, 1_000_000)
WORLDS = {world.name: world for world in work.WORLDS}


@pytest.mark.parametrize(("name", "draws"), [("still constraints", 3), ("drawn constraints", 3), ("job scheduling", 3)])
def test_theorem_3(name: str, draws: int) -> None:
    """Over T = 10³ … 10⁶ the violation has exponent ½ up to 0.08, and Reg1 - q̄W at most that."""
    study = work.study(WORLDS[name], oco.VirtualQueue(), HORIZONS, draws)
    slope = study.exponent(study.violation)
    assert slope is not None
    assert 0.4 <= slope.value <= 0.58
    over = study.exponent(study.regret - study.allowance)
    assert over is None or over.value <= 0.58


def test_the_stochastic_setting_with_a_changing_distribution() -> None:
    """With constraints drawn from P_t, which changes at T/2, expected Reg2 grows as √T and Reg1 is below √T + q̄W."""
    means, errors = [], []
    for horizon in HORIZONS[:3]:
        world = dataclasses.replace(oco.instances.one_switch(horizon=horizon), noise=0.5)
        best = oco.static_optimum(world)
        estimate = oco.DriftPlusPenalty().play(world, trials=30, seed=1).expected(best)
        allowed = oco.q_bar(world) * oco.global_variation(world).value
        assert estimate.regret + 4 * estimate.regret_error <= np.sqrt(horizon) + allowed
        assert estimate.violation_error > 0.0
        means.append(estimate.violation)
        errors.append(estimate.violation_error)
    slope = Growth(np.array(HORIZONS[:3]), np.array(means), np.array(errors)).slope()
    assert slope.value <= 0.5 + 4 * slope.error


def test_printed_parameters_have_linear_regret() -> None:
    """As the errata say: the exponent is 1, and the correct parameters have far less regret."""
    short = HORIZONS[:3]
    printed = work.study(WORLDS["still constraints"], oco.VirtualQueue(parameters="printed"), short, 3)
    right = work.study(WORLDS["still constraints"], oco.VirtualQueue(), short, 3)
    slope = printed.exponent(printed.regret)
    assert slope is not None
    assert slope.value == pytest.approx(1.0, abs=0.03)
    assert (printed.regret[:, -1] > 50 * np.abs(right.regret[:, -1])).all()


def test_fair_losses_show_root_t_regret() -> None:
    """If all decisions have the same expected loss, Reg1 itself grows as √T."""
    study = work.study(WORLDS["fair losses"], oco.VirtualQueue(), HORIZONS[:3], 8)
    slope = study.exponent(study.regret)
    assert slope is not None
    assert abs(slope.value - 0.5) < 0.2  # three standard errors of the fit


def test_regret_grows_with_w_and_is_bounded() -> None:
    """On the tight-then-loose problem Reg1 is about half of W, and below √T + q̄W."""
    horizon = 20_000
    part = work.against_w(lambda shift: oco.instances.tight_then_loose(horizon, shift), (0.05, 0.1, 0.3))
    assert np.allclose(part.variation, horizon * part.shifts)
    assert (part.regret <= np.sqrt(horizon) + part.allowance).all()
    assert (part.regret[1:] >= 0.3 * part.variation[1:]).all()
    assert np.allclose(part.between, part.variation, atol=1e-6)


def test_the_baselines_have_more_violation() -> None:
    """The violation is linear without constraints, about T^(3/4) at most with a penalty, and least with queues."""
    world = WORLDS["still constraints"]
    algorithms = (oco.OnlineGradient(), oco.PenalisedPrimalDual(), oco.VirtualQueue())
    greedy, penalised, queue = (work.study(world, algorithm, HORIZONS[:3], 3) for algorithm in algorithms)
    slopes = [part.exponent(part.violation) for part in (greedy, penalised)]
    assert slopes[0] is not None
    assert slopes[0].value == pytest.approx(1.0, abs=0.05)
    assert slopes[1] is None or slopes[1].value <= 0.8
    assert (greedy.violation[:, -1] > 20 * queue.violation[:, -1]).all()


def test_penalties_bound_the_hard_violation_and_the_virtual_queue_does_not() -> None:
    """From T = 10⁴ to 10⁶ the hard violation of the virtual queue is linear, that of the penalty grows as √T log T."""
    horizons, exponents = (10_000, 1_000_000), []
    for algorithm in (oco.VirtualQueue(), oco.ExponentialPenalty(), oco.ExponentialPenalty(anytime=True)):
        worlds = [oco.instances.tight_and_loose(horizon) for horizon in horizons]
        first, last = (float(algorithm.play(world).hard_violation[0]) for world in worlds)
        exponents.append(np.log(last / first) / np.log(100))
    assert exponents[0] == pytest.approx(1.0, abs=0.02)
    assert max(exponents[1:]) < 0.65
