r"""Section 4: Proposition 2 on random instances and on its own example; Theorem 3 by exponents.

Proposition 2 (:math:`0 \le \mathrm{OPT}' - \mathrm{OPT} \le \bar q W`) is exact up to the solvers' certificates.
Theorem 3 (Reg1 at most :math:`O(\sqrt T) + \bar q W`, Reg2 at most :math:`O(d \sqrt T)`) is a rate: exponents of T
over decades.
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
    corrected,
    judged,
)


def proposition_2_upper(effort: Effort, planted: bool) -> Finding:
    """OPT' between OPT and OPT + q W, on random linear problems. Planted: OPT + q W / 20."""
    share = 0.05 if planted else 1.0
    found = random_instances(effort.of(15, 200), effort.seed)
    note = f"least of OPT' - OPT and of {share:g} - (OPT' - OPT) / q̄W; gaps up to {found.gap:.0e}"
    return judged([found.least, share - found.largest_share], note)._replace(tried=found.instances)


def proposition_2_lower(effort: Effort, planted: bool) -> Finding:
    """The example's gap is of order q W; its printed closed forms let x change halfway. Planted: at least 0.9 q W."""
    horizon, least = 10_000, 0.9 if planted else 0.1
    shifts = (0.003, 0.03, 0.3) if effort.quick else (0.003, 0.01, 0.03, 0.1, 0.3)
    part = against_w(lambda shift: instances.proposition_2(horizon, shift=shift), shifts)
    forms = [instances.proposition_2_forms(horizon, shift=float(shift)) for shift in shifts]
    apart = [abs(b - (f.restricted - f.optimum)) / horizon for b, f in zip(part.between, forms, strict=True)]
    printed = -max(abs(f.printed_restricted - f.restricted) for f in forms) / horizon
    margins = [*(part.between / part.allowance - least), 1e-8 - max(apart)]
    repaired = judged(margins, f"(OPT' - OPT) / q̄W - {least:g}; closed forms met to {max(apart):.0e} a round")
    return corrected(printed, repaired, f"the printed OPT' is off by {-printed:.3f} a round")


def exponents(effort: Effort, algorithm: Algorithm, violation: bool) -> Finding:
    """Whether Reg2, or Reg1 less q W, has an exponent of at most 1/2 in every world."""
    words, right, worst = [], True, np.inf
    for part in studies(effort, algorithm):
        slope = part.exponent(part.violation if violation else part.regret - part.allowance)
        right &= within(slope)
        if slope is not None:
            worst = min(worst, HALF - slope.value)
        words.append(f"{part.world} {exponent_text(slope)}")
    margin = float(worst) if np.isfinite(worst) else HALF
    note = f"1/2 less the exponent of T: {'; '.join(words)}"
    return Finding(CONSISTENT if right else FAILS, len(words), margin, note)


@cache
def studies(effort: Effort, algorithm: Algorithm) -> tuple[Study, ...]:
    """An algorithm on the worlds of section 4, T from 10³ to 10⁶; in a quick run on two of them, from 10⁴."""
    worlds, horizons = ((WORLDS[0], WORLDS[2]), HORIZONS[2::2]) if effort.quick else (WORLDS, HORIZONS)
    return tuple(study(world, algorithm, horizons, effort.of(2, 4)) for world in worlds)


def theorem_3_violation(effort: Effort, planted: bool) -> Finding:
    """Reg2 = O(d √T). Planted: an algorithm that does not look at the constraints."""
    return exponents(effort, OnlineGradient() if planted else VirtualQueue(), violation=True)


def theorem_3_regret(effort: Effort, planted: bool) -> Finding:
    """Reg1 - q W = O(√T). Planted: the printed parameters."""
    return exponents(effort, VirtualQueue(parameters="printed" if planted else "given"), violation=False)


def algorithm_2(effort: Effort, planted: bool) -> Finding:
    """The printed 1/√T and 1/T give linear regret; V = √T and α = T do not. Planted: the printed ones as the repair."""
    part = studies(effort, VirtualQueue(parameters="printed"))[0]
    slope = part.exponent(part.regret)
    printed = 0.0 if slope is None else HALF - slope.value
    repaired = theorem_3_regret(effort, planted)
    holds = repaired._replace(verdict=HOLDS if repaired.verdict == CONSISTENT else FAILS)
    return corrected(printed, holds, f"with the printed parameters Reg1 grows as T^{HALF - printed:.2f}")


STATEMENTS = (
    Statement("proposition-2-upper", "Proposition 2", "0 ≤ OPT′ − OPT ≤ q̄W", HOLDS, proposition_2_upper),
    Statement("proposition-2-lower", "Proposition 2", "OPT′ − OPT = Ω(q̄W)", CORRECTED, proposition_2_lower),
    Statement("theorem-3-violation", "Theorem 3", "Reg2 ≤ O(d√T)", CONSISTENT, theorem_3_violation),
    Statement("theorem-3-regret", "Theorem 3", "Reg1 ≤ O(√T) + q̄W", CONSISTENT, theorem_3_regret),
    Statement("algorithm-2", "Algorithm 2", "the printed parameters give Theorem 3", CORRECTED, algorithm_2),
)
