"""Names of arms and resources: matched wherever two orders meet, kept by files and logs, refused where they differ."""

from __future__ import annotations

import dataclasses
import json
import re
from contextlib import nullcontext
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import driftsack as ds
from driftsack.cli import app
from driftsack.core.errors import NamesError, OutOfRangeError, ShapeError
from driftsack.plot.advice import as_data_uri
from driftsack.plot.drift import drift_figure
from tests.policies.learner.test_learner import snapshot

ARMS = ("zeta [v2]", "m$id$ <b>", "älpha")  # the order of the table's columns; a log sorts them
RESOURCES = ("cost_usd", "cost_$ [s]")
HORIZON = 600
BUDGET = {"cost_usd": 150.0, "cost_$ [s]": 180.0}
NAMED: dict[str, Any] = {"horizon": 60, "arms": ["small", "large"], "budget": {"usd": 20, "seconds": 30}}
PROBLEM = ds.Problem(**NAMED)
POLICY = ds.SlidingWindowUCB(windows=(7, 11), scale=0.2)


def outcomes() -> Any:
    """(T, m, 1 + d) Outcomes of every arm: the best arm changes six times, and the arms differ in what they use."""
    best = np.array([0, 1, 2, 0, 2, 1])[np.arange(HORIZON) * 6 // HORIZON]
    table = np.full((HORIZON, 3, 3), 0.1)
    table[np.arange(HORIZON), best, 0] = 0.9
    table[:, :, 1:] = [[0.2, 0.6], [0.7, 0.3], [0.5, 0.4]]
    return table


def table_in_order(arms: tuple[str, ...], resources: tuple[str, ...]) -> ds.Instance:
    """The table with its columns in an order, as an instance."""
    table, parts = outcomes(), ("reward", *RESOURCES)
    columns = {
        f"{part}:{arm}": table[:, ARMS.index(arm), parts.index(part)] for arm in arms for part in ("reward", *resources)
    }
    frame = pl.DataFrame({"time": np.arange(HORIZON)} | columns)
    world = ds.logs.read(frame, reward_max=1.0, cost_max=1.0).as_instance(BUDGET)
    assert isinstance(world, ds.Instance)
    return world


def played_log(periods: int = 3) -> pl.DataFrame:
    """A log of random arms of the table, again and again, with the columns of the resources in the other order."""
    rounds, arm = np.arange(periods * HORIZON), np.random.default_rng(0).integers(0, 3, periods * HORIZON)
    row = outcomes()[rounds % HORIZON, arm]
    names = pl.Series([ARMS[i] for i in arm])
    return pl.DataFrame(
        {"time": rounds, "arm": names, "reward": row[:, 0], RESOURCES[1]: row[:, 2], RESOURCES[0]: row[:, 1]}
    )


@pytest.fixture(scope="module")
def advice() -> ds.Advice:
    """Advice on the log."""
    settings: dict[str, Any] = {"horizon": HORIZON, "worlds": 2, "trials": 1, "shuffles": 99}
    return ds.advise(played_log(), budget=BUDGET, reward_max=1.0, cost_max=1.0, **settings)


def without_names(instance: ds.Instance) -> ds.Instance:
    """The same arrays without names."""
    problem = dataclasses.replace(instance.problem, arm_names=None, resource_names=None)  # type: ignore[arg-type]
    return ds.Instance(problem, instance.rewards, instance.costs, instance.phase, instance.noise)


def earned(instance: ds.Instance, policy: ds.Policy) -> float:
    """The mean reward of ten trials."""
    return float(ds.simulate(instance, policy, trials=10, seed=0).reward.mean())


def test_the_recommended_policy_is_matched_with_the_columns_of_a_table(advice: ds.Advice) -> None:
    """Orders differ, rewards do not; matched by position, the recommendation would earn less than half."""
    assert advice.survey.arms == tuple(sorted(ARMS)) != ARMS
    assert advice.survey.resources == RESOURCES[::-1]
    forecasting = advice.policy
    assert isinstance(forecasting, ds.PlanWithForecast)
    table, same_order = table_in_order(ARMS, RESOURCES), table_in_order(advice.survey.arms, advice.survey.resources)
    reward = earned(same_order, forecasting)
    assert earned(table, forecasting) >= 0.95 * reward > 0
    by_position = dataclasses.replace(forecasting, forecast=without_names(forecasting.forecast))
    assert earned(without_names(same_order), by_position) == reward
    assert earned(without_names(table), by_position) < 0.5 * reward


def test_every_plan_of_advice_is_matched_by_name(advice: ds.Advice) -> None:
    """The spending curves of resources and the forecasts of arms, in all orders."""
    plans = [one.candidate.policy for one in advice.standings if one.candidate.family == "plans"]
    assert {type(plan) for plan in plans} == {ds.SpendingPlan, ds.PlanWithForecast}
    for plan in plans:
        states = [plan.new_state(table_in_order(ARMS, resources).problem) for resources in (RESOURCES, RESOURCES[::-1])]
        field = "curve" if isinstance(plan, ds.SpendingPlan) else "planned_left"
        first, second = (np.asarray(getattr(state, field)) for state in states)
        np.testing.assert_allclose(first, second[::-1], rtol=1e-12)
        assert not np.allclose(first, second)
        assert ds.policies.from_spec(json.loads(json.dumps(plan.to_spec()))) == plan


def test_advice_shows_and_keeps_odd_names(advice: ds.Advice) -> None:
    page, content = advice.html(), json.loads(json.dumps(advice.to_dict()))
    assert "m$id$ &lt;b&gt;" in page
    assert "<b>" not in page
    assert "such as 1.0, {&#x27;cost_$ [s]&#x27;: ..., &#x27;cost_usd&#x27;: ...}" in page
    assert ds.Problem(**content["problem"]) == advice.world.problem
    assert content["problem"]["arm_names"] == sorted(ARMS)
    assert advice.world.problem.budget == (180.0, 150.0)


def test_an_instance_is_arranged_by_name() -> None:
    """Every order of three arms and two resources, entry by entry."""
    world = table_in_order(ARMS, RESOURCES)
    for arms in permutations(ARMS):
        for resources in permutations(RESOURCES):
            problem = ds.Problem(5, arms, dict.fromkeys(resources, 1.0))
            arranged = world.arranged_for(problem)
            assert arranged.problem.arm_names == arms
            assert dict(zip(resources, arranged.problem.budget, strict=True)) == BUDGET
            for i, arm in enumerate(arms):
                np.testing.assert_array_equal(arranged.rewards[:, i], world.rewards[:, ARMS.index(arm)])
                for j, resource in enumerate(resources):
                    expected = world.costs[:, RESOURCES.index(resource), ARMS.index(arm)]
                    np.testing.assert_array_equal(arranged.costs[:, j, i], expected)
    assert world.arranged_for(world.problem) is world


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (
            ds.PlanWithForecast(ds.Instance.stationary([0.5, 0.2], [[0.5, 0.5]] * 2, 60, NAMED["budget"])),
            r"the arms of the forecast and of the problem must .* got no names \('0', '1'\) and 'small', 'large'; give",
        ),
        (
            ds.PlanWithForecast(
                ds.Instance.stationary([0.5, 0.2], [[0.5, 0.5]] * 2, 60, 9.0, arm_names=["small", "large"])
            ),
            "the resources of the forecast and of the problem must have the same names",
        ),
        (ds.SpendingPlan(POLICY, {"usd": (0, 1), "s": (0, 1)}), "the resources of the curve and of the problem must"),
        (ds.policies.AlwaysArm("medium"), "arm must be one of 'small', 'large', got 'medium'"),
    ],
)
def test_orders_that_cannot_be_matched_are_refused(policy: ds.Policy, words: str) -> None:
    with pytest.raises(NamesError, match=words):
        policy.start(PROBLEM)


