"""The scenarios: the same seed gives the same season for every rule, accounts are exact, and cheats are found."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from lab.__main__ import app
from lab.scenarios import play as player
from lab.scenarios import table
from lab.scenarios.catalogue import ENTRIES, make
from lab.scenarios.play import ScenarioPlay, audit, first_peek, play, units
from lab.scenarios.scenario import NEVER, SKIP, Floats, Ints, Request, Rule, Scenario, check_seed

NAMES = list(ENTRIES)
SHORT = 250


@cache
def scenario_of(name: str, seed: int = 0) -> Scenario:
    return make(name, seed)


def short(name: str, seed: int = 0) -> Scenario:
    return scenario_of(name, seed).prefix(SHORT)


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_determines_a_season(name: str) -> None:
    one, again, other = scenario_of(name), ENTRIES[name].make(0), scenario_of(name, 1)
    for part in ("rewards", "costs", "mean_rewards", "mean_costs", "times", "delays", "open", "must", "prices"):
        np.testing.assert_array_equal(getattr(one, part), getattr(again, part))
    assert one.contexts == again.contexts
    assert one.budget == other.budget
    assert not np.array_equal(one.rewards[:SHORT], other.rewards[:SHORT])
    assert 2_000 <= len(one) <= 15_000


@pytest.mark.parametrize("name", NAMES)
def test_the_true_means_are_those_of_the_outcomes(name: str) -> None:
    """Within 5 standard errors for each arm: fails by chance less than once in 10,000 runs of all scenarios."""
    scenario = scenario_of(name)
    usual = np.all(scenario.costs <= 5.0 * scenario.cost_max, axis=(1, 2))  # all but an absurd bill
    assert np.sum(~usual) <= 1
    for outcomes, means in ((scenario.rewards, scenario.mean_rewards), (scenario.costs, scenario.mean_costs)):
        error = (outcomes - means)[usual].reshape(int(usual.sum()), -1)
        limit = 5.0 * error.std(axis=0) / np.sqrt(len(error)) + 1e-6
        assert np.all(np.abs(error.mean(axis=0)) <= limit)


def test_the_scenarios_have_the_irregularities_of_their_trades() -> None:
    every = [scenario_of(name) for name in NAMES]
    assert sum(one.encoder is not None for one in every) >= 3
    assert any(one.delays is not None and np.any(one.delays == NEVER) for one in every)
    assert any(np.any(one.costs > 10.0 * one.cost_max) for one in every)
    for part in ("added", "fallback", "must", "open", "prices", "caps", "expected"):
        assert any(getattr(one, part) is not None and np.size(getattr(one, part)) for one in every)
    assert any(one.added for one in every)


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_plays_without_overspending(name: str) -> None:
    scenario = short(name)
    for start in table.players(name).values():
        played = play(scenario, start(scenario))
        assert audit(scenario, played) == []
        assert np.all(played.unspent >= 0.0)
        assert np.any(played.choices != SKIP)


@pytest.mark.parametrize("name", NAMES)
def test_no_rule_looks_ahead(name: str) -> None:
    for start in table.players(name).values():
        assert first_peek(short(name), short(name, 1), 150, start) is None


class Ahead(Rule):
    """A planted fault: chooses by the outcomes of the next ten requests."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario.brief)
        self._rewards = scenario.rewards

    def choose(self, request: Request) -> int:
        soon = self._rewards[request.index : request.index + 10].mean(axis=0)
        return max(request.open, key=lambda arm: float(soon[arm]))


def test_a_rule_that_looks_ahead_is_found() -> None:
    found = first_peek(short("ad-auction"), short("ad-auction", 1), 150, Ahead)
    assert found is not None
    assert 140 <= found < 150


