"""From chat completions to an upstream that speaks Anthropic's messages, and back."""

from __future__ import annotations

import json
import time
from typing import Any, Final

from driftsack.service.gateways.proxy.formats.choices import asked_for_usage
from driftsack.service.gateways.proxy.formats.events import event_of
from driftsack.service.gateways.proxy.formats.messages import message_usage
from driftsack.service.gateways.proxy.formats.translation import Relay, Translation
from driftsack.service.gateways.proxy.formats.wire_format import WireFormat, words
from driftsack.service.gateways.proxy.rejections import Rejected

SAME: Final = ("temperature", "top_p", "stream")
LEFT_OUT: Final = words(
    "model messages max_tokens max_completion_tokens n stop user metadata tools tool_choice parallel_tool_calls "
    "stream_options seed service_tier store safety_identifier prompt_cache_key"
)
"""Fields that are translated, or whose absence changes no answer."""
ENDS: Final = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls"}
CHOICES: Final = {"auto": {"type": "auto"}, "required": {"type": "any"}, "none": {"type": "none"}}


class ChatToMessages(Translation):
    """A caller of chat completions and an upstream with messages.

    Args:
        caller: Chat completions.
        upstream: Messages.
    """

    def __init__(self, caller: WireFormat, upstream: WireFormat) -> None:
        super().__init__(caller)
        self.upstream = upstream

    def request(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the request as one for a message."""
        other = [name for name, value in request.items() if name not in (*SAME, *LEFT_OUT) and value is not None]
        if other or request.get("n") not in (None, 1):
            raise Rejected.invalid(f"{(other or ['n'])[0]!r} cannot be translated into Anthropic's messages; omit it.")
        found: dict[str, Any] = {name: request[name] for name in SAME if request.get(name) is not None}
        messages: list[dict[str, Any]] = []
        system = []
        for message in request["messages"]:
            if message.get("role") in ("system", "developer"):
                system.append(text_of(message.get("content")))
            else:
                add(messages, *translated(message))
        found |= {"messages": messages} | ({"system": "\n\n".join(system)} if system else {})
        stop = request.get("stop")
        found |= {} if stop is None else {"stop_sequences": [stop] if isinstance(stop, str) else stop}
        found |= {} if not request.get("user") else {"metadata": {"user_id": str(request["user"])}}
        return found | tools_of(request)

    def answer(self, content: bytes, answer: dict[str, Any]) -> bytes:
        """Return a message as a chat completion."""
        parts = [part for part in answer["content"] if isinstance(part, dict)]
        text = "".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")
        calls = [call_of(part) for part in parts if part.get("type") == "tool_use"]
        message = {"role": "assistant", "content": text or (None if calls else "")}
        message |= {"tool_calls": calls} if calls else {}  # type: ignore[dict-item]
        end = ENDS.get(answer["stop_reason"], "stop")
        choice = {"index": 0, "message": message, "finish_reason": end, "logprobs": None}
        whole = head_of(answer, "chat.completion") | {"choices": [choice], "usage": usage_of(answer.get("usage"))}
        return json.dumps(whole, ensure_ascii=False).encode()

    def relay(self, request: dict[str, Any]) -> Relay:
        """Return what passes a stream on."""
        return MessagesAsChat(asked_for_usage(request))


class MessagesAsChat(Relay):
    """The events of a message as those of a chat completion.

    Args:
        usage: Whether the caller asked for the usage.
    """

    def __init__(self, usage: bool) -> None:
        super().__init__(hide=False)
        self._wants_usage = usage
        self._head: dict[str, Any] = head_of({}, "chat.completion.chunk")
        self._usage: dict[str, Any] = {}
        self._calls = -1

    def events(self, event: bytes, content: Any, shown: bool) -> list[bytes]:
        """Return the events for the caller."""
        if not isinstance(content, dict):
            return []
        match content.get("type"):
            case "message_start" if isinstance(content.get("message"), dict):
                self._head = head_of(content["message"], "chat.completion.chunk")
                self._usage |= content["message"].get("usage") or {}
                delta: dict[str, Any] | None = {"role": "assistant", "content": ""}
            case "content_block_start":
                delta = self._begun(content.get("content_block"))
            case "content_block_delta":
                delta = self._piece(content.get("delta"))
            case "message_delta":
                self._usage |= content.get("usage") or {}
                end = (content.get("delta") or {}).get("stop_reason")
                return [self._chunk({}, ENDS.get(str(end), "stop"))]
            case _:
                delta = None
        return [] if delta is None else [self._chunk(delta)]

    def last(self) -> list[bytes]:
        """Return the events that end a chat completion."""
        usage = {**self._head, "choices": [], "usage": usage_of(self._usage)}
        return [*([event_of(usage)] if self._wants_usage else []), b"data: [DONE]\n\n"]

    def _begun(self, block: Any) -> dict[str, Any] | None:
        """Return the delta for the beginning of a block; None if there is none."""
        if not isinstance(block, dict) or block.get("type") != "tool_use":
            return None
        self._calls += 1
        function = {"name": block.get("name"), "arguments": ""}
        return {"tool_calls": [{"index": self._calls, "id": block.get("id"), "type": "function", "function": function}]}

    def _piece(self, delta: Any) -> dict[str, Any] | None:
        """Return the delta for a piece of a block; None if there is none."""
        kind = delta.get("type") if isinstance(delta, dict) else None
        if kind == "text_delta":
            return {"content": delta.get("text", "")}
        if kind == "input_json_delta":
            return {"tool_calls": [{"index": self._calls, "function": {"arguments": delta.get("partial_json", "")}}]}
        return None

    def _chunk(self, delta: dict[str, Any], end: str | None = None) -> bytes:
        return event_of({**self._head, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]})


def head_of(message: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the fields with which a chat completion begins."""
    name = str(message.get("id") or "chatcmpl-0")
    return {"id": name, "object": kind, "created": int(time.time()), "model": str(message.get("model") or "")}


def usage_of(found: Any) -> dict[str, Any] | None:
    """Return the usage of a message as that of a chat completion; None if it is not valid."""
    usage = message_usage(found)
    if usage is None:
        return None
    prompt = usage.input + usage.cached + usage.written
    details = {"cached_tokens": usage.cached}
    counts = {"prompt_tokens": prompt, "completion_tokens": usage.output, "total_tokens": prompt + usage.output}
    return {**counts, "prompt_tokens_details": details}


def text_of(content: Any) -> str:
    """Return the text of the content of a message."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return "" if content is None else str(content)


def translated(message: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """Return the role and the content of a message."""
    content = message.get("content")
    if message.get("role") == "tool":
        result = {"type": "tool_result", "tool_use_id": message.get("tool_call_id"), "content": text_of(content)}
        return "user", [result]
    if message.get("role") not in ("user", "assistant"):
        raise Rejected.invalid(f"the role of a message must be known, got {message.get('role')!r:.60}.")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
    found = [part_of(part) for part in parts]
    for call in message.get("tool_calls") or []:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            raise Rejected.invalid("tool_calls must be calls of functions.")
        given = arguments_of(function.get("arguments"))
        found.append({"type": "tool_use", "id": call.get("id"), "name": function.get("name"), "input": given})
    return str(message["role"]), found


def arguments_of(text: Any) -> Any:
    """Return the arguments of a call as an object."""
    try:
        found = json.loads(text or "{}")
    except (TypeError, ValueError, RecursionError) as error:
        raise Rejected.invalid(f"the arguments of a call must be a JSON object: {error}.") from error
    return found if isinstance(found, dict) else {"value": found}


def part_of(part: Any) -> dict[str, Any]:
    """Return a part of the content of a message."""
    if isinstance(part, dict) and part.get("type") == "text":
        return {"type": "text", "text": str(part.get("text", ""))}
    if isinstance(part, dict) and part.get("type") == "image_url" and isinstance(part.get("image_url"), dict):
        url = str(part["image_url"].get("url", ""))
        if url.startswith("data:"):
            kind, _, encoded = url[5:].partition(";base64,")
            return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": encoded}}
        return {"type": "image", "source": {"type": "url", "url": url}}
    raise Rejected.invalid("only text and images can be translated into Anthropic's messages.")


def add(messages: list[dict[str, Any]], role: str, parts: list[dict[str, Any]]) -> None:
    """Add a message, joined with the one before it if the role is the same."""
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"] += parts
    elif parts:
        messages.append({"role": role, "content": parts})


def tools_of(request: dict[str, Any]) -> dict[str, Any]:
    """Return the tools of a request and how they may be used."""
    found: dict[str, Any] = {}
    tools = request.get("tools")
    if tools:
        functions = [tool.get("function") for tool in tools]
        if not all(isinstance(function, dict) for function in functions):
            raise Rejected.invalid("only tools of the type function can be translated into Anthropic's messages.")
        empty = {"type": "object", "properties": {}}
        found["tools"] = [
            {"name": f.get("name"), "input_schema": f.get("parameters") or empty}
            | ({"description": f["description"]} if f.get("description") else {})
            for f in functions
        ]
    choice = request.get("tool_choice")
    if isinstance(choice, dict):
        function = choice.get("function")
        found["tool_choice"] = {"type": "tool", "name": function.get("name") if isinstance(function, dict) else None}
    elif choice is not None:
        found["tool_choice"] = dict(CHOICES.get(str(choice), {"type": "auto"}))
    if request.get("parallel_tool_calls") is False and tools:
        found["tool_choice"] = found.get("tool_choice", {"type": "auto"}) | {"disable_parallel_tool_use": True}
    return found


def call_of(part: dict[str, Any]) -> dict[str, Any]:
    """Return the use of a tool as a call of a function."""
    function = {"name": part.get("name"), "arguments": json.dumps(part.get("input") or {}, ensure_ascii=False)}
    return {"id": part.get("id"), "type": "function", "function": function}
