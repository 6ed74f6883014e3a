"""The dashboard in a real browser: what people do on it, and what attackers try. Each check finds a planted fault."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from playwright.sync_api import Browser, Error, Page

from driftsack.service import explain
from driftsack.service.dashboard import acts, answers
from driftsack.service.dashboard.sessions import Sessions
from driftsack.service.dashboard.visit import Visit
from tests.in_thread import running
from tests.live_service import Live, serving
from tests.visitor import Visitor
from tools.browse import WIDER, hindrances
from tools.chromium import Driver, browsing
from tools.soak_page import LEAKS, MOST_GROWTH, fill, growth

CHAT = "/campaigns/chat"
EVIL = """<img src=x onerror="alert('evil')"><svg onload=alert(1)>'"-->{{7*7}}"""
WORSE = f"{EVIL}</td></script><script>alert(2)</script>"  # a campaign's name has no slash, so that it has a page


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with serving(str(tmp_path_factory.mktemp("browser") / "s.db")) as found:
        fill(found)
        found.app.pages._pulse = 0.05  # type: ignore[union-attr]
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


@pytest.fixture
def driver(live: Live, browser: Browser) -> Iterator[Driver]:
    """Windows in which nothing may go wrong."""
    found = Driver(browser, live.url, live.key)
    yield found
    assert found.faults == []


@pytest.fixture
def faulty(live: Live, browser: Browser) -> Driver:
    """Windows in which something will go wrong."""
    return Driver(browser, live.url, live.key)


def state(live: Live) -> str:
    return str(live.call("GET", f"/v1{CHAT}")[1]["state"])


def becomes(page: Page, script: str, value: Any, patience: float = 3.0) -> bool:
    """Whether a page comes to a state in time."""
    try:
        page.wait_for_function(f"value => {script} === value", arg=value, timeout=1000 * patience)
    except Error:
        return False
    return True


# What people do


def number_changes(driver: Driver, live: Live, patience: float) -> bool:
    """Whether the number of decisions on an open page grows when another program asks."""
    with driver.page(CHAT) as page:
        page.wait_for_selector("#live:not(.off)")
        page.wait_for_timeout(200)  # the first message says where the stream begins
        before = int(page.inner_text("#n-decisions"))
        live.ask()
        return becomes(page, "document.getElementById('n-decisions').textContent", str(before + 1), patience)


def test_a_number_changes_by_itself(driver: Driver, live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    assert number_changes(driver, live, 5.0)

    async def silent(_: str) -> str:
        return "nothing happens"

    monkeypatch.setattr(live.app.pages, "_latest", silent)
    assert not number_changes(driver, live, 1.5)


def log_in(driver: Driver, key: str) -> str:
    """What somebody sees who logs in with a key."""
    with driver.window() as page:
        page.goto(driver.url + CHAT)
        page.fill("#key", key)
        page.keyboard.press("Enter")
        page.wait_for_selector(".problem, #numbers")
        return page.inner_text("main")


def test_a_key_logs_in_and_a_wrong_one_does_not(driver: Driver, faulty: Driver, live: Live) -> None:
    assert "This key is not valid" in log_in(faulty, f"{live.key[:-1]}0x")
    assert "left of" in log_in(driver, live.key)
    assert all("401" in fault for fault in faulty.faults)


def act(page: Page, name: str, **given: str) -> None:
    """Do something by keyboard: open the confirmation, fill it in, confirm."""
    page.focus(f"#act-{name}")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open] form")
    for field, value in given.items():
        page.fill(f"dialog [name={field}]", value)
    page.focus("dialog button")
    with page.expect_navigation():
        page.keyboard.press("Enter")


def pauses(driver: Driver, live: Live) -> bool:
    """Whether somebody can pause and resume, and the page shows it."""
    with driver.page(CHAT) as page:
        page.focus("#act-pause")
        page.keyboard.press("Enter")
        page.wait_for_selector("dialog[open] form")
        assert "New requests are answered with" in page.inner_text("dialog")
        page.keyboard.press("Escape")  # and nothing happens
        assert state(live) == "active"
        act(page, "pause")
        if page.inner_text(".state") != "paused" or state(live) != "paused":
            return False
        act(page, "resume")
        return page.inner_text(".state") == "active" == state(live)


