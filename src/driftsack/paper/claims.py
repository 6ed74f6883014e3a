r"""What the experiments appendix says, sentence by sentence: each claim a pure function of a table, with its numbers.

A claim about a number x with standard error s and a bound c *holds* if :math:`x - 2s > c`, *fails* if
:math:`x + 2s < c`, and is *undecided* in between. Where the text has no number ("comparable", "slightly", "far worse"),
the constants below say what is taken for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from driftsack.paper.experiments import BEST, LAGRANGE, NAIVE, SW

HOLDS: Final = "holds"
FAILS: Final = "fails"
UNDECIDED: Final = "undecided"
COMPARABLE: Final = 0.05  # of the optimum: differences up to this are none
SLIGHTLY: Final = 0.15  # of the optimum: the most that "slightly worse" may mean
FAR: Final = 0.10  # of the optimum: the least that "far worse" and "badly" mean
RISES: Final = 0.02  # of the optimum: a regret that changes by less over the whole axis is flat
SEVERAL_HUNDRED: Final = (100.0, 1000.0)  # pulls, at T = 10⁴; in proportion elsewhere
BREAK: Final = 0.8  # a slope that falls below this share of itself breaks
EXACT: Final = 1e-3  # relative: the printed optima are "up to discretisation"


class Reading(NamedTuple):
    """A number and its standard error."""

    mean: float
    se: float = 0.0

    def minus(self, other: Reading) -> Reading:
        """The difference of two independent readings."""
        return Reading(self.mean - other.mean, math.hypot(self.se, other.se))

    def times(self, factor: float) -> Reading:
        """A multiple."""
        return Reading(self.mean * factor, self.se * abs(factor))


class Verdict(NamedTuple):
    """What became of a claim."""

    name: str
    sentence: str
    verdict: str
    numbers: dict[str, float]


class Table:
    """The evidence, to be asked for readings."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame

    def series(self, example: int, policy: str, quantity: str) -> tuple[list[float], list[Reading]]:
        """Readings along x, from the smallest on."""
        wanted = (pl.col("example") == example) & (pl.col("policy") == policy) & (pl.col("quantity") == quantity)
        rows = self.frame.filter(wanted).sort("x", "parameter")
        return rows["x"].to_list(), [Reading(mean, se) for mean, se in rows.select("mean", "se").iter_rows()]

    def only(self, example: int, policy: str, quantity: str) -> Reading:
        """The reading of a quantity that an example has once."""
        return self.series(example, policy, quantity)[1][0]

    def optima(self, example: int) -> dict[float, float]:
        """LP-Dynamic by the example's parameter."""
        wanted = (pl.col("example") == example) & (pl.col("quantity") == "optimum")
        return dict(self.frame.filter(wanted).sort("parameter").select("parameter", "mean").iter_rows())

    @property
    def horizon(self) -> float:
        """T: the largest k of the step change."""
        return max(self.series(0, BEST, "W1")[0])


def above(reading: Reading, bound: float = 0.0) -> str:
    """Whether a reading is above a bound, at two standard errors."""
    if reading.mean - 2 * reading.se > bound:
        return HOLDS
    return FAILS if reading.mean + 2 * reading.se < bound else UNDECIDED


def between(reading: Reading, low: float, high: float) -> str:
    """Whether a reading lies between two bounds, at two standard errors."""
    return both(above(reading, low), above(reading.times(-1.0), -high))


def both(*verdicts: str) -> str:
    """All must hold; one that fails is enough to fail."""
    if FAILS in verdicts:
        return FAILS
    return UNDECIDED if UNDECIDED in verdicts else HOLDS


def trend(x: Sequence[float], readings: Sequence[Reading]) -> Reading:
    """By how much the least-squares line rises over the range of x, with its standard error."""
    places = np.asarray(x, dtype=float)
    centred = places - places.mean()
    weights = centred / (centred @ centred) * (places.max() - places.min())
    means, errors = np.array([reading.mean for reading in readings]), np.array([reading.se for reading in readings])
    return Reading(float(weights @ means), float(np.sqrt((weights**2) @ (errors**2))))


