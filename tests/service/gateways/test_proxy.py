"""``driftsack proxy`` between the OpenAI client and upstreams that are slow, fail, disconnect or report wrong usage."""

from __future__ import annotations

import json
import socket
import time
import urllib.parse
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import openai
import pytest

from driftsack.core.errors import SettingError
from driftsack.service.gateways.proxy.app import Proxy
from driftsack.service.gateways.proxy.table import ProxySettings, Upstream, read_settings
from tests.support.asgi_server import running
from tests.support.fake_upstream import LanguageModel
from tests.support.live_service import Live, serving

MODELS = ("fine", "slow", "fails", "refuses", "breaks", "wrong-usage", "no-usage", "hangs")
HELLO: Any = [{"role": "user", "content": "Hello?"}]
NOTHING = Decimal(0)
FINE = Decimal("0.00005")  # 10 and 20 tokens at 1 and 2 dollars a million


class Gateway(NamedTuple):
    """A service, an upstream, the proxy in front of it, and a client of the proxy."""

    live: Live
    url: str
    upstream: LanguageModel
    client: openai.OpenAI

    def complete(self, model: str, **settings: Any) -> Any:
        return self.client.chat.completions.create(model=model, messages=HELLO, max_tokens=100, **settings)

    def state(self) -> dict[str, Any]:
        """Return the state of the campaign once no decision is pending."""
        end = time.monotonic() + 10
        while time.monotonic() < end:
            _, campaign = self.live.call("GET", "/v1/campaigns/chat")
            if campaign["pending"] == 0:
                break
            time.sleep(0.02)
        _, budgets = self.live.call("GET", "/v1/campaigns/chat/budgets")
        spent = Decimal(budgets["budgets"][0]["spent"])
        return {"pending": campaign["pending"], "told": campaign["told"], "reward": campaign["reward"], "spent": spent}

    def change(self, before: dict[str, Any]) -> tuple[int, float, Decimal]:
        """Return the growth of outcomes, reward and spending."""
        after = self.state()
        assert after["pending"] == 0
        return after["told"] - before["told"], after["reward"] - before["reward"], after["spent"] - before["spent"]


def rewarded(request: dict[str, Any], answer: dict[str, Any], seconds: float) -> float:
    """A reward function: 0.5 for each "world" in the answer."""
    assert request["messages"]
    assert 0 <= seconds < 60
    return 0.5 * str(answer["choices"][0]["message"]["content"]).count("world")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    upstream = LanguageModel()
    with serving(str(tmp_path_factory.mktemp("proxy") / "s.db")) as live, running(upstream) as address:
        maxima = {"usd": dict.fromkeys([*MODELS, "gone"], "0.01")}
        live.open("chat", arms=[*MODELS, "gone"], budget={"usd": "10"}, cost_max=maxima)
        table = [Upstream(name, f"{address}/v1", name, "1", "2") for name in MODELS]
        table.append(Upstream("gone", "http://127.0.0.1:9/v1", "gone", "1", "2"))
        settings = ProxySettings(
            table, "chat", live.url, most_seconds=1.0, reward="tests.service.gateways.test_proxy:rewarded"
        )
        with running(Proxy(settings)) as url:
            yield Gateway(live, url, upstream, openai.OpenAI(base_url=f"{url}/v1", api_key=live.key, max_retries=0))


def test_an_answer_is_charged_by_its_usage(gateway: Gateway) -> None:
    before = gateway.state()
    answer = gateway.complete("fine")
    assert answer.choices[0].message.content == "Hello, world"
    assert gateway.upstream.seen[-1]["model"] == "fine"
    assert gateway.change(before) == (1, 0.5, FINE)
    assert "ds_" not in gateway.upstream.keys[-1]  # the caller's key stays here


def test_any_model_may_answer(gateway: Gateway) -> None:
    raw = gateway.client.chat.completions.with_raw_response.create
    found = set()
    for _ in range(40):
        try:
            found.add(raw(model="driftsack", messages=HELLO, max_tokens=5).headers["x-driftsack-arm"])
        except openai.APIStatusError as error:
            found.add(error.response.headers.get("x-driftsack-arm", "none"))
        if {"fine", "slow"} <= found:
            break
    assert {"fine", "slow"} <= found
    assert gateway.state()["pending"] == 0
    names = {model.id for model in gateway.client.models.list()}
    assert names == {"driftsack", *MODELS, "gone"}


def test_a_stream_is_passed_on_as_it_comes(gateway: Gateway) -> None:
    before = gateway.state()
    start, times, text = time.monotonic(), [], ""
    for chunk in gateway.complete("slow", stream=True):
        assert chunk.choices  # the usage that the proxy asked for is not passed on
        times.append(time.monotonic() - start)
        text += chunk.choices[0].delta.content or ""
    assert text == "Hello, world"
    assert times[-1] - times[0] > 0.2  # not all at once
    assert gateway.change(before) == (1, 0.5, FINE)
    asked = list(gateway.complete("fine", stream=True, stream_options={"include_usage": True}))
    assert asked[-1].usage.completion_tokens == 20


def test_a_caller_that_leaves_is_charged_by_the_usage(gateway: Gateway) -> None:
    before, finished = gateway.state(), gateway.upstream.finished
    with gateway.complete("slow", stream=True) as stream:
        next(iter(stream))
    assert gateway.change(before) == (1, 0.5, FINE)
    assert gateway.upstream.finished == finished + 1
    before = gateway.state()
    host = urllib.parse.urlsplit(gateway.url)
    body = json.dumps({"model": "slow", "messages": HELLO, "max_tokens": 100})
    with socket.create_connection((host.hostname or "", host.port or 0)) as connection:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {gateway.live.key}\r\n"
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        time.sleep(0.15)  # and it hangs up before the answer comes
    time.sleep(0.1)
    assert gateway.change(before) == (1, 0.5, FINE)


