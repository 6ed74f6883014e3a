"""Features of requests: from the prompt, from a header, or from a function."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from driftsack.service.domain.features import Features
from driftsack.service.gateways.prompts.features import PROMPT_FEATURES, prompt_features
from driftsack.service.gateways.proxy.clients import ClientPool
from driftsack.service.gateways.proxy.settings import CampaignRoute
from tests.support.gateways import HELLO, Gate, gate

HERE = "tests.service.gateways.proxy.test_contexts"
CHAT = "/v1/chat/completions"
BODY = {"model": "driftsack", "messages": HELLO, "max_tokens": 9}
KINDS = {"features": Features(numbers=["words"], categories={"kind": ["chat", "code"]}), "policy": None}


def words(request: dict[str, Any]) -> dict[str, Any]:
    """A function of a user."""
    text = request["messages"][-1]["content"]
    return {"words": len(text.split()), "kind": "code" if "def " in text else "chat"}


def broken(request: dict[str, Any]) -> dict[str, Any]:
    """A function that fails."""
    raise RuntimeError("planted")


def infinite(request: dict[str, Any]) -> dict[str, Any]:
    """A function whose result JSON does not have."""
    return {"words": float("inf"), "kind": "chat"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The contexts that the service was asked with."""
    usual, found = ClientPool.ask, list[Any]()

    async def noting(self: ClientPool, key: str, campaign: str, terms: Any) -> Any:
        found.append(terms.context)
        return await usual(self, key, campaign, terms)

    monkeypatch.setattr(ClientPool, "ask", noting)
    return found


def code_of(found: Gate, **headers: str) -> tuple[int, str, str]:
    """Send a request; return the status, and the code and the message of an error."""
    status, _, answer = found.post(CHAT, BODY, **headers)
    error = json.loads(answer).get("error", {})
    return status, error.get("code", ""), error.get("message", "")


def test_prompts_are_contexts(tmp_path: Any, asked: list[Any]) -> None:
    campaign = {"features": Features(**PROMPT_FEATURES), "policy": None}
    with gate(str(tmp_path), ["fine", "cheap"], campaign, features="prompt") as found:
        found.upstream.behaviour = lambda model: "fine"
        found.complete("driftsack")
        found.anthropic().messages.create(model="driftsack", max_tokens=9, messages=HELLO, system="Be short.")
        assert found.told().told == 2
        assert asked[0] == prompt_features({"messages": HELLO})
        assert asked[1] == prompt_features({"messages": HELLO, "system": "Be short."})
        assert asked[0]["system"] == "none" != asked[1]["system"]
        status, code, message = code_of(found, **{"x-driftsack-context": "{}"})
        assert (status, code) == (400, "invalid_request")
        assert "x-driftsack-context is not used" in message
        assert found.told().told == 2


def test_a_fallback_has_the_same_context(tmp_path: Any, asked: list[Any]) -> None:
    campaign = {"features": Features(**PROMPT_FEATURES), "policy": None}
    with gate(str(tmp_path), ["fails", "dead-key"], campaign, features="prompt") as found:
        assert code_of(found)[0] == 502
        assert asked == [prompt_features(BODY)] * 2


def test_callers_send_contexts(tmp_path: Any, asked: list[Any]) -> None:
    name = "x-driftsack-context"
    with gate(str(tmp_path), ["fine"], KINDS, features="header") as found:
        given = {"words": 5, "kind": "code"}
        assert code_of(found, **{name: json.dumps(given)})[0] == 200
        assert asked == [given]
        for wrong, says in [
            ("{", "JSON"),
            ("[]", "object"),
            ('{"words": NaN}', "NaN"),
            ('{"words": 5}', "kind"),
            ('{"words": "many", "kind": "code"}', "words"),
        ]:
            status, code, message = code_of(found, **{name: wrong})
            assert (status, code) == (400, "invalid_request")
            assert says in message
        assert code_of(found)[0] == 400  # the campaign needs a context
        assert found.told().told == 1


def test_a_function_computes_contexts(tmp_path: Any, asked: list[Any]) -> None:
    with gate(str(tmp_path), ["fine"], KINDS, features=f"{HERE}:words") as found:
        assert code_of(found)[0] == 200
        assert asked == [{"words": 1, "kind": "chat"}]


@pytest.mark.parametrize("function", [broken, infinite])
def test_a_function_that_fails_costs_nothing(tmp_path: Any, function: Any) -> None:
    with gate(str(tmp_path), ["fine"], KINDS, features=f"{HERE}:{function.__name__}") as found:
        assert code_of(found)[:2] == (500, "misconfigured")
        assert found.upstream.seen == []
        assert found.told() == (0, 0.0, Decimal(0))


def test_proxy_and_campaign_must_agree(tmp_path: Any) -> None:
    routes = [CampaignRoute("chat", features=""), CampaignRoute("plain")]
    with gate(str(tmp_path), ["fine"], KINDS, features="prompt", campaigns=routes) as found:
        found.live.open("plain", arms=["fine"], budget={"usd": "1"}, cost_max={"usd": "0.1"})
        for model, says in [("driftsack/chat", "words"), ("driftsack/plain", "the campaign has no features")]:
            status, _, answer = found.post(CHAT, {**BODY, "model": model})
            assert (status, json.loads(answer)["error"]["code"]) == (500, "misconfigured")
            assert says in json.loads(answer)["error"]["message"]
        assert found.upstream.seen == []


def test_each_campaign_has_features_of_its_own(tmp_path: Any, asked: list[Any]) -> None:
    routes = [CampaignRoute("chat", features=f"{HERE}:words"), CampaignRoute("plain", features="")]
    with gate(str(tmp_path), ["fine"], KINDS, features="prompt", campaigns=routes) as found:
        found.live.open("plain", arms=["fine"], budget={"usd": "1"}, cost_max={"usd": "0.1"})
        for campaign in ("driftsack/plain", "driftsack/chat"):
            found.complete(campaign)
        assert asked == [None, {"words": 1, "kind": "chat"}]
