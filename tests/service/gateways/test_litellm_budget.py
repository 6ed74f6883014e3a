"""The LiteLLM plugin, called as LiteLLM calls it; ``python -m lab litellm`` uses the real package."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from driftsack.core.errors import MissingExtraError, SettingError
from driftsack.service.domain.features import Features
from driftsack.service.gateways import litellm_budget
from driftsack.service.gateways.litellm_budget import BudgetRouting, SkippedError
from driftsack.service.gateways.prompts.features import prompt_features
from tests.support.live_service import Live, serving

START = datetime(2026, 1, 1, tzinfo=UTC)
END = START + timedelta(seconds=2)
Call = Callable[[BudgetRouting, dict[str, Any]], Awaitable[None]]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with serving(str(tmp_path_factory.mktemp("litellm") / "s.db")) as found:
        yield found


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace LiteLLM's base class of callbacks, of which the plugin uses nothing."""
    monkeypatch.setattr(litellm_budget, "Logger", type("CustomLogger", (), {}))


def told(live: Live, name: str) -> tuple[int, float, Decimal]:
    """Return outcomes, reward and dollars of a campaign."""
    _, found = live.call("GET", f"/v1/campaigns/{name}")
    _, budgets = live.call("GET", f"/v1/campaigns/{name}/budgets")
    return found["told"], found["reward"], Decimal(budgets["budgets"][0]["spent"])


async def choose(plugin: BudgetRouting, healthy: list[str]) -> dict[str, Any]:
    """Route a request as LiteLLM does, and return its metadata: one of the healthy deployments is chosen."""
    context = await plugin.run(SimpleNamespace(candidate_models=["openai/a", "openai/b"], signals={}))
    assert context.candidate_models == ["openai/a", "openai/b"]
    metadata: dict[str, Any] = {"routing_plugin_signals": context.signals}
    deployments = [{"litellm_params": {"model": model}} for model in healthy]
    chosen = await plugin.async_filter_deployments("chat", deployments, [], {"metadata": metadata})
    assert len({deployment["litellm_params"]["model"] for deployment in chosen}) == 1
    assert all(deployment in deployments for deployment in chosen)
    return metadata


def routed(
    live: Live, name: str, after: Call, campaign: dict[str, Any] | None = None, **settings: Any
) -> tuple[int, float, Decimal]:
    """Route one request, report its outcome by ``after``, and return the state of the campaign."""
    arms = {"arms": ["openai/a", "openai/b"], "budget": {"usd": "1"}, "cost_max": {"usd": "0.01"}, "lease": 1}
    live.open(name, **{**arms, **(campaign or {})})

    async def run() -> None:
        plugin = BudgetRouting(live.url, live.key, name, **settings)
        metadata = await choose(plugin, ["openai/b", "openai/b"])
        given = {"litellm_params": {"metadata": metadata}, "response_cost": 0.002}
        plugin.log_pre_api_call("openai/b", [], given)
        await after(plugin, given)
        await plugin.close()

    asyncio.run(run())
    return told(live, name)


async def once(plugin: BudgetRouting, given: dict[str, Any]) -> None:
    await plugin.async_log_success_event(given, None, START, END)


async def twice(plugin: BudgetRouting, given: dict[str, Any]) -> None:
    await once(plugin, given)
    await once(plugin, given)
    await plugin.async_log_failure_event(given, None, START, END)


async def failed(plugin: BudgetRouting, given: dict[str, Any]) -> None:
    await plugin.async_log_failure_event({**given, "response_cost": None}, None, START, END)


async def unpriced(plugin: BudgetRouting, given: dict[str, Any]) -> None:
    await once(plugin, {**given, "response_cost": None})


async def never(plugin: BudgetRouting, given: dict[str, Any]) -> None:
    """The callback is lost."""


async def of_another_caller(plugin: BudgetRouting, given: dict[str, Any]) -> None:
    await once(plugin, {**given, "litellm_params": {"metadata": {"routing_plugin_signals": None}}})
    await once(plugin, {})


