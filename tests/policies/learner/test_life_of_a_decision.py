"""The life of a decision: ids, repeated and late outcomes, cancelling, forfeiting, expiring, batches, warm starts."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.arrays import Floats
from driftsack.core.errors import (
    AlreadyToldError,
    DriftsackError,
    NamesError,
    SettingError,
    ShapeError,
    UnknownDecisionError,
)
from driftsack.game.arrivals import Arrivals
from driftsack.game.desk import SETTLED_KEPT
from driftsack.game.ledger import open_ledger
from driftsack.game.protocol import callable_kernel
from driftsack.game.records import new_outcome, new_terms, open_round
from driftsack.game.state_tree import arrays
from tests.policies.test_policy_contract import LEARNERS, Recipe, built
from tests.support.constant_contexts import asked, contexts, with_features
from tests.support.forms import interpret, interpret_unless_recommended

PROBLEM = ds.Problem(horizon=400, arms=3, budget=[90.0, 95.0], cost_max=1.0)


CLONES: tuple[Callable[[Any], Any], ...] = (copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one)))


def started(policy: ds.Policy | None = None, seed: int = 1, safe: bool = True) -> ds.Learner:
    return (policy or ds.NaiveUCB(scale=0.1)).start(PROBLEM, seed=seed, safe=safe)


# Ids


def test_decisions_of_other_learners_and_other_lives_are_refused(tmp_path: Path) -> None:
    learner, other = started(), started()
    decision, foreign = learner.ask(), other.ask()
    assert decision.id != foreign.id
    with pytest.raises(UnknownDecisionError, match="tell the learner that was asked"):
        learner.tell(foreign, 0.5, [0.1, 0.1])
    learner.save(tmp_path / "learner")
    before_restore = [learner.ask(), learner.ask()]  # they are not in the file
    learner.tell(before_restore[0], 0.5, [0.1, 0.1])
    restored = ds.Learner.load(tmp_path / "learner")
    restored.tell(decision, 0.5, [0.1, 0.1])  # pending when the file was written
    own = restored.ask()
    assert own.round == before_restore[0].round
    assert own.id != before_restore[0].id
    hashed = restored.state_hash()
    with pytest.raises(UnknownDecisionError, match="tell the learner that was asked"):
        restored.tell(before_restore[0], 0.5, [0.1, 0.1])
    restored.tell(own, 0.5, [0.1, 0.1])
    assert restored.state_hash() != hashed
    with pytest.raises(UnknownDecisionError, match="another incarnation"):  # even with the same round, arm and content
        restored.tell(before_restore[0], 0.5, [0.1, 0.1])
    with pytest.raises(UnknownDecisionError, match="has begun rounds 1 to 2"):
        restored.tell(before_restore[1], 0.5, [0.1, 0.1])


def test_a_foreign_decision_is_unknown_whatever_became_of_its_round_here() -> None:
    """It is told, cancelled or forfeited here, its round was skipped, or is too long ago to know."""
    costs = [0.1, 0.1]
    for end in ("tell", "cancel"):
        learner, foreign = started(), started().ask()
        own = learner.ask()
        learner.tell(own, 0.5, costs) if end == "tell" else learner.cancel(own, costs)
        before = learner.state_hash()
        acts: list[Callable[[], None]] = [
            partial(learner.tell, foreign, 0.5, costs),
            partial(learner.tell, foreign, 0.6, costs),
            partial(learner.cancel, foreign, costs),
            partial(learner.cancel, foreign),
            partial(learner.forfeit, foreign),
        ]
        for act in acts:
            with pytest.raises(UnknownDecisionError, match="another learner, or by another incarnation"):
                act()
        with pytest.raises(AlreadyToldError):
            learner.tell(own, 0.7, costs)
        assert learner.state_hash() == before
    learner, other = started(), started()
    skipped, foreign = learner.ask(open=[]), other.ask(open=[])
    assert skipped.skipped
    assert foreign.skipped
    learner.tell(skipped, 0.0, [0.0, 0.0])
    ds.Learner.from_bytes(learner.to_bytes()).tell(skipped, 0.0, [0.0, 0.0])  # a later life of the same learner
    with pytest.raises(UnknownDecisionError, match="another learner"):
        learner.tell(foreign, 0.0, [0.0, 0.0])
    with pytest.raises(UnknownDecisionError, match="another learner"):
        learner.cancel(foreign)
    assert learner.ask(open=[]).skipped
    with pytest.raises(UnknownDecisionError, match="another learner"):
        learner.tell(other.ask(), 0.5, costs)
    learner.tell(learner.ask(), 0.5, costs)
    by_hand = dataclasses.replace(skipped, round=learner.round, source="")  # belongs to nobody and changes nothing
    before = learner.state_hash()
    learner.tell(by_hand, 0.0, [0.0, 0.0])
    assert learner.state_hash() == before
    child = dataclasses.replace(skipped, round=learner.round)  # of a copy that skipped a round that was told here
    with pytest.raises(UnknownDecisionError, match="another incarnation"):
        learner.tell(child, 0.0, [0.0, 0.0])


def test_decisions_are_immutable() -> None:
    learner = started()
    decision, batch = learner.ask(), learner.ask_many(3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        decision.arm = 2  # type: ignore[misc]
    assert type(decision) is type(batch[0])
    for own in (decision, batch[0], batch[1:], batch):
        for clone in (own, copy.copy(own), copy.deepcopy(own), pickle.loads(pickle.dumps(own))):
            assert type(clone) is type(own)
            for part in dataclasses.fields(own):
                value, same = getattr(own, part.name), getattr(clone, part.name)
                assert type(same) is type(value)
                np.testing.assert_array_equal(same, value)
                if isinstance(same, np.ndarray):
                    with pytest.raises(ValueError, match="read-only"):
                        same[0] = 7
    learner.tell(pickle.loads(pickle.dumps(decision)), 0.5, [0.1, 0.1])
    assert decision.round not in {own.round for own in learner.pending}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"arm": 99}, "arm must be at least -1 and at most 2, got 99"),
        ({"arm": -2}, "arm must be at least -1"),
        ({"arm": 1.0}, "arm must be an integer"),
        ({"round": -1}, "round must be at least 0"),
        ({"mix": np.array([0.5, 0.6, 0.0])}, "the sum of a mix must lie in"),
        ({"mix": np.array([1.5, -0.5, 0.0])}, "mix must lie in"),
        ({"mix": np.array([0.5, np.nan, 0.0])}, "mix must be finite"),
        ({"mix": "abc"}, "mix must be an array of numbers"),
        ({"prices": np.array([np.inf, 0.0])}, "prices must be finite"),
        ({"reserved": np.array([-1.0, 0.0])}, "reserved must lie in"),
        ({"reserved": np.array([np.inf, np.nan])}, "reserved must be finite"),
        ({"name": 7}, "name must be a string"),
        ({"source": None}, "source must be a string"),
        ({"context": np.zeros((2, 2))}, "context must be"),
    ],
)
def test_an_impossible_decision_is_not_copied(change: dict[str, Any], words: str) -> None:
    wrong = dataclasses.replace(started().ask(), **change)
    for clone in CLONES:
        with pytest.raises(DriftsackError, match=words):
            clone(wrong)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"arms": np.array([0, 99])}, r"arms must lie in \[-1, 2\], got 0 to 99"),
        ({"arms": np.array([0.0, 1.0])}, "arms must be 2 integers"),
        ({"rounds": np.array([1])}, "rounds must be 2 integers"),
        ({"rounds": np.array([-1, 1])}, "rounds must lie in"),
        ({"mixes": np.full((2, 3), 0.4)}, "the sum of a mix must lie in"),
        ({"prices": np.zeros((3, 2))}, "prices must be numbers of shape"),
        ({"reserved": np.full((2, 2), -1.0)}, "reserved must lie in"),
        ({"arm_names": ("a", "b")}, "arm_names must be 3 names"),
        ({"source": 7}, "source must be a string"),
        ({"contexts": np.full((2, 1), np.nan)}, "contexts must be finite"),
    ],
)
def test_an_impossible_batch_is_not_copied(change: dict[str, Any], words: str) -> None:
    wrong = dataclasses.replace(started().ask_many(2), **change)
    for clone in CLONES:
        with pytest.raises(DriftsackError, match=words):
            clone(wrong)


def test_what_is_not_known_to_be_reserved_stays_unknown_in_a_copy() -> None:
    learner = ds.Adaptive().start(ds.Problem(horizon=9, arms=2, budget=[5.0, 5.0]))
    assert np.isnan(copy.deepcopy(learner.ask()).reserved).all()
    assert np.isnan(copy.deepcopy(learner.ask_many(2)).reserved).all()


# Forfeits


def test_a_forfeited_decision_is_charged_at_its_worst_and_refunded_if_it_is_told() -> None:
    learner, twin = started(), started()
    lost, told = learner.ask(), twin.ask()
    learner.forfeit(lost)
    assert learner.remaining.tolist() == [89.0, 94.0]
    assert learner.reserved.tolist() == [0.0, 0.0]
    assert learner.pending == ()
    assert [own.id for own in learner.forfeited] == [lost.id]
    learner.forfeit(lost)  # a second time changes nothing
    assert learner.remaining.tolist() == [89.0, 94.0]
    restored = ds.Learner.from_bytes(learner.to_bytes())
    twin.tell(told, 0.5, [0.25, 0.5])
    for own in (learner, restored):
        own.tell(own.forfeited[0], 0.5, [0.25, 0.5])
        assert own.remaining.tolist() == [89.75, 94.5]
        assert own.state_hash() == twin.state_hash()  # as if it had never been forfeited
        own.tell(lost, 0.5, [0.25, 0.5])
    with pytest.raises(AlreadyToldError):
        learner.forfeit(lost)


def test_decisions_that_wait_too_long_expire() -> None:
    learner = started()
    first = [learner.ask() for _ in range(5)]
    assert learner.expire(older_than=10) == ()
    for _ in range(8):
        learner.tell(learner.ask(), 0.5, [0.1, 0.1])
    assert learner.expire(older_than=10) == tuple(first[:2])
    assert learner.pending == tuple(first[2:])
    start = datetime(2026, 1, 1, tzinfo=UTC)
    timed = started()
    decisions = [timed.ask(at=start + timedelta(seconds=10 * k)) for k in range(6)]
    assert timed.expire(timedelta(seconds=25)) == tuple(decisions[:3])
    assert timed.expire(timedelta(seconds=25), at=start + timedelta(seconds=66)) == tuple(decisions[3:5])
    with pytest.raises(SettingError, match="no request had a time"):
        started().expire(timedelta(seconds=1))


def test_lost_outcomes_never_cause_overspending_and_cancelling_may() -> None:
    """Half of the outcomes never arrive, although their requests were paid for."""
    for forget in (True, False):
        problem = ds.Problem(horizon=300, arms=1, budget=[20.0], cost_max=[1.0])
        learner, paid = ds.policies.AlwaysArm(0).start(problem, safe=True), 0
        for t in range(300):
            decision = learner.ask()
            if decision.skipped:
                continue
            paid += 1
            if t % 2:
                learner.tell(decision, 1.0, 1.0)
            elif forget:
                learner.forfeit(decision)
            else:
                learner.cancel(decision)  # assumes that nothing was paid, which is wrong here
        assert (paid <= 20) == forget


# Batches


def test_a_batch_is_recognised_when_it_is_repeated_as_long_as_it_is_remembered() -> None:
    """The latest 512 outcomes are compared; of a larger batch the first ones are forgotten, which the error says."""
    problem = ds.Problem(horizon=2_000, arms=2, budget=[2_000.0], cost_max=1.0)
    learner = ds.NaiveUCB(scale=0.1).start(problem)
    batch = learner.ask_many(SETTLED_KEPT)
    outcomes = np.full(SETTLED_KEPT, 0.5), np.full(SETTLED_KEPT, 0.25)
    for _ in range(2):
        learner.tell_many(batch, *outcomes)
        assert learner.remaining[0] == 2_000.0 - 0.25 * SETTLED_KEPT
    with pytest.raises(AlreadyToldError, match="tell each decision once"):
        learner.tell_many(batch, outcomes[0], 2 * outcomes[1])
    larger = learner.ask_many(SETTLED_KEPT + 1)
    gains, uses = np.full(SETTLED_KEPT + 1, 0.5), np.full(SETTLED_KEPT + 1, 0.25)
    learner.tell_many(larger, gains, uses)
    before = learner.state_hash()
    with pytest.raises(AlreadyToldError, match="not among the latest 512 that were settled, which are compared"):
        learner.tell_many(larger, gains, uses)
    learner.tell_many(larger[1:], gains[1:], uses[1:])
    assert learner.state_hash() == before
    assert "latest 512" in str(ds.Learner.tell_many.__doc__)


@LEARNERS
def test_batches_are_single_calls(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same decisions, states and budgets, bit for bit."""
    interpret_unless_recommended(recipe, monkeypatch)
    one = ds.Problem(400, 3, [90.0], cost_max=1.0) if recipe is ds.policies.Exp3BwK else PROBLEM
    policy = built(recipe, one)
    single, many = (policy.start(with_features(policy, one), seed=4, safe=True) for _ in range(2))
    rng = np.random.default_rng(0)
    for count in (1, 7, 40, 60, 5):
        rewards, costs = rng.random(count), 0.6 * rng.random((count, one.resources))
        decisions = [asked(single) for _ in range(count)]
        batch = many.ask_many(count, contexts=contexts(many, count) if many.problem.features else None)
        assert [(d.round, d.arm, d.name) for d in decisions] == [(d.round, d.arm, d.name) for d in batch]
        np.testing.assert_array_equal(np.array([d.mix for d in decisions]), batch.mixes)
        np.testing.assert_array_equal(np.array([d.prices for d in decisions]), batch.prices)
        np.testing.assert_array_equal(np.array([d.reserved for d in decisions]), batch.reserved)
        order = rng.permutation(count)
        for k in order:
            single.tell(
                decisions[k], float(rewards[k] if not decisions[k].skipped else 0.0), costs[k] * (decisions[k].arm >= 0)
            )
        many.tell_many(batch[order], rewards[order], costs[order])
        assert many.state_hash() == single.state_hash()