def average(readings: Sequence[Reading]) -> Reading:
    """The mean of independent readings."""
    count = len(readings)
    return Reading(sum(r.mean for r in readings) / count, math.sqrt(sum(r.se**2 for r in readings)) / count)


def _optimum(
    table: Table, example: int, share: float, parameters: Callable[[float], bool]
) -> tuple[str, dict[str, float]]:
    """Whether LP-Dynamic is the printed share of T wherever ``parameters`` says."""
    wanted = share * table.horizon
    values = [value for parameter, value in table.optima(example).items() if parameters(parameter)]
    right = all(abs(value - wanted) <= EXACT * wanted for value in values)
    numbers = {"printed": wanted, "least": min(values), "most": max(values)}
    return HOLDS if right else FAILS, numbers


def optimum_1(table: Table) -> Verdict:
    """OPT of Example 1."""
    return Verdict("optimum_1", "Example 1: OPT(T) = T/2.", *_optimum(table, 1, 0.5, lambda _: True))


def optimum_2(table: Table) -> Verdict:
    """OPT of Example 2."""
    return Verdict("optimum_2", "Example 2: OPT(T) = T/2.", *_optimum(table, 2, 0.5, lambda _: True))


def optimum_3(table: Table) -> Verdict:
    """OPT of Example 3, whatever α, as the text has it."""
    return Verdict("optimum_3", "Example 3: OPT(T) = T/4 for every α.", *_optimum(table, 3, 0.25, lambda _: True))


def optimum_3_late(table: Table) -> Verdict:
    """OPT of Example 3 where there is time to spend all the budget before the change."""
    found = _optimum(table, 3, 0.25, lambda alpha: alpha >= 0.5)  # noqa: PLR2004
    return Verdict("optimum_3_late", "Example 3: OPT(T) = T/4 for α ≥ 1/2.", *found)


def optimum_4(table: Table) -> Verdict:
    """OPT of Example 4."""
    return Verdict("optimum_4", "Example 4: OPT(T) = 0.375 T.", *_optimum(table, 4, 0.375, lambda _: True))


def w_coincides(table: Table) -> Verdict:
    """Figure 3."""
    ks, w1 = table.series(0, BEST, "W1")
    _, least = table.series(0, BEST, "W1_min")
    size = table.horizon
    gaps = [one.mean - two.mean for one, two in zip(w1, least, strict=True)]
    off = max(abs(two.mean - min(k, size - k)) for k, two in zip(ks, least, strict=True))
    middle = gaps[int(np.argmin([abs(k - size / 2) for k in ks]))]
    right = abs(middle) <= EXACT * size and off <= EXACT * size and max(gaps) > EXACT * size
    numbers = {"W1 - W1_min at T/2": middle, "largest W1 - W1_min": max(gaps), "largest error of min(k, T-k)": off}
    sentence = "W1_min = min(k, T - k); W1 is larger, but the two coincide at k = T/2."
    return Verdict("w_coincides", sentence, HOLDS if right else FAILS, numbers)


def naive_near_sw_1(table: Table) -> Verdict:
    """Figure 1a."""
    sw, naive, best = table.only(1, SW, "reward"), table.only(1, NAIVE, "reward"), table.only(1, BEST, "optimum").mean
    verdict = between(naive.minus(sw), -COMPARABLE * best, COMPARABLE * best)
    sentence = "Example 1: naive UCB performs comparably to SW-UCB."
    return Verdict("naive_near_sw_1", sentence, verdict, _shown({SW: sw, NAIVE: naive}))