def test_a_named_forecast_is_refused_on_a_problem_without_names() -> None:
    world = table_in_order(ARMS, RESOURCES)
    with pytest.raises(NamesError, match=r"got 'zeta \[v2\]', 'm\$id\$ <b>', 'älpha' and no names \('0', '1', '2'\)"):
        ds.PlanWithForecast(world).start(ds.Problem(HORIZON, 3, [150.0, 180.0]))
    with pytest.raises(NamesError, match="the arms of the forecast and of the problem must have the same names"):
        ds.simulate(without_names(world), ds.PlanWithForecast(world), trials=1)


def test_one_resource_needs_no_name_but_not_a_wrong_one() -> None:
    """With a single resource there is one order, so the column of a log need not have the problem's name."""
    named = ds.Instance.stationary([0.5, 0.2], [[0.5, 0.5]], 9, {"usd": 4.0})
    plain = ds.Problem(9, 2, 4.0)
    assert named.arranged_for(plain) is named
    with pytest.raises(NamesError, match="got 'usd' and 'eur'"):
        named.arranged_for(ds.Problem(9, 2, {"eur": 4.0}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"arms": ["a", "b", "a"]}, "arms must differ from each other, got 'a' more than once; rename the others"),
        ({"arms": []}, "arms must name at least one, got an empty list"),
        ({"arms": "small"}, r"arms must be a list of names, got the string 'small'; pass \['small'\]"),
        ({"arms": {"a", "b"}}, "arms must be a list of names, in order, got {"),
        ({"arms": ["a", ""]}, "without leading or trailing spaces, got ''"),
        ({"arms": ["a", " b"]}, "without leading or trailing spaces, got ' b'"),
        ({"arms": [0, 1]}, "arms must be non-empty strings .* got 0"),
        ({"arms": ["a", "b"], "arm_names": ["b", "a"]}, "arm_names must be omitted or the same"),
        ({"arms": 3, "arm_names": ["a", "b"]}, "arm_names must be 3 names, got 2: 'a', 'b'"),
        ({"budget": {}}, "budget must name at least one"),
        ({"budget": {"usd": 1.0, 2: 3.0}}, "budget must be non-empty strings .* got 2"),
        ({"budget": [1.0, 2.0], "resource_names": ["usd"]}, "resource_names must be 2 names, got 1: 'usd'"),
        ({"budget": {"usd": 1.0}, "resource_names": ["eur"]}, "budget must have .* resources 'eur', got 'usd'"),
        (
            {"cost_max": {"usd": 1.0, "second": 2.0}},
            r"cost_max must have .* 'usd', 'seconds', got 'usd', 'second' \('seconds' missing, 'second' unknown\); use",
        ),
        ({"budget": [1.0, 2.0], "cost_max": {"usd": 1.0}}, "the resources 'cost_0', 'cost_1', got 'usd'"),
        ({"arms": [f"{k}" for k in range(50)], "arm_names": 7}, "arm_names must be a list of names, in order, got 7"),
    ],
)
def test_bad_names(change: dict[str, Any], words: str) -> None:
    with pytest.raises(NamesError, match=words):
        ds.Problem(**{**NAMED, **change})


