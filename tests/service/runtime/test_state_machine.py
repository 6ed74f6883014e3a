"""Random commands, crashes and waits on both stores, beside a reference ledger in exact decimal numbers."""

from __future__ import annotations

import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from driftsack.core.errors import DriftsackError
from driftsack.service.domain import messages as ms
from driftsack.service.domain.book import Book, Record
from driftsack.service.domain.campaign import Caller
from driftsack.service.domain.journal import START, verify
from driftsack.service.domain.refusals import Refusal
from driftsack.service.runtime.owned import Owned, ServiceClock
from driftsack.service.runtime.recovery import check_budgets, encode_config, recover
from driftsack.service.store import open_store
from driftsack.service.store.interface import Owner
from tests.support.campaigns import Desk, small
from tests.support.local_postgres import LocalPostgres
from tests.support.reference_ledger import ReferenceLedger

CENTS = st.integers(0, 40).map(lambda cents: f"{Decimal(cents) / 100}")
ME = Owner("me")
MEMORY = Path("/dev/shm")  # here it is about amounts, not about durability


class Machine(RuleBasedStateMachine):
    """A campaign that is committed after each command, and may crash after any of them."""

    address = ""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0
        self.clock = ServiceClock(lambda: 1.7e9, lambda: self.seconds)
        self.keys = 0
        self.asked: dict[str, Any] = {}

    @initialize()
    def begin(self) -> None:
        self.directory = tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
        self.store = open_store(self.address or str(Path(self.directory.name) / "s.db"))
        self.name = f"c{id(self)}"
        for row in self.store.campaigns():
            if row.name == self.name:
                self.name += "x"
        config = small(lease=50, late=10**6)
        self.ledger = ReferenceLedger("1")
        campaign = Desk(config).campaign
        self.owned = Owned(self.name, 1, campaign, START, self.clock, grace=0)
        self.owned.forget_accounts()
        self.store.create(self.owned.collect(10**9)[0], encode_config(config), ME)

    def do(self, command: Any, number: int = 0, key: str = "") -> Any:
        """Carry out a command and commit it."""
        try:
            return self.owned.campaign.handle(command, self.owned.now(), Caller(key, repr(command).encode()), number)
        finally:
            self.commit()

    def commit(self) -> None:
        if self.owned.campaign.events:
            segment, snapshot = self.owned.collect(20)
            for number in self.owned.campaign.book.open.keys() & self.ledger.in_state("pending"):
                if self.owned.campaign.book.open[number].kind == "expired":
                    self.ledger.expire(number)
            self.store.append([segment])
            self.owned.done(segment)
            if snapshot is not None:
                self.store.save_snapshot(self.name, snapshot)

    @rule(cap=st.none() | CENTS, open_arms=st.none() | st.just(["small"]))
    def ask(self, cap: str | None, open_arms: list[str] | None) -> None:
        self.keys += 1
        key, command = f"k{self.keys}", ms.Ask(open=open_arms, caps=None if cap is None else {"usd": cap})
        found = self.do(command, key=key)
        most = min(Decimal(cap or "0.1"), Decimal("0.1"))
        if found.reason == "budget":
            assert not self.ledger.fits(most) or self.ledger.overrun > 0
        elif not found.skipped:
            assert Decimal(found.reserved["usd"]) == most
            self.ledger.ask(found.decision, most)
            self.asked[key] = (command, found)

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def ask_again(self, data: st.DataObject) -> None:
        """A request that is repeated with its key gets the same decision."""
        key = data.draw(st.sampled_from(list(self.asked)))
        command, found = self.asked[key]
        assert self.do(command, key=key) == found

    @precondition(lambda self: self.ledger.in_state("pending", "expired"))
    @rule(data=st.data(), cost=CENTS, cancelled=st.booleans())
    def settle(self, data: st.DataObject, cost: str, cancelled: bool) -> None:
        number = data.draw(st.sampled_from(self.ledger.in_state("pending", "expired")))
        command = ms.Cancel({"usd": cost}) if cancelled else ms.Tell(0.5, {"usd": cost})
        self.do(command, number)
        self.ledger.settle(number, "cancelled" if cancelled else f"told {cost}", Decimal(cost))

    @precondition(lambda self: any("told" in state for state, _ in self.ledger.decisions.values()))
    @rule(data=st.data(), cost=CENTS)
    def tell_again(self, data: st.DataObject, cost: str) -> None:
        told = {n: state for n, (state, _) in self.ledger.decisions.items() if "told" in state}
        number = data.draw(st.sampled_from(list(told)))
        if told[number] == f"told {cost}":
            assert self.do(ms.Tell(0.5, {"usd": cost}), number).state == "told"
        else:
            try:
                self.do(ms.Tell(0.5, {"usd": cost}), number)
            except Refusal:
                return
            raise AssertionError("another outcome of a settled decision was accepted")

    @precondition(lambda self: self.ledger.in_state("pending"))
    @rule(data=st.data())
    def forfeit(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(self.ledger.in_state("pending")))
        self.do(ms.Forfeit(), number)

    @rule(seconds=st.integers(1, 60))
    def wait(self, seconds: int) -> None:
        self.seconds += seconds
        self.owned.campaign.pass_time(self.owned.now())
        self.commit()

    @rule(amount=CENTS)
    def grant(self, amount: str) -> None:
        self.do(ms.Grant({"usd": amount}))
        self.ledger.granted += Decimal(amount)

    @rule(snapshots=st.booleans())
    def crash(self, snapshots: bool) -> None:
        """What was acknowledged is there again, bit for bit."""
        before = self.owned.campaign
        row = self.store.claim(self.name, ME)
        assert row is not None
        found = recover(self.store, row, snapshots)
        assert found.learner.state_hash() == before.learner.state_hash()
        assert found.book == before.book
        assert found.book.divergences == 0
        self.owned = Owned(self.name, row.epoch, found, row.chain, self.clock, grace=0)

    @invariant()
    def budgets_agree(self) -> None:
        if not hasattr(self, "owned"):
            return
        check_budgets(self.store.budgets(self.name), self.name, self.owned.campaign)
        units = self.store.budgets(self.name)[0, 0]
        found = [Decimal(amount).scaleb(-self.owned.campaign.exponents[0]) for amount in units]
        assert found == [self.ledger.granted, self.ledger.reserved, self.ledger.spent, self.ledger.overrun]
        assert self.ledger.spent + self.ledger.reserved <= self.ledger.granted + self.ledger.overrun

    def teardown(self) -> None:
        if hasattr(self, "store"):
            verify(self.store.segments(self.name))
            self.store.close()
            self.directory.cleanup()


def run(machine: type[RuleBasedStateMachine], examples: int, steps: int = 40) -> None:
    """Run a machine."""
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        database=None,
    )
    run_state_machine_as_test(machine, settings=chosen)


def test_random_commands_on_sqlite() -> None:
    run(Machine, 25)


def test_random_commands_on_postgres(postgres: LocalPostgres) -> None:
    class OnPostgres(Machine):
        address = postgres.new_database()

    run(OnPostgres, 12)


def lost_refund(self: Book, record: Record, units: list[int]) -> bool:
    """The planted fault: a late outcome is charged in addition to the worst case."""
    account = self.accounts[record.season]
    if record.kind == "pending":
        account.reserved[0] -= record.reserved[0]
    account.spent[0] += units[0]
    account.overrun[0] += max(units[0] - record.reserved[0], 0)
    return False


def settled_twice(self: Book, number: int, record: Record) -> None:
    """The planted fault: a settled decision stays among those that wait."""
    self.settled[number] = record


@pytest.mark.parametrize(("method", "fault"), [("charge", lost_refund), ("settle", settled_twice)])
def test_a_wrong_ledger_is_found(method: str, fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Book, method, fault)
    with pytest.raises((AssertionError, KeyError, DriftsackError)):
        run(Machine, 25)