def ucbs_above_lagrange_1(table: Table) -> Verdict:
    """Figure 1a."""
    three = {name: table.only(1, name, "reward") for name in (SW, NAIVE, LAGRANGE)}
    verdict = both(*(above(three[name].minus(three[LAGRANGE])) for name in (SW, NAIVE)))
    sentence = "Example 1: SW-UCB and naive UCB are both better than LagrangeBwK."
    return Verdict("ucbs_above_lagrange_1", sentence, verdict, _shown(three))


def second_arm_1(table: Table) -> Verdict:
    """The text's reason for Figure 1a."""
    pulls, unit = table.only(1, NAIVE, "second_arm"), table.horizon / 10_000
    verdict = between(pulls, SEVERAL_HUNDRED[0] * unit, SEVERAL_HUNDRED[1] * unit)
    sentence = "Example 1: naive UCB plays arm 2 only several hundred times in the first half."
    return Verdict("second_arm_1", sentence, verdict, _shown({"pulls of arm 2": pulls}))


def naive_far_worse_2(table: Table) -> Verdict:
    """Figure 1b."""
    sw, naive, best = table.only(2, SW, "reward"), table.only(2, NAIVE, "reward"), table.only(2, BEST, "optimum").mean
    sentence = "Example 2: naive UCB behaves poorly, far below SW-UCB."
    return Verdict("naive_far_worse_2", sentence, above(sw.minus(naive), FAR * best), _shown({SW: sw, NAIVE: naive}))


def slope_breaks_2(table: Table) -> Verdict:
    """Figure 1b."""
    before, after = table.only(2, NAIVE, "slope_before"), table.only(2, NAIVE, "slope_after")
    sentence = "Example 2: naive UCB's slope breaks at T/2."
    numbers = _shown({"slope before": before, "slope after": after})
    return Verdict("slope_breaks_2", sentence, above(before.times(BREAK).minus(after)), numbers)


def _slightly(table: Table, example: int) -> Verdict:
    sw, other = table.only(example, SW, "reward"), table.only(example, LAGRANGE, "reward")
    most = SLIGHTLY * table.only(example, BEST, "optimum").mean
    sentence = f"Example {example}: LagrangeBwK performs slightly worse than SW-UCB."
    numbers = {**_shown({SW: sw, LAGRANGE: other}), "slightly is at most": most}
    return Verdict(f"lagrange_slightly_{example}", sentence, between(sw.minus(other), 0.0, most), numbers)


def lagrange_slightly_1(table: Table) -> Verdict:
    """Figure 1a."""
    return _slightly(table, 1)


def lagrange_slightly_2(table: Table) -> Verdict:
    """Figure 1b."""
    return _slightly(table, 2)


def _rises(table: Table, example: int, policy: str) -> tuple[str, dict[str, float]]:
    """Whether the regret rises along the figure's axis."""
    x, regret = table.series(example, policy, "regret")
    rise = trend(np.log(x).tolist() if example == 4 else x, regret)  # noqa: PLR2004
    best = max(table.optima(example).values())
    ends = {"at the least": regret[0], "at the largest": regret[-1]}
    return above(rise, RISES * best), _shown({"rise of the fitted line": rise, **ends})


def sw_rises_with_w_3(table: Table) -> Verdict:
    """Figure 2a."""
    return Verdict("sw_rises_with_w_3", "Example 3: SW-UCB's regret rises with W.", *_rises(table, 3, SW))


def naive_rises_with_w_3(table: Table) -> Verdict:
    """Figure 2a."""
    return Verdict("naive_rises_with_w_3", "Example 3: naive UCB's regret rises with W.", *_rises(table, 3, NAIVE))


def lagrange_hardly_3(table: Table) -> Verdict:
    """Figure 2a."""
    sw, other = trend(*table.series(3, SW, "regret")), trend(*table.series(3, LAGRANGE, "regret"))
    size = Reading(abs(other.mean), other.se)
    sentence = "Example 3: LagrangeBwK is not so sensitive to W (it changes by less than half of SW-UCB's rise)."
    numbers = _shown({f"rise of {SW}": sw, f"rise of {LAGRANGE}": other})
    return Verdict("lagrange_hardly_3", sentence, above(sw.times(0.5).minus(size)), numbers)


