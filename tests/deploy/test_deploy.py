"""The files in ``deploy``: what they name exists in our commands, settings and image."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from typer.testing import CliRunner

from driftsack.cli import app
from driftsack.core.release import __version__
from driftsack.service.gateways.proxy.settings import ProxySettings, read_settings
from driftsack.service.web.server import Settings
from tests.support.helm_templates import chart_documents, rendered, values_of
from tests.support.paths import ROOT

DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "driftsack"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
SETTINGS = {f"DRIFTSACK_{name.upper()}" for name in Settings._fields}
KUBERNETES = "1.37"


def image() -> dict[str, Any]:
    """What the Dockerfile says: its ports, volumes and default command."""
    lines = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    found = {line.split()[0]: line.partition(" ")[2] for line in lines if line and not line.startswith("#")}
    return {"port": found["EXPOSE"], "volume": found["VOLUME"], "health": found["HEALTHCHECK"], "command": found["CMD"]}


def command_exists(words: list[str]) -> bool:
    return words[0] == "driftsack" and CliRunner().invoke(app, [words[1], "--help"]).exit_code == 0


def test_the_image_is_healthy_when_it_answers() -> None:
    found = image()
    assert f"http://127.0.0.1:{Settings().port}/healthz" in found["health"]
    assert found["port"] == str(Settings().port)
    assert command_exists(json.loads(found["command"]))
    code = json.loads(found["health"].partition("CMD ")[2])
    assert code[:2] == ["python", "-c"]
    compile(code[2], "health", "exec")


def test_compose_names_services_volumes_and_files_that_exist() -> None:
    assert set(SERVICES) == {"postgres", "service", "proxy", "prometheus", "grafana"}
    own = {"proxy.toml", "metrics.key"}  # made by the first lines of the file, and not in the repository
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    for service in SERVICES.values():
        assert set(service.get("depends_on", {})) <= set(SERVICES)
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if not source.startswith("./"):
                assert source in COMPOSE["volumes"]
            elif source[2:] in own:
                assert f"deploy/{source[2:]}" in ignored
                assert source[2:] in (DEPLOY / "compose.yaml").read_text().partition("name:")[0]
            else:
                assert (DEPLOY / source).exists()
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:")  # nothing is open to the network by default


def test_compose_sets_settings_that_exist() -> None:
    environment = SERVICES["service"]["environment"]
    assert {name for name in environment if name.startswith("DRIFTSACK_")} <= SETTINGS
    assert environment["DRIFTSACK_STORE"].endswith(f"@postgres/{SERVICES['postgres']['environment']['POSTGRES_DB']}")
    assert environment["DRIFTSACK_KEY_FILE"].startswith(image()["volume"])
    assert "service:/data" in SERVICES["service"]["volumes"]
    assert SERVICES["service"]["ports"] == [f"127.0.0.1:{Settings().port}:{Settings().port}"]


def test_the_proxy_of_compose_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = SERVICES["proxy"]
    assert command_exists(proxy["command"])
    assert "./proxy.toml:" + proxy["command"][2] + ":ro" in proxy["volumes"]
    for name in proxy["environment"]:
        monkeypatch.setenv(name, "sk-test")
    settings = read_settings(DEPLOY / "proxy.example.toml")
    assert settings.service == f"http://service:{Settings().port}"
    assert proxy["ports"] == [f"127.0.0.1:{settings.port}:{settings.port}"]
    assert f"127.0.0.1:{settings.port}/healthz" in proxy["healthcheck"]["test"][3]


def test_prometheus_and_grafana_are_connected() -> None:
    scraped = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())
    targets = {job["static_configs"][0]["targets"][0] for job in scraped["scrape_configs"]}
    assert targets == {f"service:{Settings().port}", f"proxy:{ProxySettings([]).port}"}
    mounted = {volume.split(":")[1] for volume in SERVICES["prometheus"]["volumes"]}
    assert {
        *scraped["rule_files"],
        *(job["authorization"]["credentials_file"] for job in scraped["scrape_configs"]),
    } <= mounted
    folder = DEPLOY / "grafana-provisioning"
    source = yaml.safe_load((folder / "datasources" / "prometheus.yml").read_text())["datasources"][0]
    assert (source["type"], source["url"]) == ("prometheus", "http://prometheus:9090")
    boards = yaml.safe_load((folder / "dashboards" / "driftsack.yml").read_text())["providers"][0]["options"]["path"]
    assert f"./grafana-dashboard.json:{boards}/driftsack.json:ro" in SERVICES["grafana"]["volumes"]


def test_the_chart_has_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == __version__
    assert values_of(CHART)["Values"]["image"] == f"driftsack:{__version__}"


def test_kubernetes_accepts_the_chart() -> None:
    """And refuses a planted fault; with strict schemas an unknown field is one."""
    documents = chart_documents(CHART)
    assert [document["kind"] for document in documents] == [
        "ConfigMap",
        "Service",
        "Deployment",
        "Service",
        "Deployment",
    ]
    for document in documents:
        kubernetes_validate.validate(document, KUBERNETES, strict=True)
    documents[-1]["spec"]["replica"] = 3
    with pytest.raises(kubernetes_validate.ValidationError, match="replica"):
        kubernetes_validate.validate(documents[-1], KUBERNETES, strict=True)
    assert [document["kind"] for document in chart_documents(CHART, proxy__enabled=False)] == ["Service", "Deployment"]


def test_a_template_with_a_value_that_does_not_exist_is_found() -> None:
    """The planted fault."""
    with pytest.raises(KeyError):
        rendered("a: {{ .Values.no.such }}", values_of(CHART))
    with pytest.raises(KeyError):
        rendered("a: {{ .Values.image | nosuch }}", values_of(CHART))


def pods() -> dict[str, dict[str, Any]]:
    """The pods of the chart by component."""
    found = [d["spec"]["template"] for d in chart_documents(CHART) if d["kind"] == "Deployment"]
    return {pod["metadata"]["labels"]["app.kubernetes.io/component"]: pod for pod in found}


def test_services_select_pods_by_ports_that_exist() -> None:
    for service in (d for d in chart_documents(CHART) if d["kind"] == "Service"):
        wanted = service["spec"]["selector"]
        (pod,) = [p for p in pods().values() if wanted.items() <= p["metadata"]["labels"].items()]
        (port,) = pod["spec"]["containers"][0]["ports"]
        assert service["spec"]["ports"][0]["targetPort"] == port["name"] == "http"
        assert service["spec"]["ports"][0]["port"] == port["containerPort"]


def test_the_pods_have_settings_commands_and_probes_that_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service, proxy = (pods()[name]["spec"] for name in ("service", "proxy"))
    for pod in (service, proxy):
        assert pod["enableServiceLinks"] is False  # otherwise DRIFTSACK_PORT is tcp://..., which is no port
        assert pod["securityContext"]["runAsNonRoot"] is True
    container = service["containers"][0]
    names = {each["name"] for each in container["env"]} - {"POD_IP"}
    assert names <= SETTINGS
    assert container["ports"][0]["containerPort"] == Settings().port
    assert {probe["httpGet"]["path"] for name, probe in container.items() if name.endswith("Probe")} == {
        "/healthz",
        "/readyz",
    }
    container = proxy["containers"][0]
    assert command_exists(container["command"])
    (config,) = [d for d in chart_documents(CHART) if d["kind"] == "ConfigMap"]
    text = config["data"]["proxy.toml"]
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    (tmp_path / "proxy.toml").write_text(text)
    settings = read_settings(tmp_path / "proxy.toml")
    assert settings.port == container["ports"][0]["containerPort"]
    assert settings.service == f"http://driftsack:{Settings().port}"
    assert proxy["terminationGracePeriodSeconds"] >= settings.most_seconds
    assert container["command"][2] == f"{container['volumeMounts'][0]['mountPath']}/proxy.toml"
    assert tomllib.loads(text)["host"] == "0.0.0.0"
