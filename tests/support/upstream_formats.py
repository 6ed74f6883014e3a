"""The wire formats of fake upstreams, written from the vendors' documents and not from the proxy's code."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple


class Spoken(NamedTuple):
    """How a fake upstream speaks a format.

    Attributes:
        limits: The fields that limit the output; none for embeddings.
        usage: Returns the usage of input and output tokens.
        answer: Returns a complete answer: words, usage, and whether it has a finish reason.
        events: Returns the events of a stream, as bytes.
    """

    limits: tuple[str, ...]
    usage: Callable[[Any, Any], Any]
    answer: Callable[..., dict[str, Any]]
    events: Callable[..., list[bytes]]

    def bytes_of(self, body: dict[str, Any]) -> int:
        """Return the bytes of all strings in a request, which are its tokens."""
        return sum(len(text.encode()) for name in INPUTS if name in body for text in strings(body[name]))


CALL: Final[dict[str, Any]] = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city": "Paris"}'},
}
USE: Final = {"type": "tool_use", "id": "toolu_1", "name": "weather"}
INPUTS: Final = ("messages", "input", "prompt", "system", "instructions", "tools")


def strings(value: Any) -> list[str]:
    """Return all strings in a JSON value; a number counts as a string of one character."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [*value, *(text for each in value.values() for text in strings(each))]
    if isinstance(value, list):
        return [text for each in value for text in strings(each)]
    return ["1"]


def end_of(words: list[str], call: str) -> str:
    """Return why an answer ends."""
    return "stop" if words else call


def data(content: Any, name: str = "") -> bytes:
    """Return an event of a stream."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(content, ensure_ascii=False)}\n\n".encode()


def openai_usage(prompt: Any, answer: Any) -> Any:
    """Return the usage of chat and text completions."""
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}


def counted_usage(prompt: Any, answer: Any) -> Any:
    """Return the usage of messages and responses."""
    return {"input_tokens": prompt, "output_tokens": answer}


def chat_answer(words: list[str], usage: Any, finished: bool = True) -> dict[str, Any]:
    """Return a chat completion; without words it calls a tool."""
    message: dict[str, Any] = {"role": "assistant", "content": "".join(words) or None}
    message |= {} if words else {"tool_calls": [CALL]}
    choice = {"index": 0, "message": message, "finish_reason": end_of(words, "tool_calls") if finished else None}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    }


def chat_events(words: list[str], usage: Any, finished: bool = True) -> list[bytes]:
    """Return the events of a chat completion."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    deltas: list[tuple[dict[str, Any], str | None]] = [({"role": "assistant", "content": word}, None) for word in words]
    for piece in [] if words else [{**CALL["function"], "arguments": '{"city"'}, {"arguments": ': "Paris"}'}]:
        called = {"index": 0, "function": piece, **({"id": CALL["id"], "type": "function"} if "name" in piece else {})}
        deltas.append(({"tool_calls": [called]}, None))
    deltas += [({}, end_of(words, "tool_calls"))] if finished else []
    found = [data({**head, "choices": [{"index": 0, "delta": d, "finish_reason": f}]}) for d, f in deltas]
    return [*found, data({**head, "choices": [], "usage": usage}), b"data: [DONE]\n\n"]