def test_a_problem_with_names_is_a_value() -> None:
    mixed = ds.Problem(**NAMED, cost_max={"seconds": 2.0, "usd": 0.5})
    assert mixed.cost_max == (0.5, 2.0)
    assert mixed == eval(repr(mixed), {"Problem": ds.Problem})
    assert mixed == ds.Problem(**json.loads(json.dumps(mixed.to_dict(), sort_keys=True)))
    assert mixed == ds.Problem(
        60, np.array(["small", "large"]), mixed.budget, 1.0, mixed.cost_max, None, PROBLEM.resource_names
    )
    assert mixed != ds.Problem(60, 2, mixed.budget, 1.0, mixed.cost_max)
    assert dataclasses.replace(mixed, horizon=9).arm_names == ("small", "large")
    with pytest.raises(NamesError, match="arm_names must be 3 names"):
        dataclasses.replace(mixed, arms=3)


def test_a_problem_without_names_is_shown_and_saved_as_before() -> None:
    """Arms and resources without names are called by their numbers, and giving them these names changes nothing."""
    plain = ds.Problem(10, 2, [3.0, 4.0])
    assert repr(plain) == "Problem(horizon=10, arms=2, budget=(3.0, 4.0), reward_max=1.0)"
    assert list(plain.to_dict()) == ["horizon", "arms", "budget", "reward_max"]
    assert plain.arm_names == ("0", "1")
    assert plain == ds.Problem(10, ["0", "1"], {"cost_0": 3.0, "cost_1": 4.0})
    learner = POLICY.start(plain)
    decision = learner.ask()
    assert decision.name == str(decision.arm)
    learner.tell(decision, 0.5, {"cost_1": 0.25, "cost_0": 0.5})
    np.testing.assert_array_equal(learner.remaining, [2.5, 3.75])
    assert "remaining [2.5, 3.75]" in repr(learner)


