"""Learner files: malicious ones are refused, the layout stays readable, and one process at a time writes."""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import stat
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core import file_format
from driftsack.core.errors import DriftsackError, FileFormatError, FileInUseError, OutOfRangeError, ShapeError
from driftsack.game.amounts import MOST_UNITS
from driftsack.game.ledger import open_ledger, set_budget
from driftsack.policies.learner.file import LAYOUT
from tests.support.kept_files import DIRECTORY, continued
from tests.support.learner_files import file_of_started

PROBLEM = ds.Problem(horizon=60, arms=3, budget=[20.0, 25.0], cost_max=1.0)
POLICY = ds.SlidingWindowUCB(windows=(7, 11), scale=0.2)
FLAT = ds.Instance.stationary([0.5, 0.4, 0.3], [[0.5, 0.2, 0.4]] * 2, 60, [20.0, 25.0])
PLAN = ds.PlanWithForecast(FLAT, windows=8)
LONG_WINDOW = {
    "policy": {**POLICY.to_spec(), "windows": [10**11, 7]},
    "problem": {**PROBLEM.to_dict(), "horizon": 2**50},
}


def play(learner: ds.Learner, rounds: int, seed: int = 0) -> list[int]:
    rng = np.random.default_rng(seed)
    arms = []
    for _ in range(rounds):
        decision = learner.ask()
        arms.append(decision.arm)
        if decision.arm != ds.SKIP:
            learner.tell(decision, float(rng.random()), 0.6 * rng.random(2))
    return arms


def started(rounds: int = 20) -> ds.Learner:
    learner = POLICY.start(PROBLEM, seed=3)
    play(learner, rounds)
    learner.ask()
    return learner


def run_python(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **environment}, check=False, timeout=120
    )


