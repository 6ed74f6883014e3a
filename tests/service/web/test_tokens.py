"""A decision is settled only with the token in its answer, by whatever key; operators may omit it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from driftsack.client import Client, ServiceError
from driftsack.service.domain import plans
from driftsack.service.store import open_store
from driftsack.service.web.api.keyring import new_key
from tests.support.live_service import Live, serving

CHAT = "/v1/campaigns/chat"
TOLD = {"reward": 1, "costs": {"usd": "0.02"}}


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with serving(str(tmp_path / "s.db")) as found:
        found.open(fallback="small", horizon=10_000, budget={"usd": "1000"})
        yield found


def worker(live: Live) -> str:
    """A key with the scope ``decide``."""
    key, row = new_key(("decide",))
    live.app.service.keeper.store.add_key(row)
    live.app.service.keyring.load()
    return key


def settle_as(live: Live, key: str, decision: int, how: str, body: dict[str, Any]) -> tuple[int, str]:
    status, answer = live.call("POST", f"{CHAT}/decisions/{decision}/{how}", body, key)
    return status, answer.get("type", "").rpartition(":")[2]


WAYS = [("tell", TOLD), ("cancel", {}), ("extend", {"lease": 60}), ("forfeit", {})]


@pytest.mark.parametrize(("how", "body"), WAYS)
def test_no_key_settles_the_decision_of_another_worker(live: Live, how: str, body: dict[str, Any]) -> None:
    one, other = worker(live), worker(live)
    _, mine = live.call("POST", f"{CHAT}/decisions", {}, one)
    _, theirs = live.call("POST", f"{CHAT}/decisions", {}, other)
    number = mine["decision"]
    assert settle_as(live, other, number, how, body) == (422, "invalid")
    assert settle_as(live, other, number, how, {**body, "token": theirs["token"]}) == (409, "wrong-token")
    assert live.call("GET", f"{CHAT}/decisions/{number}")[1]["state"] == "pending"
    assert settle_as(live, one, number, how, {**body, "token": mine["token"]})[0] == 200
    assert settle_as(live, live.key, theirs["decision"], how, body)[0] == 200  # an operator


def test_a_settled_decision_says_nothing_without_its_token(live: Live) -> None:
    """Neither in memory nor after it has left memory; the token in the journal is compared then."""
    key = worker(live)
    _, mine = live.call("POST", f"{CHAT}/decisions", {}, key)
    told, number = {**TOLD, "token": mine["token"]}, mine["decision"]
    assert settle_as(live, key, number, "tell", told)[0] == 200
    wrong = {**TOLD, "token": "0" * 24}
    assert settle_as(live, key, number, "tell", wrong) == (409, "wrong-token")
    live.app.service.keeper.owned["chat"].campaign.book.settled.clear()
    assert settle_as(live, key, number, "tell", wrong) == (409, "wrong-token")
    assert settle_as(live, key, number, "tell", told)[0] == 200


def test_exchanges_need_tokens_too(live: Live) -> None:
    key = worker(live)
    _, found = live.call("POST", f"{CHAT}/exchange", {"ask": 2}, key)
    first, second = found["decisions"]
    path, outcome = f"{CHAT}/exchange", {**TOLD, "decision": first["decision"]}
    status, problem = live.call("POST", path, {"tells": [outcome]}, key)
    assert (status, "tells[0].token" in problem["detail"]) == (422, True)
    _, answer = live.call("POST", path, {"tells": [{**outcome, "token": second["token"]}]}, key)
    assert answer["told"][0]["problem"]["type"] == "urn:driftsack:wrong-token"
    _, answer = live.call("POST", path, {"tells": [{**outcome, "token": first["token"]}]}, key)
    assert answer["told"][0]["settled"]["state"] == "told"


def test_an_idempotency_key_of_another_worker_reveals_no_token(live: Live) -> None:
    """Idempotency keys may be guessed, such as the number of a job."""
    one, other = worker(live), worker(live)
    path = f"{CHAT}/decisions"
    status, mine = live.call("POST", path, {}, one, idempotency_key="job-1")
    assert live.call("POST", path, {}, one, idempotency_key="job-1") == (status, mine)
    status, problem = live.call("POST", path, {}, other, idempotency_key="job-1")
    assert (status, problem["type"]) == (422, "urn:driftsack:key-reused")


@pytest.mark.parametrize("planted", [False, True])
def test_an_outcome_from_before_a_restore_settles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: bool
) -> None:
    """After a restore numbers are given again. The planted fault is to compare no tokens."""
    store, copy = tmp_path / "s.db", tmp_path / "copy.db"
    with serving(str(store)) as live:
        live.open(fallback="small", horizon=10)
        key = worker(live)
        with closing(open_store(str(store), read_only=True)) as opened:
            opened.backup(copy)
        before = Client(live.url, key, "chat", patience=1.0)
        old = before.ask()
        before.disconnect()
    with serving(str(copy), port=int(live.url.rpartition(":")[2])) as again:
        if planted:
            monkeypatch.setattr(plans, "check_token", lambda *_: None)
        with Client(again.url, key, "chat") as client:
            new = client.ask()
            assert new.number == old.number
            if planted:
                before.tell(old, 0.0, {"usd": "0.1"})
                before.disconnect()
                return
            with pytest.raises(ServiceError, match="wrong-token"):
                before.tell(old, 0.0, {"usd": "0.1"})
            before.disconnect()
            client.tell(new, 1.0, {"usd": "0.02"})
        budget = Live(again.app, again.url, live.key).call("GET", f"{CHAT}/budgets")[1]["budgets"][0]
        assert (budget["spent"], budget["reserved"]) == ("0.02", "0")
