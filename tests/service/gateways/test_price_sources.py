"""Prices from files and from the table of an installed LiteLLM."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from driftsack.cli import app
from driftsack.service.gateways.proxy.prices import Prices
from driftsack.service.gateways.proxy.settings import read_settings

ENTRY = {
    "input_cost_per_token": 1.5e-07,
    "input_cost_per_token_above_200k_tokens": 3e-07,
    "input_cost_per_token_priority": 9e-07,
    "output_cost_per_token": 6e-07,
    "cache_read_input_token_cost": 7.5e-08,
    "cache_creation_input_token_cost": 2e-07,
    "cache_creation_input_token_cost_above_1hr": 4e-07,
    "output_cost_per_reasoning_token": 7e-07,
    "mode": "chat",
}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package ``litellm`` with a small table, which must not be imported."""
    package = tmp_path / "site" / "litellm"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('it was imported')")
    metadata = tmp_path / "site" / "litellm-1.200.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: litellm\nVersion: 1.200.0\n")
    table = {"mini-1": ENTRY, "picture-1": {"output_cost_per_image": 0.04}}
    (package / "model_prices_and_context_window_backup.json").write_text(json.dumps(table))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return tmp_path


def test_the_table_of_litellm_becomes_one_that_the_proxy_reads(installed: Path) -> None:
    done = CliRunner().invoke(app, ["prices", "mini-1"])
    assert done.exit_code == 0, done.output
    assert "Dollars per million tokens, from LiteLLM 1.200.0" in done.stdout
    assert "litellm" not in sys.modules
    (installed / "prices.toml").write_text(done.stdout)
    upstream = "arm = 'a'\nurl = 'http://x'\nmodel = 'mini-1'"
    (installed / "proxy.toml").write_text(f"campaign = 'c'\nprice_table = 'prices.toml'\n[[upstream]]\n{upstream}")
    found = read_settings(installed / "proxy.toml").upstream[0].prices()
    assert found == Prices("0.3", "0.6", "0.075", "0.4", "0.7")  # the highest that may apply


def test_a_file_is_shown_and_unknown_models_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text('m = [{ input = "1" }, { input = "2", output = "3", since = 2027-01-01 }]\nn = { input = "5" }')
    done = CliRunner().invoke(app, ["prices", "m", "--table", str(path)])
    assert done.stdout.splitlines()[1:] == [
        '"m" = [{ input = "1" }, { input = "2", output = "3", since = 2027-01-01 }]'
    ]
    shown = json.loads(CliRunner().invoke(app, ["prices", "--table", str(path), "--json"]).stdout)
    assert shown["unit"] == "dollars per million tokens"
    assert shown["prices"]["n"]["input"] == "5"
    refused = CliRunner().invoke(app, ["prices", "nobody", "--table", str(path)])
    assert refused.exit_code != 0
    assert "Traceback" not in refused.output


def test_without_litellm_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    refused = CliRunner().invoke(app, ["prices"])
    assert refused.exit_code != 0
    assert "driftsack[litellm]" in refused.output
