"""LiteLLM with budgets (extra ``litellm``): a routing plugin that selects the model, and a logger that tells outcomes.

As a plugin it only marks the requests of its router. It asks when LiteLLM has removed the deployments that rest after
failures, so that the campaign never chooses one that is not called. A decision is cancelled if LiteLLM chooses again or
fails before a call, and forfeited if no call has begun within a minute: the worst case is charged until its outcome is
told. A lost callback is covered by the lease of its decision, and a repeated one changes nothing. LiteLLM calls plugins
only from the asynchronous methods of a router.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from driftsack.client import AsyncClient, RemoteDecision, ServiceError
from driftsack.core.errors import DriftsackError, MissingExtraError
from driftsack.service.gateways.prompts.features import Features, features_function

MARK: Final = "driftsack_decision"
SCORE: Final = "driftsack_reward"
SIGNALS: Final = "routing_plugin_signals"  # LiteLLM's metadata entry for the signals of plugins
MOST_KEPT: Final = 100_000
UNUSED: Final = 60.0  # seconds after which a decision that no call has followed is forfeited
LARGEST: Final = 1e15  # of the rewards that the service accepts
Reward = Callable[[dict[str, Any], Any], float]
log = logging.getLogger("driftsack.litellm")


def logger_class() -> Any:
    """Return LiteLLM's base class of callbacks; ``object`` if LiteLLM is not installed."""
    try:
        from litellm.integrations.custom_logger import CustomLogger
    except ModuleNotFoundError:
        return object
    return CustomLogger


Logger: Any = logger_class()


class SkippedError(DriftsackError):
    """The campaign skips the request, because of a budget or to save it for later requests."""


