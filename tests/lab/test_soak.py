"""Random sequences of operations against exact arithmetic: the short form of ``python -m lab soak``."""

from __future__ import annotations

import inspect
import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from driftsack.core.arrays import Ints
from driftsack.core.errors import OutOfRangeError
from driftsack.policies.learner import Learner, engine
from driftsack.policies.oracles import Oracle
from driftsack.policies.policy import recipes
from driftsack.simulation.precompile import Variant, variants
from lab.__main__ import app
from lab.soak import driver as soaking
from lab.soak import operations, worlds
from lab.soak.accounts import Accounts
from lab.soak.driver import Report, play, shortfalls, soak
from lab.soak.worlds import World, random_world
from tests.support.learner_parts import engine_of

FEW = ("AlwaysArm", "UniformRandom")


def test_a_million_random_operations_agree_with_exact_arithmetic() -> None:
    report = soak(1_000_000, seed=1)
    assert report.operations >= 1_000_000
    assert report.findings == ()
    assert shortfalls(report) == ()


def test_every_policy_takes_part() -> None:
    ours = [recipe for recipe in recipes() if recipe.__module__.startswith("driftsack.policies.")]
    left_out = {recipe.__name__ for recipe in ours} - set(variants())
    assert left_out == {r.__name__ for r in ours if issubclass(r, Oracle) or inspect.isabstract(r)}


def test_the_reference_ledger_by_hand() -> None:
    accounts = Accounts([1.0], [0.1])
    assert accounts.units([0.1]) == [10**12]  # the finest grid on which cost_max has at most 10^12 units
    accounts.reserve([3 * 10**12])
    accounts.settle(0, [10**12], [4])
    accounts.forfeit(0, [10**12])
    accounts.renew([2.0], rollover=0.3)  # 8 * 10^12 - 4 are neither spent nor reserved; 0.3 of 4 is rounded up to 2
    assert accounts.seasons[0].charged == [10**12 + 4]
    assert accounts.seasons[0].reserved == [10**12]
    assert accounts.now.granted == [20 * 10**12 + 3 * 8 * 10**11 - 2]
    accounts.settle(0, [10**12], [0], forfeited=True)  # it did not cost anything after all: 0.3 of it rolls over
    assert accounts.seasons[0].charged == [4]
    assert accounts.now.granted == [20 * 10**12 + 3 * 9 * 10**11 - 2]
    assert accounts.amounts(accounts.now.granted) == [2.2699999999998]


