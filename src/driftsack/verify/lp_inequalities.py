r"""Check inequalities between LPs, dual prices, V and W; none of them involves randomness.

Each check computes the two sides of an inequality, in units of reward, on thousands of small instances, and then
searches locally from the tightest ones; a counterexample would have a negative margin. A solver that returns 0 would
satisfy every inequality between optima, so the small side must also be near the large one on some instance.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from driftsack.core.instance import Instance
from driftsack.instances import example_1, nonbinding
from driftsack.measures import variation
from driftsack.policies.always_arm import AlwaysArm
from driftsack.simulation import simulate
from driftsack.verify.answers import ZERO, Answers
from driftsack.verify.instance_search import Shape, instance_of, means_of, searched_sides
from driftsack.verify.statement import (
    FALSE_AS_PRINTED,
    HOLDS,
    Case,
    Effort,
    Finding,
    Sides,
    Statement,
    judge_closed_form,
    judge_correction,
    judge_sides,
)

TRIVIAL = Case.TRIVIAL


def lemma_1(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check that every optimal dual price is at most 1/b."""

    def sides(world: Instance) -> Sides:
        answers = Answers(world, case)
        return Sides(answers.rate * answers.q_bar_full, 1.0)

    found = searched_sides(sides, effort.for_case(case), 1)
    return judge_sides(found, "1 - b q̄, q̄ over all LPs, the one on mean rows too", factor=factor)


