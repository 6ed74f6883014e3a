"""Claims: each holds on a table made for it and fails on one with a planted fault."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from driftsack.paper.claims import PLAYED_CLAIMS, judge
from driftsack.paper.experiments import BEST, EVIDENCE, LAGRANGE, NAIVE, SW
from driftsack.paper.instance_claims import EXACT_CLAIMS
from driftsack.paper.judging import Evidence, JudgedClaim, Reading, Verdict, above, between, trend

HOLDS, FAILS, UNDECIDED = Verdict.HOLDS, Verdict.FAILS, Verdict.UNDECIDED
T = 10_000.0
REWARDS = {1: {SW: 4900.0, NAIVE: 4880.0, LAGRANGE: 4500.0}, 2: {SW: 4500.0, NAIVE: 3300.0, LAGRANGE: 4000.0}}
REGRETS = {  # along x
    3: (
        {1.0: 0.0, 0.75: 4000.0, 0.5: 7500.0},
        2500.0,
        {SW: (10, 250, 500), NAIVE: (10, 350, 700), LAGRANGE: (60, 60, 70)},
    ),
    4: ({1.0: 3.0, 10.0: 21.0, 100.0: 193.0}, 3750.0, {SW: (500, 700, 800), NAIVE: (1600,) * 3, LAGRANGE: (1000,) * 3}),
}


def exact_rows(example: int, parameter: float, x: float, optimum: float, v_and_w: tuple[float, float]) -> list[Any]:
    """What needs no trials, where the described policy is optimal."""
    values = {"optimum": optimum, "V": v_and_w[0], "W": v_and_w[1], "described_reward": optimum, "described_use": 1.0}
    return [(example, parameter, x, BEST, name, value, 0.0) for name, value in values.items()]


def good() -> pl.DataFrame:
    """A table on which every claim of the paper holds."""
    rows: list[tuple[Any, ...]] = []
    for example, rewards in REWARDS.items():
        rows += exact_rows(example, 0.0, 0.0, 5000.0, (1.0, 2_500.0))
        for policy, reward in rewards.items():
            rows.append((example, 0.0, 0.0, policy, "reward", reward, 1.0))
    rows.append((1, 0.0, 0.0, NAIVE, "second_arm", 500.0, 1.0))
    rows.append((2, 0.0, 0.0, NAIVE, "fewer_pulls", 2400.0, 1.0))
    rows += [(1, 0.0, 0.0, NAIVE, name, slope, 1e-3) for name, slope in (("slope_before", 0.5), ("slope_late", 0.48))]
    rows += [(2, 0.0, 0.0, NAIVE, name, slope, 1e-3) for name, slope in (("slope_before", 0.5), ("slope_after", 0.25))]
    rows += exact_rows(3, 0.2, 4000.0, 2500.0, (1.5, 4000.0))
    for example, (places, optimum, regrets) in REGRETS.items():
        for parameter, x in places.items():
            no_change = example == 3 and parameter == 1.0
            measures = (0.0 if no_change else 1.5, x) if example == 3 else (x, 3_000.0)
            rows += exact_rows(example, parameter, x, optimum, measures)
        for policy, values in regrets.items():
            for (parameter, x), regret in zip(places.items(), values, strict=True):
                rows.append((example, parameter, x, policy, "regret", float(regret), 1.0))
                rows.append((example, parameter, x, policy, "reward", optimum - regret, 1.0))
    for k in (0.0, 2500.0, 5000.0, 10_000.0):
        rows.append((0, k, k, BEST, "W1", 2 * k * (T - k) / T, 0.0))
        rows.append((0, k, k, BEST, "W1_min", min(k, T - k), 0.0))
    return pl.DataFrame(rows, schema=EVIDENCE, orient="row")


def planted(example: int, policy: str, quantity: str, mean: float, parameter: float | None = None) -> pl.DataFrame:
    """The good table with one kind of reading replaced."""
    here = (pl.col("example") == example) & (pl.col("policy") == policy) & (pl.col("quantity") == quantity)
    if parameter is not None:
        here &= pl.col("parameter") == parameter
    table = good()
    assert table.filter(here).height
    return table.with_columns(mean=pl.when(here).then(mean).otherwise(pl.col("mean")))


FAULTS: dict[str, tuple[Any, ...]] = {
    "optimum_1": (1, BEST, "optimum", 4900.0),
    "optimum_2": (2, BEST, "optimum", 5100.0),
    "optimum_3": (3, BEST, "optimum", 2050.0, 0.2),
    "optimum_3_late": (3, BEST, "optimum", 2400.0, 0.75),
    "optimum_4": (4, BEST, "optimum", 3600.0, 10.0),
    "described_1": (1, BEST, "described_reward", 4900.0),
    "described_2": (2, BEST, "described_use", 1.1),
    "described_3": (3, BEST, "described_reward", 2400.0, 0.75),
    "described_4": (4, BEST, "described_use", 1.1, 10.0),
    "v_invariant_3": (3, BEST, "V", 1.0, 0.75),
    "w_fixed_4": (4, BEST, "W", 2_900.0, 10.0),
    "w_coincides": (0, BEST, "W1_min", 4900.0, 5000.0),
    "naive_near_sw_1": (1, NAIVE, "reward", 4500.0),
    "ucbs_above_lagrange_1": (1, LAGRANGE, "reward", 4890.0),
    "second_arm_1": (1, NAIVE, "second_arm", 2000.0),
    "naive_recovers_1": (1, NAIVE, "slope_late", 0.4),
    "linear_observations_2": (2, NAIVE, "fewer_pulls", 300.0),
    "naive_suffers_3": (3, NAIVE, "regret", 200.0),
    "naive_far_worse_2": (2, NAIVE, "reward", 4300.0),
    "slope_breaks_2": (2, NAIVE, "slope_after", 0.48),
    "lagrange_slightly_1": (1, LAGRANGE, "reward", 3500.0),
    "lagrange_slightly_2": (2, LAGRANGE, "reward", 4600.0),
    "sw_rises_with_w_3": (3, SW, "regret", 250.0),
    "naive_rises_with_w_3": (3, NAIVE, "regret", 250.0),
    "lagrange_hardly_3": (3, LAGRANGE, "regret", 900.0, 0.5),
    "sw_better_small_w_3": (3, SW, "reward", 2400.0, 1.0),
    "lagrange_wins_large_w_3": (3, LAGRANGE, "reward", 1900.0, 0.5),
    "lagrange_flat_4": (4, LAGRANGE, "regret", 1500.0, 100.0),
    "sw_rises_with_v_4": (4, SW, "regret", 700.0),
    "sw_better_4": (4, SW, "reward", 2700.0, 10.0),
    "naive_bad_4": (4, NAIVE, "regret", 800.0),
}


@pytest.mark.parametrize("claim", [*EXACT_CLAIMS, *PLAYED_CLAIMS], ids=lambda claim: claim.__name__)
def test_a_claim_holds_where_it_should_and_fails_where_it_should(claim: Any) -> None:
    held = claim(Evidence(good()))
    assert (held.name, held.verdict) == (claim.__name__, HOLDS)
    assert held.numbers
    assert claim(Evidence(planted(*FAULTS[claim.__name__]))).verdict == FAILS


@pytest.mark.parametrize("claim", PLAYED_CLAIMS, ids=lambda claim: claim.__name__)
def test_a_claim_is_undecided_when_the_errors_are_large(claim: Any) -> None:
    vague = good().with_columns(se=pl.when(pl.col("se") > 0).then(1e5).otherwise(0.0))
    assert claim(Evidence(vague)).verdict == UNDECIDED


def test_two_standard_errors() -> None:
    assert above(Reading(2.1, 1.0)) == HOLDS
    assert above(Reading(1.9, 1.0)) == UNDECIDED
    assert above(Reading(-1.9, 1.0)) == UNDECIDED
    assert above(Reading(-2.1, 1.0)) == FAILS
    assert between(Reading(0.0, 1.0), -3.0, 3.0) == HOLDS
    assert between(Reading(4.0, 1.0), -3.0, 3.0) == UNDECIDED
    assert between(Reading(6.0, 1.0), -3.0, 3.0) == FAILS


def test_a_trend_is_the_least_squares_line_over_the_range() -> None:
    rise = trend([0.0, 1.0, 2.0], [Reading(0.0, 1.0), Reading(5.0, 1.0), Reading(4.0, 1.0)])
    assert rise.mean == pytest.approx(4.0)
    assert rise.se == pytest.approx(2.0**0.5)


def test_every_claim_is_judged_in_every_setting() -> None:
    found = judge({"printed": good(), "calibrated": planted(*FAULTS["sw_better_4"])})
    assert [one.setting for one in found] == [None] * 12 + ["printed"] * 19 + ["calibrated"] * 19
    failed = [(one.name, one.setting) for one in found if one.verdict is not HOLDS]
    assert failed == [("sw_better_4", "calibrated")]


def test_a_claim_is_printed_and_exported_with_its_standard_errors() -> None:
    """A reading has its standard error beside it, unless that is 0; an exact number has none."""
    numbers: dict[str, Reading | float] = {
        "a": Reading(1234.5, 0.5),
        "b": Reading(3.0, 0.0),
        "c": 4.25,
        "d": Reading(10.0, 123.4),
    }
    claim = JudgedClaim("x", "A sentence.", FAILS, numbers)
    assert claim.numbers_text() == "a 1,234 ± 0.5, b 3, c 4.25, d 10 ± 123"
    exported = {"a": 1234.5, "a ±": 0.5, "b": 3.0, "b ±": 0.0, "c": 4.25, "d": 10.0, "d ±": 123.4}
    assert claim.to_dict()["numbers"] == exported
    assert json.loads(json.dumps(claim.to_dict()))["verdict"] == "fails"
    assert (claim.to_dict()["setting"], claim._replace(setting="printed").to_dict()["setting"]) == ("both", "printed")