def batch_differs_in_a_period(size: int, minutes: int) -> bool:
    """Whether batches of requests in a period differ in a bit from single requests at the same times."""
    day = ds.Problem(period=timedelta(days=1), arms=2, budget=50.0, cost_max=1.0, features=2)
    single, many = (ds.LinearBwK().start(day, seed=3) for _ in range(2))
    rng = np.random.default_rng(0)
    for minute in range(minutes):
        at, given = 60.0 * minute, rng.random((size, 2))
        decisions = [single.ask(at=at, context=row) for row in given]
        batch = many.ask_many(size, at=at, contexts=given)
        pairs = [(name, np.array([getattr(d, name) for d in decisions])) for name in ("mix", "prices", "context")]
        arrays: dict[str, Any] = {"mix": batch.mixes, "prices": batch.prices, "context": batch.contexts}
        same = [(d.round, d.arm) for d in decisions] == [(d.round, d.arm) for d in batch]
        if not (same and all(np.array_equal(arrays[name], value) for name, value in pairs)):
            return True
        for decision in decisions:
            if not decision.skipped:
                single.tell(decision, 0.5, 0.002)
        many.tell_many(batch, np.full(size, 0.5), np.full((size, 1), 0.002))
        if many.state_hash() != single.state_hash():
            return True
    assert many.rounds_left == single.rounds_left > 500 * size  # a batch that counts as one arrival expects 1,400
    return False


