"""Measure what ``driftsack proxy`` adds to a call, interleaved with calls of the upstream itself.

``python tools/proxy_cost.py`` starts a service, an upstream and the proxy on real ports, and uses the OpenAI client.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import openai

from driftsack.service.proxy.app import Proxy
from driftsack.service.proxy.table import ProxySettings, Upstream
from tests.in_thread import running
from tests.language_model import LanguageModel
from tests.live_service import serving

PAIRS = 150
HELLO: Any = [{"role": "user", "content": "Hello?"}]


def main() -> None:
    """Measure and print."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(f"{folder}/s.db") as live,
        running(LanguageModel()) as address,
    ):
        live.open("chat", arms=["fine"], budget={"usd": "10"}, cost_max={"usd": "0.01"})
        table = [Upstream("fine", f"{address}/v1", "fine", "1", "2")]
        with running(Proxy(ProxySettings(table, "chat", live.url))) as url:
            direct = openai.OpenAI(base_url=f"{address}/v1", api_key="x")
            through = openai.OpenAI(base_url=f"{url}/v1", api_key=live.key)
            clients = {"direct": direct, "through the proxy": through}
            seconds: dict[str, list[float]] = {name: [] for name in clients}
            for _ in range(PAIRS):
                for name, client in clients.items():
                    start = time.perf_counter()
                    client.chat.completions.create(model="fine", messages=HELLO, max_tokens=50)
                    seconds[name].append(time.perf_counter() - start)
    for name, measured in seconds.items():
        print(f"{name}: {1000 * statistics.median(measured):.1f} ms at the median")


if __name__ == "__main__":
    main()
