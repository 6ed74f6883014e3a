"""Small protections: permissions, order of the start, unknown parameters, problem documents, upgrades and cookies."""

from __future__ import annotations

import http.client
import socket
import stat
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from driftsack.core.errors import SettingError
from driftsack.service.web.api.examples import EXAMPLES
from driftsack.service.web.api.openapi import OPEN, document
from driftsack.service.web.api.requests import decode
from driftsack.service.web.api.routes import ROUTES
from driftsack.service.web.server import Settings, serve, write_secret
from tests.support.dashboard_client import Visitor
from tests.support.live_service import Live, serving

CHAT = "/v1/campaigns/chat"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    path = tmp_path_factory.mktemp("hard") / "s.db"
    with serving(str(path), url="https://driftsack.example") as found:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        found.open()
        yield found


def test_a_busy_port_or_an_unknown_directory_leaves_no_store_and_shows_no_key(tmp_path: Path) -> None:
    shown: list[str] = []
    store = tmp_path / "s.db"
    with socket.create_server(("127.0.0.1", 0)) as busy:
        settings = Settings(str(store), port=busy.getsockname()[1])
        with pytest.raises(OSError, match="in use"):
            serve(settings, shown.append, shown.append)
    assert not store.exists()
    with pytest.raises(SettingError, match="does not exist"):
        serve(Settings(str(tmp_path / "none" / "s.db"), port=0), shown.append, shown.append)
    assert not (tmp_path / "none").exists()
    assert shown == []


def test_the_file_of_the_first_key_is_private(tmp_path: Path) -> None:
    write_secret(tmp_path / "admin.key", "ds_1")
    assert (tmp_path / "admin.key").read_text() == "ds_1\n"
    assert stat.S_IMODE((tmp_path / "admin.key").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "path",
    [
        f"{CHAT}?x=1",
        f"{CHAT}/budgets?x=1",
        f"{CHAT}/budgets?x",
        "/v1/keys?limit=1",
        "/metrics?x=",
        "/healthz?x=1",
        "/readyz?x=1",
        "/openapi.json?x=1",
    ],
)
def test_unknown_query_parameters_are_refused(live: Live, path: str) -> None:
    status, problem = live.call("GET", path)
    assert (status, problem["type"]) == (422, "urn:driftsack:invalid")
    assert "no parameters" in problem["detail"]


def test_a_parameter_is_given_once(live: Live) -> None:
    assert live.call("GET", "/v1/audit?limit=2&limit=3")[0] == 422
    assert live.call("GET", "/v1/audit?limit=")[0] == 422
    assert live.call("POST", f"{CHAT}/decisions?x=1", {})[0] == 422


def test_pages_refuse_unknown_parameters(live: Live) -> None:
    visitor = Visitor(live.url, live.key)
    pages = ("/", "/?page=0", "/keys", "/audit", "/campaigns/chat", "/campaigns/chat?part=tables", "/keys/create")
    assert [visitor.get(path).status for path in pages] == [200] * len(pages)
    for path in (
        "/?x=1",
        "/?page=0&x=",
        "/keys?x",
        "/audit?page=1",
        "/campaigns/chat?x=1",
        "/stream?x=1",
        "/login?x=1",
    ):
        assert visitor.get(path).status == 422, path


def test_every_body_has_an_example_that_is_accepted() -> None:
    for route in ROUTES:
        if route.body is not None:
            given = msgspec.json.encode(EXAMPLES[route.body])
            assert msgspec.json.decode(msgspec.json.encode(decode(route, given))) is not None
    assert {route.body for route in ROUTES if route.body} == EXAMPLES.keys()
    queries = [
        each
        for methods in document()["paths"].values()
        for operation in methods.values()
        for each in operation.get("parameters", ())
        if each["in"] == "query"
    ]
    assert {each["schema"]["type"] for each in queries if each["name"] == "limit"} == {"integer"}


def test_problems_name_the_request_and_the_field(live: Live) -> None:
    body = {"name": "two", "config": {"arms": ["a", 3], "budget": {"usd": "1"}, "cost_max": {"usd": "1"}}}
    status, problem = live.call("POST", "/v1/campaigns", body)
    assert (status, problem["instance"], problem["pointer"]) == (422, "/v1/campaigns", "/config/arms/1")
    _, problem = live.call("POST", f"{CHAT}/decisions", {"lease": "x"})
    assert (problem["instance"], problem["pointer"]) == (f"{CHAT}/decisions", "/lease")
    assert live.call("GET", "/v1/campaigns/nobody")[1]["pointer"] is None


def test_an_upgrade_is_answered_as_an_ordinary_request(live: Live) -> None:
    url = urllib.parse.urlsplit(live.url)
    connection = http.client.HTTPConnection(url.hostname or "", url.port)
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    connection.request("GET", "/healthz", headers={**upgrade, "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="})
    assert connection.getresponse().status == 200
    connection.close()


def test_cookies_are_secure_behind_tls(live: Live) -> None:
    url = urllib.parse.urlsplit(live.url)
    connection = http.client.HTTPConnection(url.hostname or "", url.port)
    connection.request("POST", "/login", f"key={live.key}", {"content-type": "application/x-www-form-urlencoded"})
    assert "; Secure" in (connection.getresponse().headers["set-cookie"] or "")
    connection.close()


def test_the_description_has_servers_tags_and_failures() -> None:
    found = document()
    assert found["servers"] == [{"url": "/"}]
    names = {tag["name"] for tag in found["tags"]}
    for path, methods in found["paths"].items():
        for operation in methods.values():
            assert path in OPEN or (set(operation["tags"]) <= names and "500" in operation["responses"])
