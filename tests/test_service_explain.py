"""Why a decision was made, against sums by hand; and the replay of a journal that is being written."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from driftsack.service import messages as ms
from driftsack.service.explain import Why, replay, why
from driftsack.service.journal import START, JournalError, Segment
from driftsack.service.owned import Owned, ServiceClock
from driftsack.service.recovery import encode_config, snapshot_of
from driftsack.service.store import open_store
from driftsack.service.store.interface import Owner, Store
from tests.campaigns import Desk, small

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
        """The segment of what has happened."""
        return self.owned.collect(10**9)[0]

    def write(self) -> None:
        """Append a decision, which moves the budget, and keep a snapshot."""
        self.desk.ask()
        self.store.append([self.collect()])
        self.store.save_snapshot("chat", snapshot_of(self.desk.campaign, self.owned.chain))


def before_each(call: Callable[..., Any], work: Callable[[], Any]) -> Callable[..., Any]:
    """A method before which something happens."""

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
    """The planted fault: the budgets are read after the number of events, with an event in between."""
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


def explained(folder: Path, policy: dict[str, Any], last: ms.Ask | None = None) -> Why:
    """What is known at the decision after thirty outcomes that are always the same."""
    desk = Desk(small(policy=policy, horizon=60, budget={"usd": "5"}, arms=["small", "large", "none"]))
    desk.do(ms.OfferArm(False), 2)
    for k in range(30):
        asked = desk.do(ms.Ask(open=[("small", "large")[k % 2]]))
        if not asked.skipped:
            desk.tell(asked.decision, COST[asked.arm], REWARD[asked.arm])
    number = desk.do(last or ms.Ask()).decision
    with closing(open_store(str(folder / "s.db"))) as store:
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
