r"""The claims of the experiments appendix, sentence by sentence: each a pure function of the evidence.

Where the text has no number ("comparable", "slightly", "far worse"), the constants below say how it is read. The rules
of judging are those of :mod:`driftsack.paper.judging`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import polars as pl

from driftsack.paper.experiments import BEST, LAGRANGE, NAIVE, SW
from driftsack.paper.judging import (
    Evidence,
    JudgedClaim,
    Reading,
    Verdict,
    above,
    all_hold,
    average,
    between,
    exactly,
    trend,
)

COMPARABLE: Final = 0.05  # of the optimum: differences up to this count as none
SLIGHTLY: Final = 0.15  # of the optimum: the most that "slightly worse" may mean
FAR: Final = 0.10  # of the optimum: the least that "far worse" and "badly" mean
RISES: Final = 0.02  # of the optimum: a regret that changes by less over the whole axis is flat
SEVERAL_HUNDRED: Final = (100.0, 1000.0)  # pulls, at T = 10⁴; in proportion elsewhere
BREAK: Final = 0.8  # a slope that falls below this share of itself breaks
EXACT: Final = 1e-3  # relative: the printed optima are "up to discretisation"


def _optimum(
    evidence: Evidence, example: int, share: float, condition: Callable[[float], bool]
) -> tuple[Verdict, Mapping[str, Reading | float]]:
    """Whether LP-Dynamic is the printed share of T for all parameters that satisfy a condition."""
    wanted = share * evidence.horizon
    values = [value for parameter, value in evidence.optima(example).items() if condition(parameter)]
    right = all(abs(value - wanted) <= EXACT * wanted for value in values)
    numbers = {"printed": wanted, "least": min(values), "most": max(values)}
    return exactly(right), numbers


def optimum_1(evidence: Evidence) -> JudgedClaim:
    """OPT of Example 1."""
    return JudgedClaim("optimum_1", "Example 1: OPT(T) = T/2.", *_optimum(evidence, 1, 0.5, lambda _: True))


def optimum_2(evidence: Evidence) -> JudgedClaim:
    """OPT of Example 2."""
    return JudgedClaim("optimum_2", "Example 2: OPT(T) = T/2.", *_optimum(evidence, 2, 0.5, lambda _: True))


def optimum_3(evidence: Evidence) -> JudgedClaim:
    """OPT of Example 3 for every α, as the text states it."""
    return JudgedClaim(
        "optimum_3", "Example 3: OPT(T) = T/4 for every α.", *_optimum(evidence, 3, 0.25, lambda _: True)
    )


def optimum_3_late(evidence: Evidence) -> JudgedClaim:
    """OPT of Example 3 where the budget can be spent before the change."""
    found = _optimum(evidence, 3, 0.25, lambda alpha: alpha >= 0.5)  # noqa: PLR2004
    return JudgedClaim("optimum_3_late", "Example 3: OPT(T) = T/4 for α ≥ 1/2.", *found)


def optimum_4(evidence: Evidence) -> JudgedClaim:
    """OPT of Example 4."""
    return JudgedClaim("optimum_4", "Example 4: OPT(T) = 0.375 T.", *_optimum(evidence, 4, 0.375, lambda _: True))


def w_coincides(evidence: Evidence) -> JudgedClaim:
    """Figure 3."""
    ks, w1 = evidence.series(0, BEST, "W1")
    _, least = evidence.series(0, BEST, "W1_min")
    size = evidence.horizon
    gaps = [one.mean - two.mean for one, two in zip(w1, least, strict=True)]
    off = max(abs(two.mean - min(k, size - k)) for k, two in zip(ks, least, strict=True))
    middle = gaps[int(np.argmin([abs(k - size / 2) for k in ks]))]
    right = abs(middle) <= EXACT * size and off <= EXACT * size and max(gaps) > EXACT * size
    numbers = {"W1 - W1_min at T/2": middle, "largest W1 - W1_min": max(gaps), "largest error of min(k, T-k)": off}
    sentence = "W1_min = min(k, T - k); W1 is larger, but the two coincide at k = T/2."
    return JudgedClaim("w_coincides", sentence, exactly(right), numbers)


def naive_near_sw_1(evidence: Evidence) -> JudgedClaim:
    """Figure 1a."""
    sw, naive = evidence.only(1, SW, "reward"), evidence.only(1, NAIVE, "reward")
    best = evidence.only(1, BEST, "optimum").mean
    verdict = between(naive.minus(sw), -COMPARABLE * best, COMPARABLE * best)
    sentence = "Example 1: naive UCB performs comparably to SW-UCB."
    return JudgedClaim("naive_near_sw_1", sentence, verdict, {SW: sw, NAIVE: naive})


def ucbs_above_lagrange_1(evidence: Evidence) -> JudgedClaim:
    """Figure 1a."""
    three = {name: evidence.only(1, name, "reward") for name in (SW, NAIVE, LAGRANGE)}
    verdict = all_hold(*(above(three[name].minus(three[LAGRANGE])) for name in (SW, NAIVE)))
    sentence = "Example 1: SW-UCB and naive UCB are both better than LagrangeBwK."
    return JudgedClaim("ucbs_above_lagrange_1", sentence, verdict, three)


def second_arm_1(evidence: Evidence) -> JudgedClaim:
    """The explanation that the text gives for Figure 1a."""
    pulls, unit = evidence.only(1, NAIVE, "second_arm"), evidence.horizon / 10_000
    verdict = between(pulls, SEVERAL_HUNDRED[0] * unit, SEVERAL_HUNDRED[1] * unit)
    sentence = "Example 1: naive UCB plays arm 2 only several hundred times in the first half."
    return JudgedClaim("second_arm_1", sentence, verdict, {"pulls of arm 2": pulls})


def naive_far_worse_2(evidence: Evidence) -> JudgedClaim:
    """Figure 1b."""
    sw, naive = evidence.only(2, SW, "reward"), evidence.only(2, NAIVE, "reward")
    best = evidence.only(2, BEST, "optimum").mean
    sentence = "Example 2: naive UCB behaves poorly, far below SW-UCB."
    return JudgedClaim("naive_far_worse_2", sentence, above(sw.minus(naive), FAR * best), {SW: sw, NAIVE: naive})


def slope_breaks_2(evidence: Evidence) -> JudgedClaim:
    """Figure 1b."""
    before, after = evidence.only(2, NAIVE, "slope_before"), evidence.only(2, NAIVE, "slope_after")
    sentence = "Example 2: naive UCB's slope breaks at T/2."
    numbers = {"slope before": before, "slope after": after}
    return JudgedClaim("slope_breaks_2", sentence, above(before.times(BREAK).minus(after)), numbers)


def _slightly(evidence: Evidence, example: int) -> JudgedClaim:
    sw, other = evidence.only(example, SW, "reward"), evidence.only(example, LAGRANGE, "reward")
    most = SLIGHTLY * evidence.only(example, BEST, "optimum").mean
    sentence = f"Example {example}: LagrangeBwK performs slightly worse than SW-UCB."
    numbers: dict[str, Reading | float] = {SW: sw, LAGRANGE: other, "slightly is at most": most}
    return JudgedClaim(f"lagrange_slightly_{example}", sentence, between(sw.minus(other), 0.0, most), numbers)


def lagrange_slightly_1(evidence: Evidence) -> JudgedClaim:
    """Figure 1a."""
    return _slightly(evidence, 1)


def lagrange_slightly_2(evidence: Evidence) -> JudgedClaim:
    """Figure 1b."""
    return _slightly(evidence, 2)


def _rises(evidence: Evidence, example: int, policy: str) -> tuple[Verdict, Mapping[str, Reading | float]]:
    """Whether the regret rises along the figure's axis."""
    x, regret = evidence.series(example, policy, "regret")
    rise = trend(np.log(x).tolist() if example == 4 else x, regret)  # noqa: PLR2004
    best = max(evidence.optima(example).values())
    ends = {"at the least": regret[0], "at the largest": regret[-1]}
    return above(rise, RISES * best), {"rise of the fitted line": rise, **ends}


