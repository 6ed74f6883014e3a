"""Every state that can be reached can be loaded, decisions are told by their ids, and arguments mean what they say."""

from __future__ import annotations

import gc
import itertools
import json
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import (
    AlreadyToldError,
    DriftsackError,
    FileFormatError,
    InfeasibleError,
    NamesError,
    SettingError,
    ShapeError,
    UnknownDecisionError,
)
from driftsack.core.locks import has_taken
from driftsack.policies import BanditOverBandit, Master, PerSegment
from driftsack.policies.learner import file as learner_file
from tests.support.forms import interpret

SEGMENTS = ds.Encoder(categories={"user": ["a", "b"]})
NESTED: dict[str, Callable[[], ds.Policy]] = {
    "windows": BanditOverBandit,
    "windows in blocks": lambda: BanditOverBandit(block=20),
    "a plan of windows": lambda: ds.SpendingPlan(BanditOverBandit(block=20)),
    "windows by segment": lambda: PerSegment(BanditOverBandit(block=20)),
    "orders by segment": lambda: PerSegment(Master()),
    "a plan of orders": lambda: ds.SpendingPlan(Master()),
}
PROBLEM = ds.Problem(horizon=100, arms=2, budget={"usd": 50}, cost_max={"usd": 1})


def play(learner: ds.Learner, rounds: int, chance: random.Random) -> None:
    context = {"user": chance.choice("ab")} if learner.problem.features else None
    for _ in range(rounds):
        if learner.done:
            return
        decision = learner.ask(context=context)
        if not decision.skipped:
            learner.tell(decision, 0.5, chance.random())


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("case", range(3))
def test_a_nested_learner_can_be_loaded_after_every_operation(
    name: str, case: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks that are cut short by fewer rounds and go on in a longer season, and memories inside memories."""
    interpret(monkeypatch)
    chance = random.Random(case)
    features = SEGMENTS if "segment" in name else 0
    problem = ds.Problem(horizon=60, arms=3, budget=[40.0], cost_max=[1.0], features=features)
    learner = NESTED[name]().start(problem, seed=case)
    for step in range(16):
        operation = ("play", "revise", "renew", "play", "grant")[step % 5] if step else "play"
        try:
            if operation == "play":
                play(learner, chance.choice([1, 5, 25]), chance)
            elif operation == "revise":
                learner.revise(chance.choice([1, 2, 7, 40]))
            elif operation == "renew":
                learner.renew(rounds=chance.choice([1, 2, 7, 40]))
            else:
                learner.grant(5.0)
        except DriftsackError:  # the operation is not possible now
            continue
        assert ds.Learner.from_bytes(learner.to_bytes()).state_hash() == learner.state_hash()


def test_a_file_that_could_not_be_loaded_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = ds.policies.UniformRandom().start(PROBLEM)
    whole = learner_file.encode
    monkeypatch.setattr(learner_file, "encode", lambda snapshot: whole(snapshot)[:-7])  # the planted fault
    with pytest.raises(FileFormatError):
        learner.save(tmp_path / "learner")
    assert not (tmp_path / "learner").exists()


def test_an_outcome_is_told_by_the_id_of_its_decision() -> None:
    learner = ds.policies.UniformRandom().start(PROBLEM, safe=True)
    first, second = learner.ask(), learner.ask()
    learner.tell(first.id, costs=0.25)
    learner.tell(first.id, reward=0.5)
    learner.tell(second.id, 1.0, {"usd": 0.5})
    assert learner.pending == ()
    learner.tell(second.id, 1.0, {"usd": 0.5})  # again
    with pytest.raises(AlreadyToldError):
        learner.tell(second.id, 1.0, {"usd": 0.25})
    other = ds.policies.UniformRandom().start(PROBLEM)
    pending = other.ask()
    for text in (learner.ask().id, f"{first.id}0", "no id", ""):
        with pytest.raises(UnknownDecisionError):
            other.tell(text, 1.0, 0.5)
    assert other.pending == (pending,)


def test_a_decision_becomes_plain_data_and_back() -> None:
    learner = ds.policies.UniformRandom().start(PROBLEM, safe=True)
    decision = learner.ask()
    copy = ds.Decision.from_dict(json.loads(json.dumps(decision.to_dict())))
    assert copy.to_dict() == decision.to_dict()
    learner.tell(copy, 1.0, 0.5)
    assert learner.pending == ()
    with pytest.raises(NamesError, match="fields"):
        ds.Decision.from_dict({"round": 1})
    with pytest.raises(DriftsackError):
        ds.Decision.from_dict(decision.to_dict() | {"arm": 7})
    for wrong in ({"reserved": 5}, {"mix": "x"}, {"reserved": ["a"]}, {"context": ["a"]}):
        with pytest.raises(ShapeError, match="lists of numbers"):
            ds.Decision.from_dict(decision.to_dict() | wrong)


def test_an_id_is_looked_up_under_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise another thread may settle the decision meanwhile, and its slot may hold the next one."""
    learner = ds.policies.UniformRandom().start(PROBLEM)
    decision, found, held = learner.ask(), learner._register.with_id, []

    def with_id(text: str) -> ds.Decision:
        held.append(has_taken(learner._lock))
        return found(text)

    monkeypatch.setattr(learner._register, "with_id", with_id)
    learner.tell(decision.id, 1.0, 0.5)
    assert held == [True]


def test_no_seed_means_fresh_entropy() -> None:
    problem = ds.Problem(horizon=200, arms=2, budget=[200.0])
    drawn = [ds.policies.UniformRandom().start(problem, seed=None).ask_many(60).arms.tolist() for _ in range(2)]
    assert drawn[0] != drawn[1]  # equal with probability 2**-60


@pytest.mark.parametrize("given", [np.array([1, 0]), np.array([0, 1]), np.array([1, 1], dtype=np.int32)])
def test_an_array_that_could_be_a_mask_or_numbers_is_refused(given: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
    learner = ds.policies.UniformRandom().start(PROBLEM)
    with pytest.raises(SettingError, match="could be a mask or the numbers of arms"):
        learner.ask(open=given)
    assert learner.ask(open=given.astype(bool)).arm == given.argmax() or given.all()
    assert learner.ask(open=[1]).arm == 1
    assert learner.ask(open=np.array([1])).arm == 1


def test_requests_before_the_first_one_are_counted_with_it() -> None:
    problem = ds.Problem(arms=2, budget=[50.0], period=timedelta(hours=1), horizon=100)
    learner = ds.policies.UniformRandom().start(problem)
    learner.ask(at=1_000.0)
    learner.ask(at=999.999)
    learner.renew(at=5_000.0)
    learner.ask(at=4_999.999)
    assert learner.round == 3


def test_an_amount_that_is_too_small_is_told_from_the_one_that_is_needed() -> None:
    problem = ds.Problem(10, 2, {"usd": 3568.4555}, cost_max={"usd": 356.8455555}, fallback=0)
    with pytest.raises(InfeasibleError, match=r"may cost 3568\.455555 .* got a budget of 3568\.4555;"):
        ds.policies.UniformRandom().start(problem, safe=True)


def test_budgets_are_one_snapshot_under_threads() -> None:
    """Decisions reserve 1 and cost 1: spent and reserved sum to the number of decisions at every instant."""
    problem = ds.Problem(horizon=10**6, arms=2, budget={"usd": 10.0**6}, cost_max={"usd": 1.0})
    learner = ds.policies.UniformRandom().start(problem, safe=True)
    learner.tell(learner.ask(), 0.5, 1.0)
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            learner.tell(learner.ask(), 0.5, 1.0)

    thread = threading.Thread(target=work)
    thread.start()
    seen = [learner.budgets["usd"] for _ in range(300)]
    stop.set()
    thread.join()
    assert all(one.granted == one.spent + one.reserved + one.left for one in seen)
    assert all(one.reserved in (0.0, 1.0) for one in seen)
    assert all(before.spent <= after.spent for before, after in itertools.pairwise(seen))


@pytest.fixture
def uncollected() -> Iterator[None]:
    """No cyclic garbage collection: Python drops an exception of a callback of one, thus also a Ctrl-C that comes then.

    Hypothesis installs such a callback in the process of the tests.
    """
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_a_simulation(threads: int) -> None:
    world = ds.instances.example_2(horizon=50_000)
    ds.simulate(world, ds.policies.UniformRandom(), trials=1)  # compile
    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        ds.simulate(world, ds.policies.UniformRandom(), trials=100_000, threads=threads)
    timer.join()
    time.sleep(0.2)
    assert not [one for one in threading.enumerate() if one.name.startswith("ThreadPool") and not one.daemon]
