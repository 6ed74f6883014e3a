"""Actions and checks on the pages of the dashboard in a real browser."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Error, Page

from tests.support.live_service import Live

CHAT = "/campaigns/chat"


def state(live: Live) -> str:
    return str(live.call("GET", f"/v1{CHAT}")[1]["state"])


def becomes(page: Page, script: str, value: Any, patience: float = 3.0) -> bool:
    """Whether a script on a page returns a value in time."""
    try:
        page.wait_for_function(f"value => {script} === value", arg=value, timeout=1000 * patience)
    except Error:
        return False
    return True


def act(page: Page, button: str, **given: str) -> None:
    """Press a button by keyboard, fill in the confirmation dialog and confirm."""
    page.focus(button)
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open] form")
    for field, value in given.items():
        page.fill(f"dialog [name={field}]", value)
    page.focus("dialog button")
    with page.expect_navigation():
        page.keyboard.press("Enter")