def sw_rises_with_w_3(evidence: Evidence) -> JudgedClaim:
    """Figure 2a."""
    return JudgedClaim("sw_rises_with_w_3", "Example 3: SW-UCB's regret rises with W.", *_rises(evidence, 3, SW))


def naive_rises_with_w_3(evidence: Evidence) -> JudgedClaim:
    """Figure 2a."""
    return JudgedClaim(
        "naive_rises_with_w_3", "Example 3: naive UCB's regret rises with W.", *_rises(evidence, 3, NAIVE)
    )


def lagrange_hardly_3(evidence: Evidence) -> JudgedClaim:
    """Figure 2a."""
    sw, other = trend(*evidence.series(3, SW, "regret")), trend(*evidence.series(3, LAGRANGE, "regret"))
    size = Reading(abs(other.mean), other.se)
    sentence = "Example 3: LagrangeBwK is not so sensitive to W (it changes by less than half of SW-UCB's rise)."
    numbers = {f"rise of {SW}": sw, f"rise of {LAGRANGE}": other}
    return JudgedClaim("lagrange_hardly_3", sentence, above(sw.times(0.5).minus(size)), numbers)


def sw_better_small_w_3(evidence: Evidence) -> JudgedClaim:
    """Figure 2a, left end."""
    sw, other = evidence.series(3, SW, "reward")[1][0], evidence.series(3, LAGRANGE, "reward")[1][0]
    sentence = "Example 3: at small W SW-UCB is better than LagrangeBwK."
    return JudgedClaim("sw_better_small_w_3", sentence, above(sw.minus(other)), {SW: sw, LAGRANGE: other})


