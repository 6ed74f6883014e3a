"""Use the real LiteLLM: its router with the plugin, and its client with ``driftsack proxy``, all over real ports.

LiteLLM pins older packages than the development environment has, so this runs in an environment of its own: ``make
litellm``. It lists every fault, detects a planted one, and measures what the plugin adds to a call, interleaved with
calls without it.
"""

from __future__ import annotations

import asyncio
import importlib
import statistics
import tempfile
import time
from decimal import Decimal
from typing import Any

from driftsack.service.gateways.litellm_budget import BudgetRouting
from driftsack.service.gateways.proxy.app import Proxy
from driftsack.service.gateways.proxy.prices import Prices
from driftsack.service.gateways.proxy.settings import ProxySettings, Upstream
from tests.support.asgi_server import running
from tests.support.fake_upstream import LanguageModel
from tests.support.live_service import Live, serving

HELLO = [{"role": "user", "content": "Hello?"}]
MODELS = ("fine", "slow", "fails")
PAIRS = 60
PRICE = Decimal("0.00005")  # 10 and 20 tokens at 1 and 2 dollars a million
MOST = Decimal("0.01")  # of one request
Found = tuple[int, float, Decimal]  # outcomes, reward, dollars


class Doubled(BudgetRouting):
    """A plugin that is called back twice, and a third time as if the call had failed."""

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Tell."""
        for _ in range(2):
            await super().async_log_success_event(kwargs, response_obj, start_time, end_time)
        await super().async_log_failure_event(kwargs, response_obj, start_time, end_time)


class Lost(BudgetRouting):
    """A plugin that is never called back."""

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Do not tell."""


class Careless(Doubled):
    """A planted fault: a repeated callback is charged to another decision."""

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Tell, and tell again as the outcome of another decision."""
        await super().async_log_success_event(kwargs, response_obj, start_time, end_time)
        other = await self._client.ask()
        await self._client.tell(other, 1.0, {"usd": "0.00005"})


class Trial:
    """Campaigns, an upstream, and a list of faults.

    Args:
        live: The service.
    """

    def __init__(self, live: Live, address: str) -> None:
        self.live, self.address = live, address
        self.litellm: Any = importlib.import_module("litellm")  # not in the development environment
        self.faults: list[str] = []

    def open(self, name: str, arms: list[str], **settings: Any) -> None:
        """Open a campaign."""
        self.live.open(name, arms=arms, budget={"usd": "10"}, cost_max={"usd": str(MOST)}, **settings)

    def expect(self, holds: bool, what: str) -> None:
        """Note a fault unless something holds."""
        print(f"{'ok   ' if holds else 'FAULT'} {what}")
        self.faults += [] if holds else [what]

    async def settled(self, name: str) -> Found:
        """Wait until nothing is pending, and return what the service knows of a campaign."""
        found: dict[str, Any] = {"pending": 1}
        for _ in range(200):
            if found["pending"] == 0:
                break
            await asyncio.sleep(0.05)
            _, found = await asyncio.to_thread(self.live.call, "GET", f"/v1/campaigns/{name}")
        _, budgets = await asyncio.to_thread(self.live.call, "GET", f"/v1/campaigns/{name}/budgets")
        return found["told"], found["reward"], Decimal(budgets["budgets"][0]["spent"])

    def call_back(self, plugins: list[BudgetRouting]) -> None:
        """Let LiteLLM call these plugins back, and no others."""
        self.litellm.logging_callback_manager._reset_all_callbacks()
        self.litellm.callbacks = plugins

    def router(self, plugin: BudgetRouting | None, *models: str, **settings: Any) -> Any:
        """LiteLLM's router over some models of the upstream."""
        priced = {
            "api_base": f"{self.address}/v1",
            "api_key": "x",
            "input_cost_per_token": 1e-6,
            "output_cost_per_token": 2e-6,
        }
        deployed = [{"model_name": "chat", "litellm_params": {"model": f"openai/{m}", **priced}} for m in models]
        plugins: Any = None if plugin is None else [plugin]
        self.call_back(plugins or [])
        return self.litellm.Router(model_list=deployed, plugins=plugins, num_retries=0, **settings)


async def route(trial: Trial) -> None:
    """The campaign chooses among the deployments and learns from their outcomes."""
    trial.open("chat", [f"openai/{name}" for name in MODELS])
    budget = BudgetRouting(trial.live.url, trial.live.key, "chat")
    router = trial.router(budget, "fine", "slow")
    # Choices, outcomes and scores.
    models = {(await router.acompletion(model="chat", messages=HELLO)).model for _ in range(12)}
    trial.expect(models == {"fine", "slow"}, f"the campaign chooses among the deployments: {sorted(models)}")
    trial.expect(
        (found := await trial.settled("chat")) == (12, 12.0, 12 * PRICE), f"12 outcomes at their usage: {found}"
    )
    await router.acompletion(model="chat", messages=HELLO, metadata={"driftsack_reward": 0.25})
    trial.expect((await trial.settled("chat"))[1] == 12.25, "an explicit score is the reward")
    async for _ in await router.acompletion(model="chat", messages=HELLO, stream=True):
        pass
    trial.expect((await trial.settled("chat"))[0] == 14, "a stream is told")
    # Failures.
    failing = trial.router(budget, "fails", "fails")
    try:
        await failing.acompletion(model="chat", messages=HELLO)
        trial.expect(False, "a failure is raised")
    except trial.litellm.exceptions.InternalServerError:
        trial.expect((await trial.settled("chat"))[:2] == (15, 13.25), "a failure is told with reward 0")
    # A paused campaign.
    await asyncio.to_thread(trial.live.call, "PATCH", "/v1/campaigns/chat", {"state": "paused"})
    try:
        await router.acompletion(model="chat", messages=HELLO)
        trial.expect(False, "a paused campaign refuses")
    except Exception as error:
        trial.expect("paused" in str(error), f"a paused campaign refuses: {type(error).__name__}")
    await asyncio.to_thread(trial.live.call, "PATCH", "/v1/campaigns/chat", {"state": "active"})


