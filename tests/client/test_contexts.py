"""Campaigns with features from the client: opened from a file, asked and observed with contexts, also offline."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from driftsack.cli import app
from driftsack.client import AsyncClient, Client, ServiceError, read_campaign
from driftsack.core.errors import SettingError
from tests.client.test_offline import Switch
from tests.support.live_service import Live, serving

CHAT = """
arms = ["small", "large"]
horizon = 20_000

[budget]
usd = 200.50

[cost_max.usd]
small = 0.01
large = 0.05

[features]
numbers = ["tokens"]
optional = ["tokens"]
embeddings = { prompt = 3 }

[features.categories]
kind = ["chat", "code"]
"""
WHOLE = {"tokens": 5, "kind": "code", "prompt": np.array([0.1, 0.2, 0.3])}


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with serving(str(tmp_path_factory.mktemp("client") / "s.db")) as found:
        yield found


def created(live: Live, directory: Path, name: str, text: str = CHAT) -> Any:
    """Open a campaign on the command line, and return its answer."""
    (directory / f"{name}.toml").write_text(text)
    command = ["campaign", "create", str(directory / f"{name}.toml"), "--url", live.url, "--key", live.key, "--json"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_campaign_is_opened_from_a_file(live: Live, tmp_path: Path) -> None:
    for _ in range(2):  # the same file again changes nothing
        found = created(live, tmp_path, "filed")
        assert found["name"] == "filed"
        assert found["config"]["policy"] == {"policy": "LinearBwK"}
        assert found["config"]["budget"] == {"usd": "200.50"}
        assert found["config"]["features"]["optional"] == ["tokens"]
    named = tmp_path / "other.toml"
    named.write_text('name = "chat"' + CHAT.replace("200.50", "1"))
    assert read_campaign(named)[0] == "chat"
    command = ["campaign", "create", str(tmp_path / "filed.toml"), "--url", live.url]
    for key, message in (([], "--key"), (["--key", "ds_wrong"], "unauthenticated")):
        result = CliRunner().invoke(app, [*command, *key], env={"DRIFTSACK_KEY": ""})
        assert result.exit_code != 0
        assert message in result.output
    (tmp_path / "bad.toml").write_text("since = 2024-01-01")
    with pytest.raises(SettingError, match="got the time 2024-01-01"):
        read_campaign(tmp_path / "bad.toml")


def test_both_clients_send_contexts(live: Live, tmp_path: Path) -> None:
    created(live, tmp_path, "asked")

    async def ask() -> Any:
        async with AsyncClient(live.url, live.key, "asked") as client:
            decision = await client.ask(context=WHOLE)
            await client.tell(decision, 1.0, {"usd": 0.01})
            with pytest.raises(ServiceError, match="'kind' must be a string or an integer"):
                await client.ask(context={**WHOLE, "kind": 0.5})
            return decision

    assert asyncio.run(ask()).number == 1
    with Client(live.url, live.key, "asked") as client:
        assert client.ask(context={**WHOLE, "tokens": None}).number == 2
        with pytest.raises(ServiceError, match=r"'kind', 'prompt' missing.*422"):
            client.ask()
        with pytest.raises(SettingError, match="'tokens' must be finite, got nan; pass None"):
            client.ask(context={**WHOLE, "tokens": float("nan")})
        with pytest.raises(SettingError, match="context must be a mapping"):
            client.ask(context=[1.0])  # type: ignore[arg-type]
        assert live.call("GET", "/v1/campaigns/asked")[1]["decisions"] == 2


def test_a_watching_campaign_is_told_contexts(live: Live, tmp_path: Path) -> None:
    created(live, tmp_path, "watched", "watch = true\n" + CHAT)
    with Client(live.url, live.key, "watched") as client:
        client.observe("small", 1.0, {"usd": 0.01}, 0.5, context=WHOLE)
        with pytest.raises(ServiceError, match="missing"):
            client.observe("small", 1.0, {"usd": 0.01}, 0.5)
    assert live.call("GET", "/v1/campaigns/watched")[1]["observed"] == 1


def test_a_stock_is_made_without_features(live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They must all be optional, otherwise the client says so at once and gives the decision back."""
    created(live, tmp_path, "needs")
    needs = Client(live.url, live.key, "needs", offline="stock", patience=0.2)
    with needs, pytest.raises(ServiceError, match="'kind', 'prompt' missing"):
        needs.ask(context=WHOLE)
    needed = live.call("GET", "/v1/campaigns/needs")[1]
    assert (needed["decisions"], needed["pending"]) == (1, 0)
    text = CHAT.replace('["tokens"]\nemb', '["tokens", "kind"]\nemb').replace("embeddings = { prompt = 3 }", "")
    created(live, tmp_path, "lenient", text)
    switch = Switch(monkeypatch)
    with Client(live.url, live.key, "lenient", offline="stock", patience=0.2) as client:
        client.cancel(client.ask(context={"tokens": 5, "kind": "code"}))
        switch.away = True
        held = client.ask(context={"tokens": 5, "kind": "code"})
        assert held.number is not None
        switch.away = False
        client.tell(held, 1.0, {"usd": 0.01})
