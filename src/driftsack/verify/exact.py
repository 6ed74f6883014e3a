r"""Statements without chance: dual prices, the LPs' inequalities, measures, benchmarks. Margins are rewards.

Each check measures the left-hand side less the right-hand side on thousands of small worlds and then climbs down from
the worst ones; a counterexample would show as a negative margin.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from driftsack.benchmarks import dynamic_program, fixed_distribution, lp_dynamic, lp_static, single_step
from driftsack.core.arrays import Floats
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.instances import example_1, nonbinding, step_change
from driftsack.measures import variation
from driftsack.measures.variation import Variation
from driftsack.verify.statement import CORRECTED, HOLDS, Effort, Finding, Statement, corrected, judged
from driftsack.verify.worlds import Shape, margins, world_of


class Sizes(NamedTuple):
    """What Proposition 1 is about, of one world."""

    benchmark: float  # LP({mu_t}, {C_t}, T)
    even: float  # sum of LP(mu_t, C_t)
    mean: float  # T LP(mu_bar, C_bar)
    moves: Variation


def sizes(world: Instance) -> Sizes:
    """All the LPs of a world."""
    return Sizes(
        lp_dynamic(world).value, single_step(world).value, lp_static(world).value, variation(world, tolerance=1e-9)
    )


def lemma_1(effort: Effort, planted: bool) -> Finding:
    """Every optimal price is at most 1/b. Planted: at most half of that."""
    share = 0.5 if planted else 1.0

    def margin(world: Instance) -> float:
        return share - float(world.problem.rate[0]) * variation(world).q_bar_full

    return judged(margins(margin, effort, 1), "1 - b q̄, q̄ over all LPs, the one on mean rows too")


def factor_d(effort: Effort, planted: bool) -> Finding:
    """The sum of the prices is at most 1/b, not only the largest. Planted: at most half."""
    share = 0.5 if planted else 1.0

    def margin(world: Instance) -> float:
        rows = single_step(world).row_prices
        prices = [lp_dynamic(world).prices, lp_static(world).prices, *(rows if rows is not None else ())]
        largest = max(float(np.sum(price)) for price in prices if price is not None)
        return share - float(world.problem.rate[0]) * largest

    return judged(margins(margin, effort, 2, Shape(4, 4, 4)), "1 - b‖q‖₁")


def proposition_1_left(effort: Effort, planted: bool) -> Finding:
    """Even allocation earns at most the benchmark. Planted: at least."""

    def margin(world: Instance) -> float:
        gap = lp_dynamic(world).value - single_step(world).value
        return -gap if planted else gap

    return judged(margins(margin, effort, 3), "LP - sum of LP_t")


def proposition_1_middle(effort: Effort, planted: bool) -> Finding:
    """LP <= T LP(mean) + W1 + q W2: with the printed q the errata's two rounds break it; with the full one none does.

    Planted: without the W terms.
    """
    share = 0.0 if planted else 1.0
    two = world_of(np.array([[[1.0, 1.0], [0.1, 1.0]], [[1.0, 1.0], [1.0, 0.1]]]), 0.5)
    size = sizes(two)
    printed = size.mean + size.moves.w1 + size.moves.q_bar * size.moves.w2 - size.benchmark

    def margin(world: Instance) -> float:
        size = sizes(world)
        return size.mean + share * (size.moves.w1 + size.moves.q_bar_full * size.moves.w2) - size.benchmark

    repaired = judged(margins(margin, effort, 4), "T LP(mean) + W1 + q̄W2 - LP, q̄ with the mean row's price")
    return corrected(printed, repaired, f"two rounds, two arms, b = 1/2: {printed:.3f}")


def proposition_1_right(effort: Effort, planted: bool) -> Finding:
    """T LP(mean) <= sum LP_t + W1 + q W2. Planted: without the W terms."""
    share = 0.0 if planted else 1.0

    def margin(world: Instance) -> float:
        size = sizes(world)
        return size.even + share * (size.moves.w1 + size.moves.q_bar * size.moves.w2) - size.mean

    return judged(margins(margin, effort, 5), "sum of LP_t + W1 + q̄W2 - T LP(mean), the printed q̄")


@cache  # Claim 2 asks again
def pairwise(effort: Effort, planted: bool) -> Finding:
    """The errata's repair: LP <= sum LP_t + the mean pairwise distance, with prices of single rounds alone.

    Planted: a third of the pairwise measure.
    """
    share = 1.0 / 3.0 if planted else 1.0

    def margin(world: Instance) -> float:
        size, steps = sizes(world), single_step(world)
        largest = float(np.max(steps.row_prices)) if steps.row_prices is not None else 0.0
        return size.even + share * (size.moves.w1_pair + largest * size.moves.w2_pair) - size.benchmark

    return judged(margins(margin, effort, 6), "sum of LP_t + pairwise W1 + q̄ W2 - LP, q̄ of single rounds")


def local_below_global(effort: Effort, planted: bool) -> Finding:
    """V1 <= 2 W1 and V2 <= 2 W2. Planted: without the 2."""
    factor = 1.0 if planted else 2.0

    def margin(world: Instance) -> float:
        moves = variation(world)
        return min(factor * moves.w1 - moves.v1, factor * moves.w2 - moves.v2)

    return judged(margins(margin, effort, 7), "2W - V, rewards and costs")


def chain_fixed_below_program(effort: Effort, planted: bool) -> Finding:
    """(1) OPT_FD <= OPT_DP: the best arm alone, exactly, on worlds with Bernoulli costs. Planted: the other way round.

    A fixed arm is a fixed distribution; by the programme's optimality every mix is below it as well.
    """

    def margin(world: Instance) -> float:
        whole = float(max(np.floor(world.problem.budget[0]), 1.0))
        noisy = _noisy(world, whole)
        best = dynamic_program(noisy).value
        alone = max(dynamic_program(_arm(noisy, i)).value for i in range(noisy.arms))
        return alone - best - 1e-6 if planted else best - alone

    return judged(margins(margin, effort, 8, Shape(6, 3, 1)), "OPT_DP - the best single arm's")


def _noisy(world: Instance, budget: float) -> Instance:
    """The same means with Bernoulli outcomes and a whole budget."""
    problem = Problem(world.horizon, world.arms, [budget])
    return Instance(problem, world.rewards, world.costs[:, :1], world.phase, "bernoulli")


def _arm(world: Instance, i: int) -> Instance:
    """The world with one arm."""
    problem = Problem(world.horizon, 1, world.problem.budget)
    return Instance(problem, world.rewards[:, [i]], world.costs[:, :, [i]], world.phase, world.noise)


def chain_program_below_dynamic(effort: Effort, planted: bool) -> Finding:
    """(2) OPT_DP <= LP-Dynamic: false with random costs, since the last round may be paid for by luck; with B + 1 true.

    Planted: the printed one, called the repair.
    """
    lucky = Instance.stationary([1.0], [[0.5]], horizon=1, budget=0.0)
    printed = lp_dynamic(lucky).value - dynamic_program(lucky).value
    more = 0.0 if planted else 1.0

    def margin(world: Instance) -> float:
        noisy = _noisy(world, float(world.problem.budget[0]))
        roomy = _noisy(world, float(world.problem.budget[0]) + more)
        return lp_dynamic(roomy).value - dynamic_program(noisy).value

    repaired = judged(margins(margin, effort, 9, Shape(6, 3, 1)), "LP-Dynamic for B + cost_max - OPT_DP")
    return corrected(printed, repaired, f"one round, cost 1 with probability 1/2, B = 0: {printed:.3f}")


def chain_fixed_below_static(effort: Effort, planted: bool) -> Finding:
    """(3) OPT_FD <= LP-Static: false, a fixed mix may stop early (Example 1). True: LP-Static <= OPT_FD <= LP-Dynamic.

    Planted: the second inequality turned round.
    """
    example = example_1(horizon=1_000)
    printed = lp_static(example).value - fixed_distribution(example).value

    def margin(world: Instance) -> float:
        fixed, dynamic = fixed_distribution(world).value, lp_dynamic(world).value
        upper = fixed - dynamic - 1e-6 if planted else dynamic - fixed
        return min(fixed - lp_static(world).value, upper)

    repaired = judged(margins(margin, effort, 10), "OPT_FD (fluid) between LP-Static and LP-Dynamic")
    return corrected(printed, repaired, f"Example 1 with 1,000 rounds: {printed:.1f}")


def chain_static_below_dynamic(effort: Effort, planted: bool) -> Finding:
    """(4) LP-Static <= LP-Dynamic, and they are equal when nothing moves. Planted: always equal."""

    def margin(world: Instance) -> float:
        gap = lp_dynamic(world).value - lp_static(world).value
        still = world_of(np.repeat(_values(world)[:1], world.horizon, axis=0), float(world.problem.rate[0]))
        apart = abs(lp_dynamic(still).value - lp_static(still).value)
        return -abs(gap) if planted else min(gap, -apart)

    return judged(margins(margin, effort, 11), "LP-Dynamic - LP-Static, and minus their distance when nothing moves")


def _values(world: Instance) -> Floats:
    return np.concatenate([world.rewards[:, None], world.costs], axis=1)


def claim_2(effort: Effort, planted: bool) -> Finding:
    """Pairs in the hull keep the price bound: false. The regret bound needs it no more (the pairwise repair).

    Planted: the repair with a third of its measure.
    """
    two = world_of(np.array([[[1.0], [0.4]], [[0.0], [1.0]]]), 0.5)
    rows = single_step(two).row_prices
    pair = world_of(np.array([[[1.0], [1.0]]]), 0.5)  # mu of the first round, C of the second
    printed = float(np.max(rows if rows is not None else 0.0)) - float(np.max(lp_static(pair).prices or 0.0))
    return corrected(printed, pairwise(effort, planted), f"one arm, (1, 0.4) then (0, 1), b = 1/2: {printed:.3f}")


def w_min(effort: Effort, planted: bool) -> Finding:
    """LP <= sum LP_t + 2 (W1_min + q W2_min), prices of single rounds: by the pairwise repair. Planted: without W."""
    share = 0.0 if planted else 2.0

    def margin(world: Instance) -> float:
        size, steps = sizes(world), single_step(world)
        largest = float(np.max(steps.row_prices)) if steps.row_prices is not None else 0.0
        return size.even + share * (size.moves.w1_min + largest * size.moves.w2_min) - size.benchmark

    found = judged(margins(margin, effort, 12), "sum of LP_t + 2(W1_min + q̄W2_min) - LP")
    return found._replace(verdict=CORRECTED if found.verdict == HOLDS else found.verdict)


def step_change_measures(effort: Effort, planted: bool) -> Finding:
    """One arm that earns 1 for k rounds, then 0: W1_min = min(k, T - k), W1 = 2k(T - k)/T; equal at k = T/2.

    Planted: min(k, T - k) + 1.
    """
    horizon = effort.of(60, 400)
    apart = []
    for k in range(1, horizon):
        moves = variation(step_change(k, horizon), tolerance=1e-9)
        expected = min(k, horizon - k) + (1.0 if planted else 0.0)
        apart.append(-max(abs(moves.w1_min - expected), abs(moves.w1 - 2 * k * (horizon - k) / horizon)))
    return judged(apart, "minus the distance from the closed forms", tolerance=1e-5)


def non_binding_all(effort: Effort, planted: bool) -> Finding:
    """Where no LP binds all prices are 0 and even allocation is optimal. Planted: also where budgets bind."""

    def margin(world: Instance) -> float:
        loose = world if planted else world_of(_values(world), 1.01)
        return -max(lp_dynamic(loose).value - single_step(loose).value, variation(loose).q_bar_full)

    return judged(margins(margin, effort, 13), "minus the gap and the prices at rates above every cost")


def non_binding_benchmark(effort: Effort, planted: bool) -> Finding:
    """The example with two resources: LP = T, even allocation 2T/3, W1 = V1 = 0 but q W2 > 0. Planted: no gap."""
    apart = []
    for half in range(2, effort.of(20, 60)):
        horizon = 6 * half
        world = nonbinding(horizon=horizon)
        size = sizes(world)
        even = horizon if planted else 2 * horizon / 3
        distance = abs(size.benchmark - horizon) + abs(size.even - even) + size.moves.w1 + size.moves.v1
        apart.append(min(-distance, size.moves.q_bar * size.moves.w2 - 1e-3))
    return judged(apart, "minus the distance from the closed forms", tolerance=1e-6)


STATEMENTS = (
    Statement("lemma-1", "Lemma 1", "q̄ ≤ 1/b", HOLDS, lemma_1),
    Statement("factor-d", "Theorem 1, observation", "b‖q‖₁ ≤ 1, so d leaves the V2 term but for logs", HOLDS, factor_d),
    Statement("proposition-1-left", "Proposition 1", "ΣLP_t ≤ LP", HOLDS, proposition_1_left),
    Statement("proposition-1-middle", "Proposition 1", "LP ≤ T·LP(mean) + W1 + q̄W2", CORRECTED, proposition_1_middle),
    Statement("proposition-1-right", "Proposition 1", "T·LP(mean) ≤ ΣLP_t + W1 + q̄W2", HOLDS, proposition_1_right),
    Statement("pairwise", "errata, repair", "LP ≤ ΣLP_t + mean pairwise (W1 + q̄W2)", HOLDS, pairwise),
    Statement("local-below-global", "Section 2.2", "V ≤ 2W", HOLDS, local_below_global),
    Statement("chain-1", "Appendix C.1, (1)", "OPT_FD ≤ OPT_DP", HOLDS, chain_fixed_below_program),
    Statement("chain-2", "Appendix C.1, (2)", "OPT_DP ≤ LP-Dynamic", CORRECTED, chain_program_below_dynamic),
    Statement("chain-3", "Appendix C.1, (3)", "OPT_FD ≤ LP-Static", CORRECTED, chain_fixed_below_static),
    Statement(
        "chain-4", "Appendix C.1, (4)", "LP-Static ≤ LP-Dynamic, equal if stationary", HOLDS, chain_static_below_dynamic
    ),
    Statement("claim-2", "Appendix C.2, Claim 2", "pairs in the hull keep the price bound", CORRECTED, claim_2),
    Statement("w-min", "Appendix C.2, Proposition", "W may be replaced by W_min", CORRECTED, w_min),
    Statement("step-change", "Appendix C.2, Figure 3", "W1_min = min(k, T - k)", HOLDS, step_change_measures),
    Statement("non-binding-all", "Appendix D.1", "no LP binds: LP = ΣLP_t, q̄ = 0", HOLDS, non_binding_all),
    Statement("non-binding-benchmark", "Appendix D.2", "only LP not binding: q̄W2 stays", HOLDS, non_binding_benchmark),
)
