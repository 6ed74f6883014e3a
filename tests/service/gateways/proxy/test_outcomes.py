"""What is told: rewards of a user's function, seconds, and outcomes while the service is away."""

from __future__ import annotations

import asyncio
import json
import time
from decimal import Decimal
from typing import Any

import openai
import pytest

from driftsack.client.messages import ServiceUnavailableError
from driftsack.client.transport import Transport
from driftsack.service.gateways.proxy import outcomes
from driftsack.service.gateways.proxy.clients import ClientPool
from driftsack.service.gateways.proxy.prices import Prices
from tests.support.gateways import HELLO, gate

HERE = "tests.service.gateways.proxy.test_outcomes"


def worlds(request: dict[str, Any], answer: dict[str, Any], seconds: float) -> float:
    """A reward function: 0.5 for each "world" in the answer."""
    assert request["messages"]
    assert 0 <= seconds < 60
    parts = answer["choices"][0]["message"]["content"] if "choices" in answer else answer["content"][0]["text"]
    return 0.5 * str(parts).count("world")


def broken(request: dict[str, Any], answer: dict[str, Any], seconds: float) -> float:
    """A reward function that fails."""
    raise RuntimeError("planted")


def absurd(request: dict[str, Any], answer: dict[str, Any], seconds: float) -> float:
    """A reward function whose result the service would refuse."""
    return 1e300


@pytest.mark.parametrize(("function", "reward"), [(worlds, 0.5), (broken, 0.0), (absurd, 0.0)])
def test_a_function_computes_the_reward(tmp_path: Any, function: Any, reward: float) -> None:
    with gate(str(tmp_path), ["fine"], reward=f"{HERE}:{function.__name__}") as found:
        found.complete("fine")
        list(found.complete("fine", stream=True))
        found.anthropic().messages.create(model="fine", max_tokens=9, messages=HELLO)
        assert found.told() == (3, 3 * reward, found.upstream.charged())


def test_seconds_are_charged_and_limit_an_attempt(tmp_path: Any) -> None:
    campaign = {"budget": {"usd": "10", "seconds": "100"}, "cost_max": {"usd": "0.1", "seconds": "0.5"}}
    with gate(str(tmp_path), ["slow", "hangs"], campaign, time="seconds", fallback=False) as found:
        found.complete("slow")
        with pytest.raises(openai.APIStatusError) as caught:
            found.complete("hangs")
        assert caught.value.status_code == 504  # after the seconds that are reserved
        found.told()
        _, budgets = found.live.call("GET", "/v1/campaigns/chat/budgets")
        spent, overrun = (Decimal(budgets["budgets"][1][name]) for name in ("spent", "overrun"))
        assert Decimal("0.7") <= spent <= 1
        assert overrun == 0


@pytest.mark.parametrize("stream", [False, True])
def test_outcomes_are_told_when_the_service_is_back(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    """The planted fault is in the same test: without repetition, decisions stay open."""
    usual = Transport.post
    refused: list[str] = []

    def away(self: Transport, path: str, *given: Any) -> Any:
        if path.endswith("/tell") and len(refused) < 3:
            refused.append(path)
            raise ServiceUnavailableError(503, "unavailable", "planted")
        return usual(self, path, *given)

    monkeypatch.setattr(Transport, "post", away)
    with gate(str(tmp_path), ["fine"]) as found:
        answer = found.complete("fine", stream=stream)
        assert list(answer) if stream else answer
        assert found.told() == (1, 1.0, found.upstream.charged())
        assert len(refused) == 3
        # With a wait that does not end, the decision is still open.
        refused.clear()
        monkeypatch.setattr(outcomes, "FIRST_WAIT", 1000.0)
        found.complete("fine")
        time.sleep(0.3)
        assert found.live.call("GET", "/v1/campaigns/chat")[1]["pending"] == 1
        monkeypatch.setattr(outcomes, "CLOSING", 0.1)


def test_a_campaign_with_a_resource_that_is_not_measured_is_refused_before_the_call(tmp_path: Any) -> None:
    campaign = {"budget": {"usd": "10", "calls": "100"}, "cost_max": {"usd": "0.1", "calls": "1"}}
    with gate(str(tmp_path), ["fine"], campaign) as found:
        status, _, answer = found.post("/v1/chat/completions", {"model": "fine", "messages": HELLO})
        assert (status, json.loads(answer)["error"]["code"]) == (500, "misconfigured")
        assert b"calls" in answer
        assert found.upstream.seen == []
        assert found.told() == (0, 0.0, Decimal(0))


def test_an_arm_is_not_judged_by_the_time_that_the_service_took(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = ClientPool.ask

    async def slow(self: ClientPool, *given: Any) -> Any:
        decision = await usual(self, *given)
        await asyncio.sleep(0.5)
        return decision

    monkeypatch.setattr(ClientPool, "ask", slow)
    with gate(str(tmp_path), ["fine"], most_seconds=0.4, rest=100.0) as found:
        status, _, answer = found.post("/v1/chat/completions", {"model": "fine", "messages": HELLO})
        assert (status, json.loads(answer)["error"]["code"]) == (504, "upstream_timeout")
        assert found.upstream.seen == []
        assert found.told() == (0, 0.0, Decimal(0))  # cancelled
        monkeypatch.undo()
        assert found.complete("fine").choices  # the arm does not rest


def test_an_upstream_that_is_free_reserves_nothing(tmp_path: Any) -> None:
    with gate(str(tmp_path), ["fine", "breaks"], upstream={"price": Prices("0")}, fallback=False) as found:
        assert found.complete("fine").choices
        assert found.post("/v1/chat/completions", {"model": "breaks", "messages": HELLO})[0] == 502
        assert found.told() == (2, 1.0, Decimal(0))
