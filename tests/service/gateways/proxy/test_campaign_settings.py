"""The campaign that ``driftsack proxy --campaign`` prints fits the proxy."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from driftsack.cli import app
from driftsack.client import read_campaign
from driftsack.service.domain.campaign import Campaign, Now
from driftsack.service.domain.config import Config
from driftsack.service.gateways.prompts.features import prompt_features

PROXY = """
features = "prompt"

[[campaigns]]
name = "chat"

[[campaigns]]
name = "batch"
arms = ["openai/small"]
features = ""

[[upstream]]
arm = "openai/small"
url = "http://localhost/v1"
model = "s"
max_tokens = 1000
price = [{ input = "1", output = "10" }, { input = "2", output = "20", since = 2030-01-01 }]

[[upstream]]
arm = "large"
url = "http://localhost/v1"
model = "l"
price = { input = "10", output = "100" }
"""


def printed(directory: Path, *arguments: str) -> tuple[int, str]:
    (directory / "proxy.toml").write_text(PROXY)
    done = CliRunner().invoke(app, ["proxy", str(directory / "proxy.toml"), *arguments])
    return done.exit_code, done.stdout + done.stderr


def test_the_campaign_has_arms_costs_and_features_of_the_proxy(tmp_path: Path) -> None:
    code, text = printed(tmp_path, "--campaign", "chat", "--budget", "600", "--requests", "10000")
    assert code == 0
    (tmp_path / "chat.toml").write_text(text)
    name, config = read_campaign(tmp_path / "chat.toml")
    opened = msgspec.convert(config, Config)
    assert (name, opened.arms, opened.horizon, opened.budget) == (
        "chat",
        ["openai/small", "large"],
        10_000,
        {"usd": "600"},
    )
    assert opened.cost_max == {"usd": {"openai/small": "0.052000000", "large": "0.569600000"}}  # the dearest prices
    assert opened.fallback == "openai/small"
    campaign = Campaign.open(opened, Now(0, 0))
    assert campaign.learner.encode(prompt_features({"prompt": "Hello?"})).size == campaign.problem.features


def test_a_campaign_without_features_and_with_a_small_budget_has_neither(tmp_path: Path) -> None:
    code, text = printed(tmp_path, "--campaign", "batch", "--budget", "20")
    assert code == 0
    assert "features" not in text
    assert "fallback" not in text
    assert 'arms = ["openai/small"]' in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--campaign", "other"], "'chat', 'batch'"),
        (["--campaign", "chat", "--budget", "many"], "positive number of dollars"),
        (["--campaign", "chat", "--budget", "-1"], "positive number of dollars"),
    ],
)
def test_errors_say_what_to_do(tmp_path: Path, arguments: list[str], says: str) -> None:
    code, text = printed(tmp_path, *arguments)
    assert code != 0
    assert says in " ".join(text.split())
