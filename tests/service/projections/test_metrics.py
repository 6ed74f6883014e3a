"""Metrics, the Prometheus and Grafana files that use them, and traces."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families

from driftsack.core.errors import MissingExtraError
from driftsack.service.web.api.tracing import Traced
from driftsack.service.web.server import with_traces
from tests.support.live_service import Live, serving
from tests.support.paths import ROOT

NAME = re.compile(r"driftsack_[a-z_]+")


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with serving(str(tmp_path_factory.mktemp("metrics") / "s.db")) as found:
        found.open("chat", budget={"usd": "10"}, late=1)
        found.open("other")
        yield found


def scraped(live: Live) -> dict[tuple[str, tuple[str, ...]], float]:
    """Return all samples, by name and labels."""
    status, text = live.call("GET", "/metrics")
    assert status == 200
    families = text_string_to_metric_families(text)
    return {(s.name, tuple(s.labels.values())): s.value for family in families for s in family.samples}


def test_metrics_say_what_happened(live: Live) -> None:
    before = scraped(live)
    numbers = [live.ask()["decision"] for _ in range(3)]
    path = "/v1/campaigns/chat/decisions"
    live.call("POST", f"{path}/{numbers[0]}/tell", {"reward": 1, "costs": {"usd": "0.05"}})
    live.call("POST", f"{path}/{numbers[1]}/tell", {"reward": 1, "costs": {"usd": "0.15"}})  # above its reservation
    found = scraped(live)
    assert found["driftsack_budget_granted", ("chat", "usd")] == 10
    assert found["driftsack_budget_spent", ("chat", "usd")] == pytest.approx(0.2)
    assert found["driftsack_budget_reserved", ("chat", "usd")] == pytest.approx(0.1)
    assert found["driftsack_budget_overrun", ("chat", "usd")] == pytest.approx(0.05)
    assert found["driftsack_campaign_pending", ("chat",)] == 1
    assert found["driftsack_campaign_told_total", ("chat",)] == 2
    assert found["driftsack_campaign_overruns_total", ("chat",)] == 1
    assert found["driftsack_campaign_state", ("chat", "active")] == 1
    assert found["driftsack_campaign_state", ("chat", "paused")] == 0
    assert found["driftsack_campaign_lag_events", ("chat",)] == 0
    by_arm = {labels: value for (name, labels), value in found.items() if name == "driftsack_decisions_total"}
    assert sum(value for labels, value in by_arm.items() if "chat" in labels) == 3
    assert found["driftsack_drift_alarms_total", ("chat",)] == 0
    assert found["driftsack_ready", ()] == 1
    commits = found["driftsack_commit_seconds_count", ()] - before["driftsack_commit_seconds_count", ()]
    assert commits == found["driftsack_commits_total", ()] - before["driftsack_commits_total", ()] == 5


def families(live: Live) -> set[str]:
    """Return the names of all samples."""
    return {name for name, _ in scraped(live)}


def unknown(text: str, known: set[str]) -> set[str]:
    """Return the metrics in a file that the service does not export."""
    return {name for name in NAME.findall(text) if name not in known}


def test_the_files_for_prometheus_and_grafana_use_metrics_that_exist(live: Live) -> None:
    live.ask()
    known = families(live)
    alerts = (ROOT / "deploy" / "prometheus-alerts.yml").read_text()
    board = json.loads((ROOT / "deploy" / "grafana-dashboard.json").read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert len(queries) >= 8
    assert unknown(alerts, known) == set()
    assert unknown(" ".join(queries), known) == set()
    assert unknown("rate(driftsack_decided_total[5m])", known) == {"driftsack_decided_total"}  # a planted fault
    page = (ROOT / "docs" / "metrics.md").read_text()
    documented = set(NAME.findall(page))
    plain = {name for name in known if not name.endswith(("_created", "_bucket", "_sum", "_count"))}
    assert plain - documented == set()


def test_alert_rules_are_complete() -> None:
    import yaml

    groups = yaml.safe_load((ROOT / "deploy" / "prometheus-alerts.yml").read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules) >= 6
    for rule in rules:
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["summary"]


def test_requests_are_traced(tmp_path: Path) -> None:
    exporter = InMemorySpanExporter()
    made: list[Traced] = []

    def wrap(app: Any) -> Traced:
        made.append(Traced(app, exporter))
        return made[0]

    with serving(str(tmp_path / "s.db"), wrap=wrap) as live:
        live.open("chat")
        parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        live.call("POST", "/v1/campaigns/chat/decisions", {}, traceparent=parent)
        live.call("GET", "/v1/nothing")
        live.call("GET", "/healthz")
        made[0].provider.force_flush()
        spans = {span.name: span for span in exporter.get_finished_spans()}
    assert set(spans) == {"POST /v1/campaigns", "POST /v1/campaigns/{campaign}/decisions", "GET unknown"}
    asked = spans["POST /v1/campaigns/{campaign}/decisions"]
    assert asked.attributes is not None
    assert asked.attributes["http.response.status_code"] == 200
    assert asked.attributes["driftsack.campaign"] == "chat"
    assert asked.parent is not None
    assert f"{asked.parent.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"


def test_traces_need_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    app: Any = object()
    assert with_traces(app, "") is app
    monkeypatch.setitem(sys.modules, "driftsack.service.web.api.tracing", None)
    with pytest.raises(MissingExtraError, match="otel"):
        with_traces(app, "http://localhost:4318/v1/traces")