def test_costs_by_name_are_the_same_as_in_order() -> None:
    """Bit for bit, in any order of the names, by tell and by cancel."""
    learners = [POLICY.start(PROBLEM, seed=3) for _ in range(3)]
    rng = np.random.default_rng(0)
    for t in range(25):
        reward, usd, seconds = rng.random(3) * 0.5
        costs: list[Any] = [[usd, seconds], {"usd": usd, "seconds": seconds}, {"seconds": seconds, "usd": usd}]
        for learner, amounts in zip(learners, costs, strict=True):
            decision = learner.ask()
            assert decision.name == (None if decision.skipped else ("small", "large")[decision.arm])
            if not decision.skipped:
                settle = learner.cancel if t == 7 else partial(learner.tell, reward=reward)
                settle(decision, costs=amounts)
    first, *others = (learner.state_hash() for learner in learners)
    assert all(other == first for other in others)


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        (
            {"usd": 0.1},
            r"costs must have one entry for each of the resources 'usd', 'seconds', got 'usd' \('seconds' mis",
        ),
        ({"usd": 0.1, "seconds": 0.1, "tokens": 3}, r"\('tokens' unknown\); use exactly these names"),
        ({"USD": 0.1, "seconds": 0.1}, r"\('usd' missing, 'USD' unknown\)"),
        ({0: 0.1, 1: 0.1}, r"\('usd', 'seconds' missing, 0, 1 unknown\)"),
        ({}, "got none"),
    ],
)
@pytest.mark.parametrize("settle", ["tell", "cancel"])
def test_wrong_names_of_costs_change_nothing(costs: Any, words: str, settle: str) -> None:
    learner = POLICY.start(PROBLEM, seed=0)
    decision = learner.ask()
    before = snapshot(learner)
    act = learner.cancel if settle == "cancel" else partial(learner.tell, reward=0.5)
    with pytest.raises(NamesError, match=words):
        act(decision, costs=costs)
    assert snapshot(learner) == before
    act(decision, costs={"seconds": 0.1, "usd": 0.2})
    assert learner.pending == ()


def test_costs_of_a_batch_by_name_are_the_same_as_in_order() -> None:
    """As rows, as columns by name, and as one mapping for each decision, bit for bit."""
    costs = 0.5 * np.random.default_rng(0).random((5, 2))
    rows = [{"seconds": seconds, "usd": usd} for usd, seconds in costs.tolist()]
    forms: list[Any] = [costs, costs.tolist(), {"seconds": costs[:, 1], "usd": costs[:, 0].tolist()}, rows, tuple(rows)]
    hashes = set()
    for form in forms:
        learner = POLICY.start(PROBLEM, seed=3)
        learner.tell_many(learner.ask_many(5), np.full(5, 0.5), form)
        hashes.add(learner.state_hash())
    assert len(hashes) == 1
    swapped = POLICY.start(PROBLEM, seed=3)
    swapped.tell_many(swapped.ask_many(5), np.full(5, 0.5), costs[:, ::-1])
    assert swapped.state_hash() not in hashes


