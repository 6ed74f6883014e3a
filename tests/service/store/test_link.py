"""A PostgreSQL that swallows bytes without a reset: calls end by a deadline, and the service says what it cannot do."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from driftsack.service.store import link as links
from driftsack.service.store import open_store
from driftsack.service.store.interface import Owner, UnavailableError
from tests.service.store.test_store import after, opened
from tests.support.live_service import serving
from tests.support.local_postgres import LocalPostgres
from tests.support.relay import Relay, relayed

LIMIT = 1.0


@pytest.fixture
def path(postgres: LocalPostgres, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Relay, str]]:
    """A relay to an empty database, and its address; calls have a short deadline."""
    monkeypatch.setattr(links.Link.__init__, "__defaults__", (LIMIT,))
    with relayed(postgres.new_database()) as found:
        yield found


@pytest.mark.parametrize("swallow", [True, False])
def test_a_call_that_is_not_answered_fails_by_its_deadline(path: tuple[Relay, str], swallow: bool) -> None:
    """Bytes that were only held arrive later, under an epoch that is over: the journal does not take them."""
    relay, address = path
    with closing(open_store(address)) as store:
        first, me = opened(), Owner("me", "http://me", 0.5)
        store.create(first, b"", me)
        relay.swallow() if swallow else relay.hold()
        begin = time.monotonic()
        with pytest.raises(UnavailableError):
            store.append([after(first)])
        assert time.monotonic() - begin < 3 * LIMIT
        relay.go_on()
        time.sleep(0.5)
        row = store.claim("chat", me)
        assert row is not None
        assert row.seq == (1 if swallow else 2)
        assert sum(1 for _ in store.segments("chat")) == row.seq


def test_without_the_deadline_the_call_hangs(path: tuple[Relay, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault."""
    monkeypatch.setattr(links.Link, "_watch", lambda _: None)
    relay, address = path
    with closing(open_store(address)) as store:
        relay.swallow()
        errors = list[UnavailableError]()

        def call() -> None:
            try:
                store.campaigns()
            except UnavailableError as error:
                errors.append(error)

        thread = threading.Thread(target=call)
        thread.start()
        thread.join(3 * LIMIT)
        assert thread.is_alive()
        relay.go_on()
        thread.join(10)
        assert errors


def test_the_kernel_watches_the_connection_too(path: tuple[Relay, str]) -> None:
    with closing(links.Link(path[1])) as link:
        parameters = link.run(lambda connection: connection.info.get_parameters())
    assert {name: int(parameters[name]) for name in links.TCP if name != "keepalives"}.items() <= links.TCP.items()


def test_calls_that_waited_for_a_lost_database_fail_together(path: tuple[Relay, str]) -> None:
    """Each would otherwise wait for a deadline of its own, one after the other."""
    relay, address = path
    with closing(open_store(address)) as store:
        relay.swallow()
        begin = time.monotonic()

        def call() -> None:
            with pytest.raises(UnavailableError):
                store.campaigns()

        threads = [threading.Thread(target=call) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert time.monotonic() - begin < 4 * LIMIT


def test_a_service_refuses_is_not_ready_and_stops(path: tuple[Relay, str]) -> None:
    relay, address = path
    with serving(address, lease=2.0) as live:
        live.open()
        assert live.call("GET", "/readyz")[0] == 200
        relay.swallow()
        begin = time.monotonic()
        status, answer = live.call("POST", "/v1/campaigns/chat/decisions", {})
        assert (status, answer["type"]) == (503, "urn:driftsack:unavailable")
        assert time.monotonic() - begin < 3 * LIMIT
        assert live.call("GET", "/v1/campaigns")[0] == 503
        while time.monotonic() - begin < 2.0:
            time.sleep(0.05)
        assert live.call("GET", "/readyz")[0] == 503
        assert live.call("GET", "/healthz")[0] == 200
        begin = time.monotonic()
    assert time.monotonic() - begin < 15
    relay.go_on()
    with psycopg.connect(address) as connection:
        assert connection.execute("SELECT seq FROM campaign").fetchone() == (1,)
    with serving(address, lease=2.0) as live:
        deadline = time.monotonic() + 20
        while live.app.service.keeper.owned.get("chat") is None and time.monotonic() < deadline:
            time.sleep(0.1)
        assert live.app.service.keeper.owned["chat"].campaign.book.number == 0
