"""The promise at the edge: no request may cost more than was reserved for it, and every decision is settled."""

from __future__ import annotations

import json
import socket
import time
import urllib.parse
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import openai
import pytest

from driftsack.service.gateways.proxy import offers as offers_module
from driftsack.service.gateways.proxy import worst_case
from driftsack.service.gateways.proxy.app import Proxy
from driftsack.service.gateways.proxy.attempt import Attempt
from tests.support.gateways import HELLO, SECRET, Gate, Told, gate
from tests.support.hostile_upstream import FREE, HostileUpstream
from tests.support.upstream_formats import FORMATS

NOTHING = Decimal(0)
FORMAT = FORMATS["chat/completions"]

MODELS = (
    "fine",
    "slow",
    "html",
    "redirect",
    "dead-key",
    "unpaid",
    "missing",
    "busy",
    "fails",
    "cut-5xx",
    "refuses",
    "quotes",
    "no-usage",
    "huge-usage",
    "wrong-usage",
    "breaks",
    "error-in-200",
    "error-in-stream",
    "no-finish",
    "separator",
    "hangs",
)


@pytest.fixture(scope="module", autouse=True)
def key() -> Iterator[None]:
    """Set the key of the upstream."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UPSTREAM_KEY", SECRET)
        yield


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory, key: None) -> Iterator[Gate]:
    """A proxy with an arm for each behaviour."""
    directory = str(tmp_path_factory.mktemp("promise"))
    with gate(directory, MODELS, most_seconds=1.5, rest=0.001, fallback=False) as found:
        yield found


def attack(gate: Gate, requests: int, **settings: Any) -> list[int]:
    """Send requests at the same time; return the statuses of the answers."""
    client = gate.openai()

    def send(_: int) -> int:
        try:
            client.chat.completions.create(model="chat", messages=HELLO, **settings)
        except openai.APIStatusError as error:
            return error.status_code
        return 200

    with ThreadPoolExecutor(64) as threads:
        return list(threads.map(send, range(requests)))


def attacked(directory: str, **settings: Any) -> tuple[Decimal, Gate]:
    """Let 64 clients ask for 100,000 tokens each, on a budget of one dollar; return what the upstream charged."""
    campaign = {"budget": {"usd": "1"}, "cost_max": {"usd": "0.05"}}
    upstream = {"max_tokens": 200_000}
    with gate(directory, ["greedy"], campaign, upstream, HostileUpstream()) as found:
        statuses = attack(found, 64, **{"max_tokens": 100_000, **settings})
        assert set(statuses) <= {200, 402}
        assert 200 in statuses
        spent = found.told().spent
        assert spent == found.upstream.charged()
        return spent, found


def test_sixty_four_requests_cannot_pass_a_budget_of_one_dollar(tmp_path: Any) -> None:
    spent, found = attacked(str(tmp_path))
    assert Decimal("0.5") < spent <= 1
    limits = {body["max_tokens"] for _, _, body in found.upstream.seen}
    assert max(limits) < 5000  # what the maximum cost of the arm covers


@pytest.mark.parametrize("fault", ["never", "always"])
def test_a_proxy_that_does_not_lower_limits_is_found(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """The planted fault: the worst case is not compared with what was reserved, or is taken for nothing."""
    if fault == "never":
        monkeypatch.setattr(offers_module, "fitting_limit", lambda demand, prices, limit, most: limit)
    else:
        monkeypatch.setattr(worst_case, "worst_case", lambda *_: NOTHING)
    with pytest.raises(AssertionError):
        attacked(str(tmp_path))


def test_a_lowered_limit_is_said_in_a_header(tmp_path: Any) -> None:
    with gate(str(tmp_path), ["fine"], {"cost_max": {"usd": "0.01"}}) as found:
        raw = found.openai().chat.completions.with_raw_response.create
        answer = raw(model="fine", messages=HELLO, max_tokens=3000)
        limit = int(answer.headers["x-driftsack-max-tokens"])
        assert 900 < limit < 1000
        assert found.upstream.seen[-1][2]["max_tokens"] == limit
        assert "x-driftsack-max-tokens" not in raw(model="fine", messages=HELLO, max_tokens=10).headers
        # A prompt that the arm can never pay for is refused before it is sent, and its decision is cancelled.
        before, sent = found.told(), len(found.upstream.seen)
        with pytest.raises(openai.BadRequestError, match="cost_max"):
            found.complete("fine", messages=[{"role": "user", "content": "x" * 20_000}])
        assert found.change(before) == Told(0, 0.0, NOTHING)
        assert len(found.upstream.seen) == sent


@pytest.mark.parametrize(
    "field",
    [
        {"n": 5.0},
        {"n": "8"},
        {"n": True},
        {"n": 0},
        {"max_tokens": "many"},
        {"max_tokens": -1},
        {"max_completion_tokens": 1.5},
        {"best_of": 4},
        {"web_search_options": {}},
        {"service_tier": "priority"},
        {"tools": [{"type": "web_search"}]},
        {"tools": ["x"]},
        {"stream": "yes"},
        {"a_field_of_tomorrow": 1},
        {"messages": []},
        {"messages": ["x"]},
        {"messages": [{"role": "user", "content": "\ud83d"}]},
        {"temperature": float("nan")},
        {"temperature": float("inf")},
    ],
)
def test_what_has_no_known_price_is_refused_before_it_is_asked(one: Gate, field: dict[str, Any]) -> None:
    before, sent = one.told(), len(one.upstream.seen)
    body = {"model": "fine", "messages": HELLO, "max_tokens": 10, **field}
    status, headers, answer = one.post("/v1/chat/completions", body)
    found = json.loads(answer)["error"]
    assert (status, found["type"], headers["x-should-retry"]) == (400, "invalid_request_error", "false")
    assert one.change(before) == Told(0, 0.0, NOTHING)
    assert len(one.upstream.seen) == sent


def test_a_body_that_is_no_json_is_refused(one: Gate) -> None:
    for body in (b"{", b"[]", b'{"model": NaN}', b"[" * 100_000, b"\xff"):
        assert one.post("/v1/chat/completions", body)[0] == 400


def test_every_limit_is_rewritten_and_none_is_forced_on_a_model_that_refuses_it(tmp_path: Any) -> None:
    both = {"max_tokens": 10, "max_completion_tokens": 10**6}
    for style, expected in {
        "max_tokens": [{"max_tokens": 10}, {"max_tokens": 4096}],
        "max_completion_tokens": [{"max_completion_tokens": 10}, {"max_completion_tokens": 4096}],
        "none": [{"max_tokens": 10, "max_completion_tokens": 10}, {}],
    }.items():
        (tmp_path / style).mkdir()
        with gate(str(tmp_path / style), ["fine"], upstream={"limit": style}) as found:
            for given in (both, {"max_tokens": None}):
                found.post("/v1/chat/completions", {"model": "fine", "messages": HELLO, **given})
            limits = [{k: v for k, v in body.items() if k.startswith("max_")} for _, _, body in found.upstream.seen]
            assert limits == expected


IMAGE = [{"type": "image_url", "image_url": {"url": "https://example.com/large.png"}}]


@pytest.mark.parametrize(
    "given",
    [
        {"messages": [{"role": "user", "content": IMAGE}]},
        {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}]},
        {"messages": [{"role": "assistant", "audio": {"id": "a"}}, *HELLO]},
        {"messages": [{"role": "user", "content": "x", "attachments": ["f"]}]},
        {"modalities": ["text", "audio"], "audio": {"voice": "x", "format": "wav"}},
    ],
)
def test_media_reserve_the_maximum_cost_of_the_arm(one: Gate, given: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        kept = []
        usual = Attempt.__init__

        def noted(self: Any, http: Any, terms: Any, reward: Any) -> None:
            kept.append(terms.reserved)
            usual(self, http, terms, reward)

        patch.setattr(Attempt, "__init__", noted)
        one.post("/v1/chat/completions", {"model": "fine", "messages": HELLO, "max_tokens": 10, **given})
        one.post("/v1/chat/completions", {"model": "fine", "messages": HELLO, "max_tokens": 10})
    assert kept[0] == Decimal("0.1")
    assert kept[1] < Decimal("0.001")


def cost_of(gate: Gate) -> Decimal:
    """Return the last charge in the books of the upstream."""
    return gate.upstream.bills[-1].dollars


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_is_charged_by_its_usage(one: Gate, stream: bool) -> None:
    for model in ("fine", "slow", "separator"):
        before = one.told()
        answer = one.complete(model, stream=stream)
        text = (
            "".join(c.choices[0].delta.content or "" for c in answer) if stream else answer.choices[0].message.content
        )
        assert text == ("Hello, wor\u2028ld" if model == "separator" else "Hello, world")
        assert one.change(before) == Told(1, 1.0, cost_of(one))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", ["no-usage", "wrong-usage", "huge-usage"])
def test_a_usage_that_cannot_be_believed_is_charged_at_the_worst_case(one: Gate, model: str, stream: bool) -> None:
    before = one.told()
    answer = one.complete(model, stream=stream)
    if stream:
        list(answer)
    told, reward, spent = one.change(before)
    assert (told, reward) == (1, 1.0)
    assert cost_of(one) < spent < Decimal("0.001")


def test_a_usage_above_the_worst_case_raises_an_alarm(one: Gate, caplog: pytest.LogCaptureFixture) -> None:
    one.complete("huge-usage")
    assert "above the worst case" in caplog.text
    request = one.openai(base_url=one.url).get("/metrics", cast_to=str)
    assert 'driftsack_proxy_usage_alarms_total{arm="huge-usage",campaign="chat"}' in request


FAILURES = {
    "html": 502,
    "redirect": 502,
    "dead-key": 502,
    "unpaid": 502,
    "missing": 502,
    "busy": 503,
    "fails": 502,
    "cut-5xx": 502,
    "breaks": 502,
    "error-in-200": 502,
    "no-finish": 502,
    "hangs": 504,
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", FAILURES)
def test_a_failure_is_learnt_and_its_content_stays_here(one: Gate, model: str, stream: bool) -> None:
    before = one.told()
    if stream and model in ("breaks", "no-finish"):
        with pytest.raises(openai.APIError, match=f"the upstream of {model} failed"):
            list(one.complete(model, stream=True))
    else:
        with pytest.raises(openai.APIStatusError) as caught:
            one.complete(model, stream=stream)
        assert caught.value.status_code == FAILURES[model]
        assert SECRET not in caught.value.response.text
        retried = caught.value.response.headers.get("x-should-retry")
        after = caught.value.response.headers.get("retry-after")
        assert (retried, after) == ((None, "7") if model == "busy" else ("false", None))
    told, reward, spent = one.change(before)
    assert (told, reward) == (1, 0.0)
    assert (spent == 0) == (model in FREE and model != "html")  # a status of success may have been billed
    if spent:
        assert spent >= cost_of(one)


def test_an_error_in_a_stream_is_no_success(one: Gate) -> None:
    before = one.told()
    with pytest.raises(openai.APIError, match="reported an error"):
        list(one.complete("error-in-stream", stream=True))
    assert one.change(before)[:2] == (1, 0.0)


def test_a_request_that_the_upstream_refuses_is_the_callers_fault(one: Gate) -> None:
    before = one.told()
    with pytest.raises(openai.BadRequestError, match="top_p is too large"):
        one.complete("refuses")
    with pytest.raises(openai.BadRequestError, match="The request was wrong: \\.\\.\\."):
        one.complete("quotes")
    assert one.change(before) == Told(0, 0.0, NOTHING)


def test_bytes_of_a_stream_are_relayed_as_they_came(one: Gate) -> None:
    body = {"model": "separator", "messages": HELLO, "max_tokens": 9, "stream": True}
    with_usage = {**body, "stream_options": {"include_usage": True}}
    status, headers, relayed = one.post("/v1/chat/completions", with_usage)
    assert (status, headers["content-type"]) == (200, "text/event-stream")
    assert "\u2028".encode() in relayed
    events = FORMAT.events(["Hello", ", ", "wor\u2028ld"], FORMAT.usage(FORMAT.bytes_of(body), 9))
    direct = b"".join(events)
    assert relayed == direct
    assert one.post("/v1/chat/completions", body)[2] == b"".join([*events[:-2], events[-1]])


def test_a_caller_that_leaves_is_charged_by_the_usage(one: Gate) -> None:
    before, finished = one.told(), one.upstream.finished
    with one.complete("slow", stream=True) as stream:
        next(iter(stream))
    assert one.change(before) == Told(1, 1.0, cost_of(one))
    assert one.upstream.finished == finished + 1
    before, host = one.told(), urllib.parse.urlsplit(one.url)
    body = json.dumps({"model": "slow", "messages": HELLO, "max_tokens": 50})
    with socket.create_connection((host.hostname or "", host.port or 0)) as connection:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {one.live.key}\r\n"
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        time.sleep(0.15)  # and it hangs up before the answer comes
    time.sleep(0.1)
    assert one.change(before) == Told(1, 1.0, cost_of(one))


def test_a_budget_that_is_used_up_is_not_asked_for_again(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with gate(str(tmp_path), ["fine"], {"budget": {"usd": "0.001"}}) as found:
        client, asked = found.openai(max_retries=2), []
        usual = Proxy.respond

        async def counted(*given: Any) -> None:
            asked.append(1)
            await usual(*given)

        monkeypatch.setattr(Proxy, "respond", counted)
        while attack(found, 1, max_tokens=50) == [200]:
            pass
        before = len(asked)
        with pytest.raises(openai.APIStatusError, match="budget") as caught:
            client.chat.completions.create(model="chat", messages=HELLO, max_tokens=50)
        assert (caught.value.status_code, caught.value.code) == (402, "budget_exhausted")
        assert len(asked) == before + 1
        assert found.told().spent == found.upstream.charged() <= Decimal("0.001")
        found.live.call("PATCH", "/v1/campaigns/chat", {"state": "paused"})
        with pytest.raises(openai.InternalServerError, match="paused"):
            found.complete("chat")