def malicious(path: Path, content: dict[str, Any] | None = None, **arrays: Any) -> None:
    """Write a file with other content and a digest that fits."""
    known, stored = file_format.decode(started().to_bytes(), "learner", LAYOUT, "the original")
    for name, change in arrays.items():
        array = stored[name.replace("__", ".")]
        array.flat[0] = change
    file_format.write(path, "learner", LAYOUT, {**known, **(content or {})}, stored)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"state__means__stale__size": 10**9}, r"stale.size must lie in \[0, 3\]"),
        ({"pending__arm": 100_000}, r"pending.arm must lie in \[0, 2\]"),
        ({"pending__number": 0}, "pending.number must lie in"),
        ({"pending__mixes": np.nan}, "pending.mixes must lie in"),
        ({"state__means__rewards__arms": 3}, "rewards.arms must lie in"),
        ({"state__means__rewards__sums": 1}, "sums of a window"),
        ({"state__means__stale__present": True}, "marked as present"),
        ({"state__lp__basis": 99}, "basis must lie in"),
        ({"state__lp__columns": np.inf}, "columns must lie in"),
        ({"state__first__latest": 7}, "first pulls that are left"),
        ({"ledgers__charged": -1}, "charged must lie in"),
        ({"ledgers__granted": 2**63 - 1}, "granted must lie in"),
        ({"ledgers__spent": 0.0}, "must be near the exact ones"),
        ({"ledgers__spent": np.nan}, "must be near the exact ones"),
        ({"desk__cost_unit": 1e9}, "cost_unit must lie in"),
        ({"desk__cost_unit": np.nan}, "cost_unit must lie in"),
        ({"arms__worst": -7}, "worst must lie in"),
        ({"content": LONG_WINDOW}, "larger than its file"),
        ({"content": {"problem": {**PROBLEM.to_dict(), "horizon": 2**60}}}, "horizon must be at least 1 and at most"),
        ({"content": {"problem": {**PROBLEM.to_dict(), "arms": 10**9}}}, "larger than its file"),
        ({"content": {"fallbacks": float("inf")}}, "fallbacks must be an integer"),
        ({"content": {"lineage": "x"}}, "lineage"),
        ({"content": {"problem": {**PROBLEM.to_dict(), "cost_max": None}}}, "a setting without a value"),
        ({"pending__epoch": -1}, r"pending.epoch must lie in"),
        ({"content": {"rng": {}}}, "inconsistent"),
    ],
)
def test_a_malicious_file_is_refused_with_the_reason(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    malicious(tmp_path / "learner", **change)
    with pytest.raises(FileFormatError, match=words) as error:
        ds.Learner.load(tmp_path / "learner")
    assert str(tmp_path / "learner") in str(error.value)


@pytest.mark.parametrize(
    ("policy", "array", "value", "words"),
    [
        (PLAN, "desk.clock", 255, "a plan for one horizon"),
        (PLAN, "desk.last", 61, "a plan for one horizon"),
        (ds.policies.LagrangeBwK(), "state.factor", -1.0, "factor must lie in"),
        (ds.Adaptive(), "state.belief.sums", 1e18, "the sum of a run is larger"),
        (ds.Adaptive(), "state.belief.total", 1e18, "the sum of all outcomes is larger"),
        (ds.LinearBwK(), "state.choice.bank.coefficients", 1e308, "coefficients must lie in"),
        (ds.LinearBwK(), "state.choice.bank.covariance", 1e308, "covariance must lie in"),
        (ds.LinearBwK(), "state.choice.bank.covariance", -1.0, "a covariance is not positive semidefinite"),
        (ds.LinearBwK(), "state.choice.price.latest.noise", 1e308, "noise must lie in"),
        (ds.LinearBwK(), "state.features.squares", -1.0, "squares must lie in"),
        (ds.LinearBwK(), "state.features.mean", 1e308, "mean must lie in"),
    ],
)
def test_what_a_hundred_thousand_files_found_is_refused(
    tmp_path: Path, policy: ds.policies.Policy, array: str, value: float, words: str
) -> None:
    data = file_of_started(policy, np.random.default_rng(0))
    content, stored = file_format.decode(data, "learner", LAYOUT, "the original")
    file_format.write(tmp_path / "learner", "learner", LAYOUT, content, stored)
    ds.Learner.load(tmp_path / "learner", read_only=True)
    stored[array].flat[0] = value
    file_format.write(tmp_path / "learner", "learner", LAYOUT, content, stored)
    with pytest.raises(FileFormatError, match=words):
        ds.Learner.load(tmp_path / "learner", read_only=True)


def test_the_runs_of_an_instance_are_whole_numbers() -> None:
    content = FLAT.to_dict()
    assert ds.Instance.from_dict(content).horizon == 60
    with pytest.raises(OutOfRangeError, match="runs must"):
        ds.Instance.from_dict({**content, "runs": [[-0.5, 60]]})


@pytest.mark.parametrize("setting", ["arms", "slots"])
def test_a_number_of_arms_cannot_exhaust_the_memory(setting: str) -> None:
    content = FLAT.to_dict()
    with pytest.raises(OutOfRangeError, match=f"{setting} must be at least . and at most"):
        ds.Instance.from_dict({**content, "problem": {**content["problem"], setting: 10**30}})


def test_an_account_of_a_policy_holds_any_budget() -> None:
    ledger = open_ledger(ds.Problem(horizon=10, arms=2, budget=[5.0], cost_max=[0.01]))
    for budget, granted in ((1e300, MOST_UNITS), (-1e300, 0)):
        set_budget(ledger, 0, budget)
        assert ledger.granted[0] == pytest.approx(granted)


def test_sizes_are_limited_before_anything_is_allocated(tmp_path: Path) -> None:
    """Headers lie: a bomb of zeros, an array that claims to be long, and runs of 2^31 rounds."""
    bomb, claim = tmp_path / "bomb", tmp_path / "claim"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("driftsack.npy", bytes(50_000_000))
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**8,)})
    with zipfile.ZipFile(claim, "w") as archive:
        archive.writestr("driftsack.npy", header.getvalue())
    world = ds.Instance.stationary([0.5], [[0.5]], horizon=10, budget=5)
    tracemalloc.start()
    for path in (bomb, claim):
        with pytest.raises(FileFormatError, match="not a complete driftsack learner file"):
            ds.Learner.load(path)
    with pytest.raises(ShapeError, match="the rounds of all runs must sum to 10"):
        ds.Instance.from_dict({**world.to_dict(), "runs": [[0, 2**31 - 1]]})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000


