r"""Check the statements on :math:`W^{\min}`, the variation about the best centre (Appendix C.2), except Claim 1."""

from __future__ import annotations

import numpy as np

from driftsack.core.instance import Instance
from driftsack.instances import step_change
from driftsack.measures import variation
from driftsack.verify.answers import ZERO, Answers
from driftsack.verify.instance_search import instance_of, searched_sides
from driftsack.verify.lp_inequalities import pairwise
from driftsack.verify.statement import (
    FALSE_AS_PRINTED,
    HOLDS,
    PROOF_VOID,
    Case,
    Effort,
    Finding,
    Sides,
    Statement,
    judge_closed_form,
    judge_correction,
    judge_sides,
)


def hull_pair_margin() -> float:
    """The margin of Claim 2 on its counterexample: the largest price of a round minus that of a pair in the hull."""
    two = Answers(instance_of(np.array([[[1.0], [0.4]], [[0.0], [1.0]]]), 0.5))
    pair = Answers(instance_of(np.array([[[1.0], [1.0]]]), 0.5))  # mu of the first round, C of the second
    return two.moves.q_bar_interval.largest - pair.moves.q_bar_interval.least


def claim_2(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check that pairs in the hull satisfy the price bound: false, but the pairwise repair does not need it."""
    printed = hull_pair_margin()
    return judge_correction(
        printed, pairwise(effort, case, factor), f"one arm, (1, 0.4) then (0, 1), b = 1/2: {printed:.3f}"
    )


def w_min(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check LP <= sum LP_t + 2 (W1_min + q W2_min): true by the pairwise repair, although Claim 2 is false."""

    def sides(world: Instance) -> Sides:
        answers = Answers(world, case)
        allowed = answers.moves.w1_min + answers.row_price * answers.moves.w2_min
        return Sides(answers.dynamic - answers.even, 2.0 * allowed)

    found = searched_sides(sides, effort.for_case(case), 12)
    conclusion = judge_sides(found, "sum of LP_t + 2(W1_min + q̄W2_min) - LP", factor=factor)
    note = f"the proof uses Claim 2, which fails by {hull_pair_margin():.3f}"
    return judge_correction(hull_pair_margin(), conclusion, note, PROOF_VOID)


def step_change_measures(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check W1_min = min(k, T - k) and W1 = 2k(T - k)/T for an arm that earns 1 for k rounds, then 0."""
    horizon = effort.pick(60, 400)
    known = 0.0 if case is Case.TRIVIAL else 1.0
    pairs = []
    for k in range(1, horizon):
        moves = variation(step_change(k, horizon), tolerance=1e-9)
        pairs += [(known * moves.w1_min, min(k, horizon - k)), (known * moves.w1, 2 * k * (horizon - k) / horizon)]
    return judge_closed_form(pairs, "minus the distance from the closed forms", 1e-5, factor)


STATEMENTS = (
    Statement(
        "claim-2", "Appendix C.2, Claim 2", "pairs in the hull keep the price bound", FALSE_AS_PRINTED, claim_2, ZERO
    ),
    Statement("w-min", "Appendix C.2, Proposition 3", "W may be replaced by W_min", PROOF_VOID, w_min, ZERO),
    Statement(
        "step-change",
        "Appendix C.2, Figure 3",
        "W1_min = min(k, T - k)",
        HOLDS,
        step_change_measures,
        "a measure that returns 0",
        "the closed forms",
    ),
)