def test_pause_and_resume(driver: Driver, live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pauses(driver, live)
    idle = acts.ACTS["pause"]._replace(body=acts.ACTS["resume"].body)
    monkeypatch.setitem(acts.ACTS, "pause", idle)
    assert not pauses(driver, live)


def grants(driver: Driver, live: Live) -> bool:
    """Whether a grant raises the budget, once, on the page and in the books."""
    before = float(live.call("GET", f"/v1{CHAT}/budgets")[1]["budgets"][0]["granted"])
    with driver.page(CHAT) as page:
        act(page, "grant", amount="25")
        shown = re.search(r"left of ([\d.]+)", page.inner_text("#numbers"))
    after = float(live.call("GET", f"/v1{CHAT}/budgets")[1]["budgets"][0]["granted"])
    return shown is not None and float(shown[1]) == after == before + 25


def test_grant(driver: Driver, live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    assert grants(driver, live)
    usual = acts.ACTS["grant"]
    more = usual._replace(body=lambda form: usual.body({**form, "amount": "26"}))
    monkeypatch.setitem(acts.ACTS, "grant", more)
    assert not grants(driver, live)


def explains(driver: Driver, live: Live) -> bool:
    """Whether the page of a decision marks the arm that the API says was chosen, recomputed."""
    with driver.page(CHAT) as page:
        page.click("#tables .latest a >> nth=-1")
        page.wait_for_selector("#h-draw")
        number = int(page.url.rpartition("/")[2])
        drawn, said = page.inner_text("tr.drawn th"), page.inner_text("main")
    chosen = live.call("GET", f"/v1{CHAT}/decisions/{number}/why")[1]["arm"]
    return drawn.split()[0] == chosen and "recomputed, the same" in said


def test_why(driver: Driver, live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    assert explains(driver, live)
    usual = explain.why

    def other(*given: Any) -> Any:
        found = usual(*given)
        return msgspec.structs.replace(found, arm="large" if found.arm == "small" else "small")

    monkeypatch.setattr("driftsack.service.dashboard.pages.explain", SimpleNamespace(why=other))
    assert not explains(driver, live)


def test_a_read_only_link_shows_and_does_nothing_else(driver: Driver) -> None:
    with driver.page("/keys/share") as page, driver.window() as guest:
        page.check("input[value=chat]")
        page.click("button.primary")
        guest.goto(page.input_value("#made"))
        guest.wait_for_selector("#cards")
        assert "ds_" not in guest.url
        for window, can_act in ((page, 1), (guest, 0)):
            window.goto(driver.url + CHAT)
            assert window.locator("#act-pause").count() == can_act


def test_a_lost_connection_is_said(browser: Browser, tmp_path: Path) -> None:
    with ExitStack() as service:
        live = service.enter_context(serving(str(tmp_path / "s.db")))
        fill(live)
        driver = Driver(browser, live.url, live.key)
        with driver.page(CHAT) as page:
            page.wait_for_selector(".u-over")
            page.wait_for_selector("#live:not(.off)")
            assert page.inner_text("#live") == "Live"
            service.close()
            page.wait_for_selector("#live.off")
            assert page.inner_text("#live") == "Connection lost; trying again"
            assert page.locator(".u-over").count() == 4
        assert driver.faults == []


def test_pages_fit_a_telephone_and_hinder_nobody(driver: Driver) -> None:
    with driver.page(size=(390, 844), theme="dark") as page:
        for path in ("/", CHAT, f"{CHAT}/decisions/1", f"{CHAT}/act/grant", "/keys"):
            page.goto(driver.url + path)
            assert page.evaluate(WIDER) <= 1, path
            assert hindrances(page) == [], path
        page.evaluate("document.querySelector('main').append(Object.assign(new Image(600), {src: '/static/icon.svg'}))")
        assert page.evaluate(WIDER) > 1
        assert "image-alt" in str(hindrances(page))


# What attackers try


@pytest.fixture
def evil(live: Live, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A campaign whose name, arms and resources are attacks, past the API, which refuses them; its page."""
    for body in ({"name": EVIL, "config": {}}, {"name": "x", "config": {"arms": [WORSE]}}):
        assert live.call("POST", "/v1/campaigns", body)[0] == 422
    assert Visitor(live.url, live.key).get(CHAT).status == 200  # from here on the campaign is followed
    watcher = live.app.service.watcher
    usual_rows, track = watcher.rows, watcher._tracks["chat"]
    kept = track.name, track.arms, track.resources
    track.name, track.arms, track.resources = EVIL, [WORSE, EVIL], [WORSE]

    async def rows() -> list[Any]:
        return [row._replace(name=EVIL) if row.name == "chat" else row for row in await usual_rows()]

    monkeypatch.setattr(watcher, "rows", rows)
    monkeypatch.setitem(watcher._tracks, EVIL, track)
    yield "/campaigns/" + "".join(f"%{byte:02X}" for byte in EVIL.encode())
    track.name, track.arms, track.resources = kept


def injected(driver: Driver, here: str, shown: bool = True) -> int:
    """The number of elements that names brought into the pages, which show the names themselves if they should."""
    count, quoted = 0, here.rpartition("/")[2]
    acts_and_problems = (f"{here}/act/grant", f"{CHAT}/act/retire-arm?arm={quoted}", f"/campaigns/{quoted}x")
    with driver.page() as page:
        for path in (here, "/", *acts_and_problems, "/keys/share", "/keys") if shown else (here,):
            page.goto(driver.url + path)
            if path == here and shown:
                page.wait_for_selector(".u-legend")
                assert WORSE in page.inner_text("#charts")
            page.wait_for_timeout(50)
            assert not shown or EVIL[:20] in page.inner_text("main"), path
            count += page.locator("img[src=x], svg[onload], main script").count()
    return count


def test_names_that_are_attacks_are_only_shown(driver: Driver, evil: str, live: Live) -> None:
    assert live.call("POST", "/v1/keys", {"scopes": ["read"], "note": EVIL})[0] == 201
    assert injected(driver, evil) == 0
    assert all("404" in fault for fault in driver.faults), driver.faults  # the campaign that is not there
    driver.faults.clear()


def test_a_page_that_does_not_escape_is_noticed(faulty: Driver, evil: str, monkeypatch: pytest.MonkeyPatch) -> None:
    templates: Any = answers.environment()
    monkeypatch.setattr(templates, "autoescape", False)
    monkeypatch.setattr(templates, "cache", {})
    assert injected(faulty, evil, shown=False) > 0
    assert any("Content Security Policy" in fault for fault in faulty.faults)  # which kept it from running
    assert not any(fault.startswith("dialog") for fault in faulty.faults)
    monkeypatch.setattr(answers, "SAFE", [])
    injected(faulty, evil, shown=False)
    assert any(fault.startswith("dialog") for fault in faulty.faults)  # without a policy, the attack succeeds


def other_site(target: str) -> Callable[..., Awaitable[None]]:
    """A site whose page sends a form to the dashboard as soon as it is opened."""
    text = f"<form method=post action='{target}'></form><script>document.forms[0].submit()</script>"

    async def site(scope: dict[str, Any], receive: Any, send: Any) -> None:  # noqa: ARG001
        if scope["type"] == "http":
            head = [(b"content-type", b"text/html")]
            await send({"type": "http.response.start", "status": 200, "headers": head})
            await send({"type": "http.response.body", "body": text.encode()})

    return site


def forged(driver: Driver, live: Live, name: str) -> str:
    """The state of the campaign after somebody who is logged in opened a page of another site."""
    with running(other_site(f"{live.url}{CHAT}/act/pause")) as there, driver.page() as page:
        page.goto(there.replace("127.0.0.1", name))
        page.wait_for_url(f"{live.url}/**")
    found = state(live)
    live.call("PATCH", f"/v1{CHAT}", {"state": "active"})
    return found


NO_TOKEN = "path => fetch(path, { method: 'POST', body: new URLSearchParams() }).then(answer => answer.status)"  # noqa: S105


def test_forms_of_other_sites_and_without_a_token_are_refused(
    faulty: Driver, live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("127.0.0.1", "localhost"):  # another port, which cookies do not mind, and another host
        assert forged(faulty, live, name) == "active"
    with faulty.page() as page:
        assert page.evaluate(NO_TOKEN, f"{CHAT}/act/pause") == 403
        assert state(live) == "active"
        monkeypatch.setattr(Sessions, "check", lambda *_: None)
        assert page.evaluate(NO_TOKEN, f"{CHAT}/act/pause") == 200
        assert state(live) == "paused"  # the token is what refused it
        live.call("PATCH", f"/v1{CHAT}", {"state": "active"})
    assert forged(faulty, live, "127.0.0.1") == "active"  # the origin alone refuses it
    monkeypatch.setattr(Visit, "is_foreign", lambda _: False)
    assert forged(faulty, live, "127.0.0.1") == "paused"


INLINE = """() => {
  const made = document.createElement("script");
  made.textContent = "window.ran = true";
  document.body.append(made);
  return window.ran === true;
}"""


def test_violations_of_the_security_policy_are_noted(faulty: Driver) -> None:
    with faulty.page() as page:
        assert faulty.faults == []
        assert page.evaluate(INLINE) is False
        page.wait_for_timeout(100)
        assert any("Content Security Policy" in fault for fault in faulty.faults)


def test_pages_need_nothing_from_elsewhere(faulty: Driver, live: Live) -> None:
    with faulty.page(CHAT) as page:
        page.wait_for_selector(".u-over")
        assert faulty.faults == []
        page.context.set_offline(True)
        live.ask()
        page.wait_for_timeout(1200)  # the page has tried to ask for its parts
        page.click("#theme")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        page.hover(".u-over >> nth=0")
        assert page.locator(".u-over").count() == 4
        page.focus("#hold")
        page.keyboard.press("Enter")
        assert page.inner_text("#hold") == "Resume updates"
        page.context.set_offline(False)
        page.keyboard.press("Enter")
        now = str(live.call("GET", f"/v1{CHAT}")[1]["decisions"])
        assert becomes(page, "document.getElementById('n-decisions').textContent", now)
    assert all(fault.startswith("console: htmx:") for fault in faulty.faults)  # requests that could not be sent


def test_a_request_to_elsewhere_is_noted(faulty: Driver) -> None:
    with faulty.page(bypass_csp=True) as page:
        assert faulty.faults == []
        page.evaluate("fetch('http://127.0.0.1:9/').catch(() => 0)")
        assert faulty.faults == ["fetched: http://127.0.0.1:9/"]


# Endurance


def test_a_page_keeps_nothing_of_many_events(driver: Driver, live: Live) -> None:
    assert growth(driver, live, events=3000, updates=30) < MOST_GROWTH


@pytest.mark.parametrize("kind", LEAKS)
def test_a_page_that_leaks_is_noticed(driver: Driver, live: Live, kind: str) -> None:
    assert growth(driver, live, events=1000, updates=20, script=LEAKS[kind]) > MOST_GROWTH