@pytest.mark.parametrize(
    ("costs", "error", "words"),
    [
        (
            {"usd": [0.1, 0.1]},
            NamesError,
            r"costs must have one entry for each of the resources .* \('seconds' missing\)",
        ),
        ({"usd": [0.1], "seconds": [0.1, 0.1]}, ShapeError, r"costs of 'usd' must be numbers of shape \(2,\)"),
        ({"usd": 0.1, "seconds": [0.1, 0.1]}, ShapeError, "costs of 'usd' .* got the single number 0.1"),
        ({"usd": [-0.1, 0.1], "seconds": [0.1, 0.1]}, OutOfRangeError, "costs must be 0 or more"),
        ([{"usd": 0.1, "seconds": 0.1}, {"usd": 0.1}], NamesError, r"\('seconds' missing\)"),
        ([{"usd": 0.1, "seconds": 0.1}, [0.1]], ShapeError, r"costs must be numbers of shape \(2, 2\)"),
        ([{"usd": 0.1, "seconds": "0.1"}] * 2, ShapeError, r"costs must be numbers of shape \(2, 2\)"),
        ([[0.1, 0.1], [0.1]], ShapeError, r"costs must be numbers of shape \(2, 2\)"),
        ([[0.1, 0.1], None], ShapeError, r"costs must be numbers of shape \(2, 2\)"),
    ],
)
def test_wrong_costs_of_a_batch_change_nothing(costs: Any, error: type[Exception], words: str) -> None:
    learner = POLICY.start(PROBLEM, seed=0)
    batch = learner.ask_many(2)
    before = snapshot(learner)
    with pytest.raises(error, match=words):
        learner.tell_many(batch, [0.5, 0.5], costs)
    assert snapshot(learner) == before


def test_one_resource_needs_no_rows_in_a_batch() -> None:
    for costs, error in (([0.25, 0.5], None), ([[0.25], [0.5]], None), ([[0.25], [0.5, 0.5]], ShapeError)):
        learner = POLICY.start(ds.Problem(horizon=20, arms=2, budget=[9.0], cost_max=1.0))
        batch = learner.ask_many(2)
        with pytest.raises(error) if error else nullcontext():
            learner.tell_many(batch, [1.0, 1.0], costs)
        assert learner.remaining[0] == (9.0 if error else 8.25)


def test_files_keep_names(tmp_path: Path) -> None:
    """Of a learner with its pending decisions, and of an instance."""
    problem = ds.Problem(60, ["模型 β", "large"], {"$": 20.0, "[s]": 30.0}, cost_max={"[s]": 2.0, "$": 1.0})
    learner = POLICY.start(problem, seed=0)
    asked = [learner.ask() for _ in range(3)]
    learner.save(tmp_path / "learner.npz")
    loaded = ds.Learner.load(tmp_path / "learner.npz")
    assert loaded.problem == problem
    assert [d.name for d in loaded.pending] == [d.name for d in asked]
    assert {d.name for d in asked} <= {"模型 β", "large"}
    loaded.tell(loaded.pending[0], 0.5, {"[s]": 2.0, "$": 0.5})
    assert "remaining [$ 19.5, [s] 28]" in repr(loaded)
    world = ds.Instance.stationary(
        [0.5, 0.2], [[0.5, 0.5], [0.1, 0.2]], 9, {"$": 4.0, "[s]": 3.0}, arm_names=["模型 β", "b"]
    )
    world.save(tmp_path / "world.npz")
    assert (
        ds.Instance.load(tmp_path / "world.npz")
        == world
        == ds.Instance.from_dict(json.loads(json.dumps(world.to_dict())))
    )
    assert world.problem.arm_names == ("模型 β", "b")
    assert world != without_names(world)


