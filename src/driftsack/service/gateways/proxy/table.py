"""The settings of the proxy: upstreams, their prices, and the maximum and actual cost of requests."""

from __future__ import annotations

import importlib
import math
import os
import tomllib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from driftsack.core.errors import SettingError
from driftsack.service.domain.config import Name

MILLION: Final = Decimal(10**6)
FINEST: Final = Decimal("0.000000001")
Price = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,9}(\.[0-9]{1,9})?$")]
Positive = Annotated[int, msgspec.Meta(ge=1, le=10**7)]
Reward = Callable[[dict[str, Any], dict[str, Any], float], float]


class Upstream(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model behind the proxy."""

    arm: Name  # the arm of the campaign that represents it
    url: str  # its OpenAI-compatible address, up to ``/v1``
    model: str  # the upstream's name for the model
    input_price: Price  # dollars per million tokens of the prompt
    output_price: Price  # dollars per million tokens of the answer
    key_env: str = ""  # the environment variable with the API key; empty if none is needed
    max_tokens: Positive = 4096  # maximum number of tokens of an answer; a request may set a lower limit

    def limit(self, request: dict[str, Any]) -> int:
        """Return the maximum number of tokens of the answer to a request."""
        asked = [request.get(name) for name in ("max_completion_tokens", "max_tokens")]
        given = [value for value in asked if isinstance(value, int) and not isinstance(value, bool) and value > 0]
        return min(self.max_tokens, *given) if given else self.max_tokens

    def cost(self, prompt: int, answer: int) -> Decimal:
        """Return the cost of tokens in dollars, rounded up to a billionth."""
        exact = (prompt * Decimal(self.input_price) + answer * Decimal(self.output_price)) / MILLION
        return exact.quantize(FINEST, rounding="ROUND_CEILING")

    def most(self, request: dict[str, Any], size: int) -> Decimal:
        """Return the request's maximum cost in dollars: a prompt has at most as many tokens as its body has bytes."""
        answers = request.get("n")
        count = answers if isinstance(answers, int) and answers > 1 else 1
        return self.cost(size, self.limit(request) * count)

    def charged(self, usage: Any, most: Decimal) -> Decimal:
        """Return the charge for a request in dollars: by its usage, or its maximum cost if the usage is invalid.

        >>> one = Upstream("small", "http://localhost/v1", "m", "1", "2")
        >>> one.charged({"prompt_tokens": 10, "completion_tokens": 5}, Decimal(1))
        Decimal('0.000020000')
        >>> one.charged({"prompt_tokens": -10, "completion_tokens": 5}, Decimal(1))
        Decimal('1')
        """
        if not isinstance(usage, dict):
            return most
        counts = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
        if any(not isinstance(c, int) or isinstance(c, bool) or not 0 <= c < 10**12 for c in counts):
            return most
        return self.cost(int(counts[0] or 0), int(counts[1] or 0))

    def key(self) -> str:
        """Return the API key; ``SettingError`` if the environment variable is not set."""
        if self.key_env and self.key_env not in os.environ:
            raise SettingError(f"the upstream {self.arm} needs its API key in the environment variable {self.key_env}.")
        return os.environ.get(self.key_env, "") if self.key_env else ""


class ProxySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of the proxy."""

    upstream: Annotated[list[Upstream], msgspec.Meta(min_length=1, max_length=1000)]  # the models
    campaign: str
    service: str = "http://localhost:8787"  # the address of ``driftsack serve``
    host: str = "127.0.0.1"  # the address to listen on
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8788  # the port; 0 for any
    money: Name = "usd"  # the resource to which dollars are charged
    time: str = ""  # the resource to which seconds are charged; empty if the campaign has none
    # Timeout of an upstream in seconds, and the amount of ``time`` that is reserved.
    most_seconds: Annotated[float, msgspec.Meta(gt=0, le=86400)] = 120.0
    # ``module:function`` that computes the reward from request, answer and seconds; empty for reward 1.
    reward: str = ""

    def reward_function(self) -> Reward:
        """Return the function that computes rewards; ``SettingError`` if there is no such function."""
        if not self.reward:
            return lambda request, answer, seconds: 1.0
        module, _, name = self.reward.partition(":")
        try:
            found: Reward = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise SettingError(f"reward must be 'module:function', got {self.reward!r}: {error}.") from error
        return found


def read_settings(path: Path) -> ProxySettings:
    """Read the settings from a TOML file; ``SettingError`` if they are not valid."""
    try:
        found = msgspec.convert(tomllib.loads(path.read_text()), ProxySettings)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise SettingError(f"{path} must have the settings of the proxy: {error}.") from error
    arms = [upstream.arm for upstream in found.upstream]
    if len(set(arms)) != len(arms):
        raise SettingError(f"each upstream must have a different arm, got {arms}.")
    for upstream in found.upstream:
        if not upstream.url.startswith(("http://", "https://")):
            raise SettingError(f"url of {upstream.arm} must begin with http:// or https://, got {upstream.url!r}.")
        upstream.key()
    found.reward_function()
    return found


def clean_reward(value: Any) -> float:
    """Return the result of a user's reward function; 0 if it is not a finite number.

    >>> clean_reward(0.5), clean_reward("good")
    (0.5, 0.0)
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        return 0.0
    return number if math.isfinite(number) else 0.0