@pytest.mark.parametrize("stream", [False, True])
def test_usage_that_makes_no_sense_is_charged_at_the_most(gateway: Gateway, stream: bool) -> None:
    for model in ("wrong-usage", "no-usage"):
        before = gateway.state()
        answer = gateway.complete(model, stream=stream)
        if stream:
            list(answer)
        told, reward, spent = gateway.change(before)
        assert (told, reward) == (1, 0.5)
        assert Decimal("0.0002") < spent < Decimal("0.0005")  # 100 tokens of the answer, and the bytes of the prompt
        assert spent > FINE


def test_failures_teach_and_cost_what_they_may_have_cost(gateway: Gateway) -> None:
    before = gateway.state()
    with pytest.raises(openai.InternalServerError):
        gateway.complete("fails")
    assert gateway.change(before) == (1, 0.0, NOTHING)
    before = gateway.state()
    with pytest.raises(openai.BadRequestError):
        gateway.complete("refuses")
    assert gateway.change(before) == (0, 0.0, NOTHING)  # the caller's fault: nothing is learnt
    before = gateway.state()
    with pytest.raises(openai.InternalServerError, match="did not answer"):
        gateway.complete("gone")
    assert gateway.change(before) == (1, 0.0, NOTHING)
    before = gateway.state()
    with pytest.raises(openai.InternalServerError, match="ReadTimeout"):
        gateway.complete("hangs")
    told, reward, spent = gateway.change(before)
    assert (told, reward) == (1, 0.0)
    assert spent > Decimal("0.0002")
    before = gateway.state()
    assert len(list(gateway.complete("breaks", stream=True))) == 2
    told, reward, spent = gateway.change(before)
    assert (told, reward) == (1, 0.0)
    assert spent > Decimal("0.0002")


def test_what_is_not_sent_costs_nothing(gateway: Gateway) -> None:
    before, seen = gateway.state(), len(gateway.upstream.seen)
    with pytest.raises(openai.NotFoundError):
        gateway.complete("nobody")
    with pytest.raises(openai.AuthenticationError):
        gateway.client.with_options(api_key="ds_wrong").chat.completions.create(model="fine", messages=HELLO)
    with pytest.raises(openai.UnprocessableEntityError):
        gateway.client.post("/chat/completions", body={"model": "fine"}, cast_to=object)
    gateway.live.call("PATCH", "/v1/campaigns/chat", {"state": "paused"})
    with pytest.raises(openai.InternalServerError, match="paused"):
        gateway.complete("fine")
    gateway.live.call("PATCH", "/v1/campaigns/chat", {"state": "active"})
    assert gateway.change(before) == (0, 0.0, NOTHING)
    assert len(gateway.upstream.seen) == seen


def test_a_budget_is_never_overspent(tmp_path: Path) -> None:
    upstream = LanguageModel()
    with serving(str(tmp_path / "s.db")) as live, running(upstream) as address:
        live.open("chat", arms=["fine"], budget={"usd": "0.002"}, cost_max={"usd": "0.01"})
        settings = ProxySettings([Upstream("fine", f"{address}/v1", "fine", "1", "2")], "chat", live.url)
        with running(Proxy(settings)) as url:
            client = openai.OpenAI(base_url=f"{url}/v1", api_key=live.key, max_retries=0)
            answered = 0

            def ask_again_and_again() -> None:
                nonlocal answered
                for _ in range(100):
                    client.chat.completions.create(model="chat", messages=HELLO, max_tokens=100)
                    answered += 1

            with pytest.raises(openai.RateLimitError, match="budget"):
                ask_again_and_again()
        assert 0 < answered == len(upstream.seen) <= 40
        assert Decimal(live.call("GET", "/v1/campaigns/chat/budgets")[1]["budgets"][0]["remaining"]) >= 0


def test_the_request_is_bounded_before_it_is_sent(gateway: Gateway) -> None:
    gateway.client.chat.completions.create(model="fine", messages=HELLO)
    assert gateway.upstream.seen[-1]["max_tokens"] == 4096
    one = Upstream("a", "http://x/v1", "m", "1", "2", max_tokens=50)
    requests: list[dict[str, Any]] = [{}, {"max_tokens": 10}, {"max_completion_tokens": 99}, {"max_tokens": -1}]
    assert [one.limit(request) for request in requests] == [50, 10, 50, 50]
    assert one.most({"n": 3}, 1000) == Decimal("0.0013")


UPSTREAM = "campaign = 'x'\nupstream = [{arm = 'a', url = '%s', model = 'm', input_price = '1', output_price = '1'%s}]"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("campaign = 'x'", "upstream"),
        ("campaign = 'x'\nnonsense = 1\nupstream = []", "nonsense"),
        (UPSTREAM % ("ftp://x", ""), "http"),
        (UPSTREAM % ("http://x", ", key_env = 'NO_SUCH_VARIABLE'"), "NO_SUCH_VARIABLE"),
        ("reward = 'no:such'\n" + UPSTREAM % ("http://x", ""), "module:function"),
        ("campaign = ", "proxy"),
    ],
)
def test_settings_are_checked(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "proxy.toml").write_text(text)
    with pytest.raises(SettingError, match=says):
        read_settings(tmp_path / "proxy.toml")
