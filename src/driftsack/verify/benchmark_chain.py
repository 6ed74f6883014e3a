"""Check the inequalities between the benchmarks OPT_FD, OPT_DP, LP-Static and LP-Dynamic (Appendix C.1).

OPT_FD has two definitions. *Fluid*: the budget lasts in expectation. *Hard*: outcomes are random and the round that
breaks a budget ends the game, as for OPT_DP. The paper's chain needs the hard one in (1) and does not say which in (3).
"""

from __future__ import annotations

import numpy as np

from driftsack.benchmarks import dynamic_program, fixed_distribution, hard_fixed_distribution, lp_dynamic, lp_static
from driftsack.benchmarks.hard_fixed_distribution import hard_reward_of_mixes
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.instances import example_1
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

GAP = 0.02  # the certified relative gap of the hard OPT_FD in the search


def chain_fixed_below_program(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check (1) OPT_FD (hard) <= OPT_DP, both exact, with Bernoulli costs."""
    shortfalls = [0.0]

    def sides(world: Instance) -> Sides:
        noisy = _noisy(world, float(max(np.floor(world.problem.budget[0]), 1.0)))
        if case is Case.TRIVIAL:
            return Sides(0.0, 0.0)
        best, fixed = dynamic_program(noisy).value, hard_fixed_distribution(noisy, GAP)
        fluid_plan = fixed_distribution(noisy).plan
        fluid = float(hard_reward_of_mixes(noisy, np.asarray(fluid_plan)[:1])[0])
        shortfalls.append(1.0 - fluid / fixed.value if fixed.value > 0 else 0.0)
        return Sides(fixed.value, best)

    found = list(searched_sides(sides, effort.for_case(case), 8, Shape(4, 2, 1)))
    note = f"OPT_DP - OPT_FD (hard); the fluid mix earns up to {max(shortfalls):.0%} less than the latter"
    return judge_sides(found, note, factor=factor)


def _noisy(world: Instance, budget: float) -> Instance:
    """The same means with Bernoulli outcomes and the given budget of the first resource."""
    problem = Problem(world.horizon, world.arms, [budget])
    return Instance(problem, world.rewards, world.costs[:, :1], world.phase, "bernoulli")


def chain_program_below_dynamic(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check (2) OPT_DP <= LP-Dynamic: false with random costs (the last arm may happen to be free); true for B + 1."""
    counterexample = Instance.stationary([1.0], [[0.5]], horizon=1, budget=0.0)
    printed = lp_dynamic(counterexample).value - dynamic_program(counterexample).value
    known = 0.0 if case is Case.TRIVIAL else 1.0

    def sides(world: Instance) -> Sides:
        noisy = _noisy(world, float(world.problem.budget[0]))
        larger = _noisy(world, float(world.problem.budget[0]) + 1.0)
        return Sides(known * dynamic_program(noisy).value, known * lp_dynamic(larger).value)

    found = searched_sides(sides, effort.for_case(case), 9, Shape(6, 3, 1))
    repaired = judge_sides(found, "LP-Dynamic for B + cost_max - OPT_DP", factor=factor)
    return judge_correction(printed, repaired, f"one round, cost 1 with probability 1/2, B = 0: {printed:.3f}")


def chain_fixed_below_static(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check (3) OPT_FD <= LP-Static: false in both definitions, since a fixed mix may stop early.

    Fluid: Example 1 is a counterexample, and LP-Static <= OPT_FD <= LP-Dynamic. Hard: a tiny Example 1 is one.
    """
    example, tiny = example_1(horizon=1_000), example_1(horizon=8, noise="deterministic")
    fluid = lp_static(example).value - fixed_distribution(example).value
    hard = lp_static(tiny).value - hard_fixed_distribution(tiny).value

    def sides(world: Instance) -> Sides:
        answers = Answers(world, case)
        lower, upper = Sides(answers.mean, answers.fixed), Sides(answers.fixed, answers.dynamic)
        return min(lower, upper, key=lambda pair: pair.margin)

    found = searched_sides(sides, effort.for_case(case), 10)
    repaired = judge_sides(found, "OPT_FD (fluid) between LP-Static and LP-Dynamic", factor=factor)
    note = f"fluid, Example 1 with 1,000 rounds: {fluid:.1f}; hard, with 8 rounds: {hard:.3f}"
    return judge_correction(max(fluid, hard), repaired, note)


def chain_static_below_dynamic(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check (4) LP-Static <= LP-Dynamic, with equality on stationary instances.

    The appendix adds that in a stationary environment every optimum of LP-Dynamic has x_1 = ... = x_T, and that
    LP-Static bounds OPT_DP from above. Some optimum has; and Example 1 without noise refutes the second.
    """
    pairs = []

    def sides(world: Instance) -> Sides:
        answers = Answers(world, case)
        row = np.repeat(means_of(world)[:1], world.horizon, axis=0)
        still = Answers(instance_of(row, answers.rate), case)
        pairs.append((still.mean, still.dynamic))
        return Sides(answers.mean, answers.dynamic)

    found = searched_sides(sides, effort.for_case(case), 11)
    ordered = judge_sides(found, "LP-Dynamic - LP-Static", factor=factor)
    equal = judge_closed_form(pairs, "minus their difference on stationary instances", factor=factor)
    worse = min(ordered, equal, key=lambda finding: finding.verdict is HOLDS)
    return worse._replace(note=f"{ordered.note}, and {equal.note}")


STATEMENTS = (
    Statement("chain-1", "Appendix C.1, (1)", "OPT_FD (hard) ≤ OPT_DP", HOLDS, chain_fixed_below_program, ZERO),
    Statement(
        "chain-2", "Appendix C.1, (2)", "OPT_DP ≤ LP-Dynamic", FALSE_AS_PRINTED, chain_program_below_dynamic, ZERO
    ),
    Statement("chain-3", "Appendix C.1, (3)", "OPT_FD ≤ LP-Static", FALSE_AS_PRINTED, chain_fixed_below_static, ZERO),
    Statement(
        "chain-4",
        "Appendix C.1, (4)",
        "LP-Static ≤ LP-Dynamic, equal if stationary",
        HOLDS,
        chain_static_below_dynamic,
        ZERO,
    ),
)
