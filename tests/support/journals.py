"""Writes the journal with every kind of event that later releases must read: ``python -m tests.support.journals FILE``.

A release writes such a file once, as ``tests/data/service-journal-N.db``; it is never written again.
"""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from driftsack.service.domain import messages as ms
from driftsack.service.domain.campaign import Campaign, Now
from driftsack.service.domain.config import Config, Limit
from driftsack.service.domain.journal import START
from driftsack.service.domain.refusals import Refusal
from driftsack.service.runtime.owned import Owned, ServiceClock
from driftsack.service.runtime.recovery import encode_config
from driftsack.service.store.interface import Owner, Store
from driftsack.service.store.sqlite import SQLiteStore
from tests.support import campaigns
from tests.support.campaigns import monthly, small

DAY = 86_400_000
MONTH = 31 * DAY


class Written:
    """A campaign whose events are committed after each step.

    Args:
        store: The store.
        name: The name of the campaign.
        config: The settings.
        at: The time in milliseconds since 1970.
    """

    def __init__(self, store: Store, name: str, config: Config, at: int = campaigns.START) -> None:
        self._store, self.now = store, Now(at, 0)
        self.owned = Owned(name, 1, Campaign.open(config, self.now), START, ServiceClock(), grace=0)
        self.owned.forget_accounts()
        store.create(self.owned.collect(10**9)[0], encode_config(config), Owner("writer"))

    def do(self, command: Any, number: int = 0) -> Any:
        """Handle a command, and commit what happened."""
        answer = self.owned.campaign.handle(command, self.now, number=number)
        self.commit()
        return answer

    def refused(self, command: Any, number: int) -> None:
        """Handle a command that is refused by an event, and commit it."""
        try:
            self.owned.campaign.handle(command, self.now, number=number)
        except Refusal:
            self.commit()

    def commit(self, snapshot_every: int = 10**9) -> None:
        """Commit what happened."""
        if self.owned.campaign.events:
            segment, snapshot = self.owned.collect(snapshot_every)
            self._store.append([segment])
            if snapshot is not None:
                self._store.save_snapshot(self.owned.name, snapshot)
            self.owned.durable = segment.last

    def ask(self, labels: dict[str, str] | None = None) -> int:
        """Ask until the policy does not skip, and return the number of the decision."""
        while True:
            found = self.do(ms.Ask(caps={"usd": "0.09"}, labels=labels))
            if found.decision is not None and not found.skipped:
                return int(found.decision)

    def wait(self, milliseconds: int, stopped: int = 0) -> None:
        """Advance both clocks; that of leases does not run while the service is stopped."""
        self.now = Now(self.now.at + milliseconds + stopped, self.now.tick + milliseconds)
        self.owned.campaign.pass_time(self.now)
        self.commit()


def write(path: Path) -> None:
    """Write three campaigns that together have every kind of event, two of them with a snapshot in the middle."""
    with closing(SQLiteStore(path)) as store:
        settings = {"slots": 3, "pause_on_overrun": True, "policy": {"policy": "Adaptive"}, "budget": {"usd": "2"}}
        one = Written(store, "all", monthly(**settings))
        numbers = [one.ask() for _ in range(8)]
        one.do(ms.Tell(1.0, {"usd": "0.02"}), numbers[0])
        one.do(ms.Cancel({"usd": "0.01"}), numbers[1])
        one.do(ms.Extend(7200), numbers[2])
        one.do(ms.Forfeit(), numbers[3])
        one.do(ms.Tell(costs={"usd": "0.02"}), numbers[5])
        one.do(ms.Tell(reward=0.4), numbers[5])
        one.do(ms.Tell(reward=0.6), numbers[6])
        one.refused(ms.Tell(1.0, {"usd": "1000"}), numbers[7])
        one.do(ms.Charge({"usd": "0.01"}))
        one.do(ms.Grant({"usd": "0.5"}))
        one.do(ms.AddArm("tiny", {"usd": "0.03"}))
        one.do(ms.OfferArm(False), 0)
        one.do(ms.Patch(rounds_left=1000))
        one.wait(61_000)
        one.do(ms.Tell(0.5, {"usd": "0.03"}), numbers[4])
        one.wait(601_000)
        one.do(ms.OfferArm(True), 0)
        one.owned.campaign.handle(ms.Ask(), one.now)
        one.owned.campaign.handle(ms.Patch(rounds_left=900), one.now)
        one.commit(snapshot_every=1)
        late = one.ask()
        one.wait(61_000, stopped=MONTH)
        one.do(ms.Tell(0.2, {"usd": "0.01"}), late)
        one.do(ms.Tell(0.9, {"usd": "0.2"}), one.ask())
        one.do(ms.Patch("active"))
        one.do(ms.Tell(0.7, {"usd": "0.04"}), one.ask())
        one.ask()

        two = Written(store, "watch", small(watch=True))
        for k in range(40):
            arm = ("small", "large")[k % 2]
            two.do(ms.Observe(arm=arm, reward=0.5, costs={"usd": "0.02"}, probability=0.5))
        two.now = Now(two.now.at - DAY, two.now.tick)
        two.owned.campaign.set_clock(two.now)
        two.do(ms.Patch("active"))
        two.do(ms.Tell(1.0, {"usd": "0.02"}), two.ask())
        last = two.ask()
        two.do(ms.Patch("closed"))
        two.do(ms.Tell(1.0, {"usd": "0.02"}), last)

        write_limits(store)


def write_limits(store: Store) -> None:
    """Write a campaign with limits, thresholds that are crossed, and a snapshot in the middle."""
    limits = [
        Limit("user", {"usd": "0.25"}, "day", "Europe/Berlin"),
        Limit("run", {"usd": "0.5"}, idle=3600),
        Limit("team", {"usd": "0.07"}, "month"),
    ]
    three = Written(store, "limits", small(limits=limits, cost_max={"usd": {"small": "0.05", "large": "0.1"}}))
    ann = {"user": "ann", "run": "r1"}
    numbers = [three.ask(ann), three.ask(ann), three.ask({"user": "bob"}), three.ask()]
    three.do(ms.Tell(1.0, {"usd": "0.06"}), numbers[0])
    three.do(ms.Tell(costs={"usd": "0.0825"}), numbers[1])
    three.do(ms.Cancel({"usd": "0.01"}), numbers[2])
    numbers.append(three.ask(ann))
    three.do(ms.Ask(caps={"usd": "0.09"}, labels=ann, open=["large"]))
    three.owned.campaign.handle(ms.Ask(labels=ann), three.now)
    three.commit(snapshot_every=1)
    three.wait(61_000)
    three.do(ms.Tell(0.5, {"usd": "0.03"}), numbers[4])
    three.wait(601_000, stopped=DAY)
    three.do(ms.Tell(0.5, {"usd": "0.02"}), three.ask(ann))
    three.do(ms.Tell(0.5, {"usd": "0.05"}), three.ask({"run": "r1", "team": "x"}))
    three.do(ms.Ask(labels={"team": "x"}))
    three.ask({"run": "r1"})


if __name__ == "__main__":
    write(Path(sys.argv[1]))
