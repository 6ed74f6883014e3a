"""Campaigns are deleted with their journals, once they are closed or damaged."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from driftsack.service.store.interface import Store, UnavailableError
from driftsack.service.store.queries import QueryStore
from tests.service.web.test_tokens import worker
from tests.support.live_service import Live, serving

CHAT = "/v1/campaigns/chat"


def closed(live: Live) -> None:
    """Open a campaign, let it decide, and close it."""
    live.open(budget={"usd": "100"})
    number = live.ask()["decision"]
    live.call("POST", f"{CHAT}/decisions/{number}/tell", {"reward": 1, "costs": {"usd": "0.02"}})
    assert live.call("DELETE", CHAT)[1]["type"] == "urn:driftsack:not-closed"
    assert live.call("PATCH", CHAT, {"state": "closed"})[0] == 200


def rows(store: Store) -> int:
    """The number of rows of the campaign in all tables but the audit."""
    tables = ("segment", "snapshot", "milestone", "base", "budget", "raw_context")
    assert isinstance(store, QueryStore)
    counts: list[int] = [store._rows(f"SELECT count(*) FROM {table} WHERE campaign = 'chat'")[0][0] for table in tables]
    return sum(counts) + len([name for name in store.names() if name == "chat"])


def test_a_closed_campaign_is_deleted_and_its_name_is_free(store_address: str) -> None:
    with serving(store_address) as live:
        closed(live)
        decider = worker(live)
        assert live.call("GET", "/metrics")[0] == 200
        assert rows(live.app.service.keeper.store) > 3
        assert live.call("DELETE", CHAT, key=decider)[0] == 403
        assert live.call("DELETE", CHAT) == (200, {"ok": True})
        assert rows(live.app.service.keeper.store) == 0
        for method, path in (("GET", CHAT), ("DELETE", CHAT), ("GET", f"{CHAT}/apprentice"), ("GET", f"{CHAT}/export")):
            assert live.call(method, path)[1]["type"] == "urn:driftsack:unknown-campaign", path
        assert live.call("GET", "/v1/audit")[1]["entries"][0]["action"] == f"DELETE {CHAT}"
        live.open(budget={"usd": "7"})
        assert live.call("GET", CHAT)[1]["decisions"] == 0
        assert live.call("GET", f"{CHAT}/apprentice")[1]["observations"] == 0
        track = live.app.service.watcher.tracks["chat"]
        assert (track.number, track.told) == (0, 0)
    with serving(store_address) as live:
        assert set(live.app.service.keeper.owned) == {"chat"}


def test_a_damaged_campaign_is_deleted(tmp_path: Path) -> None:
    path = str(tmp_path / "s.db")
    with serving(path) as live:
        closed(live)
        key = live.key
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("DELETE FROM segment WHERE campaign = 'chat' AND first = 2")
    with serving(path) as again:
        live = again._replace(key=key)
        assert live.call("GET", "/readyz")[1]["damaged"] == ["chat"]
        assert live.call("DELETE", CHAT)[0] == 200
        assert live.call("GET", "/readyz")[1]["damaged"] == []
        live.open()


@pytest.mark.parametrize("planted", [False, True])
def test_an_interrupted_deletion_is_named_and_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: bool
) -> None:
    """The planted fault: what is left is not noted, and nobody can delete it."""

    def interrupted(*_: object) -> None:
        raise UnavailableError("the disk is full")

    with serving(str(tmp_path / "s.db")) as live:
        closed(live)
        monkeypatch.setattr(QueryStore, "_delete_some", interrupted)
        assert live.call("DELETE", CHAT)[0] == 503
        monkeypatch.undo()
        if planted:
            live.app.service.keeper.damaged.clear()
            assert live.call("DELETE", CHAT)[0] == 404
        else:
            assert live.call("GET", "/readyz")[1]["damaged"] == ["chat"]
            assert live.call("DELETE", CHAT)[0] == 200
            assert rows(live.app.service.keeper.store) == 0
