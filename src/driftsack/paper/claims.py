r"""Judge the claims of the experiments appendix about policies, each by a pure function of the evidence.

Where the text has no number ("comparable", "slightly", "far worse"), the constants below define its meaning, with a
reason for each; docs/calibration.md reports how much the verdicts depend on them. The rules are those of
:mod:`driftsack.paper.judging`. Claims about the instances are in :mod:`driftsack.paper.instance_claims`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import polars as pl

from driftsack.paper.experiments import BEST, LAGRANGE, NAIVE, SW
from driftsack.paper.instance_claims import EXACT_CLAIMS
from driftsack.paper.judging import (
    Evidence,
    JudgedClaim,
    Reading,
    Verdict,
    above,
    all_hold,
    average,
    between,
    trend,
)

COMPARABLE: Final = 0.05  # of the optimum: closer curves can hardly be told apart in a figure
SLIGHTLY: Final = 0.15  # of the optimum, the maximum for "slightly worse": 1.5 times the minimum for "far worse"
FAR: Final = 0.10  # of the optimum, the minimum for "far worse" and "badly": twice the limit of "comparable"
RISES: Final = 0.02  # of the optimum: four times the resolution of 100 trials, about 0.5%
LARGE_EXTENT: Final = 0.5  # of the regret at the largest W: "to a very large extent" is at least half
SEVERAL_HUNDRED: Final = (100.0, 1000.0)  # pulls at T = 10⁴, scaled for other horizons: a number of three digits
LINEARLY: Final = 0.1  # of the first half: the best mix plays each arm half of the time; a dropped arm's share vanishes
BREAK: Final = 0.8  # share of the former slope below which it breaks: more than twice the limit of "comparable"
RECOVERED: Final = 0.9  # share of the former slope, a tenth of the horizon after the change: not "far" below it


def naive_near_sw_1(evidence: Evidence) -> JudgedClaim:
    """Judge Figure 1a."""
    sw, naive = evidence.only(1, SW, "reward"), evidence.only(1, NAIVE, "reward")
    best = evidence.only(1, BEST, "optimum").mean
    verdict = between(naive.minus(sw), -COMPARABLE * best, COMPARABLE * best)
    sentence = "Example 1: naive UCB performs comparably to SW-UCB."
    return JudgedClaim("naive_near_sw_1", sentence, verdict, {SW: sw, NAIVE: naive})


def ucbs_above_lagrange_1(evidence: Evidence) -> JudgedClaim:
    """Judge Figure 1a."""
    three = {name: evidence.only(1, name, "reward") for name in (SW, NAIVE, LAGRANGE)}
    verdict = all_hold(*(above(three[name].minus(three[LAGRANGE])) for name in (SW, NAIVE)))
    sentence = "Example 1: SW-UCB and naive UCB are both better than LagrangeBwK."
    return JudgedClaim("ucbs_above_lagrange_1", sentence, verdict, three)


def second_arm_1(evidence: Evidence) -> JudgedClaim:
    """Judge the explanation of Figure 1a."""
    pulls, unit = evidence.only(1, NAIVE, "second_arm"), evidence.horizon / 10_000
    verdict = between(pulls, SEVERAL_HUNDRED[0] * unit, SEVERAL_HUNDRED[1] * unit)
    sentence = "Example 1: naive UCB plays arm 2 only several hundred times in the first half."
    return JudgedClaim("second_arm_1", sentence, verdict, {"pulls of arm 2": pulls})


def naive_recovers_1(evidence: Evidence) -> JudgedClaim:
    """Judge the explanation of Figure 1a that the estimate is rectified soon."""
    before, late = evidence.only(1, NAIVE, "slope_before"), evidence.only(1, NAIVE, "slope_late")
    sentence = "Example 1: naive UCB recovers after T/2 (its slope, a tenth of the horizon later)."
    verdict = above(late.minus(before.times(RECOVERED)))
    return JudgedClaim("naive_recovers_1", sentence, verdict, {"slope before": before, "slope from 0.6 T": late})


def linear_observations_2(evidence: Evidence) -> JudgedClaim:
    """Judge the explanation of Figure 1b."""
    pulls, half = evidence.only(2, NAIVE, "fewer_pulls"), evidence.horizon / 2
    sentence = "Example 2: naive UCB makes linearly many observations of both arms in the first half."
    verdict = above(pulls, LINEARLY * half)
    return JudgedClaim("linear_observations_2", sentence, verdict, {"pulls of the rarer arm": pulls, "of rounds": half})


def naive_far_worse_2(evidence: Evidence) -> JudgedClaim:
    """Judge Figure 1b."""
    sw, naive = evidence.only(2, SW, "reward"), evidence.only(2, NAIVE, "reward")
    best = evidence.only(2, BEST, "optimum").mean
    sentence = "Example 2: naive UCB behaves poorly, far below SW-UCB."
    return JudgedClaim("naive_far_worse_2", sentence, above(sw.minus(naive), FAR * best), {SW: sw, NAIVE: naive})


def slope_breaks_2(evidence: Evidence) -> JudgedClaim:
    """Judge Figure 1b."""
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
    """Judge Figure 1a."""
    return _slightly(evidence, 1)


def lagrange_slightly_2(evidence: Evidence) -> JudgedClaim:
    """Judge Figure 1b."""
    return _slightly(evidence, 2)


def _rises(evidence: Evidence, example: int, policy: str) -> tuple[Verdict, Mapping[str, Reading | float]]:
    """Whether the regret rises along the figure's axis."""
    x, regret = evidence.series(example, policy, "regret")
    rise = trend(np.log(x).tolist() if example == 4 else x, regret)
    best = max(evidence.optima(example).values())
    ends = {"at the least": regret[0], "at the largest": regret[-1]}
    return above(rise, RISES * best), {"rise of the fitted line": rise, **ends}


