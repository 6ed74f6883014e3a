"""Upstreams that fail in every way: the short form of ``python -m lab hostile-upstreams``, without kills."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from driftsack.service.gateways.proxy import offers
from driftsack.service.gateways.proxy.outcomes import OutcomeTeller
from driftsack.service.gateways.proxy.settings import Upstream
from lab.service.hostile_upstreams import ARMS, Books, Sender, books_of
from tests.support import gateways
from tests.support.hostile_upstream import SECRET, HostileUpstream


@pytest.fixture(autouse=True)
def upstream_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UPSTREAM_KEY", SECRET)


REQUESTS, CLIENTS = 240, 16


def play(directory: Path, monkeypatch: pytest.MonkeyPatch, behaviour: str = "") -> Books:
    """Send requests with a budget that they use up, and return the books; upstreams behave at random by default."""
    usual = gateways.upstreams

    def both(address: str, models: Any, **settings: Any) -> list[Upstream]:
        return [usual(address, [arm], **settings, protocol=protocol)[0] for arm, protocol in ARMS.items()]

    monkeypatch.setattr(gateways, "upstreams", both)
    hostile = HostileUpstream(most=1000, seed=3)
    hostile.behaviour = (lambda model: behaviour) if behaviour else hostile.at_random
    campaign = {"budget": {"usd": "0.1"}, "cost_max": {"usd": "0.002"}, "lease": 3}
    settings: dict[str, Any] = {"most_seconds": 1.0, "attempt_seconds": 0.5, "rest": 0.01}
    with gateways.gate(str(directory), list(ARMS), campaign, hostile=hostile, **settings) as found:
        Sender(found.url, found.live.key).send_many(REQUESTS, CLIENTS)
        with suppress(AssertionError):  # decisions are left open, and the books say so
            found.told()
        return books_of(found.live.url, found.live.key, hostile)


def test_no_fault_of_an_upstream_costs_more_than_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    books = play(tmp_path, monkeypatch)
    assert books.faults() == []
    assert books.spent > books.granted / 2


def test_a_proxy_that_overspends_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: what does not fit into the reservation is sent all the same."""
    monkeypatch.setattr(offers, "fitting_limit", lambda demand, prices, limit, most: limit)
    assert "the upstreams" in " ".join(play(tmp_path, monkeypatch).faults())


def test_a_proxy_that_charges_failures_nothing_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: a call that failed is cancelled."""
    usual = OutcomeTeller.settle

    def generous(self: OutcomeTeller, client: Any, decision: Any, outcome: Any, seconds: float) -> None:
        failed = outcome.kind == "failed"
        usual(self, client, decision, outcome._replace(kind="cancelled") if failed else outcome, seconds)

    monkeypatch.setattr(OutcomeTeller, "settle", generous)
    assert "the upstreams" in " ".join(play(tmp_path, monkeypatch, "breaks").faults())
