r"""Check the statements on online convex optimisation (section 4): Proposition 2, Theorem 3 and Algorithm 2.

Proposition 2 (:math:`0 \le \mathrm{OPT}' - \mathrm{OPT} \le \bar q W`) is checked on random instances and on the
example of the paper, exactly up to the certificates of the solvers. Theorem 3 (Reg1 at most
:math:`O(\sqrt T) + \bar q W`, Reg2 at most :math:`O(d \sqrt T)`) is checked by the exponents of T and of d. It states
both for the same algorithm, and so do its checks: an algorithm that stays at 0 has no violation but linear regret.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Final

import numpy as np

from driftsack.oco import (
    Algorithm,
    Box,
    ConvexProblem,
    Linear,
    OnlineGradient,
    VirtualQueue,
    global_variation,
    instances,
    restricted_optimum,
    static_optimum,
)
from driftsack.paper.oco import HORIZONS, WORLDS, Scenario, Study, against_w, random_instances, study
from driftsack.paper.oco_claims import HALF, NOISE, exponent_text, within
from driftsack.verify.answers import ZERO
from driftsack.verify.statement import (
    CONSISTENT,
    FAILS,
    FALSE_AS_PRINTED,
    HOLDS,
    LEAST_REACHED,
    SLACK,
    Case,
    Effort,
    Finding,
    Statement,
    judge_closed_form,
    judge_correction,
    judge_margins,
)

STAYS: Final = "decisions that stay at 0, and gradient descent that ignores the constraints"
SPREAD: Final = 0.5
EXAMPLE_RATE: Final = 0.5  # b of the example of Proposition 2
MOST: Final = 10.0  # times d√T: largest Reg1 and Reg2 in the check on d; the competitors have more
MOVING: Final = Scenario(
    "moving means", lambda rounds, k: replace(instances.one_switch(horizon=rounds, size=0.02, seed=k), noise=SPREAD)
)


def proposition_2_upper(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check OPT <= OPT' <= OPT + q W on random linear problems."""
    return random_problems("linear", effort.pick(15, 200), effort, case, factor)


