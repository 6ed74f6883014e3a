"""LangChain and LangGraph with budgets (extra ``langchain``): a middleware for the agents of ``create_agent``.

Each run of an agent has a budget of its own, and a campaign may choose the model of each call. Before a call its worst
case is reserved, and its limit of tokens is lowered if necessary; afterwards its usage is charged. Agents that the
tools of an agent call share its budget if they have such a middleware, too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NotRequired

from driftsack.core.errors import DriftsackError, MissingExtraError, SettingError

try:
    from langchain.agents.middleware.types import AgentMiddleware, AgentState, ModelRequest, PrivateStateAttr
    from langchain_core.messages import AIMessage
    from langgraph.channels.untracked_value import UntrackedValue
except ModuleNotFoundError as error:
    raise MissingExtraError(f"{error.name} is not installed: pip install 'driftsack[langchain]'") from error

from driftsack.client import Client, RemoteDecision, ServiceError
from driftsack.service.gateways.langchain_calls import (
    PricedModel,
    body_of,
    cost_of,
    is_callers_fault,
    is_free,
    size_of,
)
from driftsack.service.gateways.prompts.features import Features, features_function
from driftsack.service.gateways.proxy.prices import Prices
from driftsack.service.gateways.proxy.settings import clean_reward
from driftsack.service.gateways.proxy.worst_case import fitting_limit, worst_case
from driftsack.service.gateways.run_budget import RUN, RunBudget

if TYPE_CHECKING:
    from langchain.agents.middleware.types import ModelResponse, ToolCallRequest
    from langchain_core.messages import ToolMessage
    from langgraph.runtime import Runtime
    from langgraph.types import Command

__all__ = ["BudgetMiddleware", "PricedModel", "Prices", "RunExhaustedError"]

STATE: Final = "driftsack_run"
UNLIMITED: Final = Decimal(10**9)
Reward = Callable[[AIMessage], float | None]
log = logging.getLogger("driftsack.langchain")


class RunExhaustedError(DriftsackError):
    """The budget of the run, or that of the campaign, does not cover another call."""


class BudgetState(AgentState[Any]):
    """The state of an agent, with the budget of its run, which is never stored."""

    driftsack_run: NotRequired[Annotated[RunBudget, UntrackedValue, PrivateStateAttr]]


@dataclass
class ModelCall:
    """A call that may be made.

    Attributes:
        request: The request, with the model that was chosen and its limit.
        priced: The model.
        arm: Its name.
        most: Its maximum cost.
        run: The budget of the run; None without one.
        decision: The decision of the campaign; None without one.
    """

    request: ModelRequest[Any]
    priced: PricedModel
    arm: str
    most: Decimal
    run: RunBudget | None
    decision: RemoteDecision | None


class BudgetMiddleware(AgentMiddleware[BudgetState, Any, Any]):
    """Keeps the calls of an agent within budgets, and lets a campaign choose their models.

    Put it last in the list of middleware, so that each attempt of a retry is a call of its own.

    Args:
        models: The models by the name of their arm, in the order in which they are used without a campaign.
        per_run: The budget of each run, in dollars; None for no limit.
        client: The campaign; None if the first model that fits answers.
        money: The resource of the campaign to which dollars are charged.
        reward: Computes the reward of an answer; None, its result, means that the reward is told later. By default the
            reward is 1.
        features: The features of a call: ``"prompt"`` for the built-in ones, or a function of the request in OpenAI's
            format; None for a campaign without features.
        exhausted: Whether a run that is used up ends with a message, or raises :class:`RunExhaustedError`.
        lease: Seconds in which a call ends.
    """

    state_schema = BudgetState

    def __init__(
        self,
        models: Mapping[str, PricedModel],
        per_run: str | Decimal | None = None,
        client: Client | None = None,
        money: str = "usd",
        reward: Reward | None = None,
        features: str | Features | None = None,
        exhausted: Literal["end", "error"] = "end",
        lease: int = 600,
    ) -> None:
        super().__init__()
        if not models or exhausted not in ("end", "error"):
            raise SettingError("give one or more models, and exhausted='end' or 'error'.")
        self._models, self._client, self._money, self._lease = dict(models), client, money, lease
        self._per_run = None if per_run is None else Decimal(per_run)
        self._reward, self._exhausted = reward, exhausted
        self._features = features_function(features)
        self.tools = []

    def before_model(self, state: BudgetState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Begin the budget of the run, unless it has begun (LangChain's hook)."""
        if self._per_run is None or STATE in state:
            return None
        return {STATE: RUN.get() or RunBudget(self._per_run)}

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | AIMessage:
        """Call a model within the budgets (LangChain's hook)."""
        try:
            call = self._begun(request)
        except RunExhaustedError as error:
            return self._ended(error)
        try:
            response = handler(call.request)
        except BaseException as error:
            self._failed(call, error)
            raise
        self._answered(call, response)
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any] | AIMessage:
        """Call a model within the budgets (LangChain's hook)."""
        begun = asyncio.ensure_future(asyncio.to_thread(self._begun, request))
        try:
            call = await asyncio.shield(begun)
        except RunExhaustedError as error:
            return self._ended(error)
        except asyncio.CancelledError:
            begun.add_done_callback(self._abandoned)
            raise
        try:
            response = await handler(call.request)
        except BaseException as error:
            asyncio.get_running_loop().run_in_executor(None, self._failed, call, error)
            raise
        await asyncio.to_thread(self._answered, call, response)
        return response

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Call a tool, whose agents share the budget (LangChain's hook)."""
        with shared(request.state):
            return handler(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """Call a tool, whose agents share the budget (LangChain's hook)."""
        with shared(request.state):
            return await handler(request)

    def _begun(self, request: ModelRequest[Any]) -> ModelCall:
        """Reserve the worst case of a call, and choose its model.

        Raises:
            RunExhaustedError: The run or the campaign has not enough left.
        """
        run: RunBudget | None = request.state.get(STATE)  # type: ignore[assignment]
        body = body_of(request)
        size, settings = size_of(body), request.model_settings
        demands = {arm: priced.demand(body, size, settings) for arm, priced in self._models.items()}
        limits = {arm: priced.most_tokens(settings) for arm, priced in self._models.items()}
        most = {arm: worst_case(demands[arm], one.price, limits[arm]) for arm, one in self._models.items()}
        kept = (run or RunBudget(UNLIMITED)).reserve(max(most.values()))
        decision = None
        try:
            fits = [
                arm
                for arm, one in self._models.items()
                if fitting_limit(demands[arm], one.price, limits[arm], kept) is not None
            ]
            if not fits:
                raise RunExhaustedError(f"the run has {kept:f} dollars left, which do not cover another call.")
            decision = self._decision(fits, kept, body)
            arm = fits[0] if decision is None else decision.name or ""
            reserved = kept if decision is None else min(kept, Decimal(decision.reserved.get(self._money, kept)))
            priced = self._models[arm]
            limit = fitting_limit(demands[arm], priced.price, limits[arm], reserved)
            if limit is None:
                raise RunExhaustedError(f"the campaign reserves {reserved:f} dollars, which do not cover the call.")
            call = worst_case(demands[arm], priced.price, limit)
        except BaseException:
            self._settle(run, kept, Decimal(0))
            self._cancel(decision)
            raise
        self._settle(run, kept - call, Decimal(0))  # which other calls of the run may use
        chosen = request.override(model=priced.model, model_settings={**settings, priced.limit: limit})
        return ModelCall(chosen, priced, arm, call, run, decision)

    def _decision(self, arms: list[str], most: Decimal, body: dict[str, Any]) -> RemoteDecision | None:
        """Let the campaign choose; None without one."""
        if self._client is None:
            return None
        context = None if self._features is None else self._features(body)
        decision = self._client.ask(open=arms, caps={self._money: most}, lease=self._lease, context=context)
        if decision.skipped or decision.name not in arms:
            raise RunExhaustedError(f"the campaign skips this call ({decision.reason}).")
        return decision

    def _answered(self, call: ModelCall, response: ModelResponse[Any]) -> None:
        """Charge an answer, and tell its outcome."""
        answers = [message for message in response.result if isinstance(message, AIMessage)]
        cost = cost_of(answers, call.priced.price)
        if cost is None or cost > call.most:
            log.error("the usage of %s costs %s, the worst case %s; the larger is charged", call.arm, cost, call.most)
            cost = max(cost or Decimal(0), call.most)
        self._settle(call.run, call.most, cost)
        decision = call.decision
        for answer in answers:
            number = None if decision is None else decision.number
            answer.response_metadata["driftsack"] = {"arm": call.arm, "usd": f"{cost:f}", "decision": number}
        reward = 1.0 if self._reward is None or not answers else self._reward(answers[-1])
        self._tell(decision, None if reward is None else clean_reward(reward), cost)

    def _failed(self, call: ModelCall, error: BaseException) -> None:
        """Charge a call that failed: nothing if the upstream answered with an error, otherwise the worst case."""
        cost = Decimal(0) if is_free(error) else call.most
        self._settle(call.run, call.most, cost)
        if is_callers_fault(error):
            self._cancel(call.decision)
        else:
            self._tell(call.decision, 0.0, cost)

    def _abandoned(self, begun: asyncio.Future[ModelCall]) -> None:
        """Give up a call that nobody waits for; its decision is cancelled by the next one."""
        if begun.exception() is None:
            call = begun.result()
            self._settle(call.run, call.most, Decimal(0))
            if self._client is not None and call.decision is not None:
                self._client.abandon(call.decision)

    def _settle(self, run: RunBudget | None, kept: Decimal, cost: Decimal) -> None:
        """Charge the budget of a run."""
        if run is not None:
            run.settle(kept, cost)

    def _tell(self, decision: RemoteDecision | None, reward: float | None, cost: Decimal) -> None:
        """Tell an outcome; if that fails, the lease ends, and the worst case is charged."""
        if self._client is None or decision is None:
            return
        try:
            self._client.tell(decision, reward, {self._money: cost})
        except ServiceError as error:
            log.warning("decision %s could not be told; its lease will end: %s", decision.number, error)

    def _cancel(self, decision: RemoteDecision | None) -> None:
        """Cancel a decision that was not used."""
        if self._client is None or decision is None:
            return
        try:
            self._client.cancel(decision)
        except ServiceError as error:
            log.warning("decision %s could not be cancelled; its lease will end: %s", decision.number, error)

    def _ended(self, error: RunExhaustedError) -> AIMessage:
        """Return the last message of a run that is used up."""
        if self._exhausted == "error":
            raise error
        return AIMessage(f"This run has ended: {error}")


@contextmanager
def shared(state: Any) -> Iterator[None]:
    """Let agents that are called within the block share the budget of a run."""
    found = state.get(STATE) if isinstance(state, Mapping) else None
    token = RUN.set(found or RUN.get())
    try:
        yield
    finally:
        RUN.reset(token)