def lagrange_wins_large_w_3(evidence: Evidence) -> JudgedClaim:
    """Figure 2a, right end."""
    sw, other = evidence.series(3, SW, "reward")[1][-1], evidence.series(3, LAGRANGE, "reward")[1][-1]
    sentence = "Example 3: at the largest W LagrangeBwK can be better."
    return JudgedClaim("lagrange_wins_large_w_3", sentence, above(other.minus(sw)), {SW: sw, LAGRANGE: other})


def lagrange_flat_4(evidence: Evidence) -> JudgedClaim:
    """Figure 2b."""
    x, regret = evidence.series(4, LAGRANGE, "regret")
    rise, most = trend(np.log(x).tolist(), regret), RISES * max(evidence.optima(4).values())
    sentence = "Example 4: LagrangeBwK is insensitive to V."
    return JudgedClaim("lagrange_flat_4", sentence, between(rise, -most, most), {"rise": rise, "at most": most})


def sw_rises_with_v_4(evidence: Evidence) -> JudgedClaim:
    """Figure 2b."""
    return JudgedClaim("sw_rises_with_v_4", "Example 4: SW-UCB's regret rises with V.", *_rises(evidence, 4, SW))


def sw_better_4(evidence: Evidence) -> JudgedClaim:
    """Figure 2b."""
    pairs = zip(evidence.series(4, SW, "reward")[1], evidence.series(4, LAGRANGE, "reward")[1], strict=True)
    leads = [sw.minus(other) for sw, other in pairs]
    sentence = "Example 4: SW-UCB is better than LagrangeBwK at every V."
    numbers = {"least lead": min(leads), "largest lead": max(leads)}
    return JudgedClaim("sw_better_4", sentence, all_hold(*(above(lead) for lead in leads)), numbers)


def naive_bad_4(evidence: Evidence) -> JudgedClaim:
    """Figure 2b."""
    sw, naive = average(evidence.series(4, SW, "regret")[1]), average(evidence.series(4, NAIVE, "regret")[1])
    verdict = above(naive.minus(sw), FAR * max(evidence.optima(4).values()))
    sentence = "Example 4: naive UCB performs badly, far below SW-UCB on average over V."
    return JudgedClaim("naive_bad_4", sentence, verdict, {f"regret of {SW}": sw, f"regret of {NAIVE}": naive})


EXACT_CLAIMS: Final = (optimum_1, optimum_2, optimum_3, optimum_3_late, optimum_4, w_coincides)
"""Claims about the instances, which no setting changes."""
PLAYED_CLAIMS: Final = (
    naive_near_sw_1,
    ucbs_above_lagrange_1,
    second_arm_1,
    naive_far_worse_2,
    slope_breaks_2,
    lagrange_slightly_1,
    lagrange_slightly_2,
    sw_rises_with_w_3,
    naive_rises_with_w_3,
    lagrange_hardly_3,
    sw_better_small_w_3,
    lagrange_wins_large_w_3,
    lagrange_flat_4,
    sw_rises_with_v_4,
    sw_better_4,
    naive_bad_4,
)
"""Claims about the rewards of policies."""


def judge(evidence: dict[str, pl.DataFrame]) -> list[JudgedClaim]:
    """Judge every claim about policies in every setting, and the claims about the instances once.

    Args:
        evidence: The table of evidence of each setting, by its name.
    """
    any_evidence = Evidence(next(iter(evidence.values())))
    judged = [claim(any_evidence) for claim in EXACT_CLAIMS]
    for setting, frame in evidence.items():
        judged += [claim(Evidence(frame))._replace(setting=setting) for claim in PLAYED_CLAIMS]
    return judged