class Spender(Rule):
    """Takes the open arm with the largest expected maximum cost, and keeps what it is told."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario.brief)
        self.told: list[tuple[int, float]] = []
        self.missing: list[int] = []

    def choose(self, request: Request) -> int:
        return max(request.open, key=lambda arm: float(self.brief.cost_max[arm, 0]))

    def learn(self, request: Request, arm: int, reward: float, costs: Floats) -> None:
        self.told.append((request.index, float(costs[0])))

    def lost(self, request: Request, arm: int) -> None:
        self.missing.append(request.index)


def charged_late(scenario: Scenario, rule: Rule) -> ScenarioPlay:
    """A planted fault: a player that charges a request when its outcome arrives."""
    budget = units(scenario.brief.budget)
    left, choices = budget.copy(), np.full(len(scenario), SKIP)
    due: dict[int, Ints] = {}
    for request in scenario.requests():
        left -= due.pop(request.index, 0 * left)
        arm = rule.choose(request)
        if np.all(units(scenario.costs[request.index, arm]) <= left):
            choices[request.index] = arm
            late = request.index + 1 + abs(scenario.outcome(request.index, arm).delay)
            due[late] = due.get(late, 0 * left) + units(scenario.costs[request.index, arm])
    return ScenarioPlay(choices, np.full(len(scenario), SKIP), 0.0, left / budget, 0, 0)


def test_a_player_that_charges_late_is_found() -> None:
    scenario = short("call-centre")
    assert audit(scenario, play(scenario, Spender(scenario))) == []
    assert any("exceeded" in fault for fault in audit(scenario, charged_late(scenario, Spender(scenario))))


def test_outcomes_are_delivered_in_order_of_arrival_and_lost_ones_reported() -> None:
    scenario = scenario_of("cloud-regions").prefix(1_200)
    rule = Spender(scenario)
    played = play(scenario, rule)
    assert scenario.delays is not None
    served = np.flatnonzero(played.choices != SKIP)
    delay = scenario.delays[served, played.choices[served]]
    arrives = {int(t): int(t + late) for t, late in zip(served, delay, strict=True) if late != NEVER}
    expected = sorted((due, t) for t, due in arrives.items() if due < len(scenario) - 1)
    assert [t for t, _ in rule.told] == [t for _, t in expected]
    assert [cost for _, cost in rule.told] == [scenario.costs[t, played.choices[t], 0] for _, t in expected]
    gone = served[(delay == NEVER) & (served + scenario.patience < len(scenario) - 1)]
    assert set(gone.tolist()) <= set(rule.missing)
    assert np.any(played.refused != SKIP)


def test_a_closed_arm_is_refused() -> None:
    scenario = short("pricing-stock")

    class Stubborn(Rule):
        def choose(self, request: Request) -> int:
            return 5  # opens later

    with pytest.raises(ValueError, match="request 0 may use arms"):
        play(scenario, Stubborn(scenario.brief))


def test_final_seeds_are_kept_apart() -> None:
    assert check_seed(1_000, final=True) == 1_000
    for seed, final in ((1_000, False), (100, False), (-1, False), (5, True)):
        with pytest.raises(ValueError, match="seed"):
            check_seed(seed, final)


def test_the_command_prints_a_row_and_writes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "make", lambda name, seed, final: make(name, seed, final).prefix(SHORT))
    page = tmp_path / "page.md"
    command = ["scenarios", "--seeds", "1", "--scenario", "spot-instances", "--json", "--markdown", str(page)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0
    (row,) = json.loads(result.stdout)["rows"]
    assert row["scenario"] == "spot-instances"
    assert 0.3 < row["ours"] < 1.5
    assert "| spot-instances |" in page.read_text()
    assert CliRunner().invoke(app, ["scenarios", "--scenario", "no such trade"]).exit_code == 2


def test_the_learner_is_told_exactly_what_was_charged() -> None:
    scenario = short("pricing-stock")
    rule = player.DriftsackRule(scenario)
    played = play(scenario, rule)
    assert rule.learner.pending == () or len(rule.learner.pending) == 1  # the last outcome is due after the end
    spent = units(scenario.brief.budget - np.asarray(rule.learner.remaining))
    last = played.choices[-1]
    untold = units(scenario.costs[-1, last]) if last != SKIP else 0
    assert np.all(spent + untold == np.rint((1.0 - played.unspent) * units(scenario.brief.budget)))


@pytest.mark.parametrize("known", [True, False])
def test_a_lost_outcome_is_charged_its_bill_where_the_trade_knows_it(known: bool) -> None:
    """Otherwise it is forfeited, and what was reserved counts as spent."""
    scenario = replace(short("llm-answers"), bills_at_once=known)
    rule, request = player.DriftsackRule(scenario), next(scenario.requests())
    arm = rule.choose(request)
    bill, reserved = scenario.costs[0, arm], np.asarray(rule.learner.pending[0].reserved)
    if known:
        rule.billed(request, arm, bill)
    rule.lost(request, arm)
    spent = scenario.brief.budget - np.asarray(rule.learner.remaining)
    assert spent == pytest.approx(bill if known else reserved)
    rule.learn(request, arm, 1.0, bill)  # it arrives after all
    assert scenario.brief.budget - np.asarray(rule.learner.remaining) == pytest.approx(bill)
