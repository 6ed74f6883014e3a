"""The pending decisions of each arm and the running delay, which policies read, are kept through a learner's life."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import driftsack as ds
from tests.support.learner_parts import terms_of

COSTS = [0.1, 0.2]


def started() -> ds.Learner:
    problem = ds.Problem(horizon=500, arms=["a", "b", "c"], budget=[300.0, 300.0], cost_max=1.0)
    return ds.Adaptive().start(problem, seed=2, safe=True)


def ask(learner: ds.Learner, *arms: str) -> list[ds.Decision]:
    """One decision for each arm, the only one that is open."""
    decisions = [learner.ask(open=[arm]) for arm in arms]
    assert [learner.problem.arm_names[decision.arm] for decision in decisions] == list(arms)
    return decisions


def waiting(learner: ds.Learner) -> list[float]:
    return [float(count) for count in terms_of(learner).pending]


def delay(learner: ds.Learner) -> float:
    return float(terms_of(learner).delay[0])


def test_decisions_are_pending_until_they_are_settled() -> None:
    """Told, cancelled or forfeited, once or again; a skipped round and batches too."""
    learner = started()
    a, b, a_again, c = ask(learner, "a", "b", "a", "c")
    assert learner.ask(open=[]).skipped
    assert waiting(learner) == [2, 1, 1]
    learner.tell(a, 0.5, COSTS)
    learner.tell(a, 0.5, COSTS)
    assert waiting(learner) == [1, 1, 1]
    learner.cancel(b)
    assert waiting(learner) == [1, 0, 1]
    learner.forfeit(c)
    assert waiting(learner) == [1, 0, 0]
    learner.tell(c, 0.5, COSTS)  # a forfeited decision has not been pending any more
    assert waiting(learner) == [1, 0, 0]
    batch = learner.ask_many(5, open=["b"])
    assert waiting(learner) == [1, 5, 0]
    learner.tell_many(batch[:3], np.full(3, 0.5), np.full((3, 2), 0.1))
    assert waiting(learner) == [1, 2, 0]
    assert a_again in learner.expire(0)  # all but the decision of the present round
    assert waiting(learner) == [0, 1, 0]
    learner.tell(a_again, 0.5, COSTS)
    assert waiting(learner) == [0, 1, 0]


def test_the_delay_is_the_running_mean_over_told_outcomes() -> None:
    """Of the latest 200 or so; cancelled decisions do not count, forfeited ones do when they are told."""
    learner = started()
    first, second, third, fourth = ask(learner, "a", "b", "c", "a")
    learner.cancel(first)
    assert delay(learner) == 0.0
    learner.tell(fourth, 0.5, COSTS)
    learner.tell(second, 0.5, COSTS)
    assert delay(learner) == 1.0  # of 0 and 2
    learner.forfeit(third)
    ask(learner, "a", "a", "a")
    learner.tell(third, 0.5, COSTS)
    assert delay(learner) == pytest.approx(2.0)  # of 0, 2 and 4
    for _ in range(300):
        learner.tell(ask(learner, "b")[0], 0.5, COSTS)
    assert delay(learner) == pytest.approx(6 / 200 * (1 - 1 / 200) ** 103)
    assert terms_of(learner).delay[1] == 200


def test_a_new_season_begins_without_pending_decisions() -> None:
    """Late outcomes of the last one are charged to its own budgets and count for the delay alone."""
    learner = started()
    old, lost = ask(learner, "a", "b")
    learner.renew(rounds=100)
    assert waiting(learner) == [0, 0, 0]
    new = ask(learner, "a", "c")
    assert waiting(learner) == [1, 0, 1]
    learner.tell(old, 0.5, COSTS)
    learner.forfeit(lost)
    assert waiting(learner) == [1, 0, 1]
    assert delay(learner) == 3.0
    learner.tell(new[0], 0.5, COSTS)
    assert waiting(learner) == [0, 0, 1]


def test_new_arms_and_files_keep_what_is_pending(tmp_path: Path) -> None:
    learner = started()
    decisions = ask(learner, "a", "c", "c")
    learner.tell(decisions[0], 0.5, COSTS)
    learner.add_arm("d")
    assert waiting(learner) == [0, 0, 2, 0]
    ask(learner, "d", "a")
    learner.retire_arm("a")
    assert waiting(learner) == [1, 0, 2, 1]
    learner.renew(rounds=100)
    learner.forfeit(decisions[1])
    ask(learner, "d", "b")
    learner.forfeit(ask(learner, "b")[0])
    learner.save(tmp_path / "learner")
    loaded = ds.Learner.load(tmp_path / "learner", read_only=True)
    assert waiting(loaded) == waiting(learner) == [0, 1, 0, 1]  # of the present season, and not forfeited
    assert terms_of(loaded).delay.tolist() == terms_of(learner).delay.tolist() == [2.0, 1.0]
    assert [loaded.ask().mix.tolist() for _ in range(20)] == [learner.ask().mix.tolist() for _ in range(20)]
