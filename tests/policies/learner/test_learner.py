"""Ask and tell: every misuse raises an error and changes nothing; late feedback; files."""

from __future__ import annotations

import dataclasses
import json
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core import file_format
from driftsack.core.errors import (
    AbsurdCostError,
    AlreadyToldError,
    BudgetExhaustedError,
    DriftsackError,
    FileFormatError,
    HorizonReachedError,
    NotFiniteError,
    OutcomeError,
    OutOfRangeError,
    OverrunWarning,
    ShapeError,
    UnknownDecisionError,
)
from driftsack.policies.learner.file import LAYOUT

PROBLEM = ds.Problem(horizon=60, arms=3, budget=[20.0, 25.0], cost_max=1.0)
POLICY = ds.SlidingWindowUCB(windows=(7, 11), scale=0.2)


def outcome(round_number: int, arm: int) -> tuple[float, list[float]]:
    """The outcome of an arm in a round of a made-up environment, the same in every call."""
    rng = np.random.default_rng([round_number, arm])
    return float(rng.random()), (0.6 * rng.random(2)).tolist()


def play(learner: ds.Learner, rounds: int) -> list[tuple[int, list[float], list[float]]]:
    """Ask and tell for some rounds; return the decisions."""
    seen = []
    for _ in range(rounds):
        decision = learner.ask()
        seen.append((decision.arm, decision.mix.tolist(), decision.prices.tolist()))
        if not decision.skipped:
            learner.tell(decision, *outcome(decision.round, decision.arm))
    return seen


def snapshot(learner: ds.Learner) -> tuple[Any, ...]:
    """The complete state of a learner as plain data."""
    with tempfile.TemporaryDirectory() as directory:
        learner.save(Path(directory) / "learner")
        content, arrays = file_format.read(Path(directory) / "learner", "learner", layout=LAYOUT)
    return json.dumps(content), {name: (array.shape, array.tobytes()) for name, array in arrays.items()}


def started(rounds: int = 5, **options: Any) -> ds.Learner:
    learner = POLICY.start(PROBLEM, seed=3, **options)
    play(learner, rounds)
    return learner


Misuse = Callable[[ds.Learner, ds.Decision], object]

MISUSES: list[tuple[Misuse, type[DriftsackError], str]] = [
    (lambda own, d: own.tell(d, np.nan, [0.1, 0.1]), NotFiniteError, "reward must be finite, got nan"),
    (lambda own, d: own.tell(d, np.inf, [0.1, 0.1]), NotFiniteError, "reward must be finite, got inf"),
    (lambda own, d: own.tell(d, 0.5, [np.nan, 0.1]), NotFiniteError, "costs must be finite, got nan"),
    (lambda own, d: own.tell(d, 0.5, [0.1, -np.inf]), NotFiniteError, "costs must be finite, got -inf"),
    (lambda own, d: own.tell(d, 0.5, [0.1]), ShapeError, r"costs must be numbers of shape \(2,\), got shape \(1,\)"),
    (lambda own, d: own.tell(d, [0.5, 0.5], [0.1, 0.1]), ShapeError, "reward must be one number"),  # type: ignore[arg-type]
    (lambda own, d: own.tell(d, 0.5, [0.1, -0.1]), OutOfRangeError, "costs must be 0 or more, got -0.1 for 'cost_1'"),
    (lambda own, d: own.tell(d, 0.5, [0.1, 1e30]), AbsurdCostError, "refused as absurd"),
    (lambda own, _: own.tell(0, 0.5, [0.1, 0.1]), UnknownDecisionError, "needs the Decision"),  # type: ignore[arg-type]
    (
        lambda own, d: own.tell(dataclasses.replace(d, round=d.round + 1), 0.5, [0.1, 0.1]),
        UnknownDecisionError,
        "has begun rounds 1 to 6, got a decision of round 7",
    ),
    (
        lambda own, d: own.tell(dataclasses.replace(d, arm=(d.arm + 1) % 3), 0.5, [0.1, 0.1]),
        UnknownDecisionError,
        "was a decision for arm",
    ),
    (
        lambda own, d: own.tell(dataclasses.replace(d, round=1), 0.5, [0.1, 0.1]),
        AlreadyToldError,
        "round 1 has no pending outcome",
    ),
    (
        lambda own, d: own.tell(dataclasses.replace(d, arm=ds.SKIP), 0.0, [0.0, 0.0]),
        UnknownDecisionError,
        "was a decision for arm",
    ),
    (
        lambda own, d: own.tell(dataclasses.replace(d, round=10**6, arm=ds.SKIP), 0.0, [0.0, 0.0]),
        UnknownDecisionError,
        "got a decision of round 1000000",
    ),
    (
        lambda own, d: own.tell(dataclasses.replace(d, mix=d.mix / 2), 0.5, [0.1, 0.1]),
        UnknownDecisionError,
        "tell the learner that was asked",
    ),
    (lambda own, d: own.tell(d), OutcomeError, "tell needs the reward, the costs, or both"),
    (lambda own, d: own.tell(d, costs=[0.1, [0.1]]), ShapeError, "costs must be numbers of shape"),  # type: ignore[arg-type]
    (lambda own, d: own.tell(d, reward="0.5"), ShapeError, "reward must be one number, got '0.5'"),  # type: ignore[arg-type]
    (lambda own, d: own.tell(d, "0.5", [0.1, 0.1]), ShapeError, "reward must be one number, got '0.5'"),  # type: ignore[arg-type]
    (lambda own, d: own.tell(d, 0.5, [0.1, [0.1]]), ShapeError, "costs must be numbers of shape"),  # type: ignore[arg-type]
    (lambda own, d: own.tell(d, 0.5, 0.1), ShapeError, "got the single number 0.1"),
    (lambda own, d: own.cancel(d, [-2.0, 0.0]), OutOfRangeError, "costs must be 0 or more"),
    (
        lambda own, d: own.tell(dataclasses.replace(d, source="0" * 16 + "-00000000"), 0.5, [0.1, 0.1]),
        UnknownDecisionError,
        "tell the learner that was asked",
    ),
    (lambda own, d: own.cancel(dataclasses.replace(d, round=1)), AlreadyToldError, "has no pending outcome"),
]


