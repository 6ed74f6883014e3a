"""Judge the claims of section 4, with the measured numbers."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from driftsack.oco import instances
from driftsack.paper.judging import Verdict, exactly
from driftsack.paper.oco import Section4
from driftsack.sweeps.growth import Slope

HALF: Final = 0.5
EXACT: Final = 1e-8
NOISE: Final = 0.06  # allowed error of a fitted exponent, since finite horizons bend the lines


class OcoClaim(NamedTuple):
    """A claim of section 4 with its verdict."""

    claim: str
    measured: str  # the measurements, formatted for display
    verdict: Verdict  # the verdict, in the words of docs/theory.md
    check: str  # the row of ``driftsack verify`` on the same statement


def judge_section_4(measured: Section4) -> list[OcoClaim]:
    """Judge Theorem 3 and Proposition 2."""
    bounds = [violation_claim(measured), regret_claim(measured), swing_claim(measured)]
    return [*bounds, printed_claim(measured), *example_claims(measured)]


def consistent(right: bool) -> Verdict:
    """The verdict on an asymptotic statement."""
    return Verdict.CONSISTENT if right else Verdict.FAILS


def exponent_text(slope: Slope | None) -> str:
    """Format a fitted exponent with its standard error."""
    return "not above 0" if slope is None else f"{slope.value:.2f} ± {slope.error:.2f}"


def within(slope: Slope | None, most: float = HALF) -> bool:
    """Whether an exponent is at most ``most``, up to noise."""
    return slope is None or slope.value <= most + max(NOISE, 3 * slope.error)


def violation_claim(measured: Section4) -> OcoClaim:
    """Judge Reg2 = O(d√T)."""
    slopes = {s.world: s.exponent(s.violation) for s in measured.studies}
    text = "; ".join(f"{world} {exponent_text(slope)}" for world, slope in slopes.items())
    verdict = consistent(all(map(within, slopes.values())))
    return OcoClaim("Theorem 3: Reg2 ≤ O(d√T)", f"exponent of T: {text}", verdict, "theorem-3-violation")


def regret_claim(measured: Section4) -> OcoClaim:
    """Judge Reg1 - q̄W = O(√T)."""
    slopes = {s.world: s.exponent(s.regret - s.allowance) for s in measured.studies}
    text = "; ".join(f"{world} {exponent_text(slope)}" for world, slope in slopes.items())
    verdict = consistent(all(map(within, slopes.values())))
    claim, measured_text = "Theorem 3: Reg1 ≤ O(√T) + q̄W", f"exponent of T of Reg1 − q̄W: {text}"
    return OcoClaim(claim, measured_text, verdict, "theorem-3-regret")


def swing_claim(measured: Section4) -> OcoClaim:
    """Judge the term q̄W: on the tight-then-loose problem Reg1 grows with W, and stays below √T + q̄W."""
    part = measured.swing
    slope = float(np.polyfit(np.log(part.variation[-3:]), np.log(part.regret[-3:]), 1)[0])
    most = float(((part.regret - np.sqrt(measured.example_horizon)) / part.allowance).max())
    text = f"T = {measured.example_horizon:,}: Reg1 grows as W^{slope:.2f}, and is at most √T + {most:.2f} q̄W"
    return OcoClaim("Theorem 3: the cost of W", text, consistent(most <= 1.0), "theorem-3-regret")


def printed_claim(measured: Section4) -> OcoClaim:
    """Judge Algorithm 2 as printed: β = 1/√T and α = 1/T give linear regret."""
    slope = measured.printed.exponent(measured.printed.regret)
    text = f"as printed (1/√T, 1/T) Reg1 has exponent {exponent_text(slope)}; V = √T, α = T keep the theorem"
    wrong = slope is not None and not within(slope)
    verdict = Verdict.FALSE_AS_PRINTED if wrong else Verdict.HOLDS
    return OcoClaim("Algorithm 2: the printed parameters give Theorem 3", text, verdict, "algorithm-2")


def example_claims(measured: Section4) -> list[OcoClaim]:
    """Judge both sides of Proposition 2, and its printed closed forms."""
    # Compare the example with its closed forms.
    chance, part, horizon = measured.random, measured.example, measured.example_horizon
    forms = [instances.proposition_2_forms(horizon, shift=float(shift)) for shift in part.shifts]
    apart = max(abs(b - (f.restricted - f.optimum)) / horizon for b, f in zip(part.between, forms, strict=True))
    shares = part.between / part.allowance
    first = forms[0]
    wrong = all(abs(f.printed_restricted - f.restricted) > EXACT * horizon for f in forms)

    # Judge the upper bound, the lower bound and the printed forms.
    return [
        OcoClaim(
            "Proposition 2: 0 ≤ OPT′ − OPT ≤ q̄W",
            f"{chance.instances} random instances: least OPT′ − OPT {chance.least:.3g}, at most "
            f"{chance.largest_share:.2f} of q̄W (gaps {chance.gap:.0e})",
            exactly(chance.least >= -EXACT and chance.largest_share <= 1.0),
            "proposition-2-upper",
        ),
        OcoClaim(
            "Proposition 2: OPT′ − OPT = Ω(q̄W)",
            f"the example has {shares.min():.2f} to {shares.max():.2f} of q̄W; closed forms met to {apart:.0e} a round",
            exactly(bool(shares.min() > 0.1)),
            "proposition-2-lower",
        ),
        OcoClaim(
            "Proposition 2, the example's closed forms",
            f"printed OPT {first.printed_optimum:,.0f}, OPT′ {first.printed_restricted:,.0f}; one x for all rounds "
            f"gives {first.optimum:,.0f} and {first.restricted:,.0f} (Δ = {part.shifts[0]:g})",
            Verdict.FALSE_AS_PRINTED if wrong and apart < EXACT else Verdict.FAILS,
            "proposition-2-forms",
        ),
    ]
