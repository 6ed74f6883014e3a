"""Explanations of decisions compared with known means, and the replay of a journal while it is being written."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from driftsack.authoring import Estimates, Floats, Generator, Outcome, Policy, Problem, Round, kernel
from driftsack.core.errors import SettingError
from driftsack.service.domain import messages as ms
from driftsack.service.domain.journal import START, JournalError, Segment
from driftsack.service.projections.explain import Why, replay, why
from driftsack.service.runtime.owned import Owned, ServiceClock
from driftsack.service.runtime.recovery import encode_config, snapshot_of
from driftsack.service.store import open_store
from driftsack.service.store.interface import Owner, Store
from tests.support.campaigns import Desk, small

REWARD = {"small": 0.25, "large": 0.75}
COST = {"small": "0.02", "large": "0.04"}


class Writer:
    """A campaign whose owner appends to the journal while others read it.

    Args:
        store: The store.
    """

    def __init__(self, store: Store) -> None:
        self.store, self.desk = store, Desk(small(budget={"usd": "5"}))
        self.owned = Owned("chat", 1, self.desk.campaign, START, ServiceClock(), grace=0)
        self.owned.forget_accounts()
        for k in range(30):
            asked = self.desk.ask()
            if k % 3:
                self.desk.tell(asked.decision)
        store.create(self.collect(), encode_config(self.desk.campaign.config), Owner("test"))

    def collect(self) -> Segment:
        """Return the segment of the latest events."""
        return self.owned.collect(10**9)[0]

    def write(self) -> None:
        """Append a decision, which changes the budget, and save a snapshot."""
        self.desk.ask()
        self.store.append([self.collect()])
        self.store.save_snapshot("chat", snapshot_of(self.desk.campaign, self.owned.chain))


def before_each(call: Callable[..., Any], work: Callable[[], Any]) -> Callable[..., Any]:
    """Return a method that calls ``work`` first."""

    def both(*arguments: Any, **named: Any) -> Any:
        work()
        return call(*arguments, **named)

    return both


def test_a_replay_is_not_disturbed_by_a_service_that_goes_on(
    store_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event is committed before each read of the journal, its snapshots and its budgets."""
    with closing(open_store(store_address)) as store:
        writer = Writer(store)
        writer.write()
        at_once, began = store.at_once, list[int]()
        for name in ("segments", "snapshots", "budgets"):
            monkeypatch.setattr(store, name, before_each(getattr(store, name), writer.write))

        def noted(name: str) -> Any:
            found = at_once(name)
            began.append(found[0].seq)
            return found

        monkeypatch.setattr(store, "at_once", noted)
        found = replay(store, "chat")
        assert (found.same, found.divergences, found.events) == (True, 0, began[0])
        assert writer.desk.campaign.book.seq > found.events


