"""Route requests by the real LiteLLM router through a real service, against an upstream on a real port.

``python tools/try_litellm.py`` needs LiteLLM, which pins older packages than the development environment has, so it
runs in an environment of its own: ``pip install -e '.[litellm,service]'``. It lists every fault, and measures what the
plugin adds to a call, interleaved with calls without it.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

HELLO = [{"role": "user", "content": "Hello?"}]
PAIRS = 60


async def drive(live: Any, address: str) -> list[str]:  # noqa: C901  (a script, from top to bottom)
    """Use the router; return what is wrong."""
    import litellm  # noqa: PLC0415  (not a dependency)
    from litellm import Router  # noqa: PLC0415

    from driftsack.service.litellm_budget import BudgetRouting  # noqa: PLC0415

    def deployments(*models: str) -> list[dict[str, Any]]:
        priced = {
            "api_base": f"{address}/v1",
            "api_key": "x",
            "input_cost_per_token": 1e-6,
            "output_cost_per_token": 2e-6,
        }
        return [{"model_name": "chat", "litellm_params": {"model": f"openai/{model}", **priced}} for model in models]

    budget = BudgetRouting(live.url, live.key, "chat")
    litellm.callbacks = [budget]
    faults: list[str] = []

    def expect(holds: bool, what: str) -> None:
        print(f"{'ok   ' if holds else 'FAULT'} {what}")
        faults.extend([] if holds else [what])

    async def settled() -> tuple[int, int, Decimal]:
        for _ in range(100):
            await asyncio.sleep(0.05)
            _, found = live.call("GET", "/v1/campaigns/chat")
            if found["pending"] == 0:
                break
        spent = live.call("GET", "/v1/campaigns/chat/budgets")[1]["budgets"][0]["spent"]
        return found["told"], found["reward"], Decimal(spent)

    router = Router(model_list=deployments("fine", "slow"), plugins=[budget], num_retries=0)
    models = set()
    for _ in range(12):
        models.add((await router.acompletion(model="chat", messages=HELLO)).model)
    told, reward, spent = await settled()
    expect(models == {"fine", "slow"}, f"the campaign chooses among the deployments: {sorted(models)}")
    expect(
        (told, reward, spent) == (12, 12.0, 12 * Decimal("0.00005")),
        f"12 outcomes at their usage: {told}, {reward}, {spent}",
    )
    await router.acompletion(model="chat", messages=HELLO, metadata={"driftsack_reward": 0.25})
    expect((await settled())[1] == 12.25, "an explicit score is the reward")
    async for _ in await router.acompletion(model="chat", messages=HELLO, stream=True):
        pass
    expect((await settled())[0] == 14, "a stream is told")
    failing = Router(
        model_list=deployments("fails", "fine")[:1] + deployments("fails"), plugins=[budget], num_retries=0
    )
    try:
        await failing.acompletion(model="chat", messages=HELLO)
        expect(False, "a failure is raised")
    except litellm.exceptions.InternalServerError:
        expect((await settled())[:2] == (15, 13.25), "a failure is told with reward 0")
    live.call("PATCH", "/v1/campaigns/chat", {"state": "paused"})
    try:
        await router.acompletion(model="chat", messages=HELLO)
        expect(False, "a paused campaign refuses")
    except Exception as error:
        expect("paused" in str(error), f"a paused campaign refuses: {type(error).__name__}")
    live.call("PATCH", "/v1/campaigns/chat", {"state": "active"})
    both = {
        "plain": Router(model_list=deployments("fine")),
        "plugin": Router(model_list=deployments("fine"), plugins=[budget]),
    }
    seconds: dict[str, list[float]] = {name: [] for name in both}
    for _ in range(PAIRS):
        for name, each in both.items():
            start = time.perf_counter()
            await each.acompletion(model="chat", messages=HELLO)
            seconds[name].append(time.perf_counter() - start)
    plain, plugin = (1000 * statistics.median(seconds[name]) for name in ("plain", "plugin"))
    print(f"the plugin adds {plugin - plain:.1f} ms at the median ({plain:.1f} ms without it)")
    return faults


def main() -> int:
    """Serve, drive, and return the number of faults."""
    from tests.in_thread import running  # noqa: PLC0415
    from tests.language_model import LanguageModel  # noqa: PLC0415
    from tests.live_service import serving  # noqa: PLC0415

    with (
        tempfile.TemporaryDirectory() as folder,
        serving(f"{folder}/s.db") as live,
        running(LanguageModel()) as address,
    ):
        arms = [f"openai/{name}" for name in ("fine", "slow", "fails")]
        live.open("chat", arms=arms, budget={"usd": "10"}, cost_max={"usd": "0.01"})
        faults = asyncio.run(drive(live, address))
    print(f"{len(faults)} faults")
    return len(faults)


if __name__ == "__main__":
    sys.exit(main() > 0)
