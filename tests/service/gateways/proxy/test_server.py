"""The process of the proxy: what it logs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from driftsack.service.gateways.proxy.server import serve_proxy
from driftsack.service.gateways.proxy.settings import ProxySettings, Upstream
from tests.support.gateways import PRICE


@pytest.fixture
def loggers() -> Iterator[None]:
    """Restore the loggers that a server sets up."""
    found = [logging.getLogger(name) for name in ("", "httpx", "driftsack", "uvicorn", "uvicorn.error")]
    before = [(logger, logger.level, list(logger.handlers), logger.propagate) for logger in found]
    yield
    for logger, level, handlers, propagate in before:
        logger.setLevel(level)
        logger.handlers[:], logger.propagate = handlers, propagate


@pytest.mark.usefixtures("loggers")
def test_addresses_of_upstreams_are_not_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uvicorn.Server, "run", lambda *_, **__: None)
    settings = ProxySettings([Upstream("a", "http://localhost", "m", PRICE)], "chat", port=0)
    listening: list[Any] = []
    serve_proxy(settings, listening.append)
    assert listening
    assert logging.getLogger("driftsack.proxy").isEnabledFor(logging.INFO)
    assert not logging.getLogger("httpx").isEnabledFor(logging.INFO)
