"""Several campaigns behind one proxy, lists of models, request ids, the access log and metrics."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import openai
import pytest

from driftsack.service.gateways.proxy.observed import access
from driftsack.service.gateways.proxy.settings import CampaignRoute
from driftsack.service.web.json_logs import JsonLines
from tests.support.gateways import HELLO, Gate, gate


@pytest.fixture
def two(tmp_path: Any) -> Iterator[Gate]:
    """A proxy with two campaigns; the second one has one of the arms."""
    routes = [CampaignRoute("chat"), CampaignRoute("batch", arms=["cheap"], keys=["ds_0123456789ab"])]
    hostile_models = ["fine", "cheap"]
    with gate(str(tmp_path), hostile_models, campaigns=routes) as found:
        found.live.open("batch", arms=["cheap"], budget={"usd": "1"}, cost_max={"usd": "0.1"})
        found.upstream.behaviour = lambda model: "fine"
        yield found


def test_a_model_names_a_campaign_or_an_arm(two: Gate) -> None:
    for model in ("driftsack/batch", "batch"):
        two.complete(model)
    assert two.told("batch").told == 2
    assert two.told("chat").told == 0
    for model in ("driftsack", "driftsack/chat", "chat", "cheap", "fine"):
        two.complete(model)
    assert two.told("chat").told == 5
    with pytest.raises(openai.NotFoundError, match="model must be one of"):
        two.complete("gpt-9")
    with pytest.raises(openai.NotFoundError):
        two.openai().chat.completions.create(model=5, messages=HELLO)  # type: ignore[call-overload]


def test_a_key_has_its_campaign(two: Gate) -> None:
    routing = two.proxy._routing
    own = f"ds_0123456789ab_{'0' * 64}"
    assert routing.find(own, "driftsack")[0] == "batch"
    assert [upstream.arm for upstream in routing.find(own, "driftsack")[1]] == ["cheap"]
    assert routing.models(own) == ["driftsack", "driftsack/chat", "driftsack/batch", "cheap"]


def test_models_are_listed(two: Gate) -> None:
    names = ["driftsack", "driftsack/chat", "driftsack/batch", "fine", "cheap"]
    assert [model.id for model in two.openai().models.list()] == names
    assert [model.id for model in two.anthropic().models.list()] == names
    assert two.openai().models.retrieve("fine").id == "fine"
    assert two.openai().models.retrieve("driftsack/chat").id == "driftsack/chat"
    with pytest.raises(openai.NotFoundError):
        two.openai().models.retrieve("nobody")
    with pytest.raises(openai.NotFoundError):
        two.openai().post("/nothing", cast_to=object)


def test_each_request_has_an_id_and_a_line_in_the_log(two: Gate) -> None:
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    handler.setFormatter(JsonLines())
    access.addHandler(handler)
    access.setLevel(logging.INFO)
    try:
        body = {"model": "fine", "messages": HELLO, "max_tokens": 9}
        _, headers, _ = two.post("/v1/chat/completions", body, **{"x-request-id": "request-7"})
        assert headers["x-request-id"] == "request-7"
        _, headers, _ = two.post("/v1/chat/completions", {"model": "x"}, **{"x-request-id": "a b"})
        assert len(headers["x-request-id"]) == 24
    finally:
        access.removeHandler(handler)
    answered, refused = (json.loads(line) for line in lines.getvalue().splitlines())
    assert (answered["request"], answered["status"], answered["arms"]) == ("request-7", 200, ["fine:answered"])
    assert (answered["campaign"], answered["format"]) == ("chat", "chat")
    assert answered["key"] == two.live.key[:15]
    assert two.live.key not in lines.getvalue()
    assert Decimal(answered["dollars"]) == two.upstream.bills[-1].dollars
    assert refused["status"] == 404


def test_metrics_need_a_key_and_probes_do_not(two: Gate) -> None:
    two.complete("fine")
    assert two.openai(base_url=two.url, api_key="none").get("/healthz", cast_to=object) == {"ok": True}
    with pytest.raises(openai.AuthenticationError):
        two.openai(base_url=two.url, api_key="none").get("/metrics", cast_to=str)
    text = two.openai(base_url=two.url).get("/metrics", cast_to=str)
    assert 'driftsack_proxy_requests_total{campaign="chat",format="chat",status="200"} 1.0' in text
    assert 'driftsack_proxy_attempts_total{arm="fine",campaign="chat",outcome="answered"} 1.0' in text
