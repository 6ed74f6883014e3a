"""The settings of the proxy: upstreams, their prices, and what a request may cost and did cost."""

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
from driftsack.service.config import Name

MILLION: Final = Decimal(10**6)
FINEST: Final = Decimal("0.000000001")
Price = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,9}(\.[0-9]{1,9})?$")]
Positive = Annotated[int, msgspec.Meta(ge=1, le=10**7)]
Reward = Callable[[dict[str, Any], dict[str, Any], float], float]


class Upstream(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model behind the proxy.

    Attributes:
        arm: The arm of the campaign that stands for it.
        url: Its OpenAI-compatible address, up to ``/v1``.
        model: What it is called there.
        input_price: Dollars for a million tokens of the prompt.
        output_price: Dollars for a million tokens of the answer.
        key_env: The environment variable with its API key; empty if it needs none.
        max_tokens: The most tokens of an answer, unless the request says less.
    """

    arm: Name
    url: str
    model: str
    input_price: Price
    output_price: Price
    key_env: str = ""
    max_tokens: Positive = 4096

    def limit(self, request: dict[str, Any]) -> int:
        """The most tokens of the answer to a request."""
        asked = [request.get(name) for name in ("max_completion_tokens", "max_tokens")]
        given = [value for value in asked if isinstance(value, int) and not isinstance(value, bool) and value > 0]
        return min(self.max_tokens, *given) if given else self.max_tokens

    def cost(self, prompt: int, answer: int) -> Decimal:
        """What tokens cost, rounded up to a billionth of a dollar."""
        exact = (prompt * Decimal(self.input_price) + answer * Decimal(self.output_price)) / MILLION
        return exact.quantize(FINEST, rounding="ROUND_CEILING")

    def most(self, request: dict[str, Any], size: int) -> Decimal:
        """The most that a request can cost: a prompt has no more tokens than its body has bytes.

        Args:
            request: The request.
            size: The bytes of its body.

        Returns:
            Dollars.
        """
        answers = request.get("n")
        count = answers if isinstance(answers, int) and answers > 1 else 1
        return self.cost(size, self.limit(request) * count)

    def charged(self, usage: Any, most: Decimal) -> Decimal:
        """What a request is charged with: its usage, or the most if the usage makes no sense.

        Args:
            usage: What the upstream says.
            most: The most that the request can cost.

        Returns:
            Dollars.

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
        """Its API key.

        Raises:
            SettingError: The environment variable is not set.
        """
        if self.key_env and self.key_env not in os.environ:
            raise SettingError(f"the upstream {self.arm} needs its API key in the environment variable {self.key_env}.")
        return os.environ.get(self.key_env, "") if self.key_env else ""


class ProxySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of the proxy.

    Attributes:
        upstream: The models.
        campaign: The campaign.
        service: Where ``driftsack serve`` is.
        host: The address to listen on.
        port: The port; 0 for any.
        money: The resource that dollars are charged to.
        time: The resource that seconds are charged to; empty if the campaign has none.
        most_seconds: After how many seconds an upstream is given up; also what is reserved of ``time``.
        reward: ``module:function`` that gives the reward of an answer, from request, answer and seconds; empty for 1.
    """

    upstream: Annotated[list[Upstream], msgspec.Meta(min_length=1, max_length=1000)]
    campaign: str
    service: str = "http://localhost:8787"
    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8788
    money: Name = "usd"
    time: str = ""
    most_seconds: Annotated[float, msgspec.Meta(gt=0, le=86400)] = 120.0
    reward: str = ""

    def reward_function(self) -> Reward:
        """What gives the reward of an answer.

        Raises:
            SettingError: There is no such function.
        """
        if not self.reward:
            return lambda request, answer, seconds: 1.0  # noqa: ARG005
        module, _, name = self.reward.partition(":")
        try:
            found: Reward = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise SettingError(f"reward must be 'module:function', got {self.reward!r}: {error}.") from error
        return found


def read_settings(path: Path) -> ProxySettings:
    """Read the settings from a TOML file.

    Args:
        path: The file.

    Returns:
        The settings.

    Raises:
        SettingError: They are not valid.
    """
    try:
        found = msgspec.convert(tomllib.loads(path.read_text()), ProxySettings)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise SettingError(f"{path} must have the settings of the proxy: {error}.") from error
    arms = [upstream.arm for upstream in found.upstream]
    if len(set(arms)) != len(arms):
        raise SettingError(f"every upstream needs an arm of its own, got {arms}.")
    for upstream in found.upstream:
        if not upstream.url.startswith(("http://", "https://")):
            raise SettingError(f"url of {upstream.arm} must begin with http:// or https://, got {upstream.url!r}.")
        upstream.key()
    found.reward_function()
    return found


def clean_reward(value: Any) -> float:
    """A reward that a user's function gave, if it is a number.

    >>> clean_reward(0.5), clean_reward("good")
    (0.5, 0.0)
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        return 0.0
    return number if math.isfinite(number) else 0.0
