r"""Inequalities between LPs, dual prices, V and W; none of them involves randomness.

Each check computes the difference of the two sides of an inequality, in units of reward, on thousands of small
instances, and then searches locally from the tightest ones; a counterexample would have a negative margin.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from driftsack.benchmarks import lp_dynamic, lp_static, single_step
from driftsack.core.instance import Instance
from driftsack.instances import nonbinding
from driftsack.measures import variation
from driftsack.measures.variation import Variation
from driftsack.verify.instance_search import Shape, instance_of, means_of, searched_margins
from driftsack.verify.statement import CORRECTED, HOLDS, Effort, Finding, Statement, judge_correction, judge_margins


class LPValues(NamedTuple):
    """The quantities of Proposition 1 on one instance.

    Attributes:
        dynamic: LP({mu_t}, {C_t}, T), the benchmark.
        even: The sum of LP(mu_t, C_t), which spends the budget evenly.
        mean: T LP(mu_bar, C_bar), on the mean rewards and costs.
        moves: V and W.
    """

    dynamic: float
    even: float
    mean: float
    moves: Variation


def lp_values(world: Instance) -> LPValues:
    """Solve all the LPs of an instance."""
    return LPValues(
        lp_dynamic(world).value, single_step(world).value, lp_static(world).value, variation(world, tolerance=1e-9)
    )


def lemma_1(effort: Effort, planted: bool) -> Finding:
    """Every optimal dual price is at most 1/b. Planted: at most half of that."""
    share = 0.5 if planted else 1.0

    def margin(world: Instance) -> float:
        return share - float(world.problem.rate[0]) * variation(world).q_bar_full

    return judge_margins(searched_margins(margin, effort, 1), "1 - b q̄, q̄ over all LPs, the one on mean rows too")


def factor_d(effort: Effort, planted: bool) -> Finding:
    """The sum of the prices is at most 1/b, not only the largest. Planted: at most half."""
    share = 0.5 if planted else 1.0

    def margin(world: Instance) -> float:
        rows = single_step(world).row_prices
        prices = [lp_dynamic(world).prices, lp_static(world).prices, *(rows if rows is not None else ())]
        largest = max(float(np.sum(price)) for price in prices if price is not None)
        return share - float(world.problem.rate[0]) * largest

    return judge_margins(searched_margins(margin, effort, 2, Shape(4, 4, 4)), "1 - b‖q‖₁")


def proposition_1_left(effort: Effort, planted: bool) -> Finding:
    """Even allocation earns at most the benchmark. Planted: it earns at least the benchmark."""

    def margin(world: Instance) -> float:
        gap = lp_dynamic(world).value - single_step(world).value
        return -gap if planted else gap

    return judge_margins(searched_margins(margin, effort, 3), "LP - sum of LP_t")


def proposition_1_middle(effort: Effort, planted: bool) -> Finding:
    """LP <= T LP(mean) + W1 + q W2, where q includes the price of the LP on mean rows.

    With the printed q the two rounds of the errata are a counterexample.

    Planted: without the W terms.
    """
    share = 0.0 if planted else 1.0
    two = instance_of(np.array([[[1.0, 1.0], [0.1, 1.0]], [[1.0, 1.0], [1.0, 0.1]]]), 0.5)
    values = lp_values(two)
    printed = values.mean + values.moves.w1 + values.moves.q_bar * values.moves.w2 - values.dynamic

    def margin(world: Instance) -> float:
        values = lp_values(world)
        return values.mean + share * (values.moves.w1 + values.moves.q_bar_full * values.moves.w2) - values.dynamic

    repaired = judge_margins(
        searched_margins(margin, effort, 4), "T LP(mean) + W1 + q̄W2 - LP, q̄ with the mean row's price"
    )
    return judge_correction(printed, repaired, f"two rounds, two arms, b = 1/2: {printed:.3f}")


def proposition_1_right(effort: Effort, planted: bool) -> Finding:
    """T LP(mean) <= sum LP_t + W1 + q W2. Planted: without the W terms."""
    share = 0.0 if planted else 1.0

    def margin(world: Instance) -> float:
        values = lp_values(world)
        return values.even + share * (values.moves.w1 + values.moves.q_bar * values.moves.w2) - values.mean

    return judge_margins(searched_margins(margin, effort, 5), "sum of LP_t + W1 + q̄W2 - T LP(mean), the printed q̄")


@cache  # Claim 2 uses it too
def pairwise(effort: Effort, planted: bool) -> Finding:
    """The repair of the errata: LP <= sum LP_t + the mean pairwise distance, with prices of single rounds only.

    Planted: a third of the pairwise measure.
    """
    share = 1.0 / 3.0 if planted else 1.0

    def margin(world: Instance) -> float:
        values, steps = lp_values(world), single_step(world)
        largest = float(np.max(steps.row_prices)) if steps.row_prices is not None else 0.0
        return values.even + share * (values.moves.w1_pair + largest * values.moves.w2_pair) - values.dynamic

    return judge_margins(
        searched_margins(margin, effort, 6), "sum of LP_t + pairwise W1 + q̄ W2 - LP, q̄ of single rounds"
    )


def local_below_global(effort: Effort, planted: bool) -> Finding:
    """V1 <= 2 W1 and V2 <= 2 W2. Planted: without the 2."""
    factor = 1.0 if planted else 2.0

    def margin(world: Instance) -> float:
        moves = variation(world)
        return min(factor * moves.w1 - moves.v1, factor * moves.w2 - moves.v2)

    return judge_margins(searched_margins(margin, effort, 7), "2W - V, rewards and costs")


def non_binding_all(effort: Effort, planted: bool) -> Finding:
    """If no LP binds, all prices are 0 and even allocation is optimal. Planted: also if budgets bind."""

    def margin(world: Instance) -> float:
        not_binding = world if planted else instance_of(means_of(world), 1.01)
        gap = lp_dynamic(not_binding).value - single_step(not_binding).value
        return -max(gap, variation(not_binding).q_bar_full)

    return judge_margins(searched_margins(margin, effort, 13), "minus the gap and the prices at rates above every cost")


def non_binding_benchmark(effort: Effort, planted: bool) -> Finding:
    """The example with two resources: LP = T, even allocation 2T/3, W1 = V1 = 0 but q W2 > 0. Planted: no gap."""
    differences = []
    for half in range(2, effort.pick(20, 60)):
        horizon = 6 * half
        world = nonbinding(horizon=horizon)
        values = lp_values(world)
        even = horizon if planted else 2 * horizon / 3
        distance = abs(values.dynamic - horizon) + abs(values.even - even) + values.moves.w1 + values.moves.v1
        differences.append(min(-distance, values.moves.q_bar * values.moves.w2 - 1e-3))
    return judge_margins(differences, "minus the distance from the closed forms", tolerance=1e-6)


STATEMENTS = (
    Statement("lemma-1", "Lemma 1", "q̄ ≤ 1/b", HOLDS, lemma_1),
    Statement("factor-d", "Theorem 1, observation", "b‖q‖₁ ≤ 1, so d leaves the V2 term but for logs", HOLDS, factor_d),
    Statement("proposition-1-left", "Proposition 1", "ΣLP_t ≤ LP", HOLDS, proposition_1_left),
    Statement("proposition-1-middle", "Proposition 1", "LP ≤ T·LP(mean) + W1 + q̄W2", CORRECTED, proposition_1_middle),
    Statement("proposition-1-right", "Proposition 1", "T·LP(mean) ≤ ΣLP_t + W1 + q̄W2", HOLDS, proposition_1_right),
    Statement("pairwise", "errata, repair", "LP ≤ ΣLP_t + mean pairwise (W1 + q̄W2)", HOLDS, pairwise),
    Statement("local-below-global", "Section 2.2", "V ≤ 2W", HOLDS, local_below_global),
    Statement("non-binding-all", "Appendix D.1", "no LP binds: LP = ΣLP_t, q̄ = 0", HOLDS, non_binding_all),
    Statement("non-binding-benchmark", "Appendix D.2", "only LP not binding: q̄W2 stays", HOLDS, non_binding_benchmark),
)
