"""LiteLLM with budgets (extra ``litellm``): a routing plugin that selects the model, and a logger that tells outcomes.

A lost callback is covered by the lease of its decision, and a repeated one changes nothing. LiteLLM calls plugins only
from the asynchronous methods of a router.
"""

from __future__ import annotations

import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from driftsack.client import AsyncClient, RemoteDecision, ServiceError
from driftsack.core.errors import DriftsackError, MissingExtraError

MARK: Final = "driftsack_decision"
SCORE: Final = "driftsack_reward"
SIGNALS: Final = "routing_plugin_signals"  # LiteLLM's metadata entry for the signals of plugins
MOST_KEPT: Final = 100_000
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
        **settings: Any,
    ) -> None:
        if Logger is object:
            raise MissingExtraError("litellm is not installed: pip install 'driftsack[litellm]'")
        super().__init__()
        self._client = AsyncClient(url, key, campaign, **settings)
        self._money, self._time, self._reward = money, time, reward
        self._name = secrets.token_hex(8)  # LiteLLM calls the callbacks of all plugins, also those of other campaigns
        self._decisions: OrderedDict[str, RemoteDecision] = OrderedDict()

    async def close(self) -> None:
        """Close the connections to the service; the next call connects again."""
        await self._client.disconnect()

    async def run(self, context: Any) -> Any:
        """Narrow LiteLLM's ``RoutingContext`` to the arm that the campaign chose; ``SkippedError`` if it skips."""
        decision = await self._client.ask(open=sorted(set(context.candidate_models)))
        if decision.skipped or decision.number is None:
            raise SkippedError(f"the campaign skips this request ({decision.reason}).")
        mark = f"{self._name}:{decision.number}"
        self._decisions[mark] = decision
        if len(self._decisions) > MOST_KEPT:
            self._decisions.popitem(last=False)
        context.signals[MARK] = mark  # LiteLLM passes signals to its callbacks
        context.candidate_models = [decision.name]
        return context

    async def async_log_success_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Tell reward and cost of an answer (LiteLLM's callback)."""
        metadata = metadata_of(kwargs)
        reward = float(metadata.get(SCORE, 1.0)) if self._reward is None else float(self._reward(kwargs, response_obj))
        await self._settle(metadata, reward, kwargs.get("response_cost"), start_time, end_time)

    async def async_log_failure_event(
        self,
        kwargs: dict[str, Any],
        response_obj: Any,
        start_time: Any,
        end_time: Any,
    ) -> None:
        """Tell that a call failed (LiteLLM's callback)."""
        await self._settle(metadata_of(kwargs), 0.0, kwargs.get("response_cost") or 0.0, start_time, end_time)

    async def _settle(self, metadata: dict[str, Any], reward: float, dollars: Any, start: Any, end: Any) -> None:
        """Tell an outcome; if the cost is not known, forfeit, so that the worst case is charged."""
        decision = self._decisions.get((metadata.get(SIGNALS) or {}).get(MARK, ""))
        if decision is None:
            return
        try:
            if dollars is None:
                await self._client.forfeit(decision)
                return
            costs = {self._money: f"{max(float(dollars), 0.0):.9f}"}
            if self._time:
                costs[self._time] = f"{max((end - start).total_seconds(), 0.0):.6f}"
            await self._client.tell(decision, reward, costs)
        except ServiceError as error:
            log.warning("decision %s could not be told; its lease will end: %s", decision.number, error)


def metadata_of(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of a call."""
    found = (kwargs.get("litellm_params") or {}).get("metadata")
    return found if isinstance(found, dict) else {}