def _depends_on_w(evidence: Evidence, policy: str) -> tuple[Verdict, Mapping[str, Reading | float]]:
    """Whether at least ``LARGE_EXTENT`` of the regret at the largest W is a rise along W."""
    x, regret = evidence.series(3, policy, "regret")
    rise = trend(x, regret)
    numbers = {"rise of the fitted line": rise, "at the least": regret[0], "at the largest": regret[-1]}
    return above(rise.minus(regret[-1].times(LARGE_EXTENT))), numbers


def sw_rises_with_w_3(evidence: Evidence) -> JudgedClaim:
    """Judge Figure 2a."""
    sentence = "Example 3: SW-UCB's regret depends on W to a very large extent."
    return JudgedClaim("sw_rises_with_w_3", sentence, *_depends_on_w(evidence, SW))


def naive_rises_with_w_3(evidence: Evidence) -> JudgedClaim:
    """Judge Figure 2a."""
    sentence = "Example 3: naive UCB's regret depends on W to a very large extent."
    return JudgedClaim("naive_rises_with_w_3", sentence, *_depends_on_w(evidence, NAIVE))


def naive_suffers_3(evidence: Evidence) -> JudgedClaim:
    """Judge Figure 2a."""
    sw, naive = (average(evidence.series(3, policy, "regret")[1]) for policy in (SW, NAIVE))
    sentence = "Example 3: naive UCB suffers from the change: its regret is above SW-UCB's on average over W."
    numbers = {f"regret of {SW}": sw, f"regret of {NAIVE}": naive}
    return JudgedClaim("naive_suffers_3", sentence, above(naive.minus(sw)), numbers)


def lagrange_hardly_3(evidence: Evidence) -> JudgedClaim:
    """Judge Figure 2a."""
    sw, other = trend(*evidence.series(3, SW, "regret")), trend(*evidence.series(3, LAGRANGE, "regret"))
    size = Reading(abs(other.mean), other.se)
    sentence = "Example 3: LagrangeBwK is not so sensitive to W (it changes by less than half of SW-UCB's rise)."
    numbers = {f"rise of {SW}": sw, f"rise of {LAGRANGE}": other}
    return JudgedClaim("lagrange_hardly_3", sentence, above(sw.times(0.5).minus(size)), numbers)