async def called_back(trial: Trial, kind: type[BudgetRouting], name: str) -> Found:
    """Make three calls with a kind of plugin and return what the campaign, which has short leases, knows."""
    trial.open(name, ["openai/fine"], lease=2)
    router = trial.router(kind(trial.live.url, trial.live.key, name), "fine")
    for _ in range(3):
        await router.acompletion(model="chat", messages=HELLO)
    await asyncio.sleep(0.5)  # LiteLLM calls back later
    return await trial.settled(name)


async def rest(trial: Trial) -> None:
    """A deployment that rests after failures is not offered, and no decision is left without a call."""
    trial.open("resting", [f"openai/{name}" for name in MODELS])
    budget = BudgetRouting(trial.live.url, trial.live.key, "resting")
    router = trial.router(budget, "fine", "fails", allowed_fails=0, cooldown_time=60)
    failures = 0
    for _ in range(20):
        try:
            await router.acompletion(model="chat", messages=HELLO)
        except trial.litellm.exceptions.InternalServerError:
            failures += 1
    trial.expect(failures <= 1, f"a deployment that rests is not chosen: {failures} failures")
    found = await trial.settled("resting")
    trial.expect(found == (20, 20.0 - failures, (20 - failures) * PRICE), f"each call is told: {found}")


async def lose_and_double(trial: Trial) -> None:
    """A lost callback is charged when its lease expires, and a repeated one changes nothing."""
    once = (3, 3.0, 3 * PRICE)
    trial.expect((found := await called_back(trial, Doubled, "doubled")) == once, f"doubled callbacks: {found}")
    trial.expect((found := await called_back(trial, Lost, "lost")) == (0, 0.0, 3 * MOST), f"lost callbacks: {found}")
    trial.expect((found := await called_back(trial, Careless, "careless")) != once, f"a careless plugin shows: {found}")


async def through_the_proxy(trial: Trial) -> None:
    """LiteLLM as a client of the proxy: complete answers and streams, charged by their usage."""
    trial.open("proxied", ["fine", "slow"])
    table = [Upstream(name, f"{trial.address}/v1", name, Prices("1", "2")) for name in ("fine", "slow")]
    trial.call_back([])
    with running(Proxy(ProxySettings(table, "proxied", service=trial.live.url))) as url:
        call: Any = {"model": "openai/driftsack", "messages": HELLO, "api_base": f"{url}/v1", "max_tokens": 100}
        call |= {"num_retries": 0, "api_key": trial.live.key}
        text = (await trial.litellm.acompletion(**call)).choices[0].message.content
        trial.expect(text == "Hello, world", f"an answer: {text!r}")
        parts = [
            part.choices[0].delta.content or "" async for part in await trial.litellm.acompletion(**call, stream=True)
        ]
        trial.expect("".join(parts) == "Hello, world" and len(parts) > 2, f"a stream: {parts}")
        whole = await asyncio.to_thread(trial.litellm.completion, **call)
        trial.expect(whole.usage.total_tokens == 30, "the synchronous client")
        trial.expect((found := await trial.settled("proxied")) == (3, 3.0, 3 * PRICE), f"three outcomes: {found}")
        try:
            await trial.litellm.acompletion(**{**call, "api_key": "ds_wrong"})
            trial.expect(False, "a wrong key is refused")
        except trial.litellm.exceptions.AuthenticationError:
            trial.expect((await trial.settled("proxied"))[0] == 3, "a wrong key is refused, and nothing is charged")


async def measure(trial: Trial) -> None:
    """Print what the plugin adds to a call."""
    trial.open("timed", ["openai/fine"])
    plugin = BudgetRouting(trial.live.url, trial.live.key, "timed")
    both = {"plain": trial.router(None, "fine"), "plugin": trial.router(plugin, "fine")}
    seconds: dict[str, list[float]] = {name: [] for name in both}
    for _ in range(PAIRS):
        for name, each in both.items():
            start = time.perf_counter()
            await each.acompletion(model="chat", messages=HELLO)
            seconds[name].append(time.perf_counter() - start)
    plain, with_plugin = (1000 * statistics.median(seconds[name]) for name in both)
    print(f"the plugin adds {with_plugin - plain:.1f} ms at the median ({plain:.1f} ms without it)")


async def drive(trial: Trial) -> None:
    """Run every part of the trial."""
    for part in (route, rest, lose_and_double, through_the_proxy, measure):
        await part(trial)


def try_litellm() -> list[str]:
    """Start a service and an upstream, run every part of the trial, and return the faults."""
    with (
        tempfile.TemporaryDirectory() as directory,
        serving(f"{directory}/s.db") as live,
        running(LanguageModel()) as address,
    ):
        trial = Trial(live, address)
        asyncio.run(drive(trial))
    print(f"{len(trial.faults)} faults")
    return trial.faults
