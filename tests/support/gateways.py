"""A service, a hostile upstream, and the proxy between them, on real ports."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, NamedTuple

import anthropic
import openai

from driftsack.service.gateways.proxy.app import Proxy
from driftsack.service.gateways.proxy.prices import Prices
from driftsack.service.gateways.proxy.server import proxy_config
from driftsack.service.gateways.proxy.settings import ProxySettings, Upstream
from tests.support.asgi_server import running
from tests.support.hostile_upstream import SECRET, HostileUpstream
from tests.support.live_service import Live, serving

PRICE = Prices("1", "10")  # dollars for a million tokens: those of the hostile upstream
HELLO: Any = [{"role": "user", "content": "Hello?"}]


class Told(NamedTuple):
    """The outcomes, the reward and the dollars of a campaign."""

    told: int
    reward: float
    spent: Decimal


class Gate(NamedTuple):
    """The three of them, and clients of the proxy."""

    live: Live
    upstream: HostileUpstream
    proxy: Proxy
    url: str
    clients: list[Any]

    def openai(self, **settings: Any) -> openai.OpenAI:
        """Return a client that does not retry by itself."""
        given: dict[str, Any] = {"base_url": f"{self.url}/v1", "api_key": self.live.key, "max_retries": 0}
        client = openai.OpenAI(**{**given, **settings})
        self.clients.append(client)
        return client

    def anthropic(self, **settings: Any) -> anthropic.Anthropic:
        """Return a client that does not retry by itself."""
        given: dict[str, Any] = {"base_url": self.url, "api_key": self.live.key, "max_retries": 0}
        client = anthropic.Anthropic(**{**given, **settings})
        self.clients.append(client)
        return client

    def complete(self, model: str, **settings: Any) -> Any:
        """Ask for a chat completion."""
        given: dict[str, Any] = {"model": model, "messages": HELLO, "max_tokens": 50}
        return self.openai().chat.completions.create(**{**given, **settings})

    def post(self, path: str, body: Any, key: str | None = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Send a request as it is; return status, headers and body of the answer."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        given = {"content-type": "application/json", "authorization": f"Bearer {key or self.live.key}", **headers}
        request = urllib.request.Request(self.url + path, data, given, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                return response.status, dict(response.headers), response.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, dict(error.headers), error.read()

    def told(self, name: str = "chat") -> Told:
        """Return the state of a campaign once no decision is pending."""
        end = time.monotonic() + 15
        while True:
            _, campaign = self.live.call("GET", f"/v1/campaigns/{name}")
            if campaign["pending"] == 0:
                break
            assert time.monotonic() < end, f"{campaign['pending']} decisions are still pending"
            time.sleep(0.02)
        _, budgets = self.live.call("GET", f"/v1/campaigns/{name}/budgets")
        return Told(campaign["told"], campaign["reward"], Decimal(budgets["budgets"][0]["spent"]))

    def change(self, before: Told, name: str = "chat") -> Told:
        """Return by how much outcomes, reward and spending have grown."""
        after = self.told(name)
        return Told(after.told - before.told, after.reward - before.reward, after.spent - before.spent)


def upstreams(address: str, models: Sequence[str], **settings: Any) -> list[Upstream]:
    """Return an upstream for each model, whose arm has the same name."""
    given: dict[str, Any] = {"price": PRICE, "key_env": "UPSTREAM_KEY", **settings}
    return [Upstream(model, f"{address}/v1", model, **given) for model in models]


@contextmanager
def gate(
    store: str,
    models: Sequence[str],
    campaign: dict[str, Any] | None = None,
    upstream: dict[str, Any] | None = None,
    hostile: HostileUpstream | None = None,
    **settings: Any,
) -> Iterator[Gate]:
    """Run a service with the campaign ``chat``, the upstream and the proxy until the end of the block.

    Args:
        campaign: Settings of the campaign.
        upstream: Settings of each upstream.
        hostile: The upstream; a new one if omitted.
        **settings: Settings of the proxy.
    """
    found = hostile or HostileUpstream(most=20)
    given: dict[str, Any] = {"most_seconds": 10.0, "rest": 0.05, **settings}
    with serving(f"{store}/s.db") as live, running(found) as address:
        config = {"arms": list(models), "budget": {"usd": "10"}, "cost_max": {"usd": "0.1"}, **(campaign or {})}
        live.open("chat", **config)
        table = upstreams(address, models, **(upstream or {}))
        if "campaigns" not in given:
            given["campaign"] = "chat"
        proxy = Proxy(ProxySettings(table, service=live.url, **given))
        with running(proxy, proxy_config(proxy)) as url:
            clients: list[Any] = []
            yield Gate(live, found, proxy, url, clients)
            for client in clients:
                client.close()


__all__ = ["HELLO", "PRICE", "SECRET", "Gate", "Told", "gate", "upstreams"]
