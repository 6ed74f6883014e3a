"""From Anthropic's messages to an upstream that speaks OpenAI's chat completions, and back."""

from __future__ import annotations

import json
from typing import Any, Final

from driftsack.service.gateways.proxy.formats.chat_to_messages import arguments_of, text_of
from driftsack.service.gateways.proxy.formats.choices import chat_usage
from driftsack.service.gateways.proxy.formats.events import event_of
from driftsack.service.gateways.proxy.formats.translation import Relay, Translation
from driftsack.service.gateways.proxy.formats.wire_format import WireFormat, words
from driftsack.service.gateways.proxy.rejections import Rejected

SAME: Final = ("temperature", "top_p", "stream", "max_tokens")
LEFT_OUT: Final = words(
    "model messages system stop_sequences metadata tools tool_choice service_tier cache_control top_k"
)
ENDS: Final = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
CHOICES: Final = {"auto": "auto", "any": "required", "none": "none"}


class MessagesToChat(Translation):
    """A caller of messages and an upstream with chat completions.

    Args:
        caller: Messages.
        upstream: Chat completions.
    """

    def __init__(self, caller: WireFormat, upstream: WireFormat) -> None:
        super().__init__(caller)
        self.upstream = upstream

    def request(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the request as one for a chat completion."""
        other = [name for name, value in request.items() if name not in (*SAME, *LEFT_OUT) and value is not None]
        if other:
            raise Rejected.invalid(f"{other[0]!r} cannot be translated into OpenAI's chat completions; omit it.")
        found: dict[str, Any] = {name: request[name] for name in SAME if request.get(name) is not None}
        system = text_of(request.get("system"))
        messages = [{"role": "system", "content": system}] if system else []
        for message in request.get("messages") or []:
            messages += translated(message)
        found["messages"] = messages
        found |= {} if request.get("stop_sequences") is None else {"stop": request["stop_sequences"]}
        return found | tools_of(request)

    def answer(self, content: bytes, answer: dict[str, Any]) -> bytes:
        """Return a chat completion as a message."""
        choice = answer["choices"][0]
        message = choice["message"] if isinstance(choice["message"], dict) else {}
        parts: list[dict[str, Any]] = []
        if isinstance(message.get("content"), str) and message["content"]:
            parts.append({"type": "text", "text": message["content"]})
        for call in message.get("tool_calls") or []:
            function = call.get("function") or {}
            given = _object(function.get("arguments"))
            parts.append({"type": "tool_use", "id": call.get("id"), "name": function.get("name"), "input": given})
        end = ENDS.get(choice["finish_reason"], "end_turn")
        whole = {**head_of(answer), "content": parts, "stop_reason": end, "usage": usage_of(answer.get("usage"))}
        return json.dumps(whole, ensure_ascii=False).encode()

    def relay(self, request: dict[str, Any]) -> Relay:
        """Return what passes a stream on."""
        return ChatAsMessages()


class ChatAsMessages(Relay):
    """The events of a chat completion as those of a message."""

    def __init__(self) -> None:
        super().__init__(hide=False)
        self._begun = False
        self._block = -1  # the number of the latest block
        self._open = ""  # its kind; empty if none is open
        self._call: Any = None
        self._end: str | None = None
        self._usage: Any = None

    def events(self, event: bytes, content: Any, shown: bool) -> list[bytes]:
        """Return the events for the caller."""
        if not isinstance(content, dict):
            return []
        found = []
        if not self._begun:
            self._begun = True
            begun = {**head_of(content), "content": [], "stop_reason": None, "usage": usage_of(None)}
            found.append(event_of({"type": "message_start", "message": begun}, "message_start"))
        self._usage = content.get("usage") or self._usage
        for choice in content.get("choices") or []:
            delta = choice.get("delta") if isinstance(choice, dict) else None
            if isinstance(delta, dict):
                found += self._text(delta.get("content"))
                for call in delta.get("tool_calls") or []:
                    found += self._tool(call)
                self._end = choice.get("finish_reason") or self._end
        return found

    def _text(self, text: Any) -> list[bytes]:
        """Return the events for a piece of text."""
        if not isinstance(text, str) or not text:
            return []
        found = [] if self._open == "text" else self._begin({"type": "text", "text": ""}, "text")
        return [*found, self._delta({"type": "text_delta", "text": text})]

    def _tool(self, call: Any) -> list[bytes]:
        """Return the events for a piece of a call."""
        function = (call.get("function") or {}) if isinstance(call, dict) else {}
        found = []
        if self._open != "tool_use" or call.get("index") != self._call:
            self._call = call.get("index")
            block = {"type": "tool_use", "id": call.get("id"), "name": function.get("name"), "input": {}}
            found = self._begin(block, "tool_use")
        if function.get("arguments"):
            found.append(self._delta({"type": "input_json_delta", "partial_json": str(function["arguments"])}))
        return found

    def _begin(self, block: dict[str, Any], kind: str) -> list[bytes]:
        """Return the events that end a block and begin another."""
        found = self._stop()
        self._block, self._open = self._block + 1, kind
        started = {"type": "content_block_start", "index": self._block, "content_block": block}
        return [*found, event_of(started, "content_block_start")]

    def _delta(self, delta: dict[str, Any]) -> bytes:
        piece = {"type": "content_block_delta", "index": self._block, "delta": delta}
        return event_of(piece, "content_block_delta")

    def _stop(self) -> list[bytes]:
        """Return the event that ends the open block."""
        if not self._open:
            return []
        self._open = ""
        return [event_of({"type": "content_block_stop", "index": self._block}, "content_block_stop")]

    def last(self) -> list[bytes]:
        """Return the events that end the message."""
        delta = {"stop_reason": ENDS.get(str(self._end), "end_turn"), "stop_sequence": None}
        last = {"type": "message_delta", "delta": delta, "usage": usage_of(self._usage)}
        return [*self._stop(), event_of(last, "message_delta"), event_of({"type": "message_stop"}, "message_stop")]


def head_of(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with which a message begins."""
    name, model = str(answer.get("id") or "msg_0"), str(answer.get("model") or "")
    return {"id": name, "type": "message", "role": "assistant", "model": model, "stop_sequence": None}


def usage_of(found: Any) -> dict[str, int]:
    """Return the usage of a chat completion as that of a message; zeros if it is not valid."""
    usage = chat_usage(found)
    if usage is None:
        return {"input_tokens": 0, "output_tokens": 0}
    into, out = usage.input + usage.audio_in, usage.output + usage.reasoning + usage.audio_out
    return {"input_tokens": into, "output_tokens": out, "cache_read_input_tokens": usage.cached}


def _object(arguments: Any) -> Any:
    """Return the arguments of a call; what the model wrote if they are no JSON."""
    try:
        return arguments_of(arguments)
    except Rejected:
        return {"value": str(arguments)}


def translated(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages that follow from one: the results of tools are messages of their own."""
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant"):
        raise Rejected.invalid(f"the role of a message must be 'user' or 'assistant', got {role!r:.60}.")
    if isinstance(content, str):
        return [{"role": role, "content": content}]
    results, parts, calls = [], [], []
    for part in content if isinstance(content, list) else []:
        match part.get("type") if isinstance(part, dict) else None:
            case "text":
                parts.append({"type": "text", "text": part.get("text")})
            case "image":
                parts.append({"type": "image_url", "image_url": {"url": image_of(part.get("source"))}})
            case "tool_result":
                text = text_of(part.get("content"))
                results.append({"role": "tool", "tool_call_id": part.get("tool_use_id"), "content": text})
            case "tool_use":
                function = {"name": part.get("name"), "arguments": json.dumps(part.get("input") or {})}
                calls.append({"id": part.get("id"), "type": "function", "function": function})
            case "thinking" | "redacted_thinking":
                pass
            case _:
                raise Rejected.invalid("only text, images and tools can be translated into chat completions.")
    own: dict[str, Any] = {"role": role, "content": parts or None}
    own |= {"tool_calls": calls} if calls else {}
    return [*results, *([own] if parts or calls else [])]


def image_of(source: Any) -> str:
    """Return the URL of an image."""
    if not isinstance(source, dict) or source.get("type") not in ("base64", "url"):
        raise Rejected.invalid("an image must be given in base64 or by its URL.")
    if source["type"] == "url":
        return str(source.get("url", ""))
    return f"data:{source.get('media_type')};base64,{source.get('data')}"


def tools_of(request: dict[str, Any]) -> dict[str, Any]:
    """Return the tools of a request and how they may be used."""
    found: dict[str, Any] = {}
    tools = request.get("tools")
    if tools:
        if any(tool.get("input_schema") is None for tool in tools):
            raise Rejected.invalid("only tools with an input_schema can be translated into chat completions.")
        found["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.get("name"), "parameters": tool["input_schema"]}
                | ({"description": tool["description"]} if tool.get("description") else {}),
            }
            for tool in tools
        ]
    choice = request.get("tool_choice")
    if isinstance(choice, dict):
        named = {"type": "function", "function": {"name": choice.get("name")}}
        found["tool_choice"] = named if choice.get("type") == "tool" else CHOICES.get(str(choice.get("type")), "auto")
        if choice.get("disable_parallel_tool_use"):
            found["parallel_tool_calls"] = False
    return found