CHARGED = Decimal("0.002")
WORST = Decimal("0.01")


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (once, (1, 1.0, CHARGED)),
        (twice, (1, 1.0, CHARGED)),
        (failed, (1, 0.0, Decimal(0))),
        (unpriced, (0, 0.0, WORST)),
    ],
)
def test_an_outcome_is_told_once(live: Live, after: Call, expected: tuple[int, float, Decimal]) -> None:
    assert routed(live, after.__name__, after) == expected


@pytest.mark.parametrize("after", [never, of_another_caller])
def test_a_lost_callback_is_charged_when_its_lease_ends(live: Live, after: Call) -> None:
    assert routed(live, after.__name__, after) == (0, 0.0, Decimal(0))
    end = time.monotonic() + 10
    while told(live, after.__name__)[2] == 0 and time.monotonic() < end:
        time.sleep(0.05)
    assert told(live, after.__name__) == (0, 0.0, WORST)


def test_a_plugin_that_counts_twice_is_noticed(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = BudgetRouting._settle

    async def forgetful(self: BudgetRouting, *given: Any) -> None:
        await usual(self, *given)
        another = await self._client.ask()
        self._decisions = dict.fromkeys(self._decisions, another)  # type: ignore[assignment]

    monkeypatch.setattr(BudgetRouting, "_settle", forgetful)
    assert routed(live, "forgetful", twice) != (1, 1.0, CHARGED)


def test_plugins_of_two_campaigns_do_not_take_each_others_outcomes(live: Live) -> None:
    async def both(plugin: BudgetRouting, given: dict[str, Any]) -> None:
        other = BudgetRouting(live.url, live.key, "second")
        await choose(other, ["openai/a"])  # also its first decision
        await once(plugin, given)
        await once(other, given)  # LiteLLM calls both
        await other.close()

    live.open("second", arms=["openai/a"], budget={"usd": "1"}, cost_max={"usd": "0.01"})
    assert routed(live, "first", both) == (1, 1.0, CHARGED)
    assert told(live, "second") == (0, 0.0, Decimal(0))


def test_rewards_come_from_the_request_or_a_function(live: Live) -> None:
    async def scored(plugin: BudgetRouting, given: dict[str, Any]) -> None:
        given["litellm_params"]["metadata"]["driftsack_reward"] = 0.25
        await once(plugin, given)

    assert routed(live, "scored", scored)[1] == 0.25
    assert routed(live, "computed", scored, reward=lambda *_: 0.5)[1] == 0.5


def test_a_request_that_is_skipped_is_not_sent(live: Live) -> None:
    live.open("empty", arms=["openai/a"], budget={"usd": "0.005"}, cost_max={"usd": "0.01"})

    async def run() -> None:
        plugin = BudgetRouting(live.url, live.key, "empty")
        try:
            await choose(plugin, ["openai/a"])
        finally:
            await plugin.close()

    with pytest.raises(SkippedError, match="budget"):
        asyncio.run(run())


def test_litellm_must_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(litellm_budget, "Logger", object)
    with pytest.raises(MissingExtraError, match="litellm"):
        BudgetRouting("http://localhost:8787", "ds_key", "chat")


def pending(live: Live, name: str) -> int:
    """Return the number of decisions of a campaign without an outcome."""
    return int(live.call("GET", f"/v1/campaigns/{name}")[1]["pending"])


def test_a_decision_that_no_call_follows_is_cancelled(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    live.open("unused", arms=["openai/a", "openai/b"], budget={"usd": "1"}, cost_max={"usd": "0.01"})

    async def run() -> None:
        plugin = BudgetRouting(live.url, live.key, "unused")
        # LiteLLM chooses again, with the mark of the first decision.
        metadata = await choose(plugin, ["openai/a"])
        deployments = [{"litellm_params": {"model": "openai/b"}}]
        await plugin.async_filter_deployments("chat", deployments, [], {"litellm_metadata": metadata})
        assert await asyncio.to_thread(pending, live, "unused") == 1
        # It reports a failure before any call: nothing is learnt.
        await plugin.async_log_failure_event({"litellm_params": {"metadata": metadata}}, None, START, END)
        assert await asyncio.to_thread(pending, live, "unused") == 0
        # The plugin is closed.
        await choose(plugin, ["openai/a"])
        await plugin.close()
        assert await asyncio.to_thread(pending, live, "unused") == 0

    asyncio.run(run())
    assert told(live, "unused") == (0, 0.0, Decimal(0))


@pytest.mark.parametrize("told_later", [False, True])
def test_a_call_that_waits_for_long_is_charged(live: Live, monkeypatch: pytest.MonkeyPatch, told_later: bool) -> None:
    """Its decision is forfeited, and replaced by the outcome if that comes; it was cancelled, and the call was free."""
    name = f"waits-{told_later}".lower()
    live.open(name, arms=["openai/a", "openai/b"], budget={"usd": "1"}, cost_max={"usd": "0.01"})
    monkeypatch.setattr(litellm_budget, "UNUSED", 0.05)

    async def run() -> None:
        plugin = BudgetRouting(live.url, live.key, name)
        metadata = await choose(plugin, ["openai/a"])
        while await asyncio.to_thread(pending, live, name):
            await asyncio.sleep(0.02)
        given = {"litellm_params": {"metadata": metadata}, "response_cost": 0.002}
        if told_later:
            plugin.log_pre_api_call("openai/a", [], given)
            await once(plugin, given)
        await plugin.close()

    asyncio.run(run())
    assert told(live, name) == ((1, 1.0, CHARGED) if told_later else (0, 0.0, WORST))


def failing(*_: Any) -> float:
    raise RuntimeError("planted")


@pytest.mark.parametrize("reward", [failing, lambda *_: "good", lambda *_: float("nan"), None])
def test_a_reward_that_is_no_number_is_0_and_the_cost_is_told(live: Live, reward: Any) -> None:
    async def scored(plugin: BudgetRouting, given: dict[str, Any]) -> None:
        given["litellm_params"]["metadata"]["driftsack_reward"] = "good"
        await once(plugin, given)

    name = f"bad-{getattr(reward, '__name__', 'none').strip('<>')}-{id(reward)}"
    assert routed(live, name, scored, reward=reward) == (1, 0.0, CHARGED)


def test_a_cost_that_is_no_number_is_charged_at_the_worst_case(live: Live) -> None:
    async def odd(plugin: BudgetRouting, given: dict[str, Any]) -> None:
        await once(plugin, {**given, "response_cost": "unknown"})

    assert routed(live, "odd", odd) == (0, 0.0, WORST)


def test_requests_of_other_routers_are_left_alone(live: Live) -> None:
    async def run() -> None:
        plugin = BudgetRouting(live.url, live.key, "nowhere")
        deployments = [{"litellm_params": {"model": "openai/b"}}]
        for request in ({}, {"metadata": {"routing_plugin_signals": {"driftsack_decision": "another:1"}}}, None):
            assert await plugin.async_filter_deployments("chat", deployments, [], request) == deployments
        await plugin.close()

    asyncio.run(run())


def test_requests_have_features(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a function, or the built-in ones."""
    campaign = {"features": Features(numbers=["messages"]), "policy": {"policy": "LinearBwK"}}

    def counted(request: dict[str, Any]) -> dict[str, Any]:
        assert request["tools"] is None
        return {"messages": len(request["messages"])}

    assert routed(live, "features", once, campaign, features=counted) == (1, 1.0, CHARGED)
    with pytest.raises(SettingError, match="features must be"):
        BudgetRouting(live.url, live.key, "features", features="header")
    assert BudgetRouting(live.url, live.key, "features", features="prompt")._features is prompt_features