@pytest.mark.parametrize(("size", "minutes"), [(20, 30), (500, 5)])
def test_batches_in_a_period_are_as_many_arrivals(size: int, minutes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one and in batches: bit for bit the same, although a batch estimates arrivals only where that matters."""
    assert not batch_differs_in_a_period(size, minutes)
    monkeypatch.setattr(Arrivals, "repeat", lambda _, most: most)  # planted: arrivals that are not counted
    assert batch_differs_in_a_period(size, minutes)


@pytest.mark.parametrize("cost", [7.9993e12, 8e12])
def test_a_cost_near_the_end_of_the_ledger_is_refused_with_its_whole_batch(cost: float) -> None:
    """It would fit if the reservations of later decisions were released first; half of the batch was told."""
    problem = ds.Problem(horizon=10**6, arms=2, budget=[1.0], cost_max=[1e6], refuse_above=[1e15])
    learner = ds.policies.UniformRandom().start(problem)
    batch, costs = learner.ask_many(1_000), np.zeros(1_000)
    costs[500] = cost
    before = learner.state_hash()
    with pytest.raises(ds.errors.OutOfRangeError, match="amounts that the ledger can hold"):
        learner.tell_many(batch, np.zeros(1_000), costs)
    assert learner.state_hash() == before
    learner.tell_many(batch, np.zeros(1_000), np.zeros(1_000))
    assert not learner.pending


@pytest.mark.parametrize(("reward", "cost"), [(10**400, 0.1), (0.5, 10**400)])
def test_numbers_that_no_float_can_hold_are_refused_by_name(reward: float, cost: float) -> None:
    learner = started()
    decision = learner.ask()
    with pytest.raises(ShapeError):
        learner.tell(decision, reward, [cost, 0.1])
    learner.tell(decision, 0.5, [0.1, 0.1])


def test_batches_are_told_wholly_or_not_at_all() -> None:
    learner = started()
    batch = learner.ask_many(6)
    rewards, costs = np.full(6, 0.5), np.full((6, 2), 0.1)
    before = learner.state_hash()
    wrong: list[tuple[Any, type[Exception]]] = [
        ((batch, rewards[:5], costs), ShapeError),
        ((batch, rewards, costs[:, :1]), ShapeError),
        ((batch, rewards, -costs), ds.errors.OutOfRangeError),
        ((batch, rewards, np.full((6, 2), np.nan)), ds.errors.NotFiniteError),
        ((batch, rewards, np.full((6, 2), 1e30)), ds.errors.AbsurdCostError),
        ((batch[np.array([0, 0, 1])], rewards[:3], costs[:3]), UnknownDecisionError),
        ((started().ask_many(6), rewards, costs), UnknownDecisionError),
        ((list(batch), rewards, costs), UnknownDecisionError),
    ]
    for arguments, error in wrong:
        with pytest.raises(error):
            learner.tell_many(*arguments)
        assert learner.state_hash() == before
    learner.tell_many(batch[:4], rewards[:4], costs[:4])
    told = learner.state_hash()
    learner.tell_many(batch[:4], rewards[:4], costs[:4])  # the same again changes nothing
    assert learner.state_hash() == told
    with pytest.raises(AlreadyToldError):
        learner.tell_many(batch, np.full(6, 0.6), costs)
    assert learner.state_hash() == told
    learner.tell_many(batch, rewards, costs)  # four of them again
    assert learner.pending == ()


# Warm starts


class Past(NamedTuple):
    """What a learner reads of a log."""

    arms: tuple[str, ...]
    resources: tuple[str, ...]
    arm: Any
    reward: Floats
    costs: Floats
    propensity: Floats | None
    contexts: Floats | None = None


def log_of(arms: list[str], rounds: int = 150) -> Past:
    """A log of uniformly random choices, the last arm of which is the best."""
    rng = np.random.default_rng(8)
    arm = rng.integers(len(arms), size=rounds)
    rewards = (rng.random(rounds) < 0.2 + 0.6 * (arm == len(arms) - 1)).astype(float)
    costs, chances = 0.5 * rng.random((rounds, 2)), np.full(rounds, 1 / len(arms))
    return Past(tuple(arms), ("cost_0", "cost_1"), arm.astype(np.int32), rewards, costs, chances)


def taught_twin(policy: ds.Policy, problem: ds.Problem, log: Past) -> dict[str, Any]:
    """The state after calls of the two kernels of the policy for each row, with only the arm of the row open."""
    state, terms, ledger = policy.new_state(problem), new_terms(problem), open_ledger(problem)
    rng, mix, prices = np.random.default_rng(9), np.zeros(3), np.zeros(problem.resources)
    choose, learn = callable_kernel(state, "choose"), callable_kernel(state, "learn")
    for t, arm in enumerate(log.arm.tolist()):
        terms.version[0] += int((terms.open != (np.arange(3) == arm)).sum())
        terms.open[:] = np.arange(3) == arm
        terms.context[:] = 0.0 if log.contexts is None else log.contexts[t]
        choose(state, open_round(t, ledger, terms), rng, mix, prices)
        learn(state, new_outcome(terms, t, arm, 1 / 3, float(log.reward[t]), log.costs[t].copy()))
        terms.end[0] += 1.0
    return {name: array for name, array in arrays(state).items() if not name.endswith(".version")}


@LEARNERS
def test_a_taught_learner_is_one_that_made_those_pulls(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    interpret_unless_recommended(recipe, monkeypatch)
    one, log = PROBLEM, log_of(["0", "1", "2"])
    if recipe is ds.policies.Exp3BwK:
        one = ds.Problem(400, 3, [90.0], cost_max=1.0)
        log = log._replace(resources=("cost_0",), costs=log.costs[:, :1])
    policy = built(recipe, one)
    problem = with_features(policy, one)
    if not policy.teachable:
        with pytest.raises(SettingError, match="cannot learn from a log"):
            policy.start(problem, log=log)
        return
    if policy.needs_context:
        with pytest.raises(SettingError, match="needs the features of each request"):
            policy.start(problem, log=log)
        log = log._replace(contexts=np.random.default_rng(3).random((len(log.arm), problem.features)))
    learner = policy.start(problem, seed=9, log=log)
    interpret(monkeypatch)  # the twin
    own, twin = arrays(learner.state), taught_twin(policy, problem, log)
    for name, array in twin.items():
        np.testing.assert_array_equal(own[name], array, err_msg=name)
    if log.contexts is not None:  # a learner that matched them with other rounds would be noticed
        wrong = taught_twin(policy, problem, log._replace(contexts=log.contexts[::-1]))
        assert any(not np.array_equal(own[name], array) for name, array in wrong.items())
    assert learner.round == 0
    assert learner.remaining.tolist() == list(one.budget)


def test_a_warm_start_helps_and_matches_arms_by_name() -> None:
    """The competitor that ignores the log, or matches by position, pulls the best arm less often at first."""
    named = ds.Problem(horizon=400, arms=["x", "y", "z"], budget={"cost_0": 90.0, "cost_1": 95.0}, cost_max=1.0)
    pulls = {}
    for kind, log in (("by name", log_of(["z", "y", "x"])), ("cold", None)):
        total = 0
        for seed in range(10):
            learner, rng = ds.Adaptive().start(named, seed=seed, log=log), np.random.default_rng(seed)
            for _ in range(40):
                decision = learner.ask()
                if not decision.skipped:
                    total += decision.name == "x"
                    reward = float(rng.random() < (0.8 if decision.name == "x" else 0.2))
                    learner.tell(decision, reward, 0.5 * rng.random(2))
        pulls[kind] = total
    assert pulls["by name"] > 1.3 * pulls["cold"]
    with pytest.raises(NamesError):
        ds.Adaptive().start(named, log=log_of(["z", "y", "w"]))


def test_a_log_that_was_read_can_be_taught(tmp_path: Path) -> None:
    past, path = log_of(["x", "y", "z"]), tmp_path / "log.csv"
    rows = zip(past.arm.tolist(), past.reward.tolist(), past.costs.tolist(), strict=True)
    lines = [f"{t},{past.arms[arm]},{reward},{a},{b}" for t, (arm, reward, (a, b)) in enumerate(rows)]
    path.write_text("\n".join(["time,arm,reward,cost_0,cost_1", *lines]))
    learner = ds.Adaptive().start(ds.Problem(400, ["z", "x", "y"], [90.0, 95.0]), log=ds.logs.read(path))
    assert np.argmax(learner.state.belief.mean[:, 0]) == 0  # the arm called z


def test_old_outcomes_can_count_less() -> None:
    log = log_of(["0", "1", "2"], rounds=1_000)
    learner = started(ds.Adaptive())
    used = learner.teach(log, half_life=100)
    assert used == pytest.approx(100 / np.log(2), rel=0.02)
    assert started(ds.Adaptive()).teach(log) == 1_000
    with pytest.raises(SettingError, match="log must be a log such as"):
        learner.teach([1, 2, 3])  # type: ignore[arg-type]
