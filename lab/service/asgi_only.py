"""``driftsack`` without the direct path: every request goes through ASGI."""

from __future__ import annotations

import runpy

from driftsack.service.web.api.app import Application


def without_direct_path() -> None:
    """Let no request be answered directly."""
    Application.direct_target = lambda self, scope: None  # type: ignore[method-assign]


if __name__ == "__main__":
    without_direct_path()
    runpy.run_module("driftsack", run_name="__main__", alter_sys=True)
