"""The pages over HTTP: content, permissions, sessions, forms and static files."""

from __future__ import annotations

import hashlib
import json
import re
import socket
import time
import urllib.parse
from collections.abc import Iterator

import pytest

from driftsack.service.web.api.keyring import new_key
from driftsack.service.web.pages import sessions
from driftsack.service.web.pages.responses import PARTS, POLICY, environment, files
from tests.support.dashboard_client import Visitor
from tests.support.live_service import Live, serving

CHAT = "/campaigns/chat"
PAGES = (
    "/",
    CHAT,
    "/keys",
    "/audit",
    f"{CHAT}/act/pause",
    f"{CHAT}/act/grant",
    "/keys/create",
    "/keys/share",
    "/login",
)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with serving(str(tmp_path_factory.mktemp("pages") / "s.db"), {"pulse": 0.05}) as found:
        found.open("chat", budget={"usd": "100"}, horizon=1000)
        found.open("other")
        _, asked = found.call("POST", "/v1/campaigns/chat/exchange", {"ask": 60})
        tells = [{"decision": d["decision"], "reward": 1, "costs": {"usd": "0.05"}} for d in asked["decisions"]]
        found.call("POST", "/v1/campaigns/chat/exchange", {"tells": tells[:50]})
        yield found


@pytest.fixture
def admin(live: Live) -> Visitor:
    return Visitor(live.url, live.key)


def key_for(live: Live, *scopes: str, campaigns: list[str] | None = None) -> str:
    _, made = live.call("POST", "/v1/keys", {"scopes": list(scopes), "campaigns": campaigns})
    return str(made["key"])


def test_nobody_sees_anything_without_a_key(live: Live) -> None:
    nobody = Visitor(live.url)
    for path in ("/", CHAT, "/keys", "/audit", f"{CHAT}/figures", f"{CHAT}/decisions/1", f"{CHAT}/act/pause"):
        seen = nobody.get(path)
        assert (seen.status, seen.text) == (303, ""), path
        assert seen.headers["location"].startswith("/login")
    assert nobody.get("/stream").status == 303
    assert nobody.post("/login", key="ds_nonsense").status == 401
    decide = nobody.post("/login", key=key_for(live, "decide"))
    assert decide.status == 403
    assert "scope" in decide.text


def test_pages_are_whole_and_safe(admin: Visitor) -> None:
    for path in PAGES:
        seen = admin.get(path)
        assert seen.status in (200, 303), path
        assert seen.headers["content-security-policy"] == POLICY.decode()
        assert "unsafe" not in seen.headers["content-security-policy"]
        assert seen.headers["cache-control"] == "no-store"
        assert not re.search(r"\sstyle=|\son\w+=|javascript:|<script(?![^>]*\ssrc=)|<style", seen.text), path
        assert not re.search(r"(?:src|href)=\"(?:https?:)?//", seen.text), path


def test_what_a_page_shows(admin: Visitor) -> None:
    page = admin.get(CHAT).text
    assert '<dd id="n-decisions">60</dd>' in page
    assert "<strong>96.5</strong> left of 100" in page  # 50 x 0.05 spent, 10 x 0.1 reserved
    assert "2.5 spent · 1 reserved" in page
    part = admin.get(CHAT, hx_request="true").text
    assert "<html" not in part
    assert 'id="n-decisions">60<' in part
    figures = json.loads(admin.get(f"{CHAT}/figures").text)
    assert figures["axis"] == {"time": False, "start": 0.0, "now": 60.0, "end": 1000.0}
    assert figures["budgets"][0]["left"][-1] is None  # a forecast follows
    why = admin.get(f"{CHAT}/decisions/7").text
    assert "recomputed: identical" in why
    assert "told: reward 1, costs 0.05 usd." in why
    assert "small" in why
    assert "large" in why
    assert admin.get(f"{CHAT}/decisions/100000").status == 404
    assert admin.get("/campaigns/nobody").status == 404
    assert admin.get("/campaigns/chat/nonsense").status == 404


