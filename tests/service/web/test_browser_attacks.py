"""Attacks on the dashboard in a real browser. Each check detects a planted fault."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from driftsack.service.projections import explain
from driftsack.service.projections.choice import chosen
from driftsack.service.projections.track import Track
from driftsack.service.web.pages import acts, responses
from driftsack.service.web.pages.sessions import Sessions
from driftsack.service.web.pages.visit import Visit
from tests.support.asgi_server import running
from tests.support.browser_actions import CHAT, act, becomes, state
from tests.support.dashboard_client import Visitor
from tests.support.live_service import Live
from tools.chromium import Driver

EVIL = """<img src=x onerror="alert('evil')"><svg onload=alert(1)>'"-->{{7*7}}"""
WORSE = f"{EVIL}</td></script><script>alert(2)</script>"  # a campaign's name has no slash, so that it has a page


def renamed(given: Any) -> Any:
    """Replace the names in an answer of the API by attacks."""
    names = {"chat": EVIL, "small": WORSE, "large": EVIL, "usd": WORSE}
    if isinstance(given, dict):
        return {renamed(name): renamed(value) for name, value in given.items()}
    if isinstance(given, list):
        return [renamed(value) for value in given]
    return names.get(given, given) if isinstance(given, str) else given


@pytest.fixture
def evil(live: Live, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The page of a campaign whose name, arms and resources are attacks; the API would refuse such names."""
    for body in ({"name": EVIL, "config": {}}, {"name": "x", "config": {"arms": [WORSE]}}):
        status, problem = live.call("POST", "/v1/campaigns", body)
        assert status == 422
        assert "regex" in problem["detail"]
    assert Visitor(live.url, live.key).get(CHAT).status == 200  # from here on the campaign is followed
    watcher = live.app.service.watcher
    usual_names, usual, track = watcher.names, watcher._current, watcher.tracks["chat"]
    kept = track.name, track.arms, track.resources
    track.name, track.arms, track.resources = EVIL, [WORSE, EVIL], [WORSE]

    def current(name: str) -> Track:
        return track if name == EVIL else usual(name)  # the watcher drops tracks that the store lacks

    async def names() -> list[str]:
        return [EVIL if name == "chat" else name for name in await usual_names()]

    def why(store: Any, _: str, number: int) -> explain.Why:
        found = msgspec.convert(renamed(msgspec.to_builtins(explain.why(store, "chat", number))), explain.Why)
        return msgspec.structs.replace(found, planned_with="bounds")  # so that the table of estimates is shown

    monkeypatch.setattr(watcher, "names", names)
    monkeypatch.setattr(watcher, "_current", current)
    monkeypatch.setattr("driftsack.service.web.pages.pages.explain", SimpleNamespace(why=why))
    monkeypatch.setattr(
        "driftsack.service.web.pages.pages.chosen", lambda store, _, *rest: chosen(store, "chat", *rest)
    )
    yield "/campaigns/" + "".join(f"%{byte:02X}" for byte in EVIL.encode())
    track.name, track.arms, track.resources = kept


INJECTED = "img[src=x], svg[onload], main script, dialog script"


def injected(driver: Driver, paths: Sequence[str], shown: bool = True) -> list[str]:
    """Return the pages into which names injected elements; if ``shown``, each page must show the names as text."""
    found = []
    with driver.page() as page:
        for path in paths:
            page.goto(driver.url + path)
            page.wait_for_timeout(50)
            assert not shown or EVIL[:19] in page.inner_text("main"), path  # the audit writes quotes otherwise
            found += [path] if page.locator(INJECTED).count() else []
    return found


def pages_of(here: str) -> list[str]:
    """Return the pages that show the name of a campaign."""
    quoted = here.rpartition("/")[2]
    arm = [f"{act}?arm={quoted}" for act in ("retire-arm", "offer-arm")]
    confirmations = [f"{here}/act/{act}" for act in (*(set(acts.ACTS) - {"retire-arm", "offer-arm"}), *arm)]
    return [here, "/", f"{here}/decisions/1", *confirmations, "/keys/share", "/keys", "/audit", f"{here}x"]


def test_names_that_are_attacks_are_only_shown(driver: Driver, evil: str, live: Live) -> None:
    assert live.call("POST", "/v1/keys", {"scopes": ["read"], "note": EVIL})[0] == 201
    assert injected(driver, pages_of(evil)) == []
    assert all("404" in fault for fault in driver.faults), driver.faults  # the campaign that is not there
    driver.faults.clear()


def test_attacks_in_charts_dialogs_and_problems_are_only_shown(faulty: Driver, evil: str) -> None:
    with faulty.page(evil) as page:
        page.wait_for_selector(".u-legend")
        assert WORSE in page.inner_text("#charts")
        page.click("#arm-1")
        page.wait_for_selector("dialog[open] form")
        assert EVIL in page.inner_text("dialog h2")
        page.click("dialog button")  # there is no such arm, as the API sees it
        page.wait_for_selector(".problem")
        assert EVIL[:19] in page.inner_text("main")
        assert page.locator(INJECTED).count() == 0
    assert all("404" in fault for fault in faulty.faults), faulty.faults


def test_a_page_that_does_not_escape_is_noticed(faulty: Driver, evil: str, monkeypatch: pytest.MonkeyPatch) -> None:
    templates: Any = responses.environment()
    monkeypatch.setattr(templates, "autoescape", False)
    monkeypatch.setattr(templates, "cache", {})
    paths = [evil, "/", f"{evil}/decisions/1", f"{evil}/act/grant"]
    assert injected(faulty, paths, shown=False) == paths
    assert any("Content Security Policy" in fault for fault in faulty.faults)  # which kept it from running
    assert not any(fault.startswith("dialog") for fault in faulty.faults)
    monkeypatch.setattr(responses, "SAFE", [])
    injected(faulty, [evil], shown=False)
    assert any(fault.startswith("dialog") for fault in faulty.faults)  # without a policy, the attack succeeds


STRANGE = "javascript:x@evil.example"
ARMS = ["javascript:alert", "x/../../../keys", "high", "constructor"]
AWAY = """() => [...document.querySelectorAll("[href], form")]
  .map((each) => each.href ?? each.action).filter((to) => !to.startsWith(location.origin + "/"))"""
LEGEND = "#charts tr.u-series:visible"


def test_strange_names_that_the_api_accepts_lead_nowhere_else(driver: Driver, live: Live) -> None:
    """Names look like addresses, or like properties that scripts use."""
    most = {"a//evil.example": "1", "low": "1"}
    live.open(STRANGE, arms=ARMS, budget=dict.fromkeys(most, "9"), cost_max=most)
    here = f"/campaigns/{STRANGE}"
    for _ in range(3):
        live.ask(STRANGE)
    with driver.page(here) as page:
        page.wait_for_selector(".u-legend")
        assert page.locator(LEGEND).all_inner_texts().count("high") == 1
        act(page, "#arm-1")
        assert page.inner_text("h1") == STRANGE
        for path in (here, "/", f"{here}/decisions/1", f"{here}/act/retire-arm?arm={ARMS[1]}", "/keys/share"):
            page.goto(driver.url + path)
            assert page.evaluate(AWAY) == [], path
        page.evaluate("name => { document.links[0].href = name; }", ARMS[0])
        assert page.evaluate(AWAY) == ["javascript:alert"]
    arms = live.call("GET", f"/v1{here}/arms")[1]["arms"]
    assert [arm["name"] for arm in arms if not arm["offered"]] == ["x/../../../keys"]


def other_site(target: str) -> Callable[..., Awaitable[None]]:
    """Return a site whose page sends a form to the dashboard as soon as it is opened."""
    text = f"<form method=post action='{target}'></form><script>document.forms[0].submit()</script>"

    async def site(scope: dict[str, Any], _: Any, send: Any) -> None:
        if scope["type"] == "http":
            head = [(b"content-type", b"text/html")]
            await send({"type": "http.response.start", "status": 200, "headers": head})
            await send({"type": "http.response.body", "body": text.encode()})

    return site


def forged(driver: Driver, live: Live, name: str) -> str:
    """Return the state of the campaign after a logged-in user has opened a page of another site."""
    with running(other_site(f"{live.url}{CHAT}/act/pause")) as there, driver.page() as page:
        page.goto(there.replace("127.0.0.1", name))
        page.wait_for_url(f"{live.url}/**")
    found = state(live)
    live.call("PATCH", f"/v1{CHAT}", {"state": "active"})
    return found


NO_TOKEN = "path => fetch(path, { method: 'POST', body: new URLSearchParams() }).then(answer => answer.status)"


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


def works_offline(driver: Driver, live: Live, script: str = "") -> bool:
    """Return whether a loaded page keeps working without a network, and is updated when the network is back."""
    with driver.page(CHAT, script=script) as page:
        page.wait_for_selector(".u-over")
        assert driver.faults == []
        page.context.set_offline(True)
        live.ask()
        page.wait_for_timeout(1200)  # the page has tried to ask for its parts
        page.click("#theme")
        dark = page.evaluate("document.documentElement.dataset.theme") == "dark"
        if not dark or page.locator(".u-over").count() != 4:
            return False
        page.hover(".u-over >> nth=0")
        page.focus("#hold")
        page.keyboard.press("Enter")
        held = page.inner_text("#hold") == "Resume updates"
        page.context.set_offline(False)
        page.keyboard.press("Enter")
        now = str(live.call("GET", f"/v1{CHAT}")[1]["decisions"])
        return held and becomes(page, "document.getElementById('n-decisions').textContent", now)


def test_pages_need_nothing_from_elsewhere(faulty: Driver, live: Live) -> None:
    assert works_offline(faulty, live)
    assert all(fault.startswith("console: htmx:") for fault in faulty.faults)  # requests that could not be sent
    faulty.faults.clear()
    wipe = "addEventListener('htmx:sendError', () => document.getElementById('charts').replaceChildren());"
    assert not works_offline(faulty, live, wipe)


def test_a_request_to_elsewhere_is_noted(faulty: Driver) -> None:
    with faulty.page(bypass_csp=True) as page:
        assert faulty.faults == []
        page.evaluate("fetch('http://127.0.0.1:9/').catch(() => 0)")
        assert faulty.faults == ["fetched: http://127.0.0.1:9/"]