def test_a_view_in_two_reads_is_caught(store_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: budgets and number of events are read separately, with an event in between."""
    with closing(open_store(store_address)) as store:
        writer = Writer(store)
        at_once = store.at_once

        def torn(name: str) -> Any:
            row = at_once(name)[0]
            writer.write()
            return row, store.budgets(name)

        monkeypatch.setattr(store, "at_once", torn)
        with pytest.raises(JournalError, match="budget in the store"):
            replay(store, "chat")


def test_a_replay_notices_events_that_were_not_written_by_the_owner(
    store_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: a segment that continues the chain, but whose events the campaign does not count."""
    with closing(open_store(store_address)) as store:
        writer, segments = Writer(store), store.segments
        assert replay(store, "chat").same
        writer.desk.ask()
        extra = writer.collect()
        monkeypatch.setattr(
            store,
            "segments",
            lambda name, after=0: iter([*segments(name, after), *([extra] if extra.first > after else [])]),
        )
        with pytest.raises(JournalError, match=f"ends at event {extra.last}, but {extra.first - 1} were written"):
            replay(store, "chat")


def explained(directory: Path, policy: dict[str, Any], last: ms.Ask | None = None) -> Why:
    """Return the explanation of the decision after thirty constant outcomes."""
    desk = Desk(small(policy=policy, horizon=60, budget={"usd": "5"}, arms=["small", "large", "none"]))
    desk.do(ms.OfferArm(False), 2)
    for k in range(30):
        asked = desk.do(ms.Ask(open=[("small", "large")[k % 2]]))
        if not asked.skipped:
            desk.tell(asked.decision, COST[asked.arm], REWARD[asked.arm])
    number = desk.do(last or ms.Ask()).decision
    with closing(open_store(str(directory / "s.db"))) as store:
        owned = Owned("chat", 1, desk.campaign, START, ServiceClock(), grace=0)
        owned.forget_accounts()
        store.create(owned.collect(10**9)[0], encode_config(desk.campaign.config), Owner("test"))
        return why(store, "chat", number)


@pytest.mark.parametrize(
    ("policy", "kind"),
    [
        ({"policy": "SlidingWindowUCB", "windows": [10_000, 10_000], "scale": 0.3}, "bounds"),
        ({"policy": "DiscountedUCB", "discount": 0.9999, "scale": 0.3}, "bounds"),
        ({"policy": "Adaptive"}, "draws"),
        ({"policy": "ThompsonBwK"}, "draws"),
    ],
)
def test_estimates_are_those_of_the_outcomes(tmp_path: Path, policy: dict[str, Any], kind: str) -> None:
    found = explained(tmp_path, policy)
    assert (found.same, found.planned_with) == (True, kind)
    assert [arm.closed for arm in found.arms] == [None, None, "retired"]
    assert (found.arms[2].reward, found.arms[2].planned_reward) in ((None, None), (0.5, None))  # the prior's mean
    shrunk = 0.2 if kind == "draws" else 1e-9  # a posterior is between the outcomes and its prior
    for arm in found.arms[:2]:
        assert arm.reward is not None
        assert arm.costs is not None
        assert arm.planned_reward is not None
        assert arm.planned_costs is not None
        assert arm.reward == pytest.approx(REWARD[arm.arm], abs=shrunk)
        assert arm.costs["usd"] == pytest.approx(float(COST[arm.arm]), abs=0.1 * shrunk)
        if kind == "bounds":  # optimistic: more reward and less cost than the means; so means in their place would fail
            assert arm.planned_reward > arm.reward
            assert arm.planned_costs["usd"] < arm.costs["usd"]
    assert sum(arm.probability for arm in found.arms) <= 1.0 + 1e-9


def test_an_arm_is_closed_for_a_reason(tmp_path: Path) -> None:
    found = explained(tmp_path, {"policy": "UniformRandom"}, ms.Ask(open=["large", "none"]))
    assert [arm.closed for arm in found.arms] == ["not asked for", None, "retired"]
    assert (found.arm, found.open, found.planned_with) == ("large", ["large"], None)
    assert all(arm.reward is arm.planned_reward is None for arm in found.arms)


class Sums(NamedTuple):
    """The state of a policy as a user would write it."""

    sums: Floats  # (m, 1 + d) rewards first
    pulls: Floats  # (m,)


@kernel
def choose(state: Sums, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Pull the first open arm."""
    mix[:] = 0.0
    for arm in range(mix.size):
        if round.open[arm]:
            mix[arm] = 1.0
            return arm
    return -1


@kernel
def learn(state: Sums, outcome: Outcome) -> None:
    """Add the outcome."""
    if outcome.arm >= 0:
        state.pulls[outcome.arm] += 1.0
        state.sums[outcome.arm, 0] += outcome.reward
        for j in range(outcome.costs.size):
            state.sums[outcome.arm, 1 + j] += outcome.costs[j]


@dataclass(frozen=True)
class FirstOpenArm(Policy):
    """A policy outside the package that declares what it believes."""

    def new_state(self, problem: Problem) -> Sums:
        """The state without observations."""
        return Sums(np.zeros((problem.arms, 1 + problem.resources)), np.zeros(problem.arms))

    def estimates(self, state: Sums) -> Estimates:
        """Means over all rounds, and a plan that halves them."""
        with np.errstate(invalid="ignore"):
            means = state.sums / state.pulls[:, None]
        return Estimates(means, np.nan_to_num(means) / 2, "halves")


@dataclass(frozen=True)
class WithoutPlan(FirstOpenArm):
    """The same with means alone."""

    def estimates(self, state: Sums) -> Estimates:
        """Means over all rounds."""
        return Estimates(super().estimates(state).means)


@dataclass(frozen=True)
class WithoutCosts(FirstOpenArm):
    """The planted fault: it returns rewards only."""

    def estimates(self, state: Sums) -> Estimates:
        """One column instead of two."""
        return Estimates(super().estimates(state).means[:, :1])


def test_a_policy_written_by_a_user_shows_what_it_believes(tmp_path: Path) -> None:
    found = explained(tmp_path, {"policy": "FirstOpenArm"})
    assert (found.same, found.planned_with) == (True, "halves")
    for arm in found.arms[:2]:
        assert arm.reward == pytest.approx(REWARD[arm.arm])
        assert arm.costs == pytest.approx({"usd": float(COST[arm.arm])})
        assert arm.planned_reward == pytest.approx(REWARD[arm.arm] / 2)
        assert arm.planned_costs == pytest.approx({"usd": float(COST[arm.arm]) / 2})
    assert (found.arms[2].reward, found.arms[2].planned_reward) == (None, None)


def test_a_policy_may_declare_means_alone(tmp_path: Path) -> None:
    found = explained(tmp_path, {"policy": "WithoutPlan"})
    assert [arm.reward for arm in found.arms] == [pytest.approx(0.25), pytest.approx(0.75), None]
    assert found.planned_with is None
    assert all(arm.planned_reward is None and arm.planned_costs is None for arm in found.arms)


def test_estimates_of_another_shape_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"WithoutCosts.estimates must return .* 2 columns"):
        explained(tmp_path, {"policy": "WithoutCosts"})