def test_a_session_ends(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    key = key_for(live, "read")
    reader = Visitor(live.url, key)
    assert "HttpOnly" in reader.post("/login", key=key).headers["set-cookie"]
    assert key not in reader.cookie
    kept = reader.cookie
    token = re.findall(r'name="token" value="(\w+)"', reader.get("/").text)[0]
    assert reader.post("/logout", token=token).status == 303
    reader.cookie = kept
    assert reader.get("/").status == 303  # the old cookie is of no use
    for wrong in (kept[:-1] + ("0" if kept[-1] != "0" else "1"), "driftsack_session=a.b.c.d", "driftsack_session=\xff"):
        reader.cookie = wrong
        assert reader.get("/").status == 303
    again = Visitor(live.url, key)
    assert live.call("DELETE", f"/v1/keys/{key.split('_')[1]}")[0] == 200
    assert again.get("/").status == 303  # the key was removed
    monkeypatch.setattr(sessions, "HOURS", -1)
    assert Visitor(live.url, live.key).get("/").status == 303


def test_only_forms_of_this_session_are_accepted(live: Live, admin: Visitor) -> None:
    assert admin.post(f"{CHAT}/act/pause").status == 403
    other = Visitor(live.url, live.key)
    token = re.findall(r'name="token" value="(\w+)"', other.get("/").text)[0]
    assert admin.post(f"{CHAT}/act/pause", token=token).status == 403
    own = re.findall(r'name="token" value="(\w+)"', admin.get("/").text)[0]
    foreign = admin.send("POST", f"{CHAT}/act/pause", f"token={own}", origin="https://evil.example")
    assert foreign.status == 403
    assert admin.send("POST", f"{CHAT}/act/pause", f"token={own}", origin="null").status == 403
    assert live.call("GET", "/v1/campaigns/chat")[1]["state"] == "active"
    assert admin.send("POST", f"{CHAT}/act/pause", "x" * 20_000).status == 413


def test_acts_change_what_they_say_and_are_noted(live: Live, admin: Visitor) -> None:
    assert "cannot be taken back" in admin.get(f"{CHAT}/act/grant").text
    assert admin.submit(f"{CHAT}/act/grant", resource="usd", amount="2.5").status == 303
    assert live.call("GET", "/v1/campaigns/chat/budgets")[1]["budgets"][0]["granted"] == "102.5"
    wrong = admin.submit(f"{CHAT}/act/grant", resource="usd", amount="a lot")
    assert wrong.status == 422
    assert 'role="alert"' in wrong.text
    assert admin.submit(f"{CHAT}/act/pause").status == 303
    assert 'class="state state-paused"' in admin.get(CHAT).text
    assert admin.submit(f"{CHAT}/act/resume").status == 303
    assert admin.submit(f"{CHAT}/act/add-arm", name="xl", **{"most.usd": "0.1"}).status == 303
    assert admin.submit(f"{CHAT}/act/retire-arm?arm=xl").status == 303
    assert [arm["offered"] for arm in live.call("GET", "/v1/campaigns/chat/arms")[1]["arms"]] == [True, True, False]
    assert "retired" in admin.get(CHAT).text
    assert admin.submit(f"{CHAT}/act/offer-arm?arm=xl").status == 303
    assert admin.get(f"{CHAT}/act/nonsense").status == 404
    audit = admin.get("/audit").text
    assert audit.count("(dashboard)") == 6
    assert "PATCH /v1/campaigns/chat/arms/xl (dashboard)" in audit


def test_a_form_that_is_sent_twice_acts_once(live: Live, admin: Visitor) -> None:
    token = re.findall(r'name="token" value="(\w+)"', admin.get("/").text)[0]
    before = live.call("GET", "/v1/campaigns/other/budgets")[1]["budgets"][0]["granted"]
    for _ in range(2):
        admin.post("/campaigns/other/act/grant", token=token, once="twice", resource="usd", amount="1")
    after = live.call("GET", "/v1/campaigns/other/budgets")[1]["budgets"][0]["granted"]
    assert float(after) == float(before) + 1


@pytest.mark.parametrize("scopes", [("read",), ("operate",)])
def test_scopes_limit_what_is_shown_and_done(live: Live, scopes: tuple[str, ...]) -> None:
    visitor = Visitor(live.url, key_for(live, *scopes, campaigns=["chat"]))
    assert "other" not in re.findall(r'id="card-(\w+)"', visitor.get("/").text)
    assert visitor.get("/campaigns/other").status == 403
    assert visitor.get("/stream?campaign=other").status == 403
    assert [visitor.get(path).status for path in ("/keys", "/audit", "/keys/create")] == [403] * 3
    operates = "operate" in scopes
    assert ("act/pause" in visitor.get(CHAT).text) is operates
    assert visitor.get(f"{CHAT}/act/pause").status == (200 if operates else 403)
    token = re.findall(r'name="token" value="(\w+)"', visitor.get("/").text)[0]
    assert visitor.post(f"{CHAT}/act/resume", token=token).status == (303 if operates else 403)
    assert visitor.post("/keys/create", token=token, scopes="admin").status == 403


def test_keys_are_made_rotated_shared_and_removed(live: Live, admin: Visitor) -> None:
    made = admin.submit("/keys/create", scopes="read,operate", campaigns="chat", days="3", note="<b>me</b>")
    key = re.findall(r'value="(ds_\w+)"', made.text)[0]
    assert live.call("GET", "/v1/campaigns/chat", key=key)[0] == 200
    prefix = key.split("_")[1]
    listed = admin.get("/keys").text
    assert "&lt;b&gt;me&lt;/b&gt;" in listed
    assert "<b>me" not in listed
    rotated = re.findall(r'value="(ds_\w+)"', admin.submit(f"/keys/rotate?key={prefix}").text)[0]
    assert [live.call("GET", "/v1/campaigns/chat", key=k)[0] for k in (key, rotated)] == [200, 200]
    assert admin.submit(f"/keys/remove?key={prefix}").status == 303
    assert live.call("GET", "/v1/campaigns/chat", key=key)[0] == 401
    link = re.findall(r'value="http://[^"]*/open#(ds_\w+)"', admin.submit("/keys/share", campaigns="chat").text)[0]
    guest = Visitor(live.url, link)
    assert guest.get(CHAT).status == 200
    assert guest.get(f"{CHAT}/act/pause").status == 403
    assert admin.submit("/keys/create", scopes="read", days="soon").status == 422
    assert admin.submit("/keys/create", scopes="everything").status == 422


def test_a_stream_shows_only_the_campaigns_of_the_key(live: Live, admin: Visitor) -> None:
    """The first number counts the campaigns, the second their events."""
    limited = Visitor(live.url, key_for(live, "read", campaigns=["chat"]))
    host, _, port = urllib.parse.urlsplit(live.url).netloc.partition(":")
    seen = []
    for visitor in (limited, admin):
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            connection.sendall(f"GET /stream HTTP/1.1\r\nHost: x\r\nCookie: {visitor.cookie}\r\n\r\n".encode())
            text = ""
            while not (found := re.search(r"data: ([0-9 ]+)\n\n", text)):
                text += connection.recv(4096).decode()
            seen.append(int(found[1].split()[0]))
    assert seen == [1, len(live.call("GET", "/v1/campaigns")[1]["campaigns"])]
    assert seen[1] > 1


def test_strange_requests_are_refused_and_do_not_fail(live: Live, admin: Visitor) -> None:
    assert admin.get("/?" + "&".join(f"a{k}=1" for k in range(21))).status == 422
    token = re.findall(r'name="token" value="(\w+)"', admin.get("/").text)[0]
    boxes = "&".join(["scopes=read", f"token={token}", *(f"campaigns=c{k}" for k in range(101))])
    assert admin.send("POST", "/keys/create", boxes).status == 422
    stranger = Visitor(live.url)
    stranger.cookie = 'driftsack_session="a.1.b.\xe9"'
    assert stranger.get("/audit").status == 303


def test_a_stream_tells_when_something_happens(live: Live, admin: Visitor) -> None:
    host, _, port = urllib.parse.urlsplit(live.url).netloc.partition(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(f"GET /stream?campaign=chat HTTP/1.1\r\nHost: x\r\nCookie: {admin.cookie}\r\n\r\n".encode())
        text = ""
        while "data: " not in text:
            text += connection.recv(4096).decode()
        assert "text/event-stream" in text
        live.ask()
        before = text.count("data: ")
        deadline = time.monotonic() + 5
        while text.count("data: ") == before and time.monotonic() < deadline:
            text += connection.recv(4096).decode()
        assert text.count("data: ") == before + 1


def test_files_are_those_of_the_packages() -> None:
    directory = PARTS / "static" / "vendor"
    listed = json.loads((directory / "vendor.json").read_text())
    present = {item.name for item in directory.iterdir()} - {"vendor.json"}
    assert present == set(listed)
    for name, entry in listed.items():
        body = (directory / name).read_bytes()
        assert hashlib.sha256(body).hexdigest() == entry["sha256"], name
        assert hashlib.sha256(body + b" ").hexdigest() != entry["sha256"]
    assert "MIT License" in (directory / "uPlot.LICENSE.txt").read_text()
    assert "Zero-Clause BSD" in (directory / "htmx.LICENSE.txt").read_text()


def test_files_are_served_with_their_types(live: Live, admin: Visitor) -> None:
    page = admin.get(CHAT).text
    found = re.findall(r'(?:src|href)="(/static/[^"]+)"', page)
    assert len(found) >= 8
    for path in found:
        seen = Visitor(live.url).get(path)
        assert seen.status == 200
        assert "immutable" in seen.headers["cache-control"]
    assert admin.get("/static/../pages.py").status == 404
    assert admin.get("/static/%2e%2e/pages.py").status == 404
    assert admin.send("HEAD", "/static/app.css").text == ""
    assert admin.send("DELETE", "/").status == 405
    assert "vendor/htmx.min.js" in files()


def test_everything_that_a_template_shows_is_escaped() -> None:
    evil = '<img src=x onerror="alert(1)">'
    card = {
        "name": evil, "state": "active", "done": True, "bars": [], "decisions": "1", "observed": "0", "reward": evil,
        "alarms": 0,
        "arms": [{"name": evil, "offered": True, "line": "", "share": "1%"}], "more_arms": 0, "overruns": 0, "lost": 0,
        "refused": 0,
        "damaged": "",
    }  # fmt: skip
    cards, pages = [card, {"name": evil, "damaged": evil}], {"now": 1, "last": 2, "campaigns": 50}
    shown = environment().get_template("_campaigns.html").render(cards=cards, pages=pages)
    assert "<img" not in shown
    assert shown.count("&lt;img") >= 3


def test_a_session_needs_the_secret_of_the_process(live: Live) -> None:
    _, row = new_key(("admin",))
    forged = Visitor(live.url)
    forged.cookie = f"driftsack_session={row.prefix}.9999999999.00.{'0' * 64}"
    assert forged.get("/").status == 303


def test_a_campaign_that_is_deleted_while_the_list_is_made_is_left_out(
    live: Live, admin: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = live.app.service.watcher
    usual = watcher.names

    async def names() -> list[str]:
        return [*await usual(), "gone"]

    monkeypatch.setattr(watcher, "names", names)
    for headers in ({}, {"hx_request": "true"}):
        seen = admin.get("/", **headers)
        assert seen.status == 200
        assert CHAT in seen.text
        assert "gone" not in seen.text
    assert admin.get("/campaigns/gone").status == 404
