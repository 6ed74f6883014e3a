"""LangChain's agents within budgets: a budget for each run, and a campaign that chooses the models."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import httpx
import openai
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware.types import ModelRequest
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from driftsack.client import Client
from driftsack.core.errors import SettingError
from driftsack.service.domain.features import Features
from driftsack.service.gateways.langchain import BudgetMiddleware, RunExhaustedError
from driftsack.service.gateways.langchain_calls import PricedModel, body_of, cost_of
from driftsack.service.gateways.prompts.features import prompt_features
from driftsack.service.gateways.proxy.prices import Prices
from driftsack.service.gateways.proxy.worst_case import worst_case
from tests.support.asgi_server import running
from tests.support.hostile_upstream import HostileUpstream
from tests.support.live_service import Live, serving

PRICE = Prices("1", "10")  # those of the upstream
RUN = Decimal("0.01")
ASKED: Any = {"messages": [{"role": "user", "content": "Hello?"}]}
MANY: Any = {"recursion_limit": 500}


@tool
def weather(city: str) -> str:
    """Return the weather in a city."""
    return f"It rains in {city}."


class Chats:
    """Real chat models of an upstream that writes as many tokens as it may."""

    def __init__(self, upstream: HostileUpstream, address: str) -> None:
        self.upstream, self._address = upstream, address
        self._http, self._async_http = httpx.Client(), httpx.AsyncClient()
        self.loop = asyncio.Runner()  # connections of the asynchronous client belong to one event loop

    def close(self) -> None:
        self._http.close()
        self.loop.run(self._async_http.aclose())
        self.loop.close()

    def model(self, name: str, price: Prices = PRICE, most: int = 200, **settings: Any) -> PricedModel:
        http: Any = {"http_client": self._http, "http_async_client": self._async_http}
        url: Any = {"base_url": f"{self._address}/v1", "api_key": "sk-test"}
        chat = ChatOpenAI(model=name, max_retries=0, timeout=5, **url, **http)
        return PricedModel(chat, price, most, **settings)

    def models(self, *names: str, **settings: Any) -> dict[str, PricedModel]:
        return {name: self.model(name, **settings) for name in names}

    def charged(self) -> Decimal:
        """What the upstream has charged since the last call."""
        found = self.upstream.charged()
        self.upstream.bills.clear()
        return found


@pytest.fixture(scope="module")
def chats() -> Iterator[Chats]:
    upstream = HostileUpstream()
    with running(upstream) as address:
        found = Chats(upstream, address)
        yield found
        found.close()


def agent_of(middleware: BudgetMiddleware, tools: Any = (weather,), **settings: Any) -> Any:
    first = next(iter(middleware._models.values())).model
    return create_agent(first, list(tools), middleware=[middleware], **settings)


def test_a_run_never_costs_more_than_its_budget(chats: Chats) -> None:
    """The model calls a tool again and again; the next run of the same thread has a budget of its own."""
    agent = agent_of(BudgetMiddleware(chats.models("calls"), RUN), checkpointer=InMemorySaver())
    for _ in range(2):
        answer = agent.invoke(ASKED, {**MANY, "configurable": {"thread_id": "a"}})
        assert answer["messages"][-1].text.startswith("This run has ended: the run has 0.00")
        assert RUN / 2 < chats.charged() <= RUN


def test_wrong_prices_would_be_noticed(chats: Chats) -> None:
    """The planted fault."""
    agent_of(BudgetMiddleware(chats.models("calls", price=Prices("0.5", "5")), RUN)).invoke(ASKED, MANY)
    assert chats.charged() > RUN


def test_the_last_call_gets_a_lower_limit(chats: Chats) -> None:
    agent = agent_of(BudgetMiddleware(chats.models("fine", most=5000), RUN), tools=())
    assert agent.invoke(ASKED)["messages"][-1].usage_metadata["output_tokens"] < 1000
    assert RUN * 9 / 10 < chats.charged() <= RUN


def test_agents_in_tools_share_the_budget(chats: Chats) -> None:
    inner = agent_of(BudgetMiddleware(chats.models("calls"), RUN))

    @tool("weather")
    def delegated(city: str) -> str:
        """Ask another agent."""
        return str(inner.invoke(ASKED, MANY)["messages"][-1].text)

    agent_of(BudgetMiddleware(chats.models("calls"), RUN), tools=[delegated]).invoke(ASKED, MANY)
    assert RUN / 2 < chats.charged() <= RUN


def test_runs_at_the_same_time_have_budgets_of_their_own(chats: Chats) -> None:
    agent = agent_of(BudgetMiddleware(chats.models("calls"), RUN))

    async def three() -> None:
        await asyncio.gather(*(agent.ainvoke(ASKED, MANY) for _ in range(3)))

    chats.loop.run(three())
    assert 3 * RUN / 2 < chats.charged() <= 3 * RUN


def test_an_exhausted_run_may_raise(chats: Chats) -> None:
    agent = agent_of(BudgetMiddleware(chats.models("fine"), "0.000001", exhausted="error"))
    with pytest.raises(RunExhaustedError, match="do not cover another call"):
        agent.invoke(ASKED)
    assert chats.charged() == 0


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with serving(str(tmp_path_factory.mktemp("langchain") / "s.db")) as found:
        yield found


Opener = Callable[..., Client]


@pytest.fixture
def opened(live: Live) -> Iterator[Opener]:
    """Opens a campaign, and returns a client that is closed at the end."""
    clients: list[Client] = []

    def open_one(name: str, *arms: str, **settings: Any) -> Client:
        given = {"arms": list(arms), "budget": {"usd": "10"}, "cost_max": {"usd": "0.1"}, **settings}
        live.open(name, **given)
        clients.append(Client(live.url, live.key, name))
        return clients[-1]

    yield open_one
    for client in clients:
        client.close()


def told(live: Live, name: str) -> tuple[Any, ...]:
    """The outcomes, the reward, the dollars and the open decisions of a campaign."""
    _, found = live.call("GET", f"/v1/campaigns/{name}")
    _, budgets = live.call("GET", f"/v1/campaigns/{name}/budgets")
    return found["told"], found["reward"], Decimal(budgets["budgets"][0]["spent"]), found["pending"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_campaign_chooses_and_learns(live: Live, opened: Opener, chats: Chats, stream: bool) -> None:
    campaign = f"chooses-{stream}"
    features = {"features": Features(numbers=["messages"]), "policy": {"policy": "LinearBwK"}}
    client = opened(campaign, "fine", "other", **features)
    chats.upstream.behaviour = lambda model: "fine"
    middleware = BudgetMiddleware(
        chats.models("fine", "other"),
        client=client,
        features=lambda body: {"messages": len(body["messages"])},
        reward=lambda answer: len(answer.text) / 100,
    )
    agent = agent_of(middleware, tools=())
    if stream:
        assert list(agent.stream(ASKED, stream_mode="messages"))
        answer = agent.invoke(ASKED)["messages"][-1]
    else:
        answer = agent.invoke(ASKED)["messages"][-1]
    said = answer.response_metadata["driftsack"]
    assert said["arm"] in ("fine", "other")
    assert told(live, campaign)[0] == said["decision"]
    assert told(live, campaign)[1:] == (pytest.approx(0.12 * said["decision"]), chats.charged(), 0)
    chats.upstream.behaviour = lambda model: model


@pytest.mark.parametrize(
    ("model", "outcomes"), [("fails", (1, 0.0)), ("dead-key", (1, 0.0)), ("refuses", (0, 0.0)), ("breaks", (1, 0.0))]
)
def test_a_call_that_fails_is_settled(live: Live, opened: Opener, chats: Chats, model: str, outcomes: Any) -> None:
    client = opened(model, model)
    agent = agent_of(BudgetMiddleware(chats.models(model), RUN, client))
    with pytest.raises(openai.OpenAIError):
        agent.invoke(ASKED)
    number, reward, spent, pending = told(live, model)
    assert ((number, reward), pending) == (outcomes, 0)
    assert chats.charged() <= spent <= RUN
    assert (spent > 0) == (model == "breaks")


def test_a_call_that_is_cancelled_is_settled(live: Live, opened: Opener, chats: Chats) -> None:
    client = opened("cancelled", "hangs")
    agent = agent_of(BudgetMiddleware(chats.models("hangs"), RUN, client))

    async def leave() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(agent.ainvoke(ASKED), 0.7)
        await asyncio.sleep(0.3)  # it is told in a thread

    chats.loop.run(leave())
    number, reward, spent, pending = told(live, "cancelled")
    assert (number, reward, pending) == (1, 0.0, 0)
    assert chats.charged() <= spent <= RUN


def test_a_campaign_that_is_used_up_ends_the_run(live: Live, opened: Opener, chats: Chats) -> None:
    client = opened("poor", "fine", budget={"usd": "0.000001"}, cost_max={"usd": "0.1"})
    agent = agent_of(BudgetMiddleware(chats.models("fine"), client=client))
    assert "the campaign skips this call (budget)" in agent.invoke(ASKED)["messages"][-1].text
    small = opened("small", "fine", cost_max={"usd": "0.000001"})
    agent = agent_of(BudgetMiddleware(chats.models("fine"), client=small))
    assert "do not cover the call" in agent.invoke(ASKED)["messages"][-1].text
    assert told(live, "small") == (0, 0.0, 0, 0)
    assert chats.charged() == 0


def test_what_cannot_be_priced_is_refused(chats: Chats) -> None:
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.com/x.png"}}]}
    with pytest.raises(SettingError, match="media_tokens"):
        agent_of(BudgetMiddleware(chats.models("fine"), RUN)).invoke({"messages": [image]})
    search = [{"type": "web_search"}]
    with pytest.raises(SettingError, match="tools must run in the agent"):
        agent_of(BudgetMiddleware(chats.models("fine"), RUN), tools=search).invoke(ASKED)
    priced = chats.models("fine", media_tokens=1000)
    agent_of(BudgetMiddleware(priced, RUN), tools=()).invoke({"messages": [image]})
    assert chats.charged() <= RUN
    with pytest.raises(SettingError, match="one or more models"):
        BudgetMiddleware({})


def test_the_built_in_features_are_those_of_prompts(chats: Chats) -> None:
    request = ModelRequest(model=chats.model("fine").model, messages=[HumanMessage("Hello?")], tools=[weather])
    found = prompt_features(body_of(request))
    plain = prompt_features(ASKED)
    assert found == {**plain, "tools": 1.0}
    assert BudgetMiddleware(chats.models("fine"), features="prompt")._features is prompt_features


def test_the_schema_of_a_structured_answer_is_counted(chats: Chats) -> None:
    city = {"title": "City", "description": "A city with a long name", "type": "object", "properties": {}}
    request = ModelRequest(model=chats.model("fine").model, messages=[], response_format=ToolStrategy(city))
    assert "A city with a long name" in str(body_of(request))


def test_several_answers_are_paid(chats: Chats) -> None:
    """The upstream bills four answers for each call."""
    priced = chats.model("calls")
    assert isinstance(priced.model, ChatOpenAI)
    priced.model.n = 4
    agent_of(BudgetMiddleware({"calls": priced}, 10 * RUN)).invoke(ASKED, MANY)
    assert RUN < chats.charged() <= 10 * RUN
    with pytest.raises(SettingError, match="n must be the number of answers"):
        priced.demand({"messages": []}, 10, {"n": 2.5})


def test_tokens_that_are_written_to_a_cache_are_reserved(chats: Chats) -> None:
    price = Prices("3", "15", cache_write="6")
    demand = chats.model("fine", price=price).demand({"messages": [{"role": "user", "content": "x"}]}, 1000, {})
    usage = UsageMetadata(
        input_tokens=1000, output_tokens=1, total_tokens=1001, input_token_details={"cache_creation": 1000}
    )
    cost = cost_of([AIMessage("x", usage_metadata=usage)], price)
    assert cost is not None
    assert worst_case(demand, price, 1) >= cost > worst_case(demand._replace(writes_cache=False), price, 1)
