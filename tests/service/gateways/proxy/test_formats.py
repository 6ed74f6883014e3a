"""The wire formats, with the real clients of OpenAI and Anthropic, and upstreams of either protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import anthropic
import openai
import pytest

from tests.support.gateways import HELLO, Gate, Told, gate
from tests.support.hostile_upstream import SECRET

ALL = ["chat", "completions", "embeddings", "responses", "messages"]
MODELS = ("fine", "breaks", "error-in-stream", "refuses", "dead-key", "calls", "no-finish")


@pytest.fixture(scope="module")
def of_openai(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    directory = str(tmp_path_factory.mktemp("openai"))
    with gate(directory, MODELS, upstream={"serves": ALL}, rest=0.0001, fallback=False) as found:
        yield found


@pytest.fixture(scope="module")
def of_anthropic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    directory = str(tmp_path_factory.mktemp("anthropic"))
    with gate(directory, MODELS, upstream={"protocol": "anthropic"}, rest=0.0001, fallback=False) as found:
        yield found


@pytest.fixture(params=["of_openai", "of_anthropic"])
def one(request: pytest.FixtureRequest) -> Gate:
    """A gate in front of upstreams of one protocol, then of the other."""
    found: Gate = request.getfixturevalue(request.param)
    return found


def charged(found: Gate, before: Told) -> None:
    """Check that one answer was charged as the upstream has it in its books, and that the caller's key stayed here."""
    assert found.change(before) == Told(1, 1.0, found.upstream.bills[-1].dollars)
    path, headers, _ = found.upstream.seen[-1]
    assert headers["x-api-key" if path.endswith("messages") else "authorization"].endswith(SECRET)
    assert "ds_" not in json.dumps(headers)


def test_chat_completions(one: Gate) -> None:
    before = one.told()
    answer = one.complete("fine")
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("Hello, world", "stop")
    assert answer.usage.completion_tokens == 20
    charged(one, before)
    before = one.told()
    chunks = list(one.complete("fine", stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Hello, world"
    assert chunks[-1].choices[0].finish_reason == "stop"
    charged(one, before)
    last = list(one.complete("fine", stream=True, stream_options={"include_usage": True}))[-1]
    assert last.usage.completion_tokens == 20


def test_messages(one: Gate) -> None:
    before = one.told()
    client = one.anthropic()
    given: dict[str, Any] = {"model": "fine", "max_tokens": 50, "messages": HELLO, "system": "Be brief."}
    answer: Any = client.messages.create(**given)
    assert (answer.content[0].text, answer.stop_reason) == ("Hello, world", "end_turn")
    assert answer.usage.output_tokens == 20
    charged(one, before)
    before = one.told()
    with client.messages.stream(**given) as stream:
        assert "".join(stream.text_stream) == "Hello, world"
        final = stream.get_final_message()
    assert (final.stop_reason, final.usage.output_tokens) == ("end_turn", 20)
    charged(one, before)


def test_text_completions_embeddings_and_responses(of_openai: Gate) -> None:
    client = of_openai.openai()
    before = of_openai.told()
    text = client.completions.create(model="fine", prompt=["Hello?", "Hi?"], max_tokens=5, n=2)
    assert text.choices[0].text == "Hello, world"
    charged(of_openai, before)
    before = of_openai.told()
    parts = list(client.completions.create(model="fine", prompt="Hello?", max_tokens=5, stream=True))
    assert "".join(part.choices[0].text for part in parts) == "Hello, world"
    charged(of_openai, before)
    before = of_openai.told()
    assert client.embeddings.create(model="fine", input=["a", "b"], encoding_format="float").data[0].embedding
    charged(of_openai, before)
    before = of_openai.told()
    assert client.responses.create(model="fine", input="Hello?", max_output_tokens=50).output_text == "Hello, world"
    charged(of_openai, before)
    before = of_openai.told()
    events = list(client.responses.create(model="fine", input="Hello?", max_output_tokens=50, stream=True))
    assert events[-1].type == "response.completed"
    charged(of_openai, before)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("completions", {"prompt": "x", "best_of": "4"}),
        ("completions", {"prompt": {}}),
        ("embeddings", {"input": 5}),
        ("embeddings", {"input": "x", "stream": True}),
        ("responses", {"input": "x", "background": True}),
        ("responses", {"input": "x", "tools": [{"type": "web_search_preview"}]}),
        ("responses", {"input": 5}),
        ("messages", {"messages": HELLO}),
        ("messages", {"messages": HELLO, "max_tokens": 5, "tools": [{"type": "web_search_20250305"}]}),
        ("messages", {"messages": HELLO, "max_tokens": 5, "mcp_servers": []}),
    ],
)
def test_what_may_cost_more_is_refused(of_openai: Gate, path: str, body: dict[str, Any]) -> None:
    sent = len(of_openai.upstream.seen)
    assert of_openai.post(f"/v1/{path}", {"model": "fine", **body})[0] == 400
    assert len(of_openai.upstream.seen) == sent


def test_a_format_that_no_upstream_serves_is_not_found(of_anthropic: Gate) -> None:
    with pytest.raises(openai.NotFoundError, match="/embeddings"):
        of_anthropic.openai().embeddings.create(model="fine", input="x")