class BudgetRouting(Logger):  # type: ignore[misc]
    """Routes the requests of a LiteLLM router by a campaign; register it as a plugin and as a callback.

    The arms of the campaign are the ``litellm_params.model`` of the deployments.

    Args:
        url: The address of ``driftsack serve``.
        key: A key with the scope ``decide``.
        money: The resource to which dollars are charged.
        time: The resource to which seconds are charged; empty if the campaign has none.
        reward: Computes the reward from LiteLLM's keyword arguments and the answer. By default the reward is
            ``driftsack_reward`` in the metadata of the request, or 1. A failed call earns 0.
        features: The features of a request: ``"prompt"`` for the built-in ones, or a function of its messages and
            tools; None for a campaign without features.
        **settings: Further settings of :class:`driftsack.client.Client`.

    Raises:
        MissingExtraError: LiteLLM is not installed.
    """

    def __init__(
        self,
        url: str,
        key: str,
        campaign: str,
        money: str = "usd",
        time: str = "",
        reward: Reward | None = None,
        features: str | Features | None = None,
        **settings: Any,
    ) -> None:
        if Logger is object:
            raise MissingExtraError("litellm is not installed: pip install 'driftsack[litellm]'")
        super().__init__()
        self._client = AsyncClient(url, key, campaign, **settings)
        self._money, self._time, self._reward = money, time, reward
        self._features = features_function(features)
        self._name = secrets.token_hex(8)  # LiteLLM calls the callbacks of all plugins, also those of other campaigns
        self._decisions: OrderedDict[str, RemoteDecision] = OrderedDict()
        self._unused: dict[str, asyncio.Task[None]] = {}  # forfeits the decisions that no call has followed yet

    async def close(self) -> None:
        """Cancel the decisions that no call has followed, and close the connections; the next call connects again."""
        for mark in list(self._unused):
            await self._cancel_unused(mark)
        await self._client.disconnect()

    async def run(self, context: Any) -> Any:
        """Mark a request of the router that has this plugin (LiteLLM's ``RoutingContext``)."""
        context.signals[MARK] = f"{self._name}:"  # LiteLLM passes signals to its callbacks
        return context

    async def async_filter_deployments(
        self,
        model: str,
        healthy_deployments: Any,
        messages: Any,
        request_kwargs: dict[str, Any] | None = None,
        parent_otel_span: Any = None,
    ) -> Any:
        """Narrow the deployments that may be called to the arm that the campaign chose (LiteLLM's callback).

        Raises:
            SkippedError: The campaign skips the request.
        """
        signals = signals_of(request_kwargs or {})
        earlier = str(signals.get(MARK, ""))
        if not earlier.startswith(f"{self._name}:") or not isinstance(healthy_deployments, list):
            return healthy_deployments
        await self._cancel_unused(earlier)  # LiteLLM chooses again, because it could not call the first one
        arms = sorted({model_of(deployment) for deployment in healthy_deployments})
        if not arms:
            return healthy_deployments
        context = None
        if self._features is not None:
            context = self._features({"messages": messages, "tools": (request_kwargs or {}).get("tools")})
        decision = await self._client.ask(open=arms, context=context)
        if decision.skipped or decision.number is None:
            raise SkippedError(f"the campaign skips this request ({decision.reason}).")
        signals[MARK] = self._keep(decision)
        return [deployment for deployment in healthy_deployments if model_of(deployment) == decision.name]

    def _keep(self, decision: RemoteDecision) -> str:
        """Keep a decision until its outcome is told, and return its mark."""
        mark = f"{self._name}:{decision.number}"
        self._decisions[mark] = decision
        if len(self._decisions) > MOST_KEPT:
            self._decisions.popitem(last=False)
        self._unused[mark] = asyncio.ensure_future(self._forfeit_later(mark))
        return mark

    async def _forfeit_later(self, mark: str) -> None:
        """Forfeit a decision, unless a call follows it in time; a call that only waits can still tell its outcome."""
        await asyncio.sleep(UNUSED)
        decision = self._decisions.get(mark)
        if self._unused.pop(mark, None) is None or decision is None:
            return
        try:
            await self._client.forfeit(decision)
        except ServiceError as error:
            log.warning("decision %s could not be forfeited; its lease will end: %s", decision.number, error)

    async def _cancel_unused(self, mark: str) -> None:
        """Cancel a decision that no call has followed."""
        waiting, decision = self._unused.pop(mark, None), self._decisions.get(mark)
        if waiting is None or decision is None:
            return
        waiting.cancel()
        del self._decisions[mark]
        try:
            await self._client.cancel(decision)
        except ServiceError as error:
            log.warning("decision %s could not be cancelled; its lease will end: %s", decision.number, error)

    def _used(self, mark: str) -> bool:
        """Note that a call has followed a decision; return whether that was known before."""
        waiting = self._unused.pop(mark, None)
        if waiting is not None:
            waiting.get_loop().call_soon_threadsafe(waiting.cancel)
        return waiting is None

    def log_pre_api_call(self, model: Any, messages: Any, kwargs: dict[str, Any]) -> None:
        """Note that a call begins (LiteLLM's callback)."""
        self._used(str(signals_of(metadata_in(kwargs)).get(MARK, "")))

    async def async_log_success_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Tell reward and cost of an answer (LiteLLM's callback)."""
        metadata = metadata_of(kwargs)
        try:
            score = metadata.get(SCORE, 1.0) if self._reward is None else self._reward(kwargs, response_obj)
        except Exception:
            log.exception("the reward function failed; the reward is 0")
            score = 0.0
        await self._settle(metadata, number_of(score) or 0.0, kwargs.get("response_cost"), start_time, end_time)

    async def async_log_failure_event(
        self,
        kwargs: dict[str, Any],
        response_obj: Any,
        start_time: Any,
        end_time: Any,
    ) -> None:
        """Tell that a call failed, or cancel its decision if there was none (LiteLLM's callback)."""
        await self._cancel_unused(str(signals_of(metadata_in(kwargs)).get(MARK, "")))
        await self._settle(metadata_of(kwargs), 0.0, kwargs.get("response_cost") or 0.0, start_time, end_time)

    async def _settle(self, metadata: dict[str, Any], reward: float, dollars: Any, start: Any, end: Any) -> None:
        """Tell an outcome; if the cost is not known, forfeit, so that the worst case is charged."""
        mark = str((metadata.get(SIGNALS) or {}).get(MARK, ""))
        decision = self._decisions.get(mark)
        if decision is None:
            return
        self._used(mark)
        try:
            charge = number_of(dollars)
            if charge is None:
                await self._client.forfeit(decision)
                return
            costs = {self._money: f"{max(charge, 0.0):.9f}"}
            if self._time:
                costs[self._time] = f"{max((end - start).total_seconds(), 0.0):.6f}"
            await self._client.tell(decision, reward, costs)
        except ServiceError as error:
            log.warning("decision %s could not be told; its lease will end: %s", decision.number, error)


def number_of(value: Any) -> float | None:
    """Return a number that the service accepts; None if it is something else.

    >>> number_of("0.5"), number_of("good"), number_of(None), number_of(float("nan")), number_of(1e300)
    (0.5, None, None, None, None)
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if abs(number) <= LARGEST else None


def metadata_of(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of a call."""
    return metadata_in(kwargs).get("metadata") or {}


def metadata_in(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of a call, as a request has it."""
    parameters = kwargs.get("litellm_params") or {}
    found = parameters.get("metadata") or parameters.get("litellm_metadata")
    return {"metadata": found if isinstance(found, dict) else {}}


def signals_of(request: dict[str, Any]) -> dict[str, Any]:
    """Return the signals of plugins in the metadata of a request; they may be changed."""
    for name in ("metadata", "litellm_metadata"):
        metadata = request.get(name)
        signals = metadata.get(SIGNALS) if isinstance(metadata, dict) else None
        if isinstance(signals, dict):
            return signals
    return {}


def model_of(deployment: Any) -> str:
    """Return the model of a deployment, which is an arm of the campaign."""
    return str((deployment.get("litellm_params") or {}).get("model"))
