"""The league tells policies apart, and held-out worlds are fresh, independent and averaged over worlds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import driftsack as ds
from driftsack.cli import app
from driftsack.core.errors import DriftsackError
from driftsack.instances.families import FAMILIES
from driftsack.sweeps import held_out_worlds, make_spec
from driftsack.sweeps import league as the_league
from driftsack.sweeps.held_out import (
    POORER,
    against_best,
    family_leaders,
    family_shares,
    is_rival,
    leads,
    needs_nothing,
    second_half,
    summarise,
)
from driftsack.sweeps.league import entries, league_spec, overview, present_shares
from driftsack.sweeps.spec import InstanceSpec, PolicySpec

HORIZON, TRIALS = 2_000, 8
LEARNERS = [
    ds.Adaptive(),
    ds.policies.PriceController(),
    ds.policies.EpsilonGreedy(),
    ds.NaiveUCB(scale=0.1, budget_rule="remaining"),
]


def lead(world: ds.Instance) -> float:
    """Share of LP-Dynamic by which the best learner is ahead of uniform random choice, less 4 standard errors."""
    optimum = ds.benchmarks.lp_dynamic(world).value
    uniform, *rest = (
        ds.simulate(world, policy, trials=TRIALS, seed=0).reward / optimum
        for policy in (ds.policies.UniformRandom(), *LEARNERS)
    )
    best = max(rest, key=np.mean)
    error = np.sqrt((best.var(ddof=1) + uniform.var(ddof=1)) / TRIALS)
    return float(best.mean() - uniform.mean() - 4 * error)


@pytest.mark.parametrize("world", league_spec(1, HORIZON, 0).instances, ids=lambda world: world.label)
def test_learning_pays_in_every_world_of_the_league(world: InstanceSpec) -> None:
    assert lead(world.build()) > 0.03


@pytest.mark.parametrize(
    "world",
    [
        ds.instances.budget_trap(better=False, w1=100.0, w2=100.0, horizon=HORIZON),
        ds.instances.reward_switching(arms=3, horizon=HORIZON),
        ds.instances.adversarial_order(best_last=False, horizon=HORIZON),
        ds.instances.example_3(alpha=0.5, horizon=HORIZON),
    ],
)
def test_worlds_that_left_the_league_are_rejected(world: ds.Instance) -> None:
    """Uniform random choice scores like everyone there, or better."""
    assert lead(world) < 0.03


def test_all_families_the_examples_and_the_flagship_take_part() -> None:
    worlds = [world.label for world in league_spec(1, 100, 0).instances]
    assert set(FAMILIES) <= set(worlds)
    assert [name.split(",")[0] for name in worlds[:4]] == ["Example 1", "Example 2", "Example 3", "Example 4"]
    names = {entry["name"]: entry for entry in entries()}
    assert names["Adaptive"] == {"policy": "Adaptive", "name": "Adaptive"}  # with its defaults
    assert {"EpsilonGreedy", "PriceController", "RecentMeansLP", "UniformRandom"} <= set(names)


def test_held_out_worlds_are_fresh_and_independent() -> None:
    one, more, other = (held_out_worlds(seed, n, 200) for seed, n in ((1, 1), (1, 3), (2, 3)))
    built = {world.label: world.build() for some in more.values() for world in some}
    assert len(built) == 45 == len(set(built.values()))
    for family in FAMILIES:
        assert one[family][0].build() == built[f"{family} 1"]  # it does not depend on how many are drawn
        assert other[family][0].build() not in built.values()
    first = np.array([built[f"{family} 1"].rewards[0, 0] for family in ("stationary", "piecewise", "linear trend")])
    unit = (first - [0.1, 0.05, 0.1]) / [0.8, 0.9, 0.8]
    assert np.ptp(unit) > 1e-3  # one stream for all families would give three times the same number
    with pytest.raises(DriftsackError, match="per_family must be at least 1, got 0"):
        held_out_worlds(1, per_family=0)


def test_standard_errors_are_over_worlds() -> None:
    """Against NumPy; the standard errors over trials, which are zero here, would be the planted fault."""
    worlds = held_out_worlds(3, per_family=3, horizon=100)
    rng = np.random.default_rng(0)
    labels = [world.label for some in worlds.values() for world in some]
    shares = rng.random((2, len(labels)))
    table = pl.DataFrame(
        [
            {"policy": policy, "world": label, "optimum_share": share, "optimum_share_se": 0.0}
            for policy, row in zip(("NaiveUCB", "UniformRandom"), shares, strict=True)
            for label, share in zip(labels, row, strict=True)
        ]
    )
    found = family_shares(table, worlds).filter(pl.col("family") == "bursts")
    place = labels.index("bursts 1")
    np.testing.assert_allclose(found["mean_share"], shares[:, place : place + 3].mean(axis=1))
    np.testing.assert_allclose(found["mean_share_se"], shares[:, place : place + 3].std(axis=1, ddof=1) / np.sqrt(3))
    total = overview(table, over_worlds=True)
    np.testing.assert_allclose(total["mean_share_se"], shares.std(axis=1, ddof=1) / np.sqrt(45))
    assert overview(table)["mean_share_se"].to_list() == [0.0, 0.0]
    policies = [PolicySpec(policy="NaiveUCB"), PolicySpec(policy="UniformRandom")]
    rows = family_leaders(family_shares(table, worlds), policies, "UniformRandom")
    assert all(row["first_share"] >= row["second_share"] for row in rows)
    assert [row["family"] for row in rows] == list(FAMILIES)


def test_informed_policies_are_not_leaders() -> None:
    informed = [
        {"policy": "SlidingWindowUCB", "variation": "measured:variation"},
        {"policy": "SpendingPlan", "base": {"policy": "NaiveUCB"}, "curve": "measured:spending"},
        {"policy": "DynamicOracle"},
    ]
    assert not any(needs_nothing(PolicySpec.model_validate(one)) for one in informed)
    assert needs_nothing(PolicySpec.model_validate({"policy": "DetectAndRestart", "base": {"policy": "NaiveUCB"}}))


def test_leads_are_paired_by_world() -> None:
    """Against NumPy; the standard error of unpaired samples would be the planted fault."""
    rng = np.random.default_rng(1)
    shares = rng.random(30) + np.array([[0.0], [-0.01], [-0.03]]) + 0.02 * rng.random((3, 30))
    names = ("champion", "one", "two")
    table = pl.DataFrame(
        [
            {"policy": name, "world": str(k), "optimum_share": share}
            for name, row in zip(names, shares, strict=True)
            for k, share in enumerate(row)
        ]
    )
    found = leads(table, "champion", ["two", "one"])
    lead = shares[0] - shares[1:]
    assert found["policy"].to_list() == ["one", "two"]
    np.testing.assert_allclose(found["lead"], lead.mean(axis=1))
    np.testing.assert_allclose(found["lead_se"], lead.std(axis=1, ddof=1) / np.sqrt(30))
    assert (found["lead_se"] < 0.2 * shares[0].std() / np.sqrt(30)).all()
    np.testing.assert_allclose(found["ahead"], (lead > 0).mean(axis=1))
    order = rng.permutation(30).astype(str).tolist()  # a competitor that ignores which world a share belongs to
    renamed = pl.col("world").replace_strict(table["world"].unique(maintain_order=True).to_list(), order)
    mixed = table.with_columns(world=pl.when(pl.col("policy") == "champion").then(renamed).otherwise("world"))
    shuffled = leads(mixed, "champion", ["two", "one"])
    np.testing.assert_allclose(shuffled.sort("policy")["lead"], found.sort("policy")["lead"])  # the means are the same
    assert (shuffled["lead_se"] > 5 * found["lead_se"]).all()
    relative = shares[0] / shares[1:].max(axis=0) - 1
    worlds = against_best(table, "champion", ["two", "one"])
    np.testing.assert_allclose(worlds["difference"], relative)
    assert worlds["best"].to_list() == np.where(shares[1] >= shares[2], "one", "two").tolist()
    expected = [30, relative.mean(), (relative >= -0.01).mean(), (relative >= -0.05).mean()]
    np.testing.assert_allclose(list(summarise(worlds).values()), expected)
    easy = summarise(against_best(table, "champion", ["two"]))  # a competitor that picks one setting for all worlds
    assert easy["mean"] > expected[1]
    assert easy["within_1"] > expected[2]


def test_worlds_that_get_poorer_are_told_from_others() -> None:
    rows = [[0.9, 0.2], [0.3, 0.6]]
    costs = [[[0.5, 0.5]], [[0.5, 0.5]]]
    there, back = (
        ds.Instance.piecewise(some, costs, lengths=[500, 500], budget=300) for some in (rows, list(reversed(rows)))
    )
    assert second_half(there) == pytest.approx(0.6 / 0.9)
    assert second_half(back) == pytest.approx(0.9 / 0.6)
    assert second_half(there) < POORER < second_half(back)
    mean = np.mean(rows, axis=1)  # what a mean over arms would see: the planted fault
    assert mean[1] / mean[0] != pytest.approx(second_half(there))


def test_the_twelve_settings_are_paced_and_told_nothing() -> None:
    known = {entry["name"]: entry for entry in [*the_league.entries(), *the_league.TUNED]}
    for name in the_league.TWELVE:
        assert needs_nothing(PolicySpec.model_validate(known[name]))
        assert "'remaining'" in str(known[name])
    assert len(set(the_league.TWELVE)) == 12
    assert "'remaining'" not in str(known["SW-UCB"])  # the paper's policy, which would be rejected


def test_only_policies_that_are_told_of_the_future_are_no_rivals() -> None:
    rivals = {entry["name"] for entry in the_league.entries() if is_rival(PolicySpec.model_validate(entry))}
    others = {entry["name"] for entry in the_league.entries()} - rivals
    assert {"DynamicOracle", "StaticOracle", "plan, told ten periods' means", "naive UCB paced by that plan"} == others


def test_present_shares_tell_lack_of_foresight_from_lack_of_learning() -> None:
    """Without drift nothing needs foresight; in Example 3 an even pace earns 0.85, however well means are known."""
    worlds = [
        {"name": "no drift", **FAMILIES["stationary"], "seed": 0, "horizon": 500},
        {"name": "timing", "instance": "example_3", "alpha": 0.5, "horizon": 500},
    ]
    policies = [{"policy": "UniformRandom"}]
    found = present_shares(make_spec({"instances": worlds, "policies": policies, "trials": 1, "seeds": [0]}))
    assert found["world"].to_list() == ["no drift", "timing"]
    np.testing.assert_allclose(found["even_pace"], [1.0, 0.85], atol=1e-6)
    assert (found["two_speeds"] <= 1 + 1e-9).all()
    assert found["two_speeds"][1] < 0.9


def test_the_command_draws_worlds_and_reports_families(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = [{"name": name, "policy": name} for name in ("Adaptive", "EpsilonGreedy", "UniformRandom")]
    monkeypatch.setattr(the_league, "entries", lambda: few)
    monkeypatch.setattr(the_league, "TUNED", ())
    command = ["league", "--trials", "1", "--horizon", "100", "--out", str(tmp_path)]
    held_out = [*command, "--held-out", "5", "--per-family", "2"]
    done: dict[str, Any] = json.loads(CliRunner().invoke(app, [*held_out, "--json"]).stdout)
    assert len(done["table"]) == 3 * 30
    assert len(done["families"]) == 3 * 15
    assert all(row["worlds"] == 2 and row["mean_share_se"] is not None for row in done["families"])
    names = {path.name for path in tmp_path.iterdir()}
    assert {"held_out_5.csv", "held_out_5_families.csv", "held_out_5.png", "store"} <= names
    assert {row["policy"] for row in done["leads"]} == {"EpsilonGreedy", "UniformRandom"}
    assert done["against_best"]["worlds"] + len(done["poorer"]) == 30
    assert done["poorer"]
    assert all(row["second_half"] < POORER for row in done["poorer"])
    shown = CliRunner().invoke(app, held_out)
    assert shown.exit_code == 0
    assert all(word in shown.stdout for word in ("EpsilonGreedy", "piecewise", "uniform"))
    known = pl.DataFrame(done["present_means_known"])
    assert set(known["world"]) == {row["world"] for row in done["table"]}
    even = 100 * known["even_pace"].to_numpy().mean()
    assert f"would earn {even:.1f}% at the even pace" in " ".join(shown.stdout.split())
    refused = CliRunner().invoke(app, [*command, "--per-family", "2"])
    assert refused.exit_code == 1
    assert "--per-family needs --held-out SEED" in " ".join(refused.stderr.split())


@pytest.mark.slow
def test_the_command_compares_under_harder_conditions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Late outcomes and loose maxima change what a learner earns, and nothing for one that does not learn."""
    monkeypatch.setattr(
        the_league, "entries", lambda: [{"name": n, "policy": n} for n in ("Adaptive", "UniformRandom")]
    )
    monkeypatch.setattr(the_league, "TUNED", ())
    command = ["league", "--trials", "1", "--horizon", "200", "--out", str(tmp_path)]
    held_out = [*command, "--held-out", "5", "--per-family", "1", "--arms", "3", "--resources", "1", "--json"]
    usual, late, loose = (
        json.loads(CliRunner().invoke(app, [*held_out, *more]).stdout)
        for more in ([], ["--delay", "60"], ["--loose", "8"])
    )
    assert late["conditions"] == {"delay": 60, "arms": 3, "resources": 1, "loose": 1.0}
    assert {row["policy"] for row in late["leads"]} == {"UniformRandom"}
    assert (tmp_path / "held_out_5_delay_60_arms_3_resources_1_families.csv").exists()
    shares = [
        {(row["policy"], row["world"]): row["optimum_share"] for row in run["table"]} for run in (usual, late, loose)
    ]
    assert shares[0] == pytest.approx(shares[2], rel=1e-9)  # Adaptive does not read the maxima
    moved = {name for name, world in shares[0] if shares[0][name, world] != shares[1][name, world]}
    assert moved == {"Adaptive"}
    worlds = [world for some in held_out_worlds(5, 1, 200, arms=3, resources=1).values() for world in some]
    assert {(world.build().arms, world.build().resources) for world in worlds} == {(3, 1)}
    for option in (["--delay", "60"], ["--arms", "3"], ["--resources", "1"], ["--loose", "8"]):
        refused = CliRunner().invoke(app, [*command, *option])
        assert refused.exit_code == 1
        assert f"{option[0]} needs --held-out SEED" in " ".join(refused.stderr.split())
    shown = CliRunner().invoke(app, [*held_out[:-1], "--loose", "8"])
    assert "3 arms, 1 resource, maxima 8 times too large" in " ".join(shown.stdout.split())


def test_a_held_out_spec_is_a_valid_sweep() -> None:
    worlds = held_out_worlds(0, per_family=1, horizon=100)
    spec = the_league.held_out_spec(worlds, trials=1, seed=0, delay=3, loose=2.0)
    again = make_spec(json.loads(spec.model_dump_json(exclude_none=True)))
    assert [one.build() for one in again.instances] == [one.build() for some in worlds.values() for one in some]
    assert (again.delay, again.loose) == (3, 2.0)
