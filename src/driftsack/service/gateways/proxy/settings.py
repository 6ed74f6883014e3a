"""The settings of the proxy: its campaigns, their upstreams and prices, and its limits."""

from __future__ import annotations

import datetime
import importlib
import math
import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from driftsack.core.errors import SettingError
from driftsack.service.domain.config import CampaignName, Name
from driftsack.service.gateways.prompts.features import PROMPT
from driftsack.service.gateways.proxy.prices import Prices, prices_on

LARGEST_REWARD: Final = 1e15  # that the service accepts
ANY: Final = "driftsack"  # the model that allows any arm
HEADER: Final = "header"  # features from the caller
FEATURE_SOURCES: Final = (PROMPT, HEADER)
Positive = Annotated[int, msgspec.Meta(ge=1, le=10**7)]
Duration = Annotated[float, msgspec.Meta(gt=0, le=86400)]
Prefix = Annotated[str, msgspec.Meta(pattern=r"^ds_[0-9a-f]{12}$(?!\n)")]
FormatName = Literal["chat", "completions", "embeddings", "responses", "messages"]
PriceTable = dict[str, Prices | list[Prices]]
Reward = Callable[[dict[str, Any], dict[str, Any], float], float]


class Upstream(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model behind the proxy.

    Attributes:
        arm: The arm of a campaign that represents it.
        url: Its address, up to ``/v1``.
        model: The upstream's name for the model.
        price: Its prices; several if they change by date. Omit it to take them from ``price_table``.
        protocol: The protocol that the upstream speaks: OpenAI's or Anthropic's.
        serves: The formats in which callers may use it; by default chat and messages, one of which is translated.
        key_env: The environment variable with the API key; empty if none is needed.
        max_tokens: Maximum number of tokens of an answer; a request may set a lower limit.
        limit: The field with which the upstream limits a chat completion. With ``"none"`` the names that the caller
            used stay, and none is added if there was none: ``max_tokens`` must then be what the model writes at most.
        fields: Further fields of a request that do not change its price, such as ``"top_k"``.
    """

    arm: Name
    url: str
    model: str
    price: Prices | Annotated[list[Prices], msgspec.Meta(min_length=1)] | None = None
    protocol: Literal["openai", "anthropic"] = "openai"
    serves: Annotated[list[FormatName], msgspec.Meta(min_length=1)] = msgspec.field(
        default_factory=lambda: ["chat", "messages"]
    )
    key_env: str = ""
    max_tokens: Positive = 4096
    limit: Literal["max_tokens", "max_completion_tokens", "none"] = "max_tokens"
    fields: list[str] = []

    def prices(self, day: datetime.date | None = None) -> Prices:
        """Return the prices on a day; today's if omitted."""
        if self.price is None:
            raise SettingError(f"the upstream {self.arm} has no price, and the price table none for {self.model!r}.")
        given = (self.price,) if isinstance(self.price, Prices) else tuple(self.price)
        return prices_on(given, day or datetime.datetime.now(datetime.UTC).date())

    def has_dated_prices(self) -> bool:
        """Return whether its prices change by date."""
        return isinstance(self.price, list) and len(self.price) > 1

    def key(self) -> str:
        """Return the API key; ``SettingError`` if the environment variable is not set."""
        if self.key_env and self.key_env not in os.environ:
            raise SettingError(f"the upstream {self.arm} needs its API key in the environment variable {self.key_env}.")
        return os.environ.get(self.key_env, "") if self.key_env else ""


class CampaignRoute(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A campaign behind the proxy.

    Attributes:
        name: The campaign.
        arms: The arms of its upstreams; all if omitted.
        keys: The prefixes of the driftsack keys for which the model ``driftsack`` means this campaign.
        features: Where the features of its requests come from, as in the settings of the proxy; those if omitted.
    """

    name: CampaignName
    arms: list[Name] | None = None
    keys: list[Prefix] = []
    features: str | None = None

    def has(self, arm: str) -> bool:
        """Return whether an arm belongs to the campaign."""
        return self.arms is None or arm in self.arms


class ProxySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of the proxy.

    Attributes:
        upstream: The models.
        campaign: The only campaign; with several, use ``campaigns``.
        campaigns: The campaigns; the model ``driftsack`` means the first one, except for keys that another one lists.
        service: The address of ``driftsack serve``.
        host: The address to listen on.
        port: The port; 0 for any.
        money: The resource to which dollars are charged.
        time: The resource to which seconds are charged; empty if the campaigns have none.
        announce_prices: Whether the policy is told the prices of the day with each request, if some change by date; the
            policy must be able to use a price list, as ``Adaptive`` is.
        price_table: A TOML file with prices by model, as ``driftsack prices`` writes it; empty for none.
        most_seconds: Seconds in which a request must be answered, with all its attempts.
        attempt_seconds: Seconds in which one upstream must answer; as many as for the request if omitted.
        fallback: Whether another arm is asked if an upstream fails.
        attempts: Maximum number of upstreams that a request is sent to.
        patience: Seconds for which a call of the service is retried.
        rest: Seconds for which an upstream that fails repeatedly is not used; they double up to ten times as many.
        reward: ``module:function`` that computes the reward from request, answer and seconds; empty for reward 1.
        feedback: Seconds in which a reward may arrive by ``POST /v1/feedback``; 0 if the reward is known at once.
        feedback_default: The reward of an answer without feedback; none is told if omitted.
        features: Where the features of requests come from: ``"prompt"`` for those of :mod:`..prompts`, ``"header"`` for
            the JSON object in the header ``x-driftsack-context``, or ``module:function`` for what a function makes of
            the request; empty for campaigns without features.
        traces: The OpenTelemetry collector, such as ``http://localhost:4318/v1/traces``; empty for none.
    """

    upstream: Annotated[list[Upstream], msgspec.Meta(min_length=1, max_length=1000)]
    campaign: str = ""
    campaigns: list[CampaignRoute] = []
    service: str = "http://localhost:8787"
    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8788
    money: Name = "usd"
    time: str = ""
    announce_prices: bool = True
    price_table: str = ""
    most_seconds: Duration = 120.0
    attempt_seconds: Duration | None = None
    fallback: bool = True
    attempts: Annotated[int, msgspec.Meta(ge=1, le=20)] = 3
    patience: Duration = 2.0
    rest: Duration = 5.0
    reward: str = ""
    feedback: Annotated[float, msgspec.Meta(ge=0, le=30 * 86400)] = 0.0
    feedback_default: float | None = None
    features: str = ""
    traces: str = ""

    def routes(self) -> list[CampaignRoute]:
        """Return the campaigns."""
        return self.campaigns or [CampaignRoute(self.campaign)]

    def reward_function(self) -> Reward:
        """Return the function that computes rewards; ``SettingError`` if there is no such function."""
        found: Reward = function_of(self.reward, "reward") if self.reward else lambda request, answer, seconds: 1.0
        return found

    def features_of(self, route: CampaignRoute) -> str:
        """Return where the features of a campaign's requests come from."""
        return self.features if route.features is None else route.features


def function_of(setting: str, name: str) -> Any:
    """Return the function that a setting names as ``module:function``; ``SettingError`` if there is none."""
    module, _, function = setting.partition(":")
    try:
        return getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingError(f"{name} must be 'module:function', got {setting!r}: {error}.") from error


def read_settings(path: Path) -> ProxySettings:
    """Read the settings from a TOML file; ``SettingError`` if they are not valid."""
    found: ProxySettings = read_toml(path, ProxySettings, "the settings of the proxy")
    if found.price_table:
        table = read_toml(path.parent / found.price_table, PriceTable, "prices by model")
        priced = [msgspec.structs.replace(u, price=u.price or table.get(u.model)) for u in found.upstream]
        found = msgspec.structs.replace(found, upstream=priced)
    check_settings(found)
    return found


def read_toml(path: Path, kind: Any, what: str) -> Any:
    """Read a TOML file as a type; ``SettingError`` if it is not valid."""
    try:
        return msgspec.convert(tomllib.loads(path.read_text()), kind)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise SettingError(f"{path} must have {what}: {error}.") from error
    except OSError as error:
        raise SettingError(f"{path} cannot be read: {error.strerror}.") from error


def check_settings(settings: ProxySettings) -> None:
    """Raise ``SettingError`` unless the settings fit together."""
    arms = [upstream.arm for upstream in settings.upstream]
    if len(set(arms)) != len(arms):
        raise SettingError(f"each upstream must have a different arm, got {arms}.")
    if bool(settings.campaign) == bool(settings.campaigns):
        raise SettingError("give either campaign, or one or more entries of campaigns.")
    for upstream in settings.upstream:
        if not upstream.url.startswith(("http://", "https://")):
            raise SettingError(f"url of {upstream.arm} must begin with http:// or https://, got {upstream.url!r}.")
        if upstream.protocol == "anthropic" and not set(upstream.serves) <= {"chat", "messages"}:
            raise SettingError(f"{upstream.arm} speaks Anthropic's protocol and serves only chat and messages.")
        upstream.key()
        upstream.prices()
    for route in settings.routes():
        unknown = [arm for arm in route.arms or [] if arm not in arms]
        if unknown:
            raise SettingError(f"the campaign {route.name} lists {unknown[0]!r}, which is no upstream's arm.")
        if settings.features_of(route) not in ("", *FEATURE_SOURCES):
            function_of(settings.features_of(route), "features, unless it is 'prompt' or 'header',")
    settings.reward_function()


def clean_reward(value: Any) -> float:
    """Return the result of a user's reward function; 0 if it is not a number that the service accepts.

    >>> clean_reward(0.5), clean_reward("good"), clean_reward(1e300)
    (0.5, 0.0, 0.0)
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return number if math.isfinite(number) and abs(number) <= LARGEST_REWARD else 0.0