def text_answer(words: list[str], usage: Any, finished: bool = True) -> dict[str, Any]:
    """Return a text completion."""
    choice = {"index": 0, "text": "".join(words), "logprobs": None, "finish_reason": "stop" if finished else None}
    return {
        "id": "cmpl-1",
        "object": "text_completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    }


def text_events(words: list[str], usage: Any, finished: bool = True) -> list[bytes]:
    """Return the events of a text completion."""
    head = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m"}
    parts: list[tuple[str, str | None]] = [(word, None) for word in words]
    parts += [("", "stop")] if finished else []
    found = [data({**head, "choices": [{"index": 0, "text": t, "finish_reason": f}]}) for t, f in parts]
    return [*found, data({**head, "choices": [], "usage": usage}), b"data: [DONE]\n\n"]


def embedding_answer(words: list[str], usage: Any, finished: bool = True) -> dict[str, Any]:
    """Return an embedding; one that is not finished has no data."""
    found = [{"object": "embedding", "index": 0, "embedding": [0.1, 0.2]}] if finished else []
    return {"object": "list", "data": found, "model": "m", "usage": usage}


def message_answer(words: list[str], usage: Any, finished: bool = True) -> dict[str, Any]:
    """Return an Anthropic message."""
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
    content = [{"type": "text", "text": "".join(words)}] if words else [{**USE, "input": {"city": "Paris"}}]
    end = ("end_turn" if words else "tool_use") if finished else None
    return {**head, "content": content, "stop_reason": end, "usage": usage}


def message_events(words: list[str], usage: Any, finished: bool = True) -> list[bytes]:
    """Return the events of an Anthropic message."""
    begun = {**message_answer([], None, finished=False), "content": []}
    first = None if usage is None else {"input_tokens": usage["input_tokens"], "output_tokens": 1}
    found = [data({"type": "message_start", "message": {**begun, "usage": first}}, "message_start")]
    block: dict[str, Any] = {"type": "text", "text": ""} if words else {**USE, "input": {}}
    found.append(data({"type": "content_block_start", "index": 0, "content_block": block}, "content_block_start"))
    deltas = [{"type": "text_delta", "text": word} for word in words]
    pieces = [] if words else ['{"city"', ': "Paris"}']
    deltas += [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    events = [{"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas]
    found += [data(event, "content_block_delta") for event in events]
    found.append(data({"type": "content_block_stop", "index": 0}, "content_block_stop"))
    if finished:
        end = "end_turn" if words else "tool_use"
        last = None if usage is None else {"output_tokens": usage["output_tokens"]}
        ended = {"type": "message_delta", "delta": {"stop_reason": end, "stop_sequence": None}, "usage": last}
        found += [data(ended, "message_delta"), data({"type": "message_stop"}, "message_stop")]
    return found


def response_answer(words: list[str], usage: Any, finished: bool = True) -> dict[str, Any]:
    """Return an OpenAI response."""
    content = [{"type": "output_text", "text": "".join(words), "annotations": []}]
    output = [{"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": content}]
    total = None if usage is None else {**usage, "total_tokens": usage["input_tokens"] + usage["output_tokens"]}
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "error": None, "tools": []}
    head |= {"parallel_tool_calls": True, "tool_choice": "auto", "instructions": None, "metadata": {}}
    return {**head, "status": "completed" if finished else "in_progress", "output": output, "usage": total}


def response_events(words: list[str], usage: Any, finished: bool = True) -> list[bytes]:
    """Return the events of an OpenAI response."""
    begun = {**response_answer([], None, finished=False), "output": []}
    found = [data({"type": "response.created", "response": begun, "sequence_number": 0}, "response.created")]
    for k, word in enumerate(words):
        delta = {"type": "response.output_text.delta", "item_id": "m1", "output_index": 0, "content_index": 0}
        found.append(
            data({**delta, "delta": word, "logprobs": [], "sequence_number": k + 1}, "response.output_text.delta")
        )
    if finished:
        ended = {"type": "response.completed", "response": response_answer(words, usage), "sequence_number": 9}
        found.append(data(ended, "response.completed"))
    return found


FORMATS: Final = {
    "chat/completions": Spoken(("max_tokens", "max_completion_tokens"), openai_usage, chat_answer, chat_events),
    "completions": Spoken(("max_tokens",), openai_usage, text_answer, text_events),
    "embeddings": Spoken((), openai_usage, embedding_answer, lambda *_, **__: []),
    "messages": Spoken(("max_tokens",), counted_usage, message_answer, message_events),
    "responses": Spoken(("max_output_tokens",), counted_usage, response_answer, response_events),
}
"""The formats by the end of their path."""
