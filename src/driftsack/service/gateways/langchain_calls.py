"""Calls of LangChain's chat models: what they may cost at most, what they have cost, and what an error has cost."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages
from langchain_core.utils.function_calling import convert_to_openai_tool

from driftsack.core.errors import SettingError
from driftsack.service.gateways.prompts.texts import read_prompt
from driftsack.service.gateways.proxy.prices import Prices, usage_of
from driftsack.service.gateways.proxy.worst_case import TOOLS, Demand

if TYPE_CHECKING:
    from langchain.agents.middleware.types import ModelRequest
    from langchain_core.language_models.chat_models import BaseChatModel

ERROR: Final = 300  # from this status on, an answer is not billed
CALLERS_FAULT: Final = (400, 413, 422)


@dataclass(frozen=True)
class PricedModel:
    """A chat model with its prices.

    Attributes:
        model: The model. It should not retry by itself: what a lost attempt costs cannot be seen.
        price: Its prices.
        max_tokens: Maximum number of tokens of an answer; the request and the model may have lower limits.
        media_tokens: The tokens that an image, a recording or a file has at most; None to refuse them.
        limit: The setting of the model that limits an answer.
    """

    model: BaseChatModel
    price: Prices
    max_tokens: int = 4096
    media_tokens: int | None = None
    limit: str = "max_tokens"

    def most_tokens(self, settings: Mapping[str, Any]) -> int:
        """Return the largest number of tokens of an answer."""
        given = (self.max_tokens, settings.get(self.limit), getattr(self.model, self.limit, None))
        return min(limit for limit in given if isinstance(limit, int) and limit > 0)

    def demand(self, body: Mapping[str, Any], size: int, settings: Mapping[str, Any]) -> Demand:
        """Return what a call asks for; that the prompt is written to a cache is assumed, since it cannot be seen.

        Args:
            body: The request, as :func:`body_of` returns it.
            size: Its bytes.
            settings: The settings of the model for this call.

        Raises:
            SettingError: It has media, whose tokens have no known bound, or asks for no number of answers.
        """
        answers = settings.get("n", getattr(self.model, "n", None)) or 1
        if not isinstance(answers, int) or answers < 1:
            raise SettingError(f"n must be the number of answers, got {answers!r:.60}.")
        media = read_prompt(body).media
        if media and self.media_tokens is None:
            raise SettingError("a request with images, recordings or files needs media_tokens of each PricedModel.")
        return Demand(size + media * (self.media_tokens or 0), limit=None, answers=answers, writes_cache=True)


def body_of(request: ModelRequest[Any]) -> dict[str, Any]:
    """Return a request in the format of OpenAI's chat completions.

    Raises:
        SettingError: A tool runs at the upstream, which has a price of its own.
    """
    system = [] if request.system_message is None else [request.system_message]
    tools = [tool if isinstance(tool, dict) else convert_to_openai_tool(tool) for tool in request.tools]
    for tool in tools:
        if tool.get("type", "function") not in ("function", "custom"):
            raise SettingError(f"tools must run in the agent, got one of type {tool['type']!r:.60}.")
    body: dict[str, Any] = {"messages": convert_to_openai_messages([*system, *request.messages])}
    return body | ({"tools": tools} if tools else {}) | schemas_of(request.response_format)


def schemas_of(response_format: Any) -> dict[str, Any]:
    """Return the schemas of a structured answer, which lengthen the prompt."""
    given = getattr(response_format, "schema_specs", None) or [getattr(response_format, "schema_spec", None)]
    found = [schema for spec in given if (schema := getattr(spec, "json_schema", None)) is not None]
    other: Any = getattr(response_format, "schema", None)
    if not found and hasattr(other, "model_json_schema"):
        found = [other.model_json_schema()]
    return {"response_format": found} if found else {}


def size_of(body: Mapping[str, Any]) -> int:
    """Return a bound on the tokens of a prompt: its bytes, and what tools and schemas add to them."""
    extra = TOOLS * sum(name in body for name in ("tools", "response_format"))
    return len(json.dumps(body, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")) + extra


def cost_of(messages: Iterable[BaseMessage], prices: Prices) -> Decimal | None:
    """Return the cost of answers; None if one of them has no usage that can be believed.

    >>> usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
    >>> cost_of([AIMessage("Hello", usage_metadata=usage)], Prices("1", "2"))
    Decimal('0.000120000')
    >>> cost_of([AIMessage("Hello")], Prices("1", "2")) is None
    True
    """
    total, answers = Decimal(0), [message for message in messages if isinstance(message, AIMessage)]
    for answer in answers:
        found: Mapping[str, Any] = answer.usage_metadata or {}
        into, out = found.get("input_token_details") or {}, found.get("output_token_details") or {}
        parts = {
            "cached": into.get("cache_read"),
            "written": into.get("cache_creation"),
            "audio_in": into.get("audio"),
            "reasoning": out.get("reasoning"),
            "audio_out": out.get("audio"),
        }
        usage = usage_of(found.get("input_tokens"), found.get("output_tokens"), parts)
        if usage is None:
            return None
        total += prices.cost(usage)
    return total if answers else None


def status_of(error: BaseException) -> int:
    """Return the HTTP status of an error of a model's client; 0 if it has none."""
    found = getattr(error, "status_code", None)
    return found if isinstance(found, int) else 0


def is_free(error: BaseException) -> bool:
    """Return whether a call that failed was certainly not billed: the upstream answered with an error."""
    return status_of(error) >= ERROR


def is_callers_fault(error: BaseException) -> bool:
    """Return whether an upstream refused the request itself, so that its model is not judged."""
    return status_of(error) in CALLERS_FAULT
