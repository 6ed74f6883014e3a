"""The prompts of the routing benchmark through the service: each order is a campaign, asked and told over HTTP.

The orders of a drift are played at once, each by a client of its own, one request after the other. The same stream is
also given to a learner in this process, which must make the same decisions. Prices cannot be announced to a campaign;
every request carries the price list of the day instead, to both.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from driftsack.client import Client, open_campaign
from driftsack.core.decision import SKIP
from driftsack.core.seeding import generator
from driftsack.service.domain.config import Config
from lab.routing.routers import BUDGETS, DRIFTS, GEMINI, MODELS, PER_MILLION, PRICE_FACTOR, Requests, Task
from lab.routing.routing import best_plan, drifted, read_requests
from lab.service.processes import Process, call
from lab.service.speed import row

LEAST: Final = 0.98  # share of the optimum, and of the learner in this process
TOKENS: Final = 500  # in and out, of the price list
PLACES: Final = 12  # digits of an amount after the point

Ask = Callable[[dict[str, float], dict[str, dict[str, float]]], tuple[int, Any]]
Tell = Callable[[Any, float, dict[str, str]], None]


class Order(NamedTuple):
    """What a router earned and spent, and its decisions."""

    reward: float  # per request
    dollars: float
    arms: list[int]


def text(amount: float) -> str:
    """Write an amount as a decimal string."""
    return f"{amount:.{PLACES}f}"


def settings(task: Task) -> dict[str, Any]:
    """Return the settings of a campaign for a task."""
    dearest = zip(MODELS, task.requests.dollars.max(axis=0).tolist(), strict=True)
    return {
        "arms": list(MODELS),
        "budget": {"usd": text(task.rate * len(task.order))},
        "cost_max": {"usd": {model: text(cost) for model, cost in dearest}},
        "horizon": len(task.order),
        "features": {"numbers": names(task.requests)},
        "seed": task.seed,
        "lease": 86400,
    }


def names(requests: Requests) -> list[str]:
    """Name the features."""
    return [f"topic{k}" for k in range(requests.features.shape[1])]


def price_list(task: Task, t: int) -> dict[str, dict[str, float]]:
    """Return what a typical request costs by the list prices of the day."""
    listed = [TOKENS * sum(prices) / 1e6 for prices in PER_MILLION]
    if task.drift == "price" and task.phase(t) == 1:
        listed[GEMINI] *= PRICE_FACTOR
    return {"usd": {model: round(cost, PLACES) for model, cost in zip(MODELS, listed, strict=True)}}


def play(task: Task, ask: Ask, tell: Tell) -> Order:
    """Route all requests of a task."""
    columns, arms, earned, spent = names(task.requests), [], 0.0, 0.0
    for t, k in enumerate(task.order.tolist()):
        context = dict(zip(columns, task.requests.features[k].tolist(), strict=True))
        arm, decision = ask(context, price_list(task, t))
        arms.append(arm)
        if arm == SKIP:
            continue
        reward, costs = task.outcome(t, arm)
        tell(decision, reward, {"usd": text(float(costs[0]))})
        earned, spent = earned + reward, spent + float(costs[0])
    return Order(earned / len(task.order), spent, arms)


def in_process(task: Task) -> Order:
    """Route by a learner in this process."""
    config = msgspec.convert(settings(task), Config).completed()
    problem = config.problem()
    learner = config.recipe(problem).start(problem, seed=task.seed, safe=True)

    def ask(context: dict[str, float], costs: dict[str, dict[str, float]]) -> tuple[int, Any]:
        if learner.done:
            return SKIP, None
        decision = learner.ask(context=context, costs=costs)
        return decision.arm, decision

    def tell(decision: Any, reward: float, costs: dict[str, str]) -> None:
        learner.tell(decision, reward, {name: float(cost) for name, cost in costs.items()})

    return play(task, ask, tell)


def through_service(task: Task, url: str, key: str, campaign: str) -> Order:
    """Route by a campaign of a service."""
    open_campaign(url, key, campaign, settings(task))
    with Client(url, key, campaign, patience=60.0, timeout=30.0) as client:

        def ask(context: dict[str, float], costs: dict[str, dict[str, float]]) -> tuple[int, Any]:
            decision = client.ask(context=context, costs=costs)
            return SKIP if decision.skipped else MODELS.index(str(decision.name)), decision

        return play(task, ask, client.tell)


def is_held(url: str, key: str, campaign: str) -> bool:
    """Whether no budget of a campaign is overspent, by its own account, and nothing is still reserved."""
    _, found = call(url, key, "GET", f"/v1/campaigns/{campaign}/budgets")
    return all(float(b["remaining"]) >= 0 and b["overrun"] == b["reserved"] == "0" for b in found["budgets"])


def service_rows(
    orders: int, directory: Path, progress: Callable[[str], None], requests: Requests | None = None
) -> list[dict[str, Any]]:
    """Route the prompts in several orders with each drift, at the smallest budget.

    Args:
        orders: The number of orders.
        directory: Where the store is written.
        progress: Called with the current drift.
        requests: The prompts; None for those of the other package.

    Returns:
        One row for each figure, with its bar and whether it is reached.
    """
    if requests is None:
        requests = Requests(*(np.concatenate(parts) for parts in zip(*read_requests(), strict=True)))
    rate, rows = BUDGETS[0], []
    service = Process(directory, str(directory / "routing.db"))
    try:
        for drift in DRIFTS:
            progress(f"{orders} orders of {len(requests.rewards):,} requests through the service, drift: {drift}")
            shuffled = [generator(k).permutation(len(requests.rewards)) for k in range(orders)]
            outcomes = drifted(requests, drift)
            tasks = [Task(requests, order, *outcomes, rate, drift, k, None) for k, order in enumerate(shuffled)]
            campaigns = [f"{drift}-{k}" for k in range(orders)]
            with ThreadPoolExecutor(orders) as pool:
                jobs = zip(tasks, campaigns, strict=True)
                served = [*pool.map(lambda job: through_service(job[0], service.url, service.key, job[1]), jobs)]
            held = [is_held(service.url, service.key, name) for name in campaigns]
            rows += rows_of(drift, served, [in_process(task) for task in tasks], best_plan(requests, drift, rate), held)
            most = max(one.dollars for one in served) / (rate * len(requests.rewards))
            rows.append(row(f"{drift}: most spent, of the budget", "", most, 1.0, most=True))
    finally:
        service.stop()
    return rows


def rows_of(drift: str, served: list[Order], own: list[Order], best: float, held: list[bool]) -> list[dict[str, Any]]:
    """Compare campaigns with learners in this process, and with the optimum ``best`` per request."""
    shares = [float(np.mean([one.reward for one in played])) / best for played in (served, own)]
    same = float(np.mean([np.equal(one.arms, two.arms).mean() for one, two in zip(served, own, strict=True)]))
    return [
        row(f"{drift}: share of the optimum through the service", "", shares[0], LEAST),
        row(f"{drift}: that, of the learner in a process", "", shares[0] / shares[1], LEAST),
        row(f"{drift}: decisions that both make", "", same, 1.0),
        row(f"{drift}: budgets held", "", float(np.mean(held)), 1.0),
    ]
