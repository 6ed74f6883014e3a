r"""Statements on :math:`W^{\min}`, the variation about the best centre (Appendix C.2), other than Claim 1."""

from __future__ import annotations

import numpy as np

from driftsack.benchmarks import lp_static, single_step
from driftsack.core.instance import Instance
from driftsack.instances import step_change
from driftsack.measures import variation
from driftsack.verify.instance_search import instance_of, searched_margins
from driftsack.verify.lp_inequalities import lp_values, pairwise
from driftsack.verify.statement import CORRECTED, HOLDS, Effort, Finding, Statement, judge_correction, judge_margins


def claim_2(effort: Effort, planted: bool) -> Finding:
    """Pairs in the hull satisfy the price bound: false. With the pairwise repair the regret bound does not need it.

    Planted: the repair with a third of its measure.
    """
    two = instance_of(np.array([[[1.0], [0.4]], [[0.0], [1.0]]]), 0.5)
    rows = single_step(two).row_prices
    pair = instance_of(np.array([[[1.0], [1.0]]]), 0.5)  # mu of the first round, C of the second
    printed = float(np.max(rows if rows is not None else 0.0)) - float(np.max(lp_static(pair).prices or 0.0))
    return judge_correction(
        printed, pairwise(effort, planted), f"one arm, (1, 0.4) then (0, 1), b = 1/2: {printed:.3f}"
    )


def w_min(effort: Effort, planted: bool) -> Finding:
    """LP <= sum LP_t + 2 (W1_min + q W2_min), prices of single rounds: by the pairwise repair. Planted: without W."""
    share = 0.0 if planted else 2.0

    def margin(world: Instance) -> float:
        values, steps = lp_values(world), single_step(world)
        largest = float(np.max(steps.row_prices)) if steps.row_prices is not None else 0.0
        return values.even + share * (values.moves.w1_min + largest * values.moves.w2_min) - values.dynamic

    finding = judge_margins(searched_margins(margin, effort, 12), "sum of LP_t + 2(W1_min + q̄W2_min) - LP")
    return finding._replace(verdict=CORRECTED if finding.verdict == HOLDS else finding.verdict)


def step_change_measures(effort: Effort, planted: bool) -> Finding:
    """One arm that earns 1 for k rounds, then 0: W1_min = min(k, T - k), W1 = 2k(T - k)/T; equal at k = T/2.

    Planted: min(k, T - k) + 1.
    """
    horizon = effort.pick(60, 400)
    differences = []
    for k in range(1, horizon):
        moves = variation(step_change(k, horizon), tolerance=1e-9)
        expected = min(k, horizon - k) + (1.0 if planted else 0.0)
        differences.append(-max(abs(moves.w1_min - expected), abs(moves.w1 - 2 * k * (horizon - k) / horizon)))
    return judge_margins(differences, "minus the distance from the closed forms", tolerance=1e-5)


STATEMENTS = (
    Statement("claim-2", "Appendix C.2, Claim 2", "pairs in the hull keep the price bound", CORRECTED, claim_2),
    Statement("w-min", "Appendix C.2, Proposition", "W may be replaced by W_min", CORRECTED, w_min),
    Statement("step-change", "Appendix C.2, Figure 3", "W1_min = min(k, T - k)", HOLDS, step_change_measures),
)
