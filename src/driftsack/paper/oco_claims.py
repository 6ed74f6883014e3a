"""Section 4, judged: a verdict with numbers on each claim, the figure's lines, and the table."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.oco import instances
from driftsack.paper.oco import Section4, Study
from driftsack.sweeps.growth import Slope

HALF: Final = 0.5
EXACT: Final = 1e-8
NOISE: Final = 0.06  # finite horizons bend the lines: a fitted exponent may be this far from the limit's


class Claim(NamedTuple):
    """One sentence of the paper, what was measured, and whether they agree."""

    claim: str
    measured: str
    verdict: str  # "holds", "fails", or "corrected": true after the erratum


def claims(found: Section4) -> list[Claim]:
    """Theorem 3 and Proposition 2, with numbers."""
    bounds = [violation_claim(found), regret_claim(found), swing_claim(found)]
    return [*bounds, printed_claim(found), *example_claims(found)]


def verdict(holds: bool) -> str:
    """In a word."""
    return "holds" if holds else "fails"


def spelled(slope: Slope | None) -> str:
    """A fitted exponent as people read it."""
    return "not above 0" if slope is None else f"{slope.value:.2f} ± {slope.error:.2f}"


def within(slope: Slope | None, most: float = HALF) -> bool:
    """Whether an exponent is at most ``most``, up to noise."""
    return slope is None or slope.value <= most + max(NOISE, 3 * slope.error)


def violation_claim(found: Section4) -> Claim:
    """Reg2 = O(d√T)."""
    slopes = {s.world: s.exponent(s.violation) for s in found.studies}
    told = "; ".join(f"{world} {spelled(slope)}" for world, slope in slopes.items())
    return Claim("Theorem 3: Reg2 ≤ O(d√T)", f"exponent of T: {told}", verdict(all(map(within, slopes.values()))))


def regret_claim(found: Section4) -> Claim:
    """Reg1 - q̄W = O(√T)."""
    slopes = {s.world: s.exponent(s.regret - s.allowance) for s in found.studies}
    told = "; ".join(f"{world} {spelled(slope)}" for world, slope in slopes.items())
    holds = all(map(within, slopes.values()))
    return Claim("Theorem 3: Reg1 ≤ O(√T) + q̄W", f"exponent of T of Reg1 − q̄W: {told}", verdict(holds))


def swing_claim(found: Section4) -> Claim:
    """The part q̄W is real: on the tight-then-loose world Reg1 grows with W, and stays below √T + q̄W."""
    part = found.swing
    slope = float(np.polyfit(np.log(part.variation[-3:]), np.log(part.regret[-3:]), 1)[0])
    most = float(((part.regret - np.sqrt(found.example_horizon)) / part.allowance).max())
    told = f"T = {found.example_horizon:,}: Reg1 grows as W^{slope:.2f}, and is at most √T + {most:.2f} q̄W"
    return Claim("Theorem 3: what W costs", told, verdict(most <= 1.0))


def printed_claim(found: Section4) -> Claim:
    """Algorithm 2 with β = 1/√T, α = 1/T: linear regret."""
    slope = found.printed.exponent(found.printed.regret)
    told = f"as printed (1/√T, 1/T) Reg1 has exponent {spelled(slope)}; V = √T, α = T keep the theorem"
    wrong = slope is not None and not within(slope)
    return Claim("Algorithm 2: the printed parameters give Theorem 3", told, "corrected" if wrong else "holds")


def example_claims(found: Section4) -> list[Claim]:
    """Both sides of Proposition 2, and its printed closed forms."""
    chance, part, horizon = found.random, found.example, found.example_horizon
    forms = [instances.proposition_2_forms(horizon, shift=float(shift)) for shift in part.shifts]
    apart = max(abs(b - (f.restricted - f.optimum)) / horizon for b, f in zip(part.between, forms, strict=True))
    shares = part.between / part.allowance
    first = forms[0]
    return [
        Claim(
            "Proposition 2: 0 ≤ OPT′ − OPT ≤ q̄W",
            f"{chance.instances} random instances: least OPT′ − OPT {chance.least:.3g}, at most "
            f"{chance.largest_share:.2f} of q̄W (gaps {chance.gap:.0e})",
            verdict(chance.least >= -EXACT and chance.largest_share <= 1.0),
        ),
        Claim(
            "Proposition 2: OPT′ − OPT = Ω(q̄W)",
            f"the example has {shares.min():.2f} to {shares.max():.2f} of q̄W; closed forms met to {apart:.0e} a round",
            verdict(bool(shares.min() > 0.1) and apart < EXACT),  # noqa: PLR2004
        ),
        Claim(
            "Proposition 2, the example's closed forms",
            f"printed OPT {first.printed_optimum:,.0f}, OPT′ {first.printed_restricted:,.0f}; one x for all rounds "
            f"gives {first.optimum:,.0f} and {first.restricted:,.0f} (Δ = {part.shifts[0]:g})",
            "corrected",
        ),
    ]


Line = tuple[str, Any, Any, str]  # label, x, y, and "line", "dots" or "guide"
Panel = tuple[str, str, str, list[Line]]  # title, the axes' names, lines


def panels(found: Section4) -> list[Panel]:
    """What the figure shows: Reg1 and Reg2 against T, and both sides of Proposition 2 against W."""
    horizons = found.printed.horizons
    steep: list[Line] = [labelled(found.printed, found.printed.regret, f"{found.printed.world}, parameters as printed")]
    steep += [labelled(s, s.regret, s.world) for s in found.studies if s.exponent(s.regret) is not None]
    flat = [labelled(s, s.violation, s.world) for s in found.studies if s.exponent(s.violation) is not None]
    below = [s.world for s in found.studies if s.exponent(s.regret) is None]
    root = np.sqrt(horizons)
    swing, example, horizon = found.swing, found.example, found.example_horizon
    forms = [instances.proposition_2_forms(horizon, shift=float(shift)) for shift in example.shifts]
    printed = [f.printed_restricted - f.printed_optimum for f in forms]
    return [
        (
            "Reg1 against OPT" + (f" (below 0: {', '.join(below)})" if below else ""),
            "rounds T",
            "Reg1",
            [*steep, ("√T", horizons, 0.1 * root, "guide"), ("T", horizons, 0.1 * horizons, "guide")],
        ),
        ("Reg2, violation", "rounds T", "Reg2", [*flat, ("√T", horizons, 2.0 * root, "guide")]),
        (
            f"a limit that rises halfway, T = {horizon:,}",
            "W",
            "loss",
            [
                ("q̄W", swing.variation, swing.allowance, "guide"),
                ("OPT′ − OPT", swing.variation, swing.between, "line"),
                ("Reg1 of the virtual queue", swing.variation, swing.regret, "line"),
            ],
        ),
        (
            f"Proposition 2's example, T = {horizon:,}",
            "W",
            "OPT′ − OPT",
            [
                ("q̄W", example.variation, example.allowance, "guide"),
                ("closed form", example.variation, [f.restricted - f.optimum for f in forms], "line"),
                ("closed form as printed", example.variation, printed, "line"),
                ("OPT′ − OPT, solved", example.variation, example.between, "dots"),
            ],
        ),
    ]


def labelled(part: Study, values: Floats, name: str) -> Line:
    """A line of means over the draws, with its exponent in the label."""
    return (f"{name}: T^{spelled(part.exponent(values))}", part.horizons, values.mean(axis=0), "line")


def table(found: Section4) -> list[dict[str, Any]]:
    """A row a world and horizon."""
    rows = []
    for name, part in [(s.world, s) for s in found.studies] + [(f"{found.printed.world}, printed", found.printed)]:
        for p, horizon in enumerate(part.horizons):
            rows.append(
                {
                    "world": name,
                    "horizon": int(horizon),
                    "regret": float(part.regret[:, p].mean()),
                    "violation": float(part.violation[:, p].mean()),
                    "q_bar_w": float(part.allowance[:, p].mean()),
                    "draws": len(part.regret),
                }
            )
    return rows


def caption(found: Section4) -> str:
    """Under what settings the lines were made."""
    draws = len(found.printed.regret)
    return f"virtual queue, V = √T, α = T; mean of {draws} draws of each world; exponents ± standard error of the fit"
