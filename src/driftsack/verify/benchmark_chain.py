"""The chain of inequalities between the benchmarks: OPT_FD, OPT_DP, LP-Static and LP-Dynamic (Appendix C.1)."""

from __future__ import annotations

import numpy as np

from driftsack.benchmarks import dynamic_program, fixed_distribution, lp_dynamic, lp_static
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.instances import example_1
from driftsack.verify.instance_search import Shape, instance_of, means_of, searched_margins
from driftsack.verify.statement import CORRECTED, HOLDS, Effort, Finding, Statement, judge_correction, judge_margins


def chain_fixed_below_program(effort: Effort, planted: bool) -> Finding:
    """(1) OPT_FD <= OPT_DP, exactly, for the best single arm and Bernoulli costs. Planted: the reverse inequality.

    A single arm is a fixed distribution; any other mix is below the dynamic programme because the latter is optimal.
    """

    def margin(world: Instance) -> float:
        whole = float(max(np.floor(world.problem.budget[0]), 1.0))
        noisy = _noisy(world, whole)
        best = dynamic_program(noisy).value
        single_arm = max(dynamic_program(_single_arm(noisy, i)).value for i in range(noisy.arms))
        return single_arm - best - 1e-6 if planted else best - single_arm

    return judge_margins(searched_margins(margin, effort, 8, Shape(6, 3, 1)), "OPT_DP - the best single arm's")


def _noisy(world: Instance, budget: float) -> Instance:
    """The same means with Bernoulli outcomes and the given budget of the first resource."""
    problem = Problem(world.horizon, world.arms, [budget])
    return Instance(problem, world.rewards, world.costs[:, :1], world.phase, "bernoulli")


def _single_arm(world: Instance, i: int) -> Instance:
    """The instance with one arm only."""
    problem = Problem(world.horizon, 1, world.problem.budget)
    return Instance(problem, world.rewards[:, [i]], world.costs[:, :, [i]], world.phase, world.noise)


def chain_program_below_dynamic(effort: Effort, planted: bool) -> Finding:
    """(2) OPT_DP <= LP-Dynamic: false with random costs, since a costly last arm may happen to be free; true for B + 1.

    Planted: the printed statement as its own repair.
    """
    counterexample = Instance.stationary([1.0], [[0.5]], horizon=1, budget=0.0)
    printed = lp_dynamic(counterexample).value - dynamic_program(counterexample).value
    extra = 0.0 if planted else 1.0

    def margin(world: Instance) -> float:
        noisy = _noisy(world, float(world.problem.budget[0]))
        larger = _noisy(world, float(world.problem.budget[0]) + extra)
        return lp_dynamic(larger).value - dynamic_program(noisy).value

    repaired = judge_margins(
        searched_margins(margin, effort, 9, Shape(6, 3, 1)), "LP-Dynamic for B + cost_max - OPT_DP"
    )
    return judge_correction(printed, repaired, f"one round, cost 1 with probability 1/2, B = 0: {printed:.3f}")


def chain_fixed_below_static(effort: Effort, planted: bool) -> Finding:
    """(3) OPT_FD <= LP-Static: false, a fixed mix may stop early (Example 1). True: LP-Static <= OPT_FD <= LP-Dynamic.

    Planted: the second inequality reversed.
    """
    example = example_1(horizon=1_000)
    printed = lp_static(example).value - fixed_distribution(example).value

    def margin(world: Instance) -> float:
        fixed, dynamic = fixed_distribution(world).value, lp_dynamic(world).value
        upper = fixed - dynamic - 1e-6 if planted else dynamic - fixed
        return min(fixed - lp_static(world).value, upper)

    repaired = judge_margins(searched_margins(margin, effort, 10), "OPT_FD (fluid) between LP-Static and LP-Dynamic")
    return judge_correction(printed, repaired, f"Example 1 with 1,000 rounds: {printed:.1f}")


def chain_static_below_dynamic(effort: Effort, planted: bool) -> Finding:
    """(4) LP-Static <= LP-Dynamic, with equality on stationary instances. Planted: always equal."""

    def margin(world: Instance) -> float:
        gap = lp_dynamic(world).value - lp_static(world).value
        stationary = instance_of(np.repeat(means_of(world)[:1], world.horizon, axis=0), float(world.problem.rate[0]))
        difference = abs(lp_dynamic(stationary).value - lp_static(stationary).value)
        return -abs(gap) if planted else min(gap, -difference)

    return judge_margins(
        searched_margins(margin, effort, 11),
        "LP-Dynamic - LP-Static, and minus their difference on stationary instances",
    )


STATEMENTS = (
    Statement("chain-1", "Appendix C.1, (1)", "OPT_FD ≤ OPT_DP", HOLDS, chain_fixed_below_program),
    Statement("chain-2", "Appendix C.1, (2)", "OPT_DP ≤ LP-Dynamic", CORRECTED, chain_program_below_dynamic),
    Statement("chain-3", "Appendix C.1, (3)", "OPT_FD ≤ LP-Static", CORRECTED, chain_fixed_below_static),
    Statement(
        "chain-4", "Appendix C.1, (4)", "LP-Static ≤ LP-Dynamic, equal if stationary", HOLDS, chain_static_below_dynamic
    ),
)
