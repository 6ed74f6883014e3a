"""``driftsack verify``: every check reaches the documented verdict, and rejects a planted variant and a competitor."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread
from typer.testing import CliRunner

import driftsack as ds
from driftsack.cli import app
from driftsack.core.errors import SettingError
from driftsack.plot import theory_figure
from driftsack.verify import STATEMENTS, judge, select_statements
from driftsack.verify.auditor import audit, window_drift
from driftsack.verify.concentration import clopper_pearson
from driftsack.verify.exponents import fit_exponent
from driftsack.verify.instance_search import random_instance, searched_sides
from driftsack.verify.minimisers_in_hull import distance_sum, least_sum
from driftsack.verify.statement import (
    CONSISTENT,
    FAILS,
    HOLDS,
    LEAST_POWER,
    VACUOUS,
    WEAK,
    Case,
    Effort,
    Finding,
    Sides,
    Statement,
    critical_factor,
    judge_sides,
)
from tests.support.paths import ROOT

QUICK = Effort(quick=True)
DOCS = ROOT / "docs"
EVERY = pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.name)


def checked(statement: Statement, factor: float = 1.0) -> Finding:
    return statement.check(QUICK, Case.STATEMENT, factor)


@EVERY
def test_the_verdict_is_the_documented_one(statement: Statement) -> None:
    finding = checked(statement)
    weak = finding.power < LEAST_POWER and finding.verdict in (HOLDS, CONSISTENT)
    assert (WEAK if weak else finding.verdict) is statement.expected, finding.note
    assert finding.tried > 0
    assert np.isfinite(finding.margin)


@EVERY
def test_the_power_is_where_the_check_begins_to_reject(statement: Statement) -> None:
    """A planted fault a little larger than the power is found, and one a little smaller is not."""
    finding = checked(statement)
    if finding.power == 0.0:  # the check notices no factor at all, and is weak
        assert checked(statement, 0.0).verdict is finding.verdict
        return
    assert checked(statement, 0.93 * finding.power).verdict is FAILS
    assert checked(statement, min(1.0, 1.05 * finding.power + 1e-6)).verdict is finding.verdict


@EVERY
def test_trivial_competitors_are_rejected(statement: Statement) -> None:
    """The standing rule: a row that a trivial competitor passes would have to say *vacuous at this horizon*."""
    assert statement.competitor
    assert (statement.check(QUICK, Case.TRIVIAL).verdict is FAILS) == (statement.expected is not VACUOUS)


def test_a_row_that_a_trivial_competitor_passes_is_vacuous_and_one_without_power_is_weak() -> None:
    def passes(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
        return Finding(HOLDS, 1, 1.0, "a bound above everything")

    def rejects(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
        return Finding(HOLDS if case is Case.STATEMENT else FAILS, 1, 1.0, "a bound that can fail", power=0.5)

    def blunt(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
        return rejects(effort, case, factor)._replace(power=0.01)

    row = STATEMENTS[0]._replace(check=passes, competitor="policies that never play")
    assert judge(row, QUICK).verdict is VACUOUS
    assert judge(row, QUICK).note.startswith("policies that never play pass too")
    assert judge(row._replace(check=rejects), QUICK).verdict is HOLDS
    assert judge(row._replace(check=blunt), QUICK).verdict is WEAK


def test_a_critical_factor_is_found_by_bisection() -> None:
    assert critical_factor(lambda factor: factor < 0.123) == pytest.approx(0.123, abs=1e-4)
    assert critical_factor(lambda _factor: False) == pytest.approx(0.0, abs=1e-4)


def test_an_inequality_that_is_never_nearly_reached_is_rejected() -> None:
    assert judge_sides([Sides(0.5, 1.0), Sides(0.0, 2.0)], "").verdict is HOLDS
    assert judge_sides([Sides(0.0, 1.0), Sides(0.0, 2.0)], "").verdict is FAILS
    assert judge_sides([Sides(0.5, 1.0), Sides(2.1, 2.0)], "").verdict is FAILS


def test_docs_state_every_verdict() -> None:
    """docs/theory.md has a row for each statement, with the verdict that the command must reach."""
    found = re.findall(
        r"^\| `([a-z0-9-]+)` \|.*\| ([^|]+) \| ([^|]+) \|$", (DOCS / "theory.md").read_text(), re.MULTILINE
    )
    assert {name: verdict for name, _, verdict in found} == {s.name: s.expected.value for s in STATEMENTS}
    powers = {name: power for name, power, _ in found}
    for name, power in powers.items():
        assert re.fullmatch(r"\d\.\d+(, weak)?", power), name
        assert (float(power.split(",")[0]) < LEAST_POWER) == power.endswith("weak"), name


NUMBERED = {
    "lemma": range(1, 11),
    "proposition": range(1, 4),
    "theorem": range(1, 5),
    "claim": range(1, 3),
    "corollary": range(1, 2),
}


def test_every_numbered_statement_has_a_row() -> None:
    """The paper numbers its lemmas 1 to 10, propositions 1 to 3, theorems 1 to 4, claims 1 and 2, and one corollary."""
    sources = " ".join(statement.source for statement in STATEMENTS)
    for kind, numbers in NUMBERED.items():
        for number in numbers:
            assert re.search(rf"{kind.capitalize()} {number}\b", sources), (kind, number)
    for section in ("Theorem 2 (i)", "Theorem 2 (ii)", "Theorem 2 (iii)", "Section 2.1", "Algorithm 2"):
        assert section in sources
    for appendix in ("B", "C.1", "C.2", "D.1", "D.2", "E", "F"):
        assert f"Appendix {appendix}" in sources


def test_json_and_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = CliRunner()
    result = runner.invoke(app, ["verify", "--quick", "--only", "step-change", "--json"])
    assert result.exit_code == 0
    row = json.loads(result.stdout)["statements"][0]
    assert (row["name"], row["verdict"], row["seed"]) == ("step-change", "holds", 0)
    shown = runner.invoke(app, ["verify", "--quick", "--only", "lemma-4"])
    assert "holds" in shown.stdout
    broken = STATEMENTS[0]._replace(check=lambda _effort, _case, _factor=1.0: Finding(FAILS, 1, -1.0, "planted"))
    monkeypatch.setattr("driftsack.verify.STATEMENTS", (broken,))
    failed = runner.invoke(app, ["verify", "--quick", "--json"])
    assert failed.exit_code == 1
    assert json.loads(failed.stdout)["statements"][0]["as_documented"] is False


def test_the_figure_shows_margins_and_rates(tmp_path: Path) -> None:
    rate = checked(next(row for row in select_statements("theorem-2-i") if row.name == "theorem-2-i")).rates[0]
    assert rate.varied == "V"
    row: dict[str, Any] = {"name": "theorem-2-i", "power": 0.3, "rates": [rate._asdict()], "as_documented": False}
    row["margins"] = (-1.0, 0.0, 0.5, 1.0)
    margins_panel, power_panel, rate_panel = theory_figure([row]).axes
    assert margins_panel.get_xlim()[0] < -1.0  # a violated statement would be visible
    assert theory_figure([row | {"as_documented": True}]).axes[0].get_xlim()[0] > -1e-8  # and an error of rounding not
    assert np.asarray(power_panel.lines[0].get_xdata()).tolist() == [0.3]
    assert rate_panel.get_legend_handles_labels()[1][1].startswith(f"{rate.value:.2f} [")
    command = ["verify", "--quick", "--only", "lemma-4", "--figure", str(tmp_path / "theory.png")]
    assert CliRunner().invoke(app, command).exit_code == 0
    assert imread(tmp_path / "theory.png").std() > 0.05
    nothing = CliRunner().invoke(app, [*command[:3], "lemma-5", *command[4:]])
    assert nothing.exit_code == 1
    assert "neither margins nor exponents" in nothing.stderr


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(SettingError, match="only must be a part of one of measures"):
        select_statements("lemma-99")
    assert CliRunner().invoke(app, ["verify", "--only", "lemma-99"]).exit_code == 1


def test_local_search_finds_what_random_instances_do_not() -> None:
    """Only rare instances violate this statement: four or more rewards, all of them near 0.3."""

    def sides(world: ds.Instance) -> Sides:
        return Sides(0.005, float(np.abs(world.rewards - 0.3).mean()) if world.rewards.size >= 4 else 1.0)

    found = [pair.margin for pair in searched_sides(sides, Effort(quick=False, seed=3), salt=1)]
    assert min(found[:2_000]) > 0.0  # the random instances
    assert min(found[2_000:]) < 0.0  # those of the local searches


def test_random_instances_are_of_every_kind() -> None:
    rng = np.random.default_rng(0)
    worlds = [random_instance(rng) for _ in range(200)]
    assert {world.arms for world in worlds} == {1, 2, 3}
    assert {world.resources for world in worlds} == {1, 2}
    assert any(set(np.unique(world.rewards)) <= {0.0, 1.0} for world in worlds)
    assert any(len(np.unique(world.rewards)) < world.rewards.size for world in worlds if world.rewards.size > 6)
    assert min(world.problem.rate.min() for world in worlds) < 0.1


def test_the_auditor_simulates_the_policy_and_sums_the_drift_of_a_window() -> None:
    """Its stopping time is that of ``simulate``; drift is compared with a loop; without radius bounds do not cover."""
    world = ds.instances.example_2(horizon=200)
    policy = ds.SlidingWindowUCB(windows=(20, 30))
    seen = audit(world, policy, trials=1, seed=5)[0]
    run = ds.simulate(world, policy, trials=1, seed=5)
    assert seen.stopping_time == run.stopping_time[0]
    drift = window_drift(world, (20, 30))
    rewards = world.rewards[world.phase]
    for t in (0, 1, 50, 100, 101, 119, 120, 121):
        steps = [np.abs(rewards[s] - rewards[s + 1]).max() for s in range(max(0, t - 20), t)]
        assert drift[t, 0] == pytest.approx(sum(steps))
    assert (seen.farthest > 0).all()
    assert audit(world, ds.SlidingWindowUCB(windows=(20, 30), scale=0.0), trials=1, seed=5)[0].needed == np.inf


def test_the_auditor_of_estimates_that_are_0_sums_rewards_less_radii() -> None:
    """One arm in every round: the sum of rewards less radii differs from the audited one by the sum of estimates."""
    world = ds.Instance.stationary([0.5], [[0.25]], horizon=100, budget=100.0, noise="deterministic")
    policy = ds.SlidingWindowUCB(windows=(100, 100), scale=0.1)
    known, zero = (audit(world, policy, 1, 0, returns_zero=flag)[0] for flag in (False, True))
    n = np.arange(100)
    radii = 0.1 * ds.theory.radius_constant(100, 1) / np.sqrt(n + 1)
    running = np.cumsum(0.5 - radii)
    assert zero.farthest[0] == pytest.approx(np.abs(running).max())
    assert known.farthest[0] == pytest.approx(np.abs(np.cumsum(0.5 - radii - 0.5 * n / (n + 1))).max())


def test_clopper_pearson_against_known_values() -> None:
    """With no failure in n the upper end solves (1 - p)^n = tail."""
    low, high = clopper_pearson(0, 100)
    assert low == 0.0
    assert (1 - high) ** 100 == pytest.approx(0.0005)
    assert clopper_pearson(100, 100)[1] == 1.0


def test_hull_certificates() -> None:
    assert least_sum(np.eye(3), in_hull=True) == pytest.approx(2.0)
    assert least_sum(np.eye(3), in_hull=True, norm="sum") == pytest.approx(4.0)
    assert least_sum(np.eye(3), in_hull=False, norm="sum") == distance_sum(np.eye(3), np.zeros(3), 1.0)
    assert distance_sum(np.eye(3), np.full(3, 0.5), np.inf) == pytest.approx(1.5)
    rng = np.random.default_rng(0)
    points = rng.dirichlet(np.ones(3), 500)  # points of the hull, none of which may have a smaller sum
    assert min(distance_sum(np.eye(3), point, np.inf) for point in points) >= 2.0 - 1e-12


def test_exponents_are_found_with_their_intervals() -> None:
    rng = np.random.default_rng(0)
    places = [10.0, 100.0, 1_000.0]
    samples = [x**0.6 * (1 + 0.1 * rng.standard_normal(30)) for x in places]
    fit = fit_exponent("T", 0.6, places, samples, rng)
    assert fit.low < 0.6 < fit.high
    assert fit.high - fit.low < 0.05
    assert fit.gap() > 0 > fit._replace(expected=1.0).gap()
