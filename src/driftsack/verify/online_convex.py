r"""Statements on online convex optimisation (section 4): Proposition 2, Theorem 3 and Algorithm 2.

Proposition 2 (:math:`0 \le \mathrm{OPT}' - \mathrm{OPT} \le \bar q W`) is checked on random instances and on the
example of the paper, exactly up to the certificates of the solvers. Theorem 3 (Reg1 at most
:math:`O(\sqrt T) + \bar q W`, Reg2 at most :math:`O(d \sqrt T)`) is checked by the exponents of T over several decades.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from driftsack.oco import Algorithm, OnlineGradient, VirtualQueue, instances
from driftsack.paper.oco import HORIZONS, WORLDS, Study, against_w, random_instances, study
from driftsack.paper.oco_claims import HALF, exponent_text, within
from driftsack.verify.statement import (
    CONSISTENT,
    CORRECTED,
    FAILS,
    HOLDS,
    Effort,
    Finding,
    Statement,
    judge_correction,
    judge_margins,
)


def proposition_2_upper(effort: Effort, planted: bool) -> Finding:
    """OPT' lies between OPT and OPT + q W, on random linear problems. Planted: below OPT + q W / 20."""
    share = 0.05 if planted else 1.0
    result = random_instances(effort.pick(15, 200), effort.seed)
    note = f"least of OPT' - OPT and of {share:g} - (OPT' - OPT) / q̄W; gaps up to {result.gap:.0e}"
    return judge_margins([result.least, share - result.largest_share], note)._replace(tried=result.instances)


def proposition_2_lower(effort: Effort, planted: bool) -> Finding:
    """The gap of the example is of order q W. Planted: it is at least 0.9 q W.

    The printed closed forms are wrong, since they let x change after half of the rounds.
    """
    horizon, least = 10_000, 0.9 if planted else 0.1
    shifts = (0.003, 0.03, 0.3) if effort.quick else (0.003, 0.01, 0.03, 0.1, 0.3)
    part = against_w(lambda shift: instances.proposition_2(horizon, shift=shift), shifts)
    forms = [instances.proposition_2_forms(horizon, shift=float(shift)) for shift in shifts]
    differences = [abs(b - (f.restricted - f.optimum)) / horizon for b, f in zip(part.between, forms, strict=True)]
    printed = -max(abs(f.printed_restricted - f.restricted) for f in forms) / horizon
    margins = [*(part.between / part.allowance - least), 1e-8 - max(differences)]
    repaired = judge_margins(
        margins, f"(OPT' - OPT) / q̄W - {least:g}; closed forms met to {max(differences):.0e} per round"
    )
    return judge_correction(printed, repaired, f"the printed OPT' is off by {-printed:.3f} per round")


def exponents(effort: Effort, algorithm: Algorithm, violation: bool) -> Finding:
    """Check that Reg2, or Reg1 less q W, has an exponent of at most 1/2 on every instance."""
    descriptions, all_within, least_margin = [], True, np.inf
    for part in studies(effort, algorithm):
        slope = part.exponent(part.violation if violation else part.regret - part.allowance)
        all_within &= within(slope)
        if slope is not None:
            least_margin = min(least_margin, HALF - slope.value)
        descriptions.append(f"{part.world} {exponent_text(slope)}")
    margin = float(least_margin) if np.isfinite(least_margin) else HALF
    note = f"1/2 less the exponent of T: {'; '.join(descriptions)}"
    return Finding(CONSISTENT if all_within else FAILS, len(descriptions), margin, note)


@cache
def studies(effort: Effort, algorithm: Algorithm) -> tuple[Study, ...]:
    """Run an algorithm on the instances of section 4, T from 10³ to 10⁶; in a quick run on two of them, from 10⁴."""
    worlds, horizons = ((WORLDS[0], WORLDS[2]), HORIZONS[2::2]) if effort.quick else (WORLDS, HORIZONS)
    return tuple(study(world, algorithm, horizons, effort.pick(2, 4)) for world in worlds)


def theorem_3_violation(effort: Effort, planted: bool) -> Finding:
    """Reg2 = O(d √T). Planted: an algorithm that ignores the constraints."""
    return exponents(effort, OnlineGradient() if planted else VirtualQueue(), violation=True)


def theorem_3_regret(effort: Effort, planted: bool) -> Finding:
    """Reg1 - q W = O(√T). Planted: the printed parameters."""
    return exponents(effort, VirtualQueue(parameters="printed" if planted else "given"), violation=False)


def algorithm_2(effort: Effort, planted: bool) -> Finding:
    """The printed 1/√T and 1/T give linear regret, V = √T and α = T do not. Planted: the printed ones as the repair."""
    part = studies(effort, VirtualQueue(parameters="printed"))[0]
    slope = part.exponent(part.regret)
    printed = 0.0 if slope is None else HALF - slope.value
    repaired = theorem_3_regret(effort, planted)
    holds = repaired._replace(verdict=HOLDS if repaired.verdict == CONSISTENT else FAILS)
    return judge_correction(printed, holds, f"with the printed parameters Reg1 grows as T^{HALF - printed:.2f}")


STATEMENTS = (
    Statement("proposition-2-upper", "Proposition 2", "0 ≤ OPT′ − OPT ≤ q̄W", HOLDS, proposition_2_upper),
    Statement("proposition-2-lower", "Proposition 2", "OPT′ − OPT = Ω(q̄W)", CORRECTED, proposition_2_lower),
    Statement("theorem-3-violation", "Theorem 3", "Reg2 ≤ O(d√T)", CONSISTENT, theorem_3_violation),
    Statement("theorem-3-regret", "Theorem 3", "Reg1 ≤ O(√T) + q̄W", CONSISTENT, theorem_3_regret),
    Statement("algorithm-2", "Algorithm 2", "the printed parameters give Theorem 3", CORRECTED, algorithm_2),
)