def sw_better_small_w_3(evidence: Evidence) -> JudgedClaim:
    """Judge Figure 2a at its left end."""
    sw, other = evidence.series(3, SW, "reward")[1][0], evidence.series(3, LAGRANGE, "reward")[1][0]
    sentence = "Example 3: at small W SW-UCB is better than LagrangeBwK."
    return JudgedClaim("sw_better_small_w_3", sentence, above(sw.minus(other)), {SW: sw, LAGRANGE: other})


def lagrange_wins_large_w_3(evidence: Evidence) -> JudgedClaim:
    """Judge Figure 2a at its right end."""
    sw, other = evidence.series(3, SW, "reward")[1][-1], evidence.series(3, LAGRANGE, "reward")[1][-1]
    sentence = "Example 3: at the largest W LagrangeBwK can be better."
    return JudgedClaim("lagrange_wins_large_w_3", sentence, above(other.minus(sw)), {SW: sw, LAGRANGE: other})


def lagrange_flat_4(evidence: Evidence) -> JudgedClaim:
    """Judge Figure 2b."""
    x, regret = evidence.series(4, LAGRANGE, "regret")
    rise, most = trend(np.log(x).tolist(), regret), RISES * max(evidence.optima(4).values())
    sentence = "Example 4: LagrangeBwK is insensitive to V."
    return JudgedClaim("lagrange_flat_4", sentence, between(rise, -most, most), {"rise": rise, "at most": most})


def sw_rises_with_v_4(evidence: Evidence) -> JudgedClaim:
    """Judge Figure 2b."""
    return JudgedClaim("sw_rises_with_v_4", "Example 4: SW-UCB's regret rises with V.", *_rises(evidence, 4, SW))


def sw_better_4(evidence: Evidence) -> JudgedClaim:
    """Judge Figure 2b."""
    pairs = zip(evidence.series(4, SW, "reward")[1], evidence.series(4, LAGRANGE, "reward")[1], strict=True)
    leads = [sw.minus(other) for sw, other in pairs]
    sentence = "Example 4: SW-UCB is better than LagrangeBwK at every V."
    numbers = {"least lead": min(leads), "largest lead": max(leads)}
    return JudgedClaim("sw_better_4", sentence, all_hold(*(above(lead) for lead in leads)), numbers)


def naive_bad_4(evidence: Evidence) -> JudgedClaim:
    """Judge Figure 2b."""
    sw, naive = average(evidence.series(4, SW, "regret")[1]), average(evidence.series(4, NAIVE, "regret")[1])
    verdict = above(naive.minus(sw), FAR * max(evidence.optima(4).values()))
    sentence = "Example 4: naive UCB performs badly, far below SW-UCB on average over V."
    return JudgedClaim("naive_bad_4", sentence, verdict, {f"regret of {SW}": sw, f"regret of {NAIVE}": naive})


PLAYED_CLAIMS: Final = (
    naive_near_sw_1,
    ucbs_above_lagrange_1,
    second_arm_1,
    naive_recovers_1,
    naive_far_worse_2,
    linear_observations_2,
    slope_breaks_2,
    lagrange_slightly_1,
    lagrange_slightly_2,
    sw_rises_with_w_3,
    naive_rises_with_w_3,
    naive_suffers_3,
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
    """Judge the claims about policies in every setting, and those about the instances once; evidence is by setting."""
    any_evidence = Evidence(next(iter(evidence.values())))
    judged = [claim(any_evidence) for claim in EXACT_CLAIMS]
    for setting, frame in evidence.items():
        judged += [claim(Evidence(frame))._replace(setting=setting) for claim in PLAYED_CLAIMS]
    return judged