@pytest.mark.parametrize(("misuse", "error", "words"), MISUSES)
def test_misuse_raises_an_error_and_changes_nothing(misuse: Misuse, error: type[DriftsackError], words: str) -> None:
    learner = started()
    decision = learner.ask()
    assert not decision.skipped
    before = snapshot(learner)
    with pytest.raises(error, match=words):
        misuse(learner, decision)
    assert snapshot(learner) == before
    learner.tell(decision, 0.5, [0.1, 0.1])  # correct use still works
    assert snapshot(learner) != before


def test_telling_twice() -> None:
    """The same content is answered as the first time, other content is refused; neither changes anything."""
    learner = started()
    decision, cancelled = learner.ask(), learner.ask()
    learner.tell(decision, 0.5, [0.1, 0.1])
    learner.cancel(cancelled, [0.2, 0.0])
    for own in (learner, ds.Learner.from_bytes(learner.to_bytes())):
        before = own.state_hash()
        own.tell(decision, 0.5, [0.1, 0.1])
        own.cancel(cancelled, [0.2, 0.0])
        for told, content in (
            (decision, (0.5, [0.1, 0.2])),
            (decision, (0.6, [0.1, 0.1])),
            (cancelled, (0.0, [0.2, 0.0])),
        ):
            with pytest.raises(AlreadyToldError, match="tell each decision once"):
                own.tell(told, *content)
        for other, costs in ((decision, [0.1, 0.1]), (cancelled, None)):
            with pytest.raises(AlreadyToldError, match="tell each decision once"):
                own.cancel(other, costs)
        assert own.state_hash() == before


def test_asking_after_the_horizon() -> None:
    learner = ds.NaiveUCB().start(ds.Problem(horizon=4, arms=1, budget=[9.0]))
    decisions = [learner.ask() for _ in range(4)]
    before = snapshot(learner)
    assert learner.done
    with pytest.raises(HorizonReachedError, match="the problem has 4 rounds and all have begun"):
        learner.ask()
    assert snapshot(learner) == before
    learner.tell(decisions[0], 0.5, [0.5])  # late feedback is still accepted


def test_asking_after_exhaustion() -> None:
    learner = ds.NaiveUCB().start(ds.Problem(horizon=100, arms=1, budget=[1.5]))
    for _ in range(2):
        assert not learner.done
        learner.tell(learner.ask(), 1.0, [1.0])
    before = snapshot(learner)
    assert learner.done
    np.testing.assert_allclose(learner.remaining, [-0.5])
    with pytest.raises(BudgetExhaustedError, match=r"remaining: \[-0.5\]"):
        learner.ask()
    assert snapshot(learner) == before