def sw_better_small_w_3(table: Table) -> Verdict:
    """Figure 2a, left end."""
    sw, other = table.series(3, SW, "reward")[1][0], table.series(3, LAGRANGE, "reward")[1][0]
    sentence = "Example 3: at small W SW-UCB is better than LagrangeBwK."
    return Verdict("sw_better_small_w_3", sentence, above(sw.minus(other)), _shown({SW: sw, LAGRANGE: other}))


def lagrange_wins_large_w_3(table: Table) -> Verdict:
    """Figure 2a, right end."""
    sw, other = table.series(3, SW, "reward")[1][-1], table.series(3, LAGRANGE, "reward")[1][-1]
    sentence = "Example 3: at the largest W LagrangeBwK can be better."
    return Verdict("lagrange_wins_large_w_3", sentence, above(other.minus(sw)), _shown({SW: sw, LAGRANGE: other}))


def lagrange_flat_4(table: Table) -> Verdict:
    """Figure 2b."""
    x, regret = table.series(4, LAGRANGE, "regret")
    rise, most = trend(np.log(x).tolist(), regret), RISES * max(table.optima(4).values())
    sentence = "Example 4: LagrangeBwK is insensitive to V."
    return Verdict("lagrange_flat_4", sentence, between(rise, -most, most), {**_shown({"rise": rise}), "at most": most})


def sw_rises_with_v_4(table: Table) -> Verdict:
    """Figure 2b."""
    return Verdict("sw_rises_with_v_4", "Example 4: SW-UCB's regret rises with V.", *_rises(table, 4, SW))


def sw_better_4(table: Table) -> Verdict:
    """Figure 2b."""
    pairs = zip(table.series(4, SW, "reward")[1], table.series(4, LAGRANGE, "reward")[1], strict=True)
    leads = [sw.minus(other) for sw, other in pairs]
    sentence = "Example 4: SW-UCB is better than LagrangeBwK at every V."
    numbers = _shown({"least lead": min(leads), "largest lead": max(leads)})
    return Verdict("sw_better_4", sentence, both(*(above(lead) for lead in leads)), numbers)


def naive_bad_4(table: Table) -> Verdict:
    """Figure 2b."""
    sw, naive = average(table.series(4, SW, "regret")[1]), average(table.series(4, NAIVE, "regret")[1])
    verdict = above(naive.minus(sw), FAR * max(table.optima(4).values()))
    sentence = "Example 4: naive UCB performs badly, far below SW-UCB on average over V."
    return Verdict("naive_bad_4", sentence, verdict, _shown({f"regret of {SW}": sw, f"regret of {NAIVE}": naive}))


def _shown(readings: dict[str, Reading]) -> dict[str, float]:
    """Readings as plain numbers, each beside its standard error."""
    flat: dict[str, float] = {}
    for name, reading in readings.items():
        flat |= {name: reading.mean, f"{name} ±": reading.se}
    return flat


EXACT_CLAIMS: Final = (optimum_1, optimum_2, optimum_3, optimum_3_late, optimum_4, w_coincides)
"""Claims about the worlds: no setting changes them."""
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
"""Claims about what policies earn."""


def judge(evidence: dict[str, pl.DataFrame]) -> list[dict[str, Any]]:
    """Every claim in every setting, as plain data; claims about the worlds once."""
    first = Table(next(iter(evidence.values())))
    found = [{**claim(first)._asdict(), "setting": "both"} for claim in EXACT_CLAIMS]
    for setting, frame in evidence.items():
        found += [{**claim(Table(frame))._asdict(), "setting": setting} for claim in PLAYED_CLAIMS]
    return found
