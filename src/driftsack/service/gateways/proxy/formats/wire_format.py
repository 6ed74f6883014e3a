"""``WireFormat``: what the proxy must know of a format in which callers and upstreams exchange requests and answers."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Final, NamedTuple

from driftsack.service.gateways.proxy.prices import Usage
from driftsack.service.gateways.proxy.rejections import Rejected
from driftsack.service.gateways.proxy.worst_case import TOOLS, Demand

MOST_ANSWERS: Final = 128
LARGEST_LIMIT: Final = 10**9


def words(text: str) -> frozenset[str]:
    """Return the names in a list that is separated by spaces."""
    return frozenset(text.split())


TIERS: Final = ("auto", "default", "flex", "standard_only")  # none costs more than the usual price
TEXT_PARTS: Final = words(
    "text refusal input_text output_text summary_text reasoning_text tool_use tool_result thinking redacted_thinking "
    "message function_call function_call_output reasoning custom_tool_call custom_tool_call_output"
)
"""Types of content whose tokens are bounded by their bytes."""


class Judgement(NamedTuple):
    """What an upstream's answer says.

    Attributes:
        finished: Whether it is a complete answer with a reason for its end.
        usage: The usage; None if there is none that can be believed.
    """

    finished: bool
    usage: Usage | None


class StreamReader(ABC):
    """Collects what the events of a stream say.

    Attributes:
        failed: Whether an event reports an error.
        names: The id and the model of the answer, as far as they are known.
    """

    def __init__(self) -> None:
        self.failed = False
        self.names: dict[str, Any] = {}

    def read(self, content: Any) -> bool:
        """Read the content of an event, and return whether a caller that asked for no usage may see it."""
        if not isinstance(content, dict):
            return True
        if content.get("error") or content.get("type") in ("error", "response.failed"):
            self.failed = True
            return True
        if not self.names:
            self._name(content)
        return self.collect(content)

    def _name(self, content: dict[str, Any]) -> None:
        """Note the id and the model of the answer, which the first event has, or the message or response in it."""
        for part in (content, content.get("message"), content.get("response")):
            if isinstance(part, dict) and isinstance(part.get("model"), str):
                self.names = {name: part.get(name) for name in ("id", "model")}

    @abstractmethod
    def collect(self, content: dict[str, Any]) -> bool:
        """Collect the content of an event that is no error."""

    @abstractmethod
    def answer(self) -> dict[str, Any]:
        """Return the answer as far as it has come, in the format of a complete one."""


class WireFormat(ABC):
    """A format. Its objects have no state.

    Attributes:
        name: Its name in the settings.
        path: The path of its requests, after ``/v1``.
        fields: The fields that a request may have; others could change its price.
        limits: The fields that limit the answer.
    """

    name: ClassVar[str]
    path: ClassVar[str]
    fields: ClassVar[frozenset[str]]
    limits: ClassVar[tuple[str, ...]]

    @abstractmethod
    def demand(self, request: dict[str, Any], size: int) -> Demand:
        """Return what a request of ``size`` bytes asks for; ``Rejected`` if its maximum cost is not known."""

    @abstractmethod
    def verdict(self, answer: dict[str, Any]) -> Judgement:
        """Judge a complete answer."""

    @abstractmethod
    def reader(self) -> StreamReader:
        """Return what reads a stream."""

    def limited(self, request: dict[str, Any], limit: int, style: str) -> dict[str, Any]:
        """Return a request whose answers have at most ``limit`` tokens."""
        return {**request, self.limits[0]: limit} if self.limits else request

    def streamed(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return a request for a stream that ends with the usage."""
        return request

    def hides_usage(self, request: dict[str, Any]) -> bool:
        """Return whether the caller must not see the event with the usage that only the proxy asked for."""
        return False

    def problem(self, rejected: Rejected) -> bytes:
        """Return an error in OpenAI's format."""
        kind = "invalid_request_error" if rejected.status == 400 else "driftsack"
        error = {"message": rejected.message, "type": kind, "code": rejected.code, "param": None}
        return json.dumps({"error": error}).encode()

    def error_event(self, rejected: Rejected) -> bytes:
        """Return an error as the last event of a stream."""
        return b"data: " + self.problem(rejected) + b"\n\n"