def proposition_2_curved(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check the same with quadratic constraints and with norms."""
    found = [random_problems(family, effort.pick(6, 60), effort, case, factor) for family in ("quadratic", "norm")]
    worse = min(found, key=lambda finding: finding.margin)
    note = "; ".join(f"{name}: {one.note}" for name, one in zip(("quadratics", "norms"), found, strict=True))
    return worse._replace(tried=sum(one.tried for one in found), note=note, power=max(one.power for one in found))


solved_problems = cache(random_instances)  # the same problems serve all cases


def random_problems(family: str, count: int, effort: Effort, case: Case, factor: float) -> Finding:
    """Check Proposition 2 on random problems of one family; some of them must use a part of q W."""
    result = solved_problems(count, effort.seed, family)
    reached = 0.0 if case is Case.TRIVIAL else result.largest_share
    note = f"least of OPT' - OPT and of 1 - (OPT' - OPT) / q̄W, up to {reached:.2f}; gaps up to {result.gap:.0e}"
    margins = [result.least + result.gap, factor - reached, reached - LEAST_REACHED]
    return judge_margins(margins, note, power=reached)._replace(tried=result.instances)


def proposition_2_lower(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check that the gap of the example is b/(4b + 2Δ) of q W, with the price of OPT' of the smallest sup norm.

    Without that choice the statement is false: the constraints of the first half are identical, so a price that is
    concentrated on one of them is optimal too, and q W is T/2 times as large.
    """
    horizon, known = 10_000, 0.0 if case is Case.TRIVIAL else 1.0
    shifts = example_shifts(effort)
    part = against_w(lambda shift: instances.proposition_2(horizon, shift=shift), shifts)
    expected = EXAMPLE_RATE / (4 * EXAMPLE_RATE + 2 * np.array(shifts))
    ratios = known * part.between / part.allowance
    note = f"minus |(OPT' - OPT) / q̄W - b/(4b + 2Δ)|; with the price on one round {ratios.min() * 2 / horizon:.1g}"
    return judge_closed_form(zip(ratios, expected, strict=True), note, 1e-4, factor)


def example_shifts(effort: Effort) -> tuple[float, ...]:
    """The changes Δ of the example of Proposition 2."""
    return (0.003, 0.03, 0.3) if effort.quick else (0.003, 0.01, 0.03, 0.1, 0.3)


def proposition_2_forms(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check the closed forms of the example: the printed ones let x change at T/2 and are wrong."""
    horizon, known = 10_000, 0.0 if case is Case.TRIVIAL else 1.0
    pairs, printed = [], []
    for shift in example_shifts(effort):
        forms = instances.proposition_2_forms(horizon, shift=shift)
        problem = instances.proposition_2(horizon, shift=shift)
        solved = known * restricted_optimum(problem).value, known * static_optimum(problem).value
        pairs += [(-solved[0] / horizon, -forms.restricted / horizon), (-solved[1] / horizon, -forms.optimum / horizon)]
        printed.append(-abs(forms.printed_restricted - forms.restricted) / horizon)
    repaired = judge_closed_form(pairs, "minus the distance from the closed forms, per round", factor=factor)
    return judge_correction(max(printed), repaired, f"the printed OPT' is off by up to {-min(printed):.3f} per round")


@cache
def studies(effort: Effort, algorithm: Algorithm | None, worlds: tuple[Scenario, ...]) -> tuple[Study, ...]:
    """Run an algorithm on scenarios of section 4, T up to 10⁶, in a quick run to 3·10⁵; None stays at 0."""
    horizons = HORIZONS[1:6:2] if effort.quick else HORIZONS
    if algorithm is None:
        return tuple(stay_at_zero(world, horizons) for world in worlds)
    return tuple(study(world, algorithm, horizons, effort.pick(2, 4)) for world in worlds)


def stay_at_zero(world: Scenario, horizons: tuple[int, ...]) -> Study:
    """Compute the regret and the violation of the decision 0, for one draw."""
    rows = []
    for horizon in horizons:
        problem = world.make(horizon, 0)
        values, _ = problem.mean(np.zeros(problem.dimension))
        best, restricted = static_optimum(problem), restricted_optimum(problem)
        price = max(best.prices.max(), restricted.prices.max())
        violation = np.maximum(horizon * values[1:], 0.0).sum()
        rows.append((horizon * values[0] - best.value, violation, price * global_variation(problem).value))
    regret, violation, allowance = np.array(rows).T[:, None, :]
    return Study(world.name, np.array(horizons), regret, violation, allowance)


def section_4_worlds(effort: Effort) -> tuple[Scenario, ...]:
    """The scenarios of section 4; in a quick run three of them, the last one with a positive Reg1."""
    return (WORLDS[0], WORLDS[2], WORLDS[4]) if effort.quick else WORLDS


def exponents(parts: tuple[Study, ...], violation: bool, factor: float = 1.0) -> Finding:
    """Check that Reg2 and Reg1 - q W have exponents of at most 1/2; margin, power and note describe one of them.

    ``factor`` multiplies the exponent 1/2 of the described one; the other stays.
    """
    descriptions, all_within, least_margin, needed = [], True, np.inf, 0.0
    for part in parts:
        slopes = part.exponent(part.regret - part.allowance), part.exponent(part.violation)
        slope = slopes[violation]
        all_within &= within(slopes[not violation])
        if slope is not None:
            least_margin = min(least_margin, HALF - slope.value)
            needed = max(needed, (slope.value - max(NOISE, 3.0 * slope.error)) / HALF)
        all_within &= within(slope, factor * HALF)
        descriptions.append(f"{part.world} {exponent_text(slope)}")
    margin = float(least_margin) if np.isfinite(least_margin) else HALF
    note = f"1/2 minus the exponent of T: {'; '.join(descriptions)}"
    verdict = CONSISTENT if all_within else FAILS
    return Finding(verdict, len(descriptions), margin, note, power=min(max(needed, 0.0), 1.0))


def judge_players(effort: Effort, case: Case, worlds: tuple[Scenario, ...], violation: bool, factor: float) -> Finding:
    """Judge the virtual queue, or the competitor that comes nearest to passing; None stays at 0."""
    if case is Case.STATEMENT:
        return exponents(studies(effort, VirtualQueue(), worlds), violation, factor)
    rivals = (exponents(studies(effort, rival, worlds), violation, factor) for rival in (None, OnlineGradient()))
    return min(rivals, key=lambda found: found.verdict is FAILS)


def theorem_3_violation(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check Reg2 = O(d √T)."""
    return judge_players(effort, case, section_4_worlds(effort), violation=True, factor=factor)


def theorem_3_regret(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check Reg1 - q W = O(√T)."""
    return judge_players(effort, case, section_4_worlds(effort), violation=False, factor=factor)


def theorem_3_stochastic(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check the last appendix: random constraints with changing means."""
    return judge_players(effort, case, (MOVING,), violation=True, factor=factor)


def separate_limits(count: int, horizon: int, draw: int) -> ConvexProblem:
    """A problem of d variables, each with its own loss and constraint x_i <= 1/2: Reg2 is d times that of one."""
    losses = Linear(-np.random.default_rng([draw, count]).random((horizon, count)))
    limits = Linear(np.eye(count)[None], np.full((1, count), -0.5), np.zeros(horizon, dtype=np.int32))
    return ConvexProblem(losses, limits, Box(0.0, 1.0, size=count))


def separate_regret(algorithm: Algorithm | None, count: int, effort: Effort, horizon: int) -> tuple[float, float]:
    """The mean regret and violation with d separate limits; constraints do not move, so that OPT' = OPT and W = 0."""
    found = []
    for draw in range(effort.pick(6, 12)):
        problem = separate_limits(count, horizon, effort.seed + draw)
        best = static_optimum(problem)
        if algorithm is None:
            found.append((horizon * float(problem.mean(np.zeros(count))[0][0]) - best.value, 0.0))
        else:
            play = algorithm.play(problem)
            found.append((float(play.regret(best)[0]), float(play.violation[0])))
    regret, violation = np.mean(found, axis=0)
    return float(regret), float(violation)


def theorem_3_constraints(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check Reg2 = O(d √T): the exponent of d is at most 1, on average over draws, and both measures are O(d √T)."""
    horizon, counts = effort.pick(10_000, 100_000), (1, 4, 16)
    subjects: tuple[Algorithm | None, ...] = (VirtualQueue(),) if case is Case.STATEMENT else (None, OnlineGradient())
    findings = []
    for subject in subjects:
        found = np.array([separate_regret(subject, count, effort, horizon) for count in counts])
        violations = np.maximum(found[:, 1], 1.0)
        excess = 1.0 - found / (MOST * np.sqrt(horizon) * np.array(counts)[:, None])
        slope = float(np.polyfit(np.log(counts), np.log(violations), 1)[0])
        note = (
            f"1 minus the exponent of d, {slope:.2f}, and 1 - Reg1 / 10d√T and 1 - Reg2 / 10d√T; Reg2 "
            f"{violations[0]:.0f} to {violations[-1]:.0f} for d = 1 to 16"
        )
        margin = min(factor + SLACK - slope, float(excess.min()))
        power = min(max(slope - SLACK, 0.0), 1.0)
        findings.append(Finding(CONSISTENT if margin >= 0.0 else FAILS, effort.pick(18, 36), margin, note, power=power))
    return max(findings, key=lambda finding: finding.margin)


def algorithm_2(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check that the printed 1/√T and 1/T give linear regret, V = √T and α = T do not."""
    (part,) = studies(effort, VirtualQueue(parameters="printed"), WORLDS[:1])
    slope = part.exponent(part.regret)
    printed = 0.0 if slope is None else HALF - slope.value
    repaired = theorem_3_regret(effort, case, factor)
    return judge_correction(printed, repaired, f"with the printed parameters Reg1 grows as T^{HALF - printed:.2f}")


STATEMENTS = (
    Statement("proposition-2-upper", "Proposition 2", "0 ≤ OPT′ − OPT ≤ q̄W", HOLDS, proposition_2_upper, ZERO),
    Statement(
        "proposition-2-curved",
        "Proposition 2",
        "0 ≤ OPT′ − OPT ≤ q̄W, quadratics and norms",
        HOLDS,
        proposition_2_curved,
        ZERO,
    ),
    Statement(
        "proposition-2-lower", "Proposition 2", "OPT′ − OPT = Ω(q̄W)", HOLDS, proposition_2_lower, ZERO, "the ratio"
    ),
    Statement(
        "proposition-2-forms",
        "Proposition 2",
        "the example's closed forms",
        FALSE_AS_PRINTED,
        proposition_2_forms,
        ZERO,
        "the closed forms",
    ),
    Statement(
        "theorem-3-violation", "Theorem 3", "Reg2 ≤ O(d√T)", CONSISTENT, theorem_3_violation, STAYS, "the exponent"
    ),
    Statement(
        "theorem-3-constraints",
        "Theorem 3",
        "Reg2 grows at most as d",
        CONSISTENT,
        theorem_3_constraints,
        STAYS,
        "the exponent",
    ),
    Statement(
        "theorem-3-regret", "Theorem 3", "Reg1 ≤ O(√T) + q̄W", CONSISTENT, theorem_3_regret, STAYS, "the exponent"
    ),
    Statement(
        "theorem-3-stochastic",
        "Appendix F, stochastic",
        "Theorem 3 with drawn constraints whose means move",
        CONSISTENT,
        theorem_3_stochastic,
        STAYS,
        "the exponent",
    ),
    Statement(
        "algorithm-2",
        "Algorithm 2",
        "the printed parameters give Theorem 3",
        FALSE_AS_PRINTED,
        algorithm_2,
        STAYS,
        "the exponent",
    ),
)