EXPECTED = json.loads((DIRECTORY / "expected.json").read_text())


@pytest.mark.parametrize("name", EXPECTED)
def test_files_of_this_layout_are_read(name: str) -> None:
    """Files of this layout, with the decisions that were made next when they were written."""
    expected = EXPECTED[name]
    learner = ds.Learner.load(DIRECTORY / f"{name}.npz", read_only=True)
    assert (learner.round, learner.safe) == (expected["round"], True)
    assert (len(learner.pending), len(learner.forfeited)) == (expected["pending"], expected["forfeited"])
    assert learner.state_hash() == expected["state_hash"]
    assert continued(learner) == {name: expected[name] for name in ("arms", "remaining")}


def test_files_of_another_layout_are_refused(tmp_path: Path) -> None:
    content, stored = file_format.decode(started().to_bytes(), "learner", LAYOUT, "the original")
    for layout in (LAYOUT - 1, LAYOUT + 1):
        file_format.write(tmp_path / "learner", "learner", layout, content, stored)
        with pytest.raises(FileFormatError, match=f"of learner version {LAYOUT}, got version {layout}; read it with"):
            ds.Learner.load(tmp_path / "learner")


def test_bytes_copies_and_pickles_continue_bit_for_bit() -> None:
    learner = started()
    others = [ds.Learner.from_bytes(learner.to_bytes()), copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))]
    decision = learner.pending[0]
    told = pickle.loads(pickle.dumps(decision)), copy.deepcopy(decision), decision
    assert {other.state_hash() for other in others} == {learner.state_hash()}
    before = learner.state_hash()
    for other, same in zip(others, told, strict=True):
        other.tell(same, 0.5, [0.1, 0.2])
    learner.tell(decision, 0.5, [0.1, 0.2])
    assert {other.state_hash() for other in others} == {learner.state_hash()} != {before}
    assert [play(other, 10) for other in others] == [play(copy.copy(learner), 10)] * 3
    with pytest.raises(FileFormatError, match="the data is not a complete driftsack learner file"):
        ds.Learner.from_bytes(learner.to_bytes()[:-9])


def test_a_copied_instance_is_checked_and_read_only() -> None:
    world = ds.instances.example_1(horizon=10)
    for other in (copy.deepcopy(world), copy.copy(world), pickle.loads(pickle.dumps(world))):
        assert other == world
        assert not other.phase.flags.writeable
    object.__setattr__(world, "phase", np.full(10, 10**6))
    with pytest.raises(DriftsackError, match="phase must lie in"):
        copy.deepcopy(world)
    with pytest.raises(DriftsackError, match="phase must lie in"):
        pickle.loads(pickle.dumps(world))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"budget": (float("nan"), 1.0)}, "budget must be finite"),
        ({"budget": (-1.0, 1.0)}, "budget must be 0 or more"),
        ({"budget": np.array([5.0, 5.0])}, r"budget of a copied problem must be \(5.0, 5.0\)"),
        ({"fallback": 10**6}, "fallback must be at least 0 and at most 1"),
        ({"slots": 0}, "slots must be at least 2"),
        ({"arms": 10**6}, "arm_names must be 1000000 names"),
        ({"cost_max": (0.0, 1.0)}, "cost_max must be above 0"),
        ({"arm_cost_max": ((1.0, 2.0), (1.0, 1.0))}, "arm_cost_max of a copied problem must be None"),
        ({"bounded": "yes"}, "bounded of a copied problem must be True"),
        ({"period": 5.0}, "period must be a timedelta above 0"),
        ({"features": 3}, "encoder of a copied problem must be None"),
    ],
)
def test_a_copied_problem_is_checked(change: dict[str, Any], words: str) -> None:
    problem = ds.Problem(10, ["a", "b"], [5.0, 5.0], cost_max=1.0, features=["x", "y"])
    clones: tuple[Callable[[Any], Any], ...] = (copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one)))
    for clone in clones:
        assert clone(problem) == problem
    for name, value in change.items():
        object.__setattr__(problem, name, value)
    for clone in clones:
        with pytest.raises(DriftsackError, match=words):
            clone(problem)