def test_spending_a_budget_exactly_does_not_exceed_it() -> None:
    learner = ds.NaiveUCB().start(ds.Problem(horizon=100, arms=1, budget=[0.3]))
    for _ in range(3):
        learner.tell(learner.ask(), 1.0, [0.1])
    assert not learner.done
    np.testing.assert_array_equal(learner.remaining, [0.0])


def test_skip_needs_no_tell_and_accepts_zeros() -> None:
    learner = ds.NaiveUCB().start(ds.Problem(horizon=9, arms=2, budget=[0.0], cost_max=1.0), safe=True)
    decision = learner.ask()
    assert decision.skipped
    assert not decision.mix.any()
    before = snapshot(learner)
    learner.tell(decision, 0.0, [0.0])
    with pytest.raises(OutcomeError, match="was skipped: its reward and costs must be 0"):
        learner.tell(decision, 0.5, [0.0])
    assert snapshot(learner) == before
    assert learner.ask().round == 2


def test_a_decision_without_outcome_can_be_cancelled() -> None:
    """Its reservation is released, known costs are charged, and the policy does not learn from it."""
    learner = ds.NaiveUCB().start(ds.Problem(horizon=50, arms=2, budget=[2.0], cost_max=1.0), safe=True)
    lost, charged = learner.ask(), learner.ask()
    assert learner.ask().skipped
    learner.cancel(lost)
    learner.cancel(charged, costs=0.25)
    np.testing.assert_allclose(learner.remaining, [1.75])
    assert learner.pending == ()
    assert not learner.state.means.rewards.pulls.any()
    assert not learner.ask().skipped


def test_rounding_errors_are_no_reason_for_a_warning() -> None:
    """0.1 + 0.2 exceeds 0.3 by less than one part in 10^15, which is charged and counted all the same."""
    learner = ds.NaiveUCB().start(ds.Problem(horizon=9, arms=1, budget=[3.0], cost_max=0.3))
    learner.tell(learner.ask(), 1.0 + 1e-15, 0.1 + 0.2)
    np.testing.assert_allclose(learner.remaining, [2.7])
    assert (learner.overruns.decisions, learner.overruns.rewards) == (1, 1)
    with pytest.warns(OverrunWarning, match="round 2 cost more than was reserved for it"):
        learner.tell(learner.ask(), 1.0, 0.3001)


def test_threads_may_share_a_learner() -> None:
    """Four threads ask and tell: every round occurs once, and every outcome is counted once."""
    problem = ds.Problem(horizon=4_000, arms=3, budget=[4_000.0])
    learner = ds.SlidingWindowUCB(windows=(500, 500), scale=0.1).start(problem, seed=0)
    seen: list[int] = []

    def work() -> None:
        for _ in range(1_000):
            decision = learner.ask()
            seen.append(decision.round)
            if not decision.skipped:
                learner.tell(decision, 0.5, [0.5])

    def watch() -> None:
        while len(seen) < 4_000:
            assert all(decision.arm >= 0 for decision in learner.pending)

    threads = [threading.Thread(target=work) for _ in range(4)] + [threading.Thread(target=watch)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(1, 4_001))
    assert learner.state.means.rewards.pulls.sum() == 500
    assert learner.pending == ()


def test_a_fallback_is_counted_and_reported() -> None:
    learner = POLICY.start(PROBLEM, seed=0)
    learner.state.lp.columns[:, PROBLEM.arms :] = np.nan  # every basis holds a slack: none can be certified
    with pytest.warns(RuntimeWarning, match="the step LP of round 1 was solved by HiGHS"):
        learner.ask()
    assert learner.lp_rescues == 1


def test_safe_never_overspends_however_late_the_feedback() -> None:
    """Each pending decision may cost cost_max, which is reserved."""
    problem = ds.Problem(horizon=50, arms=2, budget=[7.0], cost_max=[2.0])
    learner = ds.NaiveUCB().start(problem, safe=True)
    decisions = [learner.ask() for _ in range(6)]
    assert [d.skipped for d in decisions] == [False] * 3 + [True] * 3
    learner.tell(decisions[0], 1.0, [2.0])
    decisions.append(learner.ask())  # 5 left, of which 4 are reserved for two pending decisions
    learner.tell(decisions[1], 1.0, [0.0])
    decisions.append(learner.ask())  # 5 left, of which 2 are reserved for one pending decision
    assert [d.skipped for d in decisions[6:]] == [True, False]
    for decision in decisions[2:]:
        if not decision.skipped:
            learner.tell(decision, 1.0, [2.0])
    assert learner.remaining[0] >= 0.0