def test_errors_have_the_format_of_the_caller(one: Gate) -> None:
    client = one.anthropic()
    with pytest.raises(anthropic.BadRequestError, match="top_p is too large"):
        client.messages.create(model="refuses", max_tokens=5, messages=HELLO)
    with pytest.raises(anthropic.InternalServerError, match="401") as caught:
        client.messages.create(model="dead-key", max_tokens=5, messages=HELLO)
    assert SECRET not in caught.value.response.text
    with pytest.raises(anthropic.AuthenticationError):
        one.anthropic(api_key="x").messages.create(model="fine", max_tokens=5, messages=HELLO)
    with pytest.raises(anthropic.NotFoundError, match="model must be one of"):
        client.messages.create(model="nobody", max_tokens=5, messages=HELLO)


@pytest.mark.parametrize("model", ["breaks", "error-in-stream", "no-finish"])
def test_a_stream_that_ends_early_is_an_error_for_the_caller(one: Gate, model: str) -> None:
    before = one.told()
    with pytest.raises(anthropic.APIError, match="failed"):
        list(one.anthropic().messages.create(model=model, max_tokens=50, messages=HELLO, stream=True))
    with pytest.raises(openai.APIError, match="failed"):
        list(one.complete(model, stream=True))
    assert one.change(before)[:2] == (2, 0.0)


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Paris"}'}}
TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "The weather in Paris?"}]},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "It rains."},
    {"role": "user", "content": "So?"},
]
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "d", "parameters": SCHEMA}}]
SAID = [
    {"role": "user", "content": [{"type": "text", "text": "The weather in Paris?"}]},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Paris"}}],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "call_1", "content": "It rains."},
            {"type": "text", "text": "So?"},
        ],
    },
]


def test_tools_are_translated_both_ways(of_openai: Gate, of_anthropic: Gate) -> None:
    # A chat with tools, at an upstream with messages.
    answer = of_anthropic.complete("calls", messages=TALK, tools=TOOLS, tool_choice="required", stop="x")
    sent = of_anthropic.upstream.seen[-1][2]
    assert sent["system"] == "Be brief."
    assert sent["messages"] == SAID
    assert sent["tools"] == [{"name": "weather", "input_schema": SCHEMA, "description": "d"}]
    assert (sent["tool_choice"], sent["stop_sequences"]) == ({"type": "any"}, ["x"])
    call = answer.choices[0].message.tool_calls[0]
    assert (call.function.name, json.loads(call.function.arguments)) == ("weather", {"city": "Paris"})
    assert answer.choices[0].finish_reason == "tool_calls"
    # The same talk as messages, at an upstream with chats.
    given: dict[str, Any] = {"model": "calls", "max_tokens": 50, "messages": SAID, "system": "Be brief."}
    given["tools"] = [{"name": "weather", "description": "d", "input_schema": SCHEMA}]
    message: Any = of_openai.anthropic().messages.create(**given, tool_choice={"type": "tool", "name": "weather"})
    sent = of_openai.upstream.seen[-1][2]
    expected = [
        {**part, "content": [{"type": "text", "text": "So?"}]} if part["content"] == "So?" else part for part in TALK
    ]
    assert sent["messages"] == expected
    assert sent["tools"] == TOOLS
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "weather"}}
    assert (message.content[0].name, message.content[0].input) == ("weather", {"city": "Paris"})
    assert message.stop_reason == "tool_use"


def test_calls_of_tools_are_streamed(one: Gate) -> None:
    chunks = list(one.complete("calls", messages=HELLO, tools=TOOLS, stream=True))
    calls = [call for chunk in chunks for choice in chunk.choices for call in choice.delta.tool_calls or []]
    assert "".join(call.function.name or "" for call in calls) == "weather"
    assert json.loads("".join(call.function.arguments or "" for call in calls)) == {"city": "Paris"}
    tools: Any = [{"name": "weather", "input_schema": SCHEMA}]
    with one.anthropic().messages.stream(model="calls", max_tokens=50, messages=HELLO, tools=tools) as stream:
        final: Any = stream.get_final_message()
    assert (final.content[0].name, final.content[0].input) == ("weather", {"city": "Paris"})


def test_what_cannot_be_translated_is_refused(of_openai: Gate, of_anthropic: Gate) -> None:
    for field in ({"n": 2}, {"logprobs": True}, {"response_format": {"type": "json_object"}}):
        with pytest.raises(openai.BadRequestError, match="cannot be translated"):
            of_anthropic.complete("fine", **field)
    with pytest.raises(anthropic.BadRequestError, match="cannot be translated"):
        of_openai.anthropic().messages.create(
            model="fine", max_tokens=2000, messages=HELLO, thinking={"type": "enabled", "budget_tokens": 1024}
        )
    image: Any = [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aaaa"}}]
    of_openai.anthropic().messages.create(model="fine", max_tokens=9, messages=[{"role": "user", "content": image}])
    part = of_openai.upstream.seen[-1][2]["messages"][0]["content"][0]
    assert part == {"type": "image_url", "image_url": {"url": "data:image/png;base64,aaaa"}}
    of_anthropic.complete("fine", messages=[{"role": "user", "content": [part]}])
    assert of_anthropic.upstream.seen[-1][2]["messages"][0]["content"] == image


def test_written_caches_are_reserved_at_their_price(of_anthropic: Gate) -> None:
    cached: Any = [{"type": "text", "text": "x" * 1000, "cache_control": {"type": "ephemeral"}}]
    before = of_anthropic.told()
    answer: Any = of_anthropic.anthropic().messages.create(model="fine", max_tokens=9, messages=HELLO, system=cached)
    assert answer.content
    assert of_anthropic.change(before).spent > Decimal("0.001")
