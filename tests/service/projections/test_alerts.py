"""The example alerts, tested with Prometheus's promtool: when each fires and when it does not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.paths import ROOT

pytestmark = pytest.mark.promtool

RULES = ROOT / "deploy" / "prometheus-alerts.yml"
CHAT = '{campaign="chat"}'
USD = '{campaign="chat",resource="usd"}'

# Samples each minute, in promtool's notation ("0+5x60": from 0, 60 times 5 more), that make an alert fire, the minute
# at which it does, and samples on which the same alert stays silent.
Case = tuple[dict[str, str], int, dict[str, str]]
CASES: dict[str, Case] = {
    "DriftsackNotReady": ({"driftsack_ready": "0x10"}, 3, {"driftsack_ready": "0 1x10"}),
    "DriftsackDamaged": ({"driftsack_damaged_campaigns": "1x5"}, 1, {"driftsack_damaged_campaigns": "0x5"}),
    "DriftsackOverrun": (
        {f"driftsack_campaign_overruns_total{CHAT}": "0x5 1x5"},
        7,
        {f"driftsack_campaign_overruns_total{CHAT}": "3x10"},
    ),
    "DriftsackAbsurdCost": (
        {f"driftsack_campaign_refused_total{CHAT}": "0x5 1x5"},
        7,
        {f"driftsack_campaign_refused_total{CHAT}": "3x10"},
    ),
    "DriftsackBudgetUsedUp": (
        {
            f"driftsack_budget_granted{USD}": "100x20",
            f"driftsack_budget_spent{USD}": "97x20",
            f"driftsack_budget_reserved{USD}": "2x20",
        },
        6,
        {
            f"driftsack_budget_granted{USD}": "100x20",
            f"driftsack_budget_spent{USD}": "90x20",
            f"driftsack_budget_reserved{USD}": "2x20",
        },
    ),
    "DriftsackOutcomesLost": (
        {f"driftsack_campaign_expired_total{CHAT}": "0+6x60", f"driftsack_campaign_told_total{CHAT}": "0+100x60"},
        40,
        {f"driftsack_campaign_expired_total{CHAT}": "0+4x60", f"driftsack_campaign_told_total{CHAT}": "0+100x60"},
    ),
    "DriftsackDrift": (
        {f"driftsack_drift_alarms_total{CHAT}": "0x5 1x20"},
        7,
        {f"driftsack_drift_alarms_total{CHAT}": "1x25"},
    ),
    "DriftsackCommitsSlow": (
        {
            'driftsack_commit_seconds_bucket{le="0.5"}': "0+90x30",
            'driftsack_commit_seconds_bucket{le="1.0"}': "0+100x30",
            'driftsack_commit_seconds_bucket{le="+Inf"}': "0+100x30",
        },
        16,
        {
            'driftsack_commit_seconds_bucket{le="0.5"}': "0+100x30",
            'driftsack_commit_seconds_bucket{le="1.0"}': "0+100x30",
            'driftsack_commit_seconds_bucket{le="+Inf"}': "0+100x30",
        },
    ),
    "DriftsackCampaignsDropped": (
        {"driftsack_dropped_total": "0+1x10"},
        8,
        {"driftsack_dropped_total": "0x5 1x5"},
    ),
}


def promtool(*arguments: str | Path) -> tuple[bool, str]:
    """Run promtool, and return whether it succeeded and its output."""
    program = shutil.which("promtool", path=str(Path(sys.executable).parent)) or shutil.which("promtool")
    assert program is not None, "expected promtool, found none: run tools/system_packages.sh .venv/bin"
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=60)
    return done.returncode == 0, done.stdout + done.stderr


def rules(text: str) -> dict[str, Any]:
    """Return the rules in a file, by the name of the alert."""
    return {rule["alert"]: rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]}


def labels(samples: dict[str, str]) -> dict[str, str]:
    """Return the labels that an alert inherits from its samples."""
    inside = next(iter(samples)).partition("{")[2].rstrip("}")
    found = dict(pair.split("=") for pair in inside.split(",") if pair)
    return {name: value.strip('"') for name, value in found.items() if name != "le"}


def tried(directory: Path, text: str) -> tuple[bool, str]:
    """Test rules with promtool: each alert must fire on its bad samples, and not on its good ones."""
    (directory / "rules.yml").write_text(text)
    tests = []
    for alert, (bad, minute, good) in CASES.items():
        rule = rules(text)[alert]
        there = labels(bad)
        summary = rule["annotations"]["summary"]
        for name, value in there.items():
            summary = summary.replace(f"{{{{ $labels.{name} }}}}", value)
        fired = {"exp_labels": {**rule["labels"], **there}, "exp_annotations": {"summary": summary}}
        for samples, expected in ((bad, [fired]), (good, [])):
            tests.append(
                {
                    "interval": "1m",
                    "input_series": [{"series": series, "values": values} for series, values in samples.items()],
                    "alert_rule_test": [{"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": expected}],
                }
            )
    (directory / "tests.yml").write_text(yaml.safe_dump({"rule_files": ["rules.yml"], "tests": tests}))
    return promtool("test", "rules", directory / "tests.yml")


def test_prometheus_accepts_the_rules(tmp_path: Path) -> None:
    accepted, said = promtool("check", "rules", RULES)
    assert accepted, said
    assert f"{len(CASES)} rules found" in said
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(RULES.read_text().replace("driftsack_ready == 0", "driftsack_ready == "))
    assert not promtool("check", "rules", wrong)[0]


def test_every_alert_fires_when_it_should_and_only_then(tmp_path: Path) -> None:
    assert set(rules(RULES.read_text())) == set(CASES)
    passed, said = tried(tmp_path, RULES.read_text())
    assert passed, said


@pytest.mark.parametrize(
    ("right", "wrong", "alert"),
    [
        ("driftsack_ready == 0", "driftsack_ready == 1", "DriftsackNotReady"),
        ("> 0.05 * rate", "> 0.5 * rate", "DriftsackOutcomesLost"),
        ("> 0.98 *", "> 0.9 *", "DriftsackBudgetUsedUp"),
        ("histogram_quantile(0.99,", "histogram_quantile(0.5,", "DriftsackCommitsSlow"),
        ("increase(driftsack_drift_alarms_total[1h]) > 0", "driftsack_drift_alarms_total > 0", "DriftsackDrift"),
    ],
)
def test_a_wrong_rule_is_noticed(tmp_path: Path, right: str, wrong: str, alert: str) -> None:
    text = RULES.read_text()
    assert text.count(right) == 1
    passed, said = tried(tmp_path, text.replace(right, wrong))
    assert not passed
    assert f"alertname: {alert}" in said
