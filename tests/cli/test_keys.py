"""``driftsack keys``: keys are created, listed and revoked in the store, while the service runs too."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from driftsack.cli import app
from driftsack.core.errors import DriftsackError
from driftsack.service.domain.config import Limit
from driftsack.service.store import open_store
from driftsack.service.web.api import app as http_app
from driftsack.service.web.api.keyring import is_last_admin, new_key
from tests.support.live_service import Live, serving
from tests.support.local_postgres import LocalPostgres
from tests.support.paths import DATA


@pytest.fixture
def address(tmp_path: Path) -> str:
    return str(tmp_path / "s.db")


@pytest.fixture
def live(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    monkeypatch.setattr(http_app, "KEYS_AGAIN", 0.05)
    with serving(address, {"failures": 1e9}) as found:
        found.open("chat")
        yield found


def keys(address: str, *arguments: str) -> Any:
    return CliRunner().invoke(app, ["keys", *arguments, "--store", address])


def status_becomes(live: Live, key: str, wanted: int) -> bool:
    """Whether a key is soon answered with a status."""
    return any(live.call("GET", "/v1/campaigns/chat", key=key)[0] == wanted for _ in range(200))


def created(address: str, *arguments: str) -> str:
    made = keys(address, "create", *arguments)
    assert made.exit_code == 0, made.output
    return str(made.stdout.strip())


def test_a_lost_key_is_replaced_while_the_service_runs(live: Live, address: str) -> None:
    key = created(address, "--scope", "admin", "--note", "the first one was lost")
    assert status_becomes(live, key, 200)
    prefix = live.key.split("_")[1]
    listed = json.loads(keys(address, "list", "--json").stdout)["keys"]
    assert {row["prefix"] for row in listed} == {prefix, key.split("_")[1]}
    assert key not in keys(address, "list").stdout
    assert prefix in keys(address, "list").stdout
    assert keys(address, "revoke", prefix).exit_code == 0
    assert status_becomes(live, live.key, 401)
    entries = live.call("GET", "/v1/audit", key=key)[1]["entries"]
    assert [entry["action"].split()[1] for entry in entries if entry["who"] == "shell"] == ["revoke", "create"]
    assert live.call("POST", "/v1/campaigns/chat/decisions", {}, key=key)[0] == 200  # the journal goes on


def test_keys_are_limited_as_they_are_created(live: Live, address: str) -> None:
    live.open("other")
    key = created(address, "--scope", "read", "--scope", "decide", "--campaign", "chat", "--days", "3")
    assert status_becomes(live, key, 200)
    assert live.call("GET", "/v1/campaigns/other", key=key)[0] == 403
    rows = json.loads(keys(address, "list", "--json").stdout)["keys"]
    row = next(row for row in rows if row["scopes"] == "decide read")
    assert (row["campaigns"], row["expires"] is None) == ("chat", False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["create", "--scope", "everything"], "decide, read, operate and admin"),
        (["create", "--scope", "read", "--campaign", "a b"], "a key needs"),
        (["revoke", "nothing"], "there is no key 'nothing'"),
    ],
)
def test_wrong_keys_are_refused_in_one_line(live: Live, address: str, arguments: list[str], words: str) -> None:
    before = live.call("GET", "/v1/keys")
    found = keys(address, *arguments)
    assert found.exit_code == 1
    assert words in " ".join(found.stderr.split())
    assert live.call("GET", "/v1/keys") == before


def test_a_store_that_does_not_exist_or_is_old_is_refused(tmp_path: Path) -> None:
    assert keys(str(tmp_path / "nothing.db"), "create", "--scope", "admin").exit_code == 1
    assert not (tmp_path / "nothing.db").exists()
    old = tmp_path / "old.db"
    shutil.copy(DATA / "service-schema-1.db", old)
    with closing(sqlite3.connect(old)) as file, file:
        file.execute("PRAGMA user_version = 0")
    with pytest.raises(DriftsackError, match="serve it once first"):
        open_store(str(old), shared=True)


def test_keys_of_a_postgresql_database(postgres: LocalPostgres) -> None:
    address = postgres.new_database()
    key = created(address, "--scope", "admin")
    assert json.loads(keys(address, "list", "--json").stdout)["keys"][0]["prefix"] == key.split("_")[1]
    assert keys(address, "revoke", key.split("_")[1]).exit_code == 0
    assert json.loads(keys(address, "list", "--json").stdout)["keys"] == []


def test_the_last_administrators_key_is_kept(live: Live) -> None:
    prefix = live.key.split("_")[1]
    live.call("POST", "/v1/keys", {"scopes": ["operate"]})
    live.call("POST", "/v1/keys", {"scopes": ["admin"], "campaigns": ["chat"]})  # it cannot create keys
    status, problem = live.call("DELETE", f"/v1/keys/{prefix}")
    assert (status, problem["type"]) == (409, "urn:driftsack:last-admin-key")
    assert "driftsack keys" in problem["detail"]
    second = live.call("POST", "/v1/keys", {"scopes": ["admin"]})[1]
    assert live.call("DELETE", f"/v1/keys/{prefix}")[0] == 200
    assert live.call("DELETE", f"/v1/keys/{second['prefix']}", key=second["key"])[0] == 409


def test_expired_keys_do_not_count() -> None:
    one, old, other = (new_key(("admin",), expires=at)[1] for at in (None, 1, None))
    assert is_last_admin([one, old], one.prefix)
    assert not is_last_admin([one, old], old.prefix)
    assert not is_last_admin([one, other], one.prefix)


@pytest.mark.parametrize("command", ["list", "create", "revoke"])
def test_help_has_an_example(command: str) -> None:
    assert f"Example: driftsack keys {command}" in CliRunner().invoke(app, ["keys", command, "--help"]).stdout


def test_a_key_with_labels_and_the_account_of_a_label(live: Live, address: str) -> None:
    live.open("limited", limits=[Limit("user", {"usd": "0.3"}, "day")])
    key = created(address, "--scope", "decide", "--scope", "read", "--label", "user=ann")
    assert status_becomes(live, key, 200)
    assert "user=ann" in [row["labels"] for row in json.loads(keys(address, "list", "--json").stdout)["keys"]]
    while live.call("POST", "/v1/campaigns/limited/decisions", {}, key)[1]["skipped"]:
        pass
    command = ["campaign", "limits", "limited", "user=ann", "--url", live.url, "--key", key]
    (account,) = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)["accounts"]
    assert (account["amount"], account["reserved"], account["left"]) == ("0.3", "0.1", "0.2")
    assert "0.2" in CliRunner().invoke(app, command).stdout
    refused = CliRunner().invoke(app, [*command[:3], "ann", *command[4:]])
    assert (refused.exit_code, "user=ann" in refused.output) == (1, True)
    for wrong in ("user", "=ann", "us er=ann"):
        assert keys(address, "create", "--scope", "decide", "--label", wrong).exit_code == 1