def test_logs_keep_names(tmp_path: Path) -> None:
    """From an instance to a log, a file and back, and to what the log is used for."""
    world = ds.Instance.stationary(
        [0.2, 0.9, 0.4], [[0.5] * 3, [0.1] * 3], 2_000, BUDGET | {"cost_usd": 2_000.0}, cost_max=1.0, arm_names=ARMS
    )
    log = ds.gather(world, seed=0)
    assert (log.arms, log.resources) == (ARMS, RESOURCES)
    log.write(tmp_path / "log.csv")
    read = ds.logs.read(tmp_path / "log.csv", cost_max={"cost_$ [s]": 1.0, "cost_usd": 1.0})
    assert (read.arms, read.resources) == (tuple(sorted(ARMS)), RESOURCES)
    budget = {"cost_$ [s]": 2_000.0, "cost_usd": 2_000.0}
    mixes = [dict.fromkeys(ARMS, 0.0) | {"m$id$ <b>": 1.0}, {"älpha": 0.0, "m$id$ <b>": 1.0, "zeta [v2]": 0.0}]
    estimates = [ds.logs.evaluate_mix(one, mix, budget) for one, mix in zip((log, read), mixes, strict=True)]
    assert estimates[0].reward == pytest.approx(estimates[1].reward) == pytest.approx(0.9, abs=0.05)
    played = [ds.logs.evaluate(one, ds.policies.AlwaysArm("m$id$ <b>"), budget, trials=2) for one in (log, read)]
    assert played[0].reward == played[1].reward > 0.8
    with pytest.raises(NamesError, match="mix must have one entry for each of the arms"):
        ds.logs.evaluate_mix(log, {"small": 1.0})
    with pytest.raises(NamesError, match="budget must have one entry for each of the resources"):
        ds.logs.evaluate(log, POLICY, {"eur": 1.0, "cost_$ [s]": 2.0})
    with pytest.raises(NamesError, match="cost_max must have one entry for each of the resources"):
        ds.logs.read(tmp_path / "log.csv", cost_max={"usd": 1.0})
    for name in ("time", "cost:usd"):
        with pytest.raises(NamesError, match=f"must not be called time, arm, .* got {name}; rename them"):
            dataclasses.replace(log, resources=(name, "cost")).to_frame()


@pytest.mark.parametrize(
    ("budget", "code", "words"),
    [
        (["cost_usd=1", "2"], 1, "--budget must be given once for each resource, all in order or all by name, got"),
        (["cost_usd=1", "cost_usd=2"], 1, "all by name, got cost_usd=1, cost_usd=2."),
        (["eur=1", "cost_$ [s]=2"], 1, "('cost_usd' missing, 'eur' unknown); use exactly these names."),
        (["cost_usd=many"], 2, "expected a number or NAME=NUMBER, such as 500 or usd=500, got 'cost_usd=many'."),
    ],
)
def test_the_command_refuses_budgets_that_cannot_be_matched(
    budget: list[str], code: int, words: str, tmp_path: Path
) -> None:
    played_log().write_csv(tmp_path / "log.csv")
    options = [part for one in budget for part in ("--budget", one)]
    paths = [str(tmp_path / "log.csv"), "--out", str(tmp_path / "page.html")]
    result = CliRunner().invoke(app, ["advise", *paths, *options])
    assert result.exit_code == code
    assert words in " ".join(re.sub("[│╭╮╰╯─]", " ", result.stderr).split())


def test_results_and_figures_show_names() -> None:
    world = ds.Instance.stationary([0.2, 0.9, 0.4], [[0.5] * 3, [0.1] * 3], 50, BUDGET, arm_names=ARMS)
    run = ds.simulate(world, ds.policies.AlwaysArm("m$id$ <b>"), trials=2)
    assert "spent         cost_usd 2" in str(run)
    assert "zeta [v2] 0.0, m$id$ <b> 50.0, älpha 0.0" in str(run)
    assert (run.summary()["arms"], run.summary()["resources"]) == (list(ARMS), list(RESOURCES))
    plain = ds.simulate(without_names(world), ds.policies.AlwaysArm(1), trials=2)
    assert "0.0, 50.0, 0.0" in str(plain)
    assert "cost_0" not in str(plain)
    figure = drift_figure(world, ds.benchmarks.lp_dynamic(world))
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["arm zeta [v2]", r"arm m\$id\$ <b>", "arm älpha"]
    assert as_data_uri(figure).startswith("data:image/svg")