@pytest.fixture
def few_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only two policies, so that little is compiled."""
    known = {name: variant for name, variant in variants().items() if name in FEW}
    monkeypatch.setattr(soaking, "variants", lambda: known)


def round_up(units: Ints, share: float) -> Ints:
    """The planted fault: what rolls over is rounded up."""
    rounded: Ints = np.ceil(units * share).astype(np.int64)
    return rounded


def refuse(*_: Any, **__: Any) -> None:
    """The planted fault: an error that is not one of the library."""
    raise KeyError("nothing")


def change_and_refuse(learner: Learner, *_: Any) -> None:
    """The planted fault: an error of the library that changes the learner."""
    engine_of(learner).grant(np.ones(learner.problem.resources))
    raise OutOfRangeError("amounts must be 0 or more")


def grant_twice(learner: Any, amounts: Any) -> None:
    """The planted fault: what is granted counts double."""
    learner._add(2 * learner.units(amounts))
    learner.set_rate()


@pytest.mark.parametrize(
    ("target", "name", "fault", "words"),
    [
        (engine, "share_of", round_up, "budget must be"),
        (engine.LearnerEngine, "grant", grant_twice, "budget must be"),
        (Learner, "forfeit", refuse, "KeyError"),
        (Learner, "revise", change_and_refuse, "OutOfRangeError"),
    ],
)
@pytest.mark.usefixtures("few_policies")
def test_planted_faults_are_found(
    target: Any, name: str, fault: Callable[..., Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, name, fault)
    assert words in " ".join(soak(5_000, largest_batch=20).findings)


@pytest.mark.parametrize("planted", [False, True])
def test_missing_values_are_replaced_by_their_means(monkeypatch: pytest.MonkeyPatch, planted: bool) -> None:
    """The planted fault: the means do not follow the requests."""
    known = {name: variant for name, variant in variants().items() if name == "LinearBwK"}
    monkeypatch.setattr(soaking, "variants", lambda: known)
    if planted:
        monkeypatch.setattr("driftsack.policies.learner.learner.note_values", lambda *_: None)
    report = soak(3_000, largest_batch=20)
    assert ("the context of a decision must be" in " ".join(report.findings)) is planted
    assert report.events["missing values"] > 20


FAULTS = {
    "one unit too much is admitted": "covers = admission.covers\n"
    "admission.covers = lambda ledger, terms, j, cost, after: covers(ledger, terms, j, max(cost - 1, 0), after)",
    "what is told is charged twice": "charge = steps.charge_decision\n"
    "steps.charge_decision = lambda *given: charge(*given) or charge(*given)",
    "a forfeit releases nothing": "steps.forfeit = lambda ledger, terms, table, slot: "
    "table.awaited.status.__setitem__(slot, steps.FORFEITED)",
    "settled decisions stay pending": "steps.stop_waiting = lambda *_: None",
    "nothing": "",
}
WITHOUT_COMPILATION = """
import json
from lab.soak import driver as soak, worlds
from driftsack.game import admission, steps
known = {{name: variant for name, variant in soak.variants().items() if name in {few}}}
soak.variants = lambda: known
worlds.HORIZONS = (1, 10, 30)  # so that budgets are soon exhausted
{fault}
print(json.dumps(soak.soak(3_000, largest_batch=8).findings))
"""


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_the_ledger_are_found(fault: str) -> None:
    """Kernels can be replaced where nothing is compiled."""
    code = WITHOUT_COMPILATION.format(few=FEW, fault=FAULTS[fault])
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert bool(json.loads(done.stdout)) == (fault != "nothing")


def without_budget(name: str, variant: Variant, rng: np.random.Generator) -> World:
    """A world in which a safe learner skips every round."""
    world = random_world(name, variant, rng)
    while not world.problem.bounded:  # caps of 0 would admit requests that cost nothing
        world = random_world(name, variant, rng)
    empty = replace(world.problem, budget=(0.0,) * world.problem.resources, fallback=None)
    return World(world.policy, empty, safe=True)


@pytest.mark.usefixtures("few_policies")
def test_a_run_in_which_every_round_is_skipped_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soaking, "random_world", without_budget)
    monkeypatch.setitem(operations.OPERATIONS, "grant", lambda player: player.count("grant"))
    monkeypatch.setitem(operations.OPERATIONS, "renew", lambda player: player.count("renew"))
    report = soak(20_000, largest_batch=300)
    assert report.findings == ()
    rare = " ".join(shortfalls(report))
    assert "decisions for an arm: 0" in rare
    assert "tell_many: 0" in rare


def test_a_run_in_which_nothing_is_asked_does_not_count() -> None:
    idle = Report(10**6, 1.0, 100, {"grant": 10**6}, {}, {}, {}, (), interrupted=False)
    rare = " ".join(shortfalls(idle))
    for kind in soaking.PER_MILLION:
        assert kind in rare or kind == "grant"
    assert "no learner of Adaptive" in rare


def test_a_learner_is_played_again_from_its_number(tmp_path: Path) -> None:
    number = list(variants()).index("UniformRandom")
    one, two = (play(5, number, tmp_path, largest_batch=50) for _ in range(2))
    assert one == two
    assert one.operations > 0


def test_a_process_that_ends_is_a_finding() -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=os._exit, args=(3,))
    process.start()
    theirs.close()
    process.join()
    (finding,) = soaking._received(ours, process, 17).findings
    assert finding == "learner 17: the process ended with 3"


def test_processes_share_the_work() -> None:
    report = soak(3_000, processes=2, largest_batch=100)
    assert report.operations >= 3_000
    assert report.findings == ()


@pytest.mark.usefixtures("few_policies")
def test_the_command_reports_and_fails_on_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["soak", "60000", "--processes", "1"]
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 0, shown.output
    assert "0 findings" in " ".join(shown.stdout.split())
    assert CliRunner().invoke(app, ["speed", "60000"]).exit_code == 2
    monkeypatch.setattr(Learner, "ask_many", refuse)
    failed = CliRunner().invoke(app, [*command, "--json"])
    assert failed.exit_code == 1
    assert "KeyError" in json.loads(failed.stdout)["findings"][0]


def test_problems_are_of_every_kind() -> None:
    """All units, with and without names, maxima, a fallback, a period and free slots."""
    rng = np.random.default_rng(0)
    problems = [worlds.random_problem(100, None, rng) for _ in range(300)]
    smallest, largest = (pick(max(p.budget) for p in problems) for pick in (min, max))
    assert smallest < 1e-9
    assert largest > 1e15
    for has in (
        lambda p: p.named_arms,
        lambda p: p.bounded,
        lambda p: p.arm_cost_max is not None,
        lambda p: p.fallback is not None,
        lambda p: p.period is not None,
        lambda p: p.slots > p.arms,
    ):
        assert 10 < sum(map(has, problems)) < 290
