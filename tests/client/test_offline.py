"""A client of an unreliable service: its stock stays usable and is never charged, and its outcomes arrive."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from driftsack.client import Client, OutcomeRefusedWarning, RemoteDecision, ServiceError, ServiceUnavailableError
from driftsack.client.stock import Stock
from driftsack.client.transport import Transport
from driftsack.service.runtime.owned import ServiceClock
from tests.client.test_client import budget, client_of, decide
from tests.support.live_service import Live, serving


class Ahead:
    """A clock that a test moves forward, for the leases of the service and the stock of a client."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def read(self) -> float:
        return time.monotonic() + self.seconds

    def injected(self) -> dict[str, Any]:
        """The clock of a service."""
        return {"clock": ServiceClock(monotonic=self.read)}


class Switch:
    """Disconnects clients from the service, and reconnects them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.away, send = False, Transport.send

        def sent(transport: Transport, *arguments: Any) -> Any:
            if self.away:
                raise ConnectionRefusedError("the service is away")
            return send(transport, *arguments)

        monkeypatch.setattr(Transport, "send", sent)


def until(check: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    for _ in range(500):
        if check():
            return
        time.sleep(0.02)
    raise AssertionError


def use(client: Client) -> None:
    """Ask until the stock is full, and cancel these decisions."""
    for _ in range(20):
        client.cancel(decide(client))


def after_five_leases(live: Live, client: Client, clock: Ahead) -> tuple[str, str]:
    """Return what is spent and reserved after five leases with a request in each third, if nothing is told."""
    for _ in range(15):
        use(client)
        clock.seconds += 20
        time.sleep(0.3)  # the service looks at its leases every quarter of a second
    use(client)
    return budget(live)["spent"], budget(live)["reserved"]


@pytest.mark.slow
def test_the_stock_outlives_its_leases_and_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Ahead()
    with serving(str(tmp_path / "s.db"), clock.injected()) as live:
        live.open(lease=60)
        client = client_of(live, offline="stock", stock=3, clock=clock.read)
        assert after_five_leases(live, client, clock) == ("0", "0.3")
        switch = Switch(monkeypatch)
        switch.away = True
        used = [client.ask() for _ in range(3)]
        switch.away = False
        for held in used:
            client.tell(held, 1.0, {"usd": "0.01"})
        assert budget(live)["spent"] == "0.03"
        client.close()


@pytest.mark.slow
def test_a_stock_that_is_not_extended_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: nothing is extended or cancelled, and decisions whose lease has ended count as stock."""
    monkeypatch.setattr(Stock, "_ageing", lambda _: [])
    monkeypatch.setattr(Stock, "_set_aside", lambda _: None)
    clock = Ahead()
    with serving(str(tmp_path / "s.db"), clock.injected()) as live:
        live.open(lease=60)
        with client_of(live, offline="stock", stock=3, clock=clock.read) as client:
            assert after_five_leases(live, client, clock)[0] == "0.3"


@pytest.mark.parametrize("away", [False, True])
def test_what_ended_while_the_client_was_idle_is_refunded_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, away: bool
) -> None:
    clock = Ahead()
    with serving(str(tmp_path / "s.db"), clock.injected()) as live:
        live.open(lease=60, late=600)
        client, switch = client_of(live, offline="stock", stock=3, clock=clock.read), Switch(monkeypatch)
        use(client)
        clock.seconds += 61
        until(lambda: bool(budget(live)["spent"] == "0.3"))
        if away:
            switch.away = True
            with pytest.raises(ServiceUnavailableError, match="no decision is in stock"):
                client.ask()
            switch.away = False
        use(client)
        assert (budget(live)["spent"], budget(live)["reserved"]) == ("0", "0.3")
        client.close()
        assert (budget(live)["spent"], budget(live)["reserved"]) == ("0", "0")


def kept(client: Client, switch: Switch, costs: list[str]) -> list[RemoteDecision]:
    """Let a client keep outcomes while the service is away, and return the decisions."""
    decisions = [decide(client) for _ in costs]
    switch.away = True
    for decision, usd in zip(decisions, costs, strict=True):
        client.tell(decision, 1.0, {"usd": usd} if usd else {"eur": "1"})
    switch.away = False
    return decisions


def test_a_refused_outcome_is_dropped_with_one_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kept outcome that is refused blocks no other outcome."""
    with serving(str(tmp_path / "s.db")) as live:
        live.open()
        client, switch = client_of(live, offline="stock", stock=1), Switch(monkeypatch)
        kept(client, switch, ["0.01", "", "0.02"])
        with pytest.warns(OutcomeRefusedWarning, match="had been kept, was refused: .*costs") as noted:
            client.tell(decide(client), 1.0, {"usd": "0.04"})
        assert len(noted) == 1
        assert budget(live)["spent"] == "0.07"
        client.tell(decide(client), 1.0, {"usd": "0.01"})
        client.close()
        assert (budget(live)["spent"], budget(live)["reserved"]) == ("0.18", "0")  # the refused one is forfeited


def test_closing_reports_a_refused_outcome_and_settles_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(str(tmp_path / "s.db")) as live:
        live.open()
        client, switch = client_of(live, offline="stock", stock=2), Switch(monkeypatch)
        kept(client, switch, ["", "0.02"])
        with pytest.warns(OutcomeRefusedWarning):
            client.close()
        assert (budget(live)["spent"], budget(live)["reserved"]) == ("0.12", "0")


def test_outcomes_are_kept_if_the_key_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused key says nothing about the outcome, which can be told once the key is valid again."""
    with serving(str(tmp_path / "s.db")) as live:
        live.open()
        client, switch = client_of(live, offline="stock", stock=1), Switch(monkeypatch)
        (decision,) = kept(client, switch, ["0.02"])
        keyring, store = live.app.service.keyring, live.app.service.keeper.store
        (row,) = keyring.rows()
        store.remove_key(row.prefix)
        keyring.load()
        with pytest.raises(ServiceError, match="401"):
            client.tell(decision, 1.0, {"usd": "0.02"})
        store.add_key(row)
        keyring.load()
        client.close()
        assert (budget(live)["spent"], budget(live)["reserved"]) == ("0.02", "0")


def test_closing_goes_on_after_a_refusal(tmp_path: Path) -> None:
    """Another client has settled the first of three decisions."""
    with serving(str(tmp_path / "s.db")) as live:
        live.open()
        with client_of(live) as client:
            first = decide(client)
            decide(client)
            decide(client)
            live.call("POST", f"/v1/campaigns/chat/decisions/{first.number}/tell", {"reward": 1, "costs": {"usd": "0"}})
        assert (budget(live)["spent"], budget(live)["reserved"]) == ("0.2", "0")


def test_closing_ends_when_the_service_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unavailable service uses up the patience, so closing makes only one attempt."""
    with serving(str(tmp_path / "s.db")) as live:
        live.open()
        client, tried = client_of(live), list[str]()
        for _ in range(3):
            decide(client)

    def post(_: Transport, path: str, *_rest: Any) -> Any:
        tried.append(path)
        raise ServiceUnavailableError(503, "unavailable", "away")

    monkeypatch.setattr(Transport, "post", post)
    client.close()
    assert len(tried) == 1
