"""User actions on the dashboard in a real browser. Each check detects a planted fault."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from playwright.sync_api import Browser, Route

from driftsack.service.domain.refusals import Refusal
from driftsack.service.projections import explain
from driftsack.service.web.api.keyring import Principal
from driftsack.service.web.pages import acts, pages
from driftsack.service.web.pages.app import Dashboard
from driftsack.service.web.pages.visit import Visit
from tests.support.browser_actions import CHAT, act, becomes, state
from tests.support.live_service import Live, serving
from tests.support.page_growth import LEAKS, MOST_GROWTH, fill, growth
from tools.browse import WIDER, hindrances
from tools.chromium import Driver


def number_changes(driver: Driver, live: Live, patience: float) -> bool:
    """Return whether the number of decisions on an open page grows when another program asks."""
    with driver.page(CHAT) as page:
        page.wait_for_selector("#live:not(.off)")
        page.wait_for_timeout(200)  # until the first message, which starts the stream
        before = int(page.inner_text("#n-decisions"))
        live.ask()
        return becomes(page, "document.getElementById('n-decisions').textContent", str(before + 1), patience)


def test_a_number_changes_by_itself(driver: Driver, live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    assert number_changes(driver, live, 5.0)

    async def silent(*_: object) -> str:
        return "nothing happens"

    monkeypatch.setattr(live.app.pages, "_latest", silent)
    assert not number_changes(driver, live, 1.5)


def log_in(driver: Driver, key: str) -> str:
    """Log in with a key, and return the text of the page."""
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


def pauses(driver: Driver, live: Live) -> bool:
    """Return whether a user can pause and resume, and the page shows it."""
    with driver.page(CHAT) as page:
        page.focus("#act-pause")
        page.keyboard.press("Enter")
        page.wait_for_selector("dialog[open] form")
        assert "New requests are answered with" in page.inner_text("dialog")
        page.keyboard.press("Escape")  # and nothing happens
        assert state(live) == "active"
        act(page, "#act-pause")
        if page.inner_text(".state") != "paused" or state(live) != "paused":
            return False
        act(page, "#act-resume")
        return page.inner_text(".state") == "active" == state(live)


def test_pause_and_resume(driver: Driver, live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pauses(driver, live)
    idle = acts.ACTS["pause"]._replace(body=acts.ACTS["resume"].body)
    monkeypatch.setitem(acts.ACTS, "pause", idle)
    assert not pauses(driver, live)


def grants(driver: Driver, live: Live) -> bool:
    """Return whether a grant raises the budget exactly once, on the page and in the API."""
    before = float(live.call("GET", f"/v1{CHAT}/budgets")[1]["budgets"][0]["granted"])
    with driver.page(CHAT) as page:
        act(page, "#act-grant", amount="25")
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
    """Return whether the page of a decision marks the arm that the API reports."""
    with driver.page(CHAT) as page:
        page.click("#tables .latest a >> nth=-1")
        page.wait_for_selector("#h-draw")
        number = int(page.url.rpartition("/")[2])
        drawn, said = page.inner_text("tr.drawn th"), page.inner_text("main")
    chosen = live.call("GET", f"/v1{CHAT}/decisions/{number}/why")[1]["arm"]
    return drawn.split()[0] == chosen and "recomputed: identical" in said


def test_why(driver: Driver, live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    assert explains(driver, live)
    usual = explain.why

    def other(*given: Any) -> Any:
        found = usual(*given)
        return msgspec.structs.replace(found, arm="large" if found.arm == "small" else "small")

    monkeypatch.setattr("driftsack.service.web.pages.pages.explain", SimpleNamespace(why=other))
    assert not explains(driver, live)


BUTTONS = "#act-pause, .row-act a"


def only_looks(driver: Driver, live: Live) -> bool:
    """Return whether a read-only link shows the campaign without buttons, and its other requests are refused."""
    with driver.page("/keys/share") as page, driver.window() as guest:
        page.check("input[value=chat]")
        page.click("button.primary")
        guest.goto(page.input_value("#made"))
        guest.wait_for_selector("#cards")
        assert "ds_" not in guest.url
        for window in (page, guest):
            window.goto(driver.url + CHAT)
            assert "left of" in window.inner_text("#numbers")
        assert page.locator(BUTTONS).count() == 3  # for the campaign and each of its arms
        buttons = guest.locator(BUTTONS).count()
        form: dict[str, Any] = {"token": guest.input_value("form[action='/logout'] [name=token]")}
        answers = [guest.request.get(driver.url + path) for path in (f"{CHAT}/act/pause", "/keys", "/audit")]
        answers.append(guest.request.post(f"{driver.url}{CHAT}/act/pause", form=form))
    paused = state(live) != "active"
    live.call("PATCH", f"/v1{CHAT}", {"state": "active"})
    return buttons == 0 and not paused and {answer.status for answer in answers} == {403}


def test_a_read_only_link_shows_and_does_nothing_else(driver: Driver, live: Live) -> None:
    assert only_looks(driver, live)


def with_scope_operate(patch: pytest.MonkeyPatch) -> None:
    usual = pages.requested_key
    patch.setattr(
        pages, "requested_key", lambda *given: msgspec.structs.replace(usual(*given), scopes=["read", "operate"])
    )


def with_buttons_for_all(patch: pytest.MonkeyPatch) -> None:
    usual = Visit.common
    patch.setattr(Visit, "common", lambda visit: {**usual(visit), "may_operate": True})


def without_checks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Principal, "check", lambda *_, **__: None)


def test_a_link_that_allows_actions_is_noticed(driver: Driver, live: Live) -> None:
    for fault in (with_scope_operate, with_buttons_for_all, without_checks):
        with pytest.MonkeyPatch.context() as patch:
            fault(patch)
            assert not only_looks(driver, live), fault


LIVE = "document.getElementById('live').textContent"
LOST = "Connection lost; trying again"
PATIENT = "TRY_AGAIN = 2000;"


def loses(driver: Driver, live: Live, old: str = PATIENT, new: str = PATIENT) -> tuple[bool, bool]:
    """Return whether a page reports a lost stream, and whether it later shows what it missed, with a changed script."""

    def script(route: Route) -> None:
        answer = route.fetch()
        text = answer.text()
        assert old in text
        assert PATIENT in text
        route.fulfill(response=answer, body=text.replace(old, new).replace(PATIENT, "TRY_AGAIN = 200;"))

    async def refuses(*_: Any) -> None:
        raise Refusal.unavailable("the service starts.")

    with driver.page() as page, pytest.MonkeyPatch.context() as patch:
        page.route("**/static/app.js*", script)
        page.goto(driver.url + CHAT)
        page.wait_for_selector("#live:not(.off)")
        page.wait_for_timeout(200)  # until the first message, which starts the stream
        patch.setattr(Dashboard, "_stream", refuses)  # affects new streams; the open one ends
        patch.setattr(live.app.pages, "_closing", True)
        says = becomes(page, LIVE, LOST, 2.0)
        page.wait_for_timeout(500)  # the page has tried again
        says = says and page.evaluate(LIVE) == LOST
        live.ask()
        patch.undo()
        now = str(live.call("GET", f"/v1{CHAT}")[1]["decisions"])
        shown = becomes(page, "document.getElementById('n-decisions').textContent", now)
        return says, shown and becomes(page, LIVE, "Live")


def test_a_lost_stream_is_said_and_found_again(faulty: Driver, live: Live) -> None:
    assert loses(faulty, live) == (True, True)
    assert all("503" in fault for fault in faulty.faults), faulty.faults


def test_pages_that_say_nothing_or_give_up_are_noticed(faulty: Driver, live: Live) -> None:
    assert loses(faulty, live, "stream.onerror =", "stream.ignored =")[0] is False
    assert loses(faulty, live, "setTimeout(() => { update(); connect(); }, TRY_AGAIN);", "") == (True, False)


def test_a_service_that_is_gone_leaves_the_page_as_it_was(browser: Browser, tmp_path: Path) -> None:
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
            assert page.inner_text("#live") == LOST
            assert page.locator(".u-over").count() == 4
        assert driver.faults == []


def test_who_is_logged_out_meanwhile_comes_to_the_login(driver: Driver, live: Live) -> None:
    with driver.window() as page:
        page.goto(driver.url + CHAT)
        page.fill("#key", live.key)
        page.keyboard.press("Enter")
        page.wait_for_selector("#live:not(.off)")
        page.context.clear_cookies()
        live.ask()  # the page asks for its parts again
        page.wait_for_selector("#login")
        assert page.input_value("#next") == CHAT


def test_pages_fit_a_phone_and_are_accessible(driver: Driver) -> None:
    with driver.page(size=(390, 844), theme="dark") as page:
        for path in ("/", CHAT, f"{CHAT}/decisions/1", f"{CHAT}/act/grant", "/keys"):
            page.goto(driver.url + path)
            assert page.evaluate(WIDER) <= 1, path
            assert hindrances(page) == [], path
        page.evaluate("document.querySelector('main').append(Object.assign(new Image(600), {src: '/static/icon.svg'}))")
        assert page.evaluate(WIDER) > 1
        assert "image-alt" in str(hindrances(page))


def test_a_page_keeps_nothing_of_many_events(driver: Driver, live: Live) -> None:
    assert growth(driver, live, events=3000, updates=30) < MOST_GROWTH


@pytest.mark.parametrize("kind", LEAKS)
def test_a_page_that_leaks_is_noticed(driver: Driver, live: Live, kind: str) -> None:
    assert growth(driver, live, events=1000, updates=20, script=LEAKS[kind]) > MOST_GROWTH