def price_sum(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check that the sum of the prices of an LP is at most 1/b, not only the largest."""

    def sides(world: Instance) -> Sides:
        answers = Answers(world, case)
        return Sides(answers.rate * float(answers.prices.sum(axis=1).max()), 1.0)

    return judge_sides(searched_sides(sides, effort.for_case(case), 2, Shape(4, 4, 4)), "1 - b‖q‖₁", factor=factor)


def proposition_1_left(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check that even allocation earns at most the benchmark."""

    def sides(world: Instance) -> Sides:
        answers = Answers(world, case)
        return Sides(answers.even, answers.dynamic)

    return judge_sides(searched_sides(sides, effort.for_case(case), 3), "LP - sum of LP_t", factor=factor)


def proposition_1_middle(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check LP <= T LP(mean) + W1 + q W2, where q includes the price of the LP on mean rows.

    With the printed q, Example 1 is a counterexample if the optimal prices 0 are used, and an instance of two rounds is
    one with unique prices.
    """
    example = Answers(example_1(horizon=1_000))
    least = example.moves.q_bar_interval.least
    degenerate = example.mean + example.moves.w1 + least * example.moves.w2 - example.dynamic
    two = Answers(instance_of(np.array([[[1.0, 1.0], [0.1, 1.0]], [[1.0, 1.0], [1.0, 0.1]]]), 0.5))
    unique = two.mean + two.moves.w1 + two.moves.q_bar_interval.largest * two.moves.w2 - two.dynamic

    def sides(world: Instance) -> Sides:
        answers = Answers(world, case)
        allowed = answers.moves.w1 + answers.q_bar_full * answers.moves.w2
        return Sides(answers.dynamic - answers.mean, allowed)

    note = (
        f"Example 1 with T = 1,000 and the optimal prices 0: {degenerate:.0f}; two rounds, unique prices: {unique:.3f}"
    )
    found = searched_sides(sides, effort.for_case(case), 4)
    repaired = judge_sides(found, "T LP(mean) + W1 + q̄W2 - LP, q̄ with the mean row's price", factor=factor)
    return judge_correction(max(degenerate, unique), repaired, note)


def proposition_1_right(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check T LP(mean) <= sum LP_t + W1 + q W2."""

    def sides(world: Instance) -> Sides:
        answers = Answers(world, case)
        allowed = answers.moves.w1 + answers.q_bar * answers.moves.w2
        return Sides(answers.mean - answers.even, allowed)

    found = searched_sides(sides, effort.for_case(case), 5)
    return judge_sides(found, "sum of LP_t + W1 + q̄W2 - T LP(mean), the printed q̄", factor=factor)


@cache  # Claim 2 uses it too
def pairwise(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check the repair of the errata: LP <= sum LP_t + the mean pairwise distance, with single-round prices only."""

    def sides(world: Instance) -> Sides:
        answers = Answers(world, case)
        allowed = answers.moves.w1_pair + answers.row_price * answers.moves.w2_pair
        return Sides(answers.dynamic - answers.even, allowed)

    found = searched_sides(sides, effort.for_case(case), 6)
    return judge_sides(found, "sum of LP_t + pairwise W1 + q̄ W2 - LP, q̄ of single rounds", factor=factor)


def local_below_global(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check V1 <= 2 W1 and V2 <= 2 W2. Trivial: a measure V that is always 0."""

    def sides(world: Instance) -> Sides:
        moves = variation(world)
        local = (0.0, 0.0) if case is TRIVIAL else (moves.v1, moves.v2)
        both = Sides(local[0], 2.0 * moves.w1), Sides(local[1], 2.0 * moves.w2)
        return min(both, key=lambda pair: pair.margin)

    return judge_sides(searched_sides(sides, effort.for_case(case), 7), "2W - V, rewards and costs", factor=factor)


def non_binding_all(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check that all prices are 0 and even allocation is optimal if no LP binds, at rates above every cost.

    The value is compared with the sum of the largest rewards, so that a solver that returns 0 does not pass.
    """
    pairs = []

    def sides(world: Instance) -> Sides:
        loose = Answers(instance_of(means_of(world), 1.01), case)
        free = float(world.rewards[world.phase].max(axis=1).sum())
        pairs.extend([(loose.dynamic, free), (loose.even, free), (loose.q_bar_full, 0.0)])
        return Sides(abs(loose.dynamic - loose.even) + abs(loose.dynamic - free) + loose.q_bar_full, 0.0)

    tried = sum(1 for _ in searched_sides(sides, effort.for_case(case), 13))
    note = "minus the distance of LP and of ΣLP_t from Σ max μ, and minus the prices, at rates above every cost"
    return judge_closed_form(pairs, note, factor=factor)._replace(tried=tried)


def non_binding_benchmark(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check the example with two resources: LP = T, even allocation 2T/3, W1 = V1 = 0, q W2 > 0.

    The printed conclusion, that a regret of order q W2 is inevitable, does not follow: playing the only arm in every
    round earns LP, so on this instance the regret of a policy that always plays is 0.
    """
    pairs, printed = [], []
    for half in range(2, effort.pick(20, 60)):
        world = nonbinding(horizon=6 * half)
        found = Answers(world, case)
        pairs += [(found.dynamic, world.horizon), (found.even, 2 * world.horizon / 3)]
        pairs += [(found.moves.w1, 0.0), (found.moves.v1, 0.0)]
        always = simulate(world, AlwaysArm(0), trials=1, seed=effort.seed).reward[0]
        printed.append(found.dynamic - always - found.q_bar * found.moves.w2 / 4)
    forms = judge_closed_form(pairs, "minus the distance from the closed forms", 1e-6, factor)
    return judge_correction(max(printed), forms, f"regret of always playing less q̄W2/4: at most {max(printed):.1f}")


STATEMENTS = (
    Statement("lemma-1", "Lemma 1", "q̄ ≤ 1/b", HOLDS, lemma_1, ZERO),
    Statement("price-sum", "Lemma 1, sharper", "b‖q‖₁ ≤ 1 in every LP", HOLDS, price_sum, ZERO),
    Statement("proposition-1-left", "Proposition 1", "ΣLP_t ≤ LP", HOLDS, proposition_1_left, ZERO),
    Statement(
        "proposition-1-middle",
        "Proposition 1",
        "LP ≤ T·LP(mean) + W1 + q̄W2",
        FALSE_AS_PRINTED,
        proposition_1_middle,
        ZERO,
    ),
    Statement(
        "proposition-1-right", "Proposition 1", "T·LP(mean) ≤ ΣLP_t + W1 + q̄W2", HOLDS, proposition_1_right, ZERO
    ),
    Statement("pairwise", "errata, repair", "LP ≤ ΣLP_t + mean pairwise (W1 + q̄W2)", HOLDS, pairwise, ZERO),
    Statement("local-below-global", "Section 2.2", "V ≤ 2W", HOLDS, local_below_global, "a measure that returns 0"),
    Statement(
        "non-binding-all", "Appendix D.1", "no LP binds: LP = ΣLP_t, q̄ = 0", HOLDS, non_binding_all, ZERO, "Σ max μ"
    ),
    Statement(
        "non-binding-benchmark",
        "Appendix D.2",
        "only LP not binding: a loss of q̄W2 is inevitable",
        FALSE_AS_PRINTED,
        non_binding_benchmark,
        ZERO,
        "the closed forms",
    ),
)