def test_safe_and_unsafe_at_full_cost() -> None:
    problem = ds.Problem(horizon=50, arms=1, budget=[3.5], cost_max=1.0)
    for safe, left in ((True, 0.5), (False, -0.5)):
        learner = ds.NaiveUCB().start(problem, safe=safe)
        while not learner.done:
            decision = learner.ask()
            if not decision.skipped:
                learner.tell(decision, 1.0, [1.0])
        np.testing.assert_allclose(learner.remaining, [left])


def test_feedback_counts_for_its_own_round_in_any_order() -> None:
    """Feedback in order or shuffled within the window gives the same sums, so the same next decision."""
    problem = ds.Problem(horizon=200, arms=3, budget=[100.0, 100.0])
    ends = []
    for order in (lambda k: k, lambda k: -k, lambda k: (k * 7) % 11):
        learner = ds.SlidingWindowUCB(windows=(30, 17), scale=0.3).start(problem, seed=1)
        decisions = [learner.ask() for _ in range(11)]
        for k in sorted(range(11), key=order):
            if not decisions[k].skipped:
                learner.tell(decisions[k], *outcome(decisions[k].round, decisions[k].arm))
        state = learner.state
        ends.append([state.means.rewards.sums.tolist(), state.means.costs.sums.tolist(), learner.ask().mix.tolist()])
    assert ends[0] == ends[1] == ends[2]


def test_feedback_does_not_count_once_its_round_has_left_the_window() -> None:
    problem = ds.Problem(horizon=100, arms=1, budget=[90.0])
    learner = ds.SlidingWindowUCB(windows=(3, 6)).start(problem)
    first = learner.ask()
    for _ in range(3):
        learner.ask()
    learner.tell(first, 1.0, [0.5])  # round 1 at the end of round 4: out of w1 = 3, inside w2 = 6
    assert learner.state.means.rewards.pulls.tolist() == [0]
    assert learner.state.means.costs.pulls.tolist() == [1]
    np.testing.assert_allclose(learner.remaining, [89.5])  # the costs are charged nevertheless
    for _ in range(3):
        learner.ask()
    assert learner.state.means.costs.pulls.tolist() == [0]


def test_units(tmp_path: Path) -> None:
    """In dollars the decisions are the same as in [0, 1], and prices and budgets are scaled."""
    plain = ds.Problem(horizon=60, arms=3, budget=[6.0, 9.0])
    dollars = ds.Problem(horizon=60, arms=3, budget=[12.0, 36.0], reward_max=50.0, cost_max=[2.0, 4.0])
    pair = [POLICY.start(problem, seed=2) for problem in (plain, dollars)]
    for _ in range(15):
        one, two = (learner.ask() for learner in pair)
        assert one.arm == two.arm
        np.testing.assert_allclose(two.prices, one.prices * 50.0 / [2.0, 4.0])
        if not one.skipped:
            reward, costs = outcome(one.round, one.arm)
            pair[0].tell(one, reward, costs)
            pair[1].tell(two, 50 * reward, np.array(costs) * [2.0, 4.0])
    np.testing.assert_allclose(pair[1].remaining, pair[0].remaining * [2.0, 4.0])
    pair[1].save(tmp_path / "dollars")
    assert ds.Learner.load(tmp_path / "dollars").problem == dollars


