"""The trial of prompts as contexts: what the proxy charges and learns is what the table says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from driftsack.service.gateways.prompts.features import PROMPT_FEATURES
from driftsack.service.gateways.proxy.app import Proxy
from driftsack.service.gateways.proxy.server import proxy_config
from driftsack.service.gateways.proxy.settings import read_settings
from lab.routing.routers import MODELS, PER_MILLION
from lab.service.prompt_routing import (
    HERE,
    PromptClient,
    PromptTable,
    TableUpstream,
    campaign_of,
    prompt_bars,
    upstreams_toml,
)
from tests.support.asgi_server import running
from tests.support.live_service import serving

PROMPTS = ["What is 17 + 25?", "Write a poem about the sea.", "def f(x):\n    return x", "Why?"]
TABLE = PromptTable(
    PROMPTS,
    np.array([[0.25, 0.5, 1.0]] * 4),
    np.array([[2e-5, 3e-4, 0.01], [3e-5, 4e-4, 0.02], [1e-5, 1e-4, 0.005], [2e-5, 2e-4, 0.0125]]),
)


@pytest.mark.parametrize("row", range(4))
@pytest.mark.parametrize("arm", range(3))
def test_a_usage_costs_what_the_table_says(row: int, arm: int) -> None:
    read, written = TABLE.usage(row, arm)
    into, out = PER_MILLION[arm]
    assert (read * into + written * out) / 1e6 == pytest.approx(TABLE.dollars[row, arm])
    assert 0 <= read <= len(PROMPTS[row]) // 4 + out / into or not written  # a prompt has fewer tokens than bytes
    with pytest.raises(ValueError, match="no tokens cost"):
        TABLE._replace(dollars=TABLE.dollars + 1e-9).usage(row, arm)


def test_the_trial_earns_and_spends_what_the_table_says(tmp_path: Any) -> None:
    with serving(str(tmp_path / "s.db")) as live, running(TableUpstream(TABLE)) as upstream:
        config = campaign_of(TABLE, "prompt", 0) | {"budget": {"usd": "10"}, "policy": {"policy": "UniformRandom"}}
        assert config["features"] == PROMPT_FEATURES
        assert live.call("POST", "/v1/campaigns", {"name": "chat", "config": config})[0] == 201
        text = f'campaign = "chat"\nfeatures = "prompt"\nservice = "{live.url}"\nreward = "{HERE}:reward_of"\n'
        (tmp_path / "proxy.toml").write_text(text + upstreams_toml(TABLE, upstream))
        proxy = Proxy(read_settings(tmp_path / "proxy.toml"))
        with running(proxy, proxy_config(proxy)) as url:
            earned = PromptClient(url, live.key, "chat").send_all(PROMPTS, 2)
        made = live.call("GET", "/v1/campaigns/chat/decisions")[1]["decisions"]
        told = [(each["arm"], each["reward"], float(each["charged"]["usd"])) for each in made]
        pairs = {
            (MODELS[arm], TABLE.rewards[row, arm], TABLE.dollars[row, arm]) for row in range(4) for arm in range(3)
        }
        assert len(told) == 4
        assert set(told) <= pairs
        assert earned == sum(reward for _, reward, _ in told)


def test_bars_that_are_missed_are_found() -> None:
    row = {"blind": 0.8, "prompt": 0.82, "best model": 0.85, "blind: spent": 1.01, "prompt: spent": 1.0}
    assert [bar["holds"] for bar in prompt_bars([row])] == ["no", "no", "no"]
