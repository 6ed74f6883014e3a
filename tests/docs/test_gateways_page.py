"""Who follows docs/gateways.md from top to bottom has a proxy that answers and learns from a thumbs-up."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import httpx
import msgspec
import openai
import pytest
from typer.testing import CliRunner

from driftsack.cli import app
from driftsack.service.domain.config import Config
from driftsack.service.gateways.proxy.app import Proxy
from driftsack.service.gateways.proxy.prices import Prices
from driftsack.service.gateways.proxy.server import proxy_config
from driftsack.service.gateways.proxy.settings import read_settings
from tests.support.asgi_server import running
from tests.support.hostile_upstream import HostileUpstream
from tests.support.live_service import Live, serving
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "gateways.md").read_text()


def blocks(language: str, page: str = PAGE) -> list[str]:
    """The code blocks of the page in a language, in their order."""
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def opened(live: Live) -> dict[str, Any]:
    """Open the campaign of the page; return its settings."""
    command = next(text for text in blocks("sh") if "/v1/campaigns" in text)
    body: dict[str, Any] = json.loads(command.partition("-d '")[2].rpartition("'")[0])
    status, answer = live.call("POST", "/v1/campaigns", body)
    assert status == 201, answer
    return body


def application_key(store: str) -> str:
    """Create the key of the page."""
    command = next(text for text in blocks("sh") if "keys create" in text)
    found = re.search(r'driftsack (keys create .*?) --note "(.*?)"', command)
    assert found
    done = CliRunner().invoke(app, [*found[1].split(), "--note", found[2], "--store", store])
    assert done.exit_code == 0, done.output
    return next(line for line in done.stdout.split() if line.startswith("ds_"))


def settings(directory: Path, service: str, upstream: str) -> Any:
    """Write the settings of the page, for other addresses, and read them."""
    text = re.sub(r"https://api\.\w+\.com", upstream, blocks("toml")[0])
    (directory / "proxy.toml").write_text(f'service = "{service}"\n{text}')
    return read_settings(directory / "proxy.toml")


@pytest.mark.slow
def test_the_page_can_be_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        assert name in PAGE
        monkeypatch.setenv(name, "sk-test")
    upstream, store = HostileUpstream(most=20), str(tmp_path / "s.db")
    upstream.behaviour = lambda model: "fine"
    with serving(store) as live, running(upstream) as address:
        opened(live)
        proxy = Proxy(settings(tmp_path, live.url, address))
        with running(proxy, proxy_config(proxy)) as url:
            names: dict[str, Any] = {"openai": openai, "httpx": httpx, "APPLICATION_KEY": application_key(store)}
            for code in blocks("python")[:2]:
                exec(code.replace("http://localhost:8788", url), names)
            names["client"].close()
            _, view = live.call("GET", "/v1/campaigns/chat")
            assert (view["told"], view["reward"], view["pending"]) == (1, 1.0, 0)


def test_the_examples_of_settings_are_read() -> None:
    _, prices, campaigns = (tomllib.loads(text) for text in blocks("toml"))
    assert [found.output for found in msgspec.convert(prices["price"], list[Prices])] == ["15", "10"]
    assert [found["name"] for found in campaigns["campaigns"]] == ["chat", "batch"]
    command = next(text for text in blocks("sh") if "/v1/campaigns" in text)
    body = json.loads(command.partition("-d '")[2].rpartition("'")[0])
    assert msgspec.convert(body["config"], Config).problem().fallbacks == (0,)
