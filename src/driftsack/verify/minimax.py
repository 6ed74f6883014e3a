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
from driftsack.verify.statement import HOLDS, Case, Effort, Finding, Statement, judge_margins

LEAST_RATIO = 0.2  # relative to W1 + q̄W2


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


def motivating_example(effort: Effort, case: Case) -> Finding:
    """Check section 2.1: the regret in the worse future is exactly TΔ/4. Planted: TΔ/3."""
    share, known = 3.0 if case is Case.PLANTED else 4.0, 0.0 if case is Case.TRIVIAL else 1.0
    horizon, differences = 10_000, []
    for delta in np.linspace(0.05, 1.0, effort.pick(10, 50)).tolist():
        value = known * minimax_regret([motivating(delta, better, horizon) for better in (True, False)])
        differences.append(-abs(value - horizon * delta / share) / horizon)
    return judge_margins(differences, "minus |minimax regret - TΔ/4| / T")


def trap(effort: Effort, case: Case) -> Finding:
    """Check Theorem 2 (iii) exactly: the minimax regret of the construction is at least a fifth of W1 + q̄W2.

    Planted: at least 0.6 of it. The changes are at most 30% of the reward and of the cost: as the cost of the better
    future vanishes, q̄ grows without limit and the ratio falls (0.12 at 50%).
    """
    least, known = 0.6 if case is Case.PLANTED else LEAST_RATIO, 0.0 if case is Case.TRIVIAL else 1.0
    horizon, ratios = 10_000, []
    sizes = (0.0, 0.3) if effort.quick else (0.0, 0.1, 0.2, 0.3)
    rates, rewards = ((0.05, 0.45), (0.5,)) if effort.quick else ((0.05, 0.25, 0.45), (0.2, 0.5))
    for rate, reward, first, second in product(rates, rewards, sizes, sizes):
        if first == second == 0.0:
            continue
        w1, w2 = first * reward * horizon / 2, second * min(2 * rate, 1 - 2 * rate) * horizon / 2
        futures = [budget_trap(horizon, w1, w2, rate, reward, better) for better in (True, False)]
        moves = [variation(world) for world in futures]
        budgets = [one.w1 + one.q_bar_full_interval.largest * one.w2 for one in moves]
        ratios.append(known * minimax_regret(futures) / max(budgets))
    note = f"minimax regret / (W1 + q̄W2) - {least:g}; the ratio is {min(ratios):.2f} to {max(ratios):.2f}"
    return judge_margins((ratio - least for ratio in ratios), note)


STATEMENTS = (
    Statement("motivating-example", "Section 2.1", "TΔ/4 is lost in the worse future", HOLDS, motivating_example, ZERO),
    Statement("theorem-2-iii-exact", "Theorem 2 (iii)", "minimax regret of the construction", HOLDS, trap, ZERO),
)
