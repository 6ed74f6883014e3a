"""The machine's Chromium, driven by Playwright, for the tests and the tools.

Script errors and warnings, violations of the content security policy, dialogs and requests to other hosts are recorded.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request, sync_playwright

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
OPTIONS: Final = ("--no-sandbox", "--disable-background-networking", "--enable-precise-memory-info")


@contextmanager
def browsing() -> Iterator[Browser]:
    """Start a browser, and close it at the end.

    Raises:
        FileNotFoundError: The machine has no Chromium.
    """
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    if program is None:
        raise FileNotFoundError("expected Chromium on this machine, found none: run tools/system_packages.sh")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=OPTIONS)
        yield browser
        browser.close()


class Driver:
    """Opens windows and records their faults.

    Attributes:
        url: The address of the service.
        faults: Descriptions of what went wrong.
    """

    def __init__(self, browser: Browser, url: str, key: str) -> None:
        self.url = url
        self._browser, self._key = browser, key
        self._cookies: Any = None
        self.faults: list[str] = []

    @contextmanager
    def page(
        self, path: str = "/", theme: str = "light", size: tuple[int, int] = (1280, 900), script: str = "", **more: Any
    ) -> Iterator[Page]:
        """Open a page in a window that is logged in.

        Args:
            path: The page.
            theme: ``light`` or ``dark``.
            size: Width and height in pixels.
            script: A script that runs before those of the page.
            **more: Further options of Playwright's ``new_context``.
        """
        if self._cookies is None:
            with self.window() as page:
                page.goto(f"{self.url}/login")
                page.fill("#key", self._key)
                page.keyboard.press("Enter")
                page.wait_for_selector("#cards")
                self._cookies = page.context.storage_state()
        with self.window(theme, size, script, storage_state=self._cookies, **more) as page:
            page.goto(self.url + path)
            yield page

    @contextmanager
    def window(
        self, theme: str = "light", size: tuple[int, int] = (1280, 900), script: str = "", **more: Any
    ) -> Iterator[Page]:
        """Open an empty window that is not logged in, with the options of :meth:`page`."""
        viewport: Any = {"width": size[0], "height": size[1]}
        scheme: Any = theme
        context = self._browser.new_context(viewport=viewport, color_scheme=scheme, reduced_motion="reduce", **more)
        context.set_default_timeout(30_000)
        if script:
            context.add_init_script(script)
        page = context.new_page()
        page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))
        page.on("console", self._console)
        page.on("request", self._request)
        page.on("dialog", self._dialog)
        try:
            yield page
        finally:
            context.close()

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and "net::ERR_" not in message.text:
            self.faults.append(f"console: {message.text[:200]}")

    def _request(self, request: Request) -> None:
        if not request.url.startswith((f"{self.url}/", "data:", "blob:")):
            self.faults.append(f"fetched: {request.url}")

    def _dialog(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()
