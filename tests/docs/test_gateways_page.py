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
from driftsack.client import read_campaign
from driftsack.service.gateways.prompts.features import PROMPT_FEATURES
from driftsack.service.gateways.prompts.hashed_text import LENGTH
from driftsack.service.gateways.proxy.app import Proxy
from driftsack.service.gateways.proxy.prices import Prices
from driftsack.service.gateways.proxy.server import proxy_config
from driftsack.service.gateways.proxy.settings import read_settings
from driftsack.service.gateways.proxy.tracing import CONVENTIONS
from tests.support.asgi_server import running
from tests.support.hostile_upstream import HostileUpstream
from tests.support.live_service import Live, serving
from tests.support.paths import ROOT

PARTS = ("--campaign", "campaign create")
PAGE = (ROOT / "docs" / "gateways.md").read_text()


def blocks(language: str, page: str = PAGE) -> list[str]:
    """The code blocks of the page in a language, in their order."""
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def opened(live: Live, directory: Path) -> dict[str, Any]:
    """Write and open the campaign of the page with its commands; return its settings."""
    command = next(text for text in blocks("sh") if "--campaign" in text)
    words, created = (next(line for line in command.splitlines() if part in line).split() for part in PARTS)
    printed = CliRunner().invoke(app, [*words[1:2], str(directory / words[2]), *words[3 : words.index(">")]])
    assert printed.exit_code == 0, printed.output
    (directory / words[-1]).write_text(printed.stdout)
    done = CliRunner().invoke(app, [*created[1:3], str(directory / created[3]), "--url", live.url])
    assert done.exit_code == 0, done.output
    _, config = read_campaign(directory / words[-1])
    return config


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
    """From the proxy to the thumbs-up; and then with LangChain."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        assert name in PAGE
        monkeypatch.setenv(name, "sk-test")
    upstream, store = HostileUpstream(most=20), str(tmp_path / "s.db")
    upstream.behaviour = lambda model: "fine"
    with serving(store) as live, running(upstream) as address:
        monkeypatch.setenv("DRIFTSACK_KEY", live.key)
        monkeypatch.setenv("OPENAI_API_BASE", f"{address}/v1")
        proxy = Proxy(settings(tmp_path, live.url, address))
        config = opened(live, tmp_path)
        assert (config["fallback"], config["features"]) == ("small", PROMPT_FEATURES)
        with running(proxy, proxy_config(proxy)) as url:
            key = application_key(store)
            names: dict[str, Any] = {"openai": openai, "httpx": httpx, "APPLICATION_KEY": key, "DRIFTSACK_KEY": key}
            for code in (text for text in blocks("python") if "litellm" not in text):
                exec(code.replace("http://localhost:8788", url).replace("http://localhost:8787", live.url), names)
            names["client"].close()
            names["chat"].close()
            assert names["answer"].response_metadata["driftsack"]["arm"] in ("small", "large")
            _, view = live.call("GET", "/v1/campaigns/chat")
            assert (view["told"], view["reward"], view["pending"]) == (2, 2.0, 0)


def test_the_examples_of_settings_are_read() -> None:
    _, prices, campaigns = (tomllib.loads(text) for text in blocks("toml"))
    assert [found.output for found in msgspec.convert(prices["price"], list[Prices])] == ["15", "10"]
    assert [found["name"] for found in campaigns["campaigns"]] == ["chat", "batch"]


def test_the_assistants_command_exists() -> None:
    (text,) = blocks("json")
    server = json.loads(text)["mcpServers"]["driftsack"]
    assert server["command"] == "driftsack"
    shown = CliRunner().invoke(app, [server["args"][0], "--help"])
    assert shown.exit_code == 0
    assert all(name in shown.output for name in server["env"])


def test_the_page_lists_every_built_in_feature() -> None:
    """The table says how many there are."""
    found = re.search(r"\| (\d+) numbers on its size and style .* and (\d+) numbers that are similar", PAGE)
    assert found
    assert [int(count) for count in found.groups()] == [len(PROMPT_FEATURES["numbers"]), LENGTH]
    assert f"version {CONVENTIONS}" in PAGE