def test_a_problem_of_every_kind_is_equal_to_its_copy() -> None:
    by_arm = {"u": {"a": 1, "b": 2}, "v": {"a": 1, "b": 1}}
    for problem in (
        ds.Problem(10, 3, [5.0]),
        ds.Problem(10, ["a", "b"], {"u": 1, "v": 2}, cost_max=by_arm, fallback="b", slots=5),
        ds.Problem(period=timedelta(days=3), arms=2, budget=3.0, features=["x", "y"]),
        ds.Problem(10, 2, 3.0, features=4, reward_max=3.0, cost_max=0.5),
    ):
        for other in (copy.copy(problem), copy.deepcopy(problem), pickle.loads(pickle.dumps(problem))):
            assert (other, hash(other), repr(other)) == (problem, hash(problem), repr(problem))


def test_save_keeps_permissions_and_follows_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "elsewhere"
    directory.mkdir()
    target, link = directory / "learner.npz", tmp_path / "link"
    learner = started()
    learner.save(target)
    target.chmod(0o640)
    link.symlink_to(target)
    synced: list[bool] = []
    sync = os.fsync

    def watched(descriptor: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    play(learner, 1)
    learner.save(link)
    assert synced == [False, True]  # the file, and after its replacement the directory
    assert link.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert ds.Learner.load(target).round == learner.round

    def fail(*_: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", fail)
    before = target.read_bytes()
    with pytest.raises(OSError, match="disk is full"):
        learner.save(link)
    assert target.read_bytes() == before
    assert not list(tmp_path.rglob("*.part"))


OTHER = """
import sys
import driftsack as ds
from driftsack.core.errors import FileInUseError
for use in (ds.Learner.load, ds.NaiveUCB().start(ds.Problem(9, 2, [5.0])).save):
    try:
        use(sys.argv[1])
    except FileInUseError as error:
        print(error)
print(ds.Learner.load(sys.argv[1], read_only=True).round)
"""


def test_one_process_at_a_time_holds_a_file(tmp_path: Path) -> None:
    path = tmp_path / "learner"
    learner = started()
    learner.save(path)
    same = ds.Learner.load(path)  # the same process may
    del learner
    refusals = run_python(OTHER, str(path), NUMBA_DISABLE_JIT="1").stdout.splitlines()
    assert len(refusals) == 3
    for refusal in refusals[:2]:
        assert f"{path} is open for writing in process {os.getpid()} on " in refusal
        assert "behind a service, which driftsack serve starts" in refusal
    assert refusals[2] == "21"
    same.save(tmp_path / "backup")  # a second file is held only while it is written
    assert sorted(p.name for p in tmp_path.iterdir()) == ["backup", "learner", "learner.lock"]
    child = os.fork()
    if child == 0:
        try:
            same.save(path)
        except FileInUseError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    del same
    assert run_python(OTHER, str(path), NUMBA_DISABLE_JIT="1").stdout.split() == ["0"]  # and was overwritten
    assert not (tmp_path / "learner.lock").exists()


def test_two_workers_with_one_file_do_not_spend_two_budgets(tmp_path: Path) -> None:
    path = tmp_path / "learner"
    ds.policies.AlwaysArm(0).start(ds.Problem(horizon=50, arms=1, budget=[5.0], cost_max=1.0), safe=True).save(path)
    code = """
import sys
import driftsack as ds
try:
    learner = ds.Learner.load(sys.argv[1])
except ds.errors.FileInUseError:
    sys.exit("in use")
print("loaded", flush=True)
sys.stdin.read()
while not learner.done:
    decision = learner.ask()
    if decision.arm != ds.SKIP:
        learner.tell(decision, 1.0, 1.0)
print(5.0 - learner.remaining[0])
"""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-c", code, str(path)]
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    workers = [subprocess.Popen(command, text=True, env=environment, **pipes) for _ in range(2)]
    loaded = [worker.stdout is not None and worker.stdout.readline() for worker in workers]
    ends = [worker.communicate() for worker in workers]
    assert loaded.count("loaded\n") == 1
    assert [error for _, error in ends].count("in use\n") == 1
    assert sum(float(spent or 0.0) for spent, _ in ends) == 5.0
