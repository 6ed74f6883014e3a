r"""Compute the exact minimax regret where nature chooses between two futures: section 2.1 and Theorem 2 (iii).

There is one arm and one resource. A policy can only choose the number n of plays in the first half; in the second half
it plays as often as the budget allows. Its reward in each future is a concave function of n, so randomising n does not
help, and the minimax regret is a linear program in n, the plays k of each future and the regret z:

.. math:: \min z \quad \text{s.t. } z \ge \mathrm{OPT}_f - r n - r_f k_f,\;
          c_f k_f + c n \le B,\; 0 \le k_f, n \le T/2, \; f = 1, 2 .
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from scipy.optimize import linprog

from driftsack.benchmarks import lp_dynamic
from driftsack.core.instance import Instance
from driftsack.instances import budget_trap, motivating
from driftsack.measures import variation
from driftsack.verify.answers import ZERO
from driftsack.verify.statement import (
    FALSE_AS_PRINTED,
    HOLDS,
    Case,
    Effort,
    Finding,
    Statement,
    judge_closed_form,
    judge_correction,
)


def minimax_regret(futures: Sequence[Instance]) -> float:
    """Minimise over plays of the first half the largest regret in the futures, which agree in that half.

    The futures have one arm and one resource.

    >>> round(minimax_regret([motivating(0.5, better, 1_000) for better in (True, False)]), 6)   # T Δ / 4
    125.0
    """
    first, budget = futures[0], float(futures[0].problem.budget[0])
    half = first.horizon // 2
    size = 2 + len(futures)  # n, then the plays of each future, then z
    rows, limits = [], []
    for k, world in enumerate(futures):
        loss, use = np.zeros(size), np.zeros(size)
        loss[[0, 1 + k, -1]] = -world.rewards[0, 0], -world.rewards[1, 0], -1.0
        use[[0, 1 + k]] = world.costs[0, 0, 0], world.costs[1, 0, 0]
        rows += [loss, use]
        limits += [-lp_dynamic(world).value, budget]
    bounds = [(0.0, float(half))] * (size - 1) + [(0.0, None)]
    return float(linprog(np.eye(size)[-1], A_ub=np.array(rows), b_ub=np.array(limits), bounds=bounds).fun)


def motivating_example(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check section 2.1: the regret in the worse future is exactly TΔ/4."""
    known, horizon, pairs = 0.0 if case is Case.TRIVIAL else 1.0, 10_000, []
    for delta in np.linspace(0.05, 1.0, effort.pick(10, 50)).tolist():
        value = known * minimax_regret([motivating(delta, better, horizon) for better in (True, False)])
        pairs.append((value / horizon, delta / 4.0))
    note = "minus |minimax regret - TΔ/4| / T; for Δ > 0 the better future has rewards above 1, so scale by 1 + Δ"
    return judge_closed_form(pairs, note, factor=factor)


def trap_forms(rate: float, reward: float, changes: tuple[float, float]) -> tuple[float, float]:
    r"""The minimax regret of the trap per round, and its ratio to W1 + q̄W2, in closed form.

    With :math:`x = \Delta_1 / r` and :math:`y = \Delta_2 / 2b` they are :math:`r (x + y)(1 - y) / 4` and, for
    :math:`y < 1/2`, :math:`(1 - y)^2 / 2`.

    >>> trap_forms(0.25, 0.5, (0.0, 0.1))
    (0.02, 0.32)
    """
    x, y = changes[0] / reward, changes[1] / (2.0 * rate)
    return round(reward * (x + y) * (1.0 - y) / 4.0, 12), round((1.0 - y) ** 2 / 2.0, 12)


def trap(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check Theorem 2 (iii): the minimax regret of the construction, and its ratio (1 - y)²/2 to W1 + q̄W2, y < 1/2.

    As printed the regret is Θ(W1 + q̄W2). The ratio is at least 1/5 for y <= 0.367, and it vanishes as y approaches 1,
    where the better future is nearly free.
    """
    known, horizon, pairs = 0.0 if case is Case.TRIVIAL else 1.0, 10_000, []
    shares = (0.0, 0.3, 0.49) if effort.quick else (0.0, 0.1, 0.2, 0.3, 0.4, 0.49)
    rates, rewards = ((0.05, 0.25), (0.5,)) if effort.quick else ((0.05, 0.15, 0.25), (0.2, 0.5))
    for rate, reward, first, second in product(rates, rewards, shares, shares):
        if first == second == 0.0:
            continue
        value, budget = trap_value(horizon, rate, reward, (first * reward, second * 2 * rate))
        regret, ratio = trap_forms(rate, reward, (first * reward, second * 2 * rate))
        pairs += [(known * value / horizon, regret), (known * value / budget, ratio)]
    late = [trap_value(horizon, 0.25, 0.5, (0.0, y / 2.0)) for y in (0.5, 0.9, 0.99)]
    ratios = [value / budget for value, budget in late]
    text = ", ".join(f"{ratio:.3f}" for ratio in ratios)
    repaired = judge_closed_form(pairs, "minus the distance from the closed forms", 1e-6, factor)
    return judge_correction(ratios[-1] - 0.01, repaired, f"the ratio for y = 0.5, 0.9 and 0.99 is {text}")


def trap_value(horizon: int, rate: float, reward: float, changes: tuple[float, float]) -> tuple[float, float]:
    """The minimax regret of the trap, and the larger W1 + q̄W2 of its futures with the largest optimal prices."""
    w1, w2 = (change * horizon / 2 for change in changes)
    futures = [budget_trap(horizon, w1, w2, rate, reward, better) for better in (True, False)]
    moves = [variation(world) for world in futures]
    return minimax_regret(futures), max(one.w1 + one.q_bar_full_interval.largest * one.w2 for one in moves)


STATEMENTS = (
    Statement(
        "motivating-example",
        "Section 2.1",
        "TΔ/4 is lost in the worse future",
        HOLDS,
        motivating_example,
        ZERO,
        "TΔ/4",
    ),
    Statement(
        "theorem-2-iii",
        "Theorem 2 (iii)",
        "the construction's minimax regret is Θ(W1 + q̄W2)",
        FALSE_AS_PRINTED,
        trap,
        ZERO,
        "the closed forms",
    ),
)