def check_fields(request: dict[str, Any], wire: WireFormat, further: set[str]) -> None:
    """Reject fields that could change the price of a request.

    Args:
        further: Fields that every upstream which may be chosen takes, by its settings.
    """
    unknown = sorted(request.keys() - wire.fields - further)
    if unknown:
        raise Rejected.invalid(
            f"the field {unknown[0]!r:.60} is not known to leave the price of a request as it is; omit it, or let the "
            "operator list it in the fields of every upstream."
        )
    if request.get("service_tier") not in (None, *TIERS):
        raise Rejected.invalid(f"service_tier must be one of {list(TIERS)}, got {request['service_tier']!r:.60}.")
    stream = request.get("stream")
    if stream is not None and not isinstance(stream, bool):
        raise Rejected.invalid(f"stream must be true or false, got {stream!r:.60}.")


def whole_number(request: dict[str, Any], name: str, most: int) -> int | None:
    """Return a field that is an integer from 1 on; None if it is missing or null.

    Raises:
        Rejected: It is something else, which an upstream could read in another way than the proxy.
    """
    found = request.get(name)
    if found is None:
        return None
    if not isinstance(found, int) or isinstance(found, bool) or not 1 <= found <= most:
        raise Rejected.invalid(f"{name} must be an integer in [1, {most:,}], got {found!r:.60}.")
    return found


def smallest_limit(request: dict[str, Any], names: tuple[str, ...]) -> int | None:
    """Return the smallest of the limits that a request sets; None without one."""
    given = [found for name in names if (found := whole_number(request, name, LARGEST_LIMIT)) is not None]
    return min(given) if given else None


def listed(request: dict[str, Any], name: str) -> list[Any]:
    """Return a field that must be a list of objects."""
    found = request.get(name)
    if not isinstance(found, list) or not found or not all(isinstance(each, dict) for each in found):
        raise Rejected.invalid(f"{name} must be a list of one or more objects, got {found!r:.60}.")
    return found


def is_text(content: Any) -> bool:
    """Return whether the tokens of some content are bounded by its bytes: no media, and nothing by its id or URL.

    >>> is_text("Hello?"), is_text([{"type": "text", "text": "Hello?"}]), is_text([{"type": "image_url"}])
    (True, True, False)
    """
    if content is None or isinstance(content, str):
        return True
    parts = content if isinstance(content, list) else [content]
    return all(
        isinstance(part, dict)
        and str(part.get("type", "message")) in TEXT_PARTS
        and is_text(part.get("content"))
        and (not isinstance(part.get("output"), list) or is_text(part["output"]))
        for part in parts
    )


def tools_tokens(request: dict[str, Any], kinds: tuple[str, ...]) -> int:
    """Return by how many tokens tools may extend a prompt besides their bytes.

    Args:
        kinds: The types of tools that the caller runs; their types may have a date as their suffix.

    Raises:
        Rejected: A tool runs at the upstream, which has a price of its own.
    """
    tools = request.get("tools")
    if not tools:
        return 0
    for tool in listed(request, "tools"):
        kind = tool.get("type", kinds[0])
        if not isinstance(kind, str) or not kind.startswith(kinds):
            raise Rejected.invalid(f"tools must be of a type that the caller runs, {list(kinds)}, got {kind!r:.60}.")
    built_in = [tool for tool in tools if tool.get("type", kinds[0]) != kinds[0]]  # with a description of its own
    return TOOLS * (1 + len(built_in))


def failed(answer: dict[str, Any]) -> bool:
    """Return whether an answer reports an error."""
    return bool(answer.get("error"))
