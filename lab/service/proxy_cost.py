"""Measure what ``driftsack proxy`` adds to a call, interleaved with calls of the upstream itself."""

from __future__ import annotations

import statistics
import tempfile
import time
from typing import Any

import openai

from driftsack.service.gateways.proxy.app import Proxy
from driftsack.service.gateways.proxy.prices import Prices
from driftsack.service.gateways.proxy.settings import ProxySettings, Upstream
from tests.support.asgi_server import running
from tests.support.fake_upstream import LanguageModel
from tests.support.live_service import serving

HELLO: Any = [{"role": "user", "content": "Hello?"}]


def measure(pairs: int) -> None:
    """Call the upstream directly and through the proxy in turns, and print the median times."""
    with (
        tempfile.TemporaryDirectory() as directory,
        serving(f"{directory}/s.db") as live,
        running(LanguageModel()) as address,
    ):
        live.open("chat", arms=["fine"], budget={"usd": "10"}, cost_max={"usd": "0.01"})
        table = [Upstream("fine", f"{address}/v1", "fine", Prices("1", "2"))]
        with running(Proxy(ProxySettings(table, "chat", service=live.url))) as url:
            direct = openai.OpenAI(base_url=f"{address}/v1", api_key="x")
            through = openai.OpenAI(base_url=f"{url}/v1", api_key=live.key)
            clients = {"direct": direct, "through the proxy": through}
            seconds: dict[str, list[float]] = {name: [] for name in clients}
            for _ in range(pairs):
                for name, client in clients.items():
                    start = time.perf_counter()
                    client.chat.completions.create(model="fine", messages=HELLO, max_tokens=50)
                    seconds[name].append(time.perf_counter() - start)
    for name, measured in seconds.items():
        print(f"{name}: {1000 * statistics.median(measured):.1f} ms at the median")