@pytest.mark.parametrize("safe", [False, True])
def test_saved_and_restored_equals_never_saved(tmp_path: Path, safe: bool) -> None:
    path = tmp_path / "learner.npz"
    uninterrupted, saved = started(20, safe=safe), started(20, safe=safe)
    for learner in (uninterrupted, saved):
        learner.ask()
    saved.save(path)
    restored = ds.Learner.load(path)
    assert restored.state_hash() == uninterrupted.state_hash()
    assert (restored.policy, restored.problem, restored.safe) == (POLICY, PROBLEM, safe)
    assert len(restored.pending) == 1
    for learner in (uninterrupted, restored):
        for decision in learner.pending:
            learner.tell(decision, *outcome(decision.round, decision.arm))
    assert play(restored, 20) == play(uninterrupted, 20)
    assert restored.state_hash() == uninterrupted.state_hash()


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "learner.npz"
    started().save(path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 211):
        path.write_bytes(whole[:length])
        with pytest.raises(FileFormatError, match="not a complete driftsack learner file"):
            ds.Learner.load(path)
    path.write_bytes(whole)
    content, arrays = file_format.read(path, "learner", LAYOUT)
    corrupted: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({**content, "policy": {"policy": "Unknown"}}, arrays, "policy must be one of"),
        ({**content, "policy": {**content["policy"], "windows": [3, 4]}}, arrays, "another shape"),
        ({k: v for k, v in content.items() if k != "rng"}, arrays, "rng"),
        (content, {k: v for k, v in arrays.items() if k != "state.lp.basis"}, "expected arrays"),
        (content, {k: v for k, v in arrays.items() if k != "desk.clock"}, "the array desk.clock is missing"),
        (content, {**arrays, "ledgers.charged": np.zeros((1, 3))}, "another shape or type"),
    ]
    for header, body, words in corrupted:
        file_format.write(path, "learner", LAYOUT, header, body)
        with pytest.raises(FileFormatError, match=words):
            ds.Learner.load(path)
    file_format.write(path, "learner", LAYOUT + 1, content, arrays)
    with pytest.raises(FileFormatError, match=f"must be of learner version {LAYOUT}, got version {LAYOUT + 1}"):
        ds.Learner.load(path)
    ds.instances.example_1(horizon=10).save(path)
    with pytest.raises(FileFormatError, match="must hold a driftsack learner, got a file of kind 'instance'"):
        ds.Learner.load(path)


def test_reservations_follow_from_the_pending_decisions(tmp_path: Path) -> None:
    """They are not read from the file, so no file can switch the admission of ``safe`` off."""
    learner = ds.NaiveUCB().start(ds.Problem(horizon=50, arms=2, budget=[7.0], cost_max=1.0), safe=True)
    for _ in range(5):
        learner.ask()
    learner.save(tmp_path / "learner")
    assert "ledgers.reserved" not in file_format.read(tmp_path / "learner", "learner", LAYOUT)[1]
    other = ds.Learner.load(tmp_path / "learner")
    while not other.done:
        other.ask()
    for decision in other.pending:
        other.tell(decision, 0.5, 1.0)
    assert other.remaining[0] == 0.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"desk.begun": 99}, r"desk.begun must lie in \[0, 6\]"),
        ({"pending.arm": -3}, r"pending.arm must lie in \[0, 2\]"),
        ({"pending.arm": 7}, r"pending.arm must lie in \[0, 2\]"),
        ({"pending.season": 1}, "needs the ledger of its season"),
        ({"pending.status": 0}, r"pending.status must lie in \[1, 2\]"),
        ({"pending.reserved": -2}, r"pending.reserved must lie in \[-1"),
        ({"pending.probability": 0.123}, "must be that of its mix"),
        ({"settled.number": 9}, r"settled.number must lie in \[0, 6\]"),
        ({"terms.end": np.nan}, "terms.end must lie in"),
    ],
)
def test_a_file_with_an_impossible_course_is_refused(tmp_path: Path, change: dict[str, float], words: str) -> None:
    learner = started()
    learner.ask()
    learner.save(tmp_path / "learner")
    content, arrays = file_format.read(tmp_path / "learner", "learner", LAYOUT)
    for name, value in change.items():
        arrays[name][:] = value
    file_format.write(tmp_path / "learner", "learner", LAYOUT, content, arrays)
    with pytest.raises(FileFormatError, match=words):
        ds.Learner.load(tmp_path / "learner")


def test_a_file_that_was_altered_is_refused(tmp_path: Path) -> None:
    """An index out of range would make a kernel read beyond its arrays: the digest notices any change."""
    started().save(tmp_path / "learner.npz")
    with np.load(tmp_path / "learner.npz") as stored:
        arrays = {name: stored[name] for name in stored.files}
    arrays["state.means.stale.members"] = np.full(3, 2**40)
    np.savez(tmp_path / "learner.npz", **arrays)
    with pytest.raises(FileFormatError, match="is corrupted: its content does not match"):
        ds.Learner.load(tmp_path / "learner.npz")


def test_a_skipped_round_has_no_costs_to_cancel() -> None:
    learner = ds.NaiveUCB().start(ds.Problem(horizon=9, arms=2, budget=[0.0], cost_max=1.0), safe=True)
    decision = learner.ask()
    learner.cancel(decision)
    with pytest.raises(OutcomeError, match="reward and costs must be 0, got"):
        learner.cancel(decision, 0.5)
