"""The entrants of the routing benchmark: policies of the library, ParetoBandit, and always one model."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.core.seeding import generator
from driftsack.logs import Log
from driftsack.policies import Adaptive, DisjointBwK, LinearBwK, Policy, SquareCBwK
from lab.rivals import DriftsackRouter, ParetoBandit, TokenPrices

MODELS: Final = ("meta-llama/llama-3.1-8b-instruct", "mistralai/mistral-large-2512", "google/gemini-2.5-pro")
PER_MILLION: Final[tuple[TokenPrices, ...]] = ((0.1, 0.1), (0.5, 1.5), (1.25, 10.0))  # dollars for tokens in and out
BUDGETS: Final = (3e-4, 6.62e-4, 1.5e-3)  # dollars a request
DRIFTS: Final = ("none", "price", "quality")
MISTRAL, GEMINI = 1, 2
NEW_PRICES: Final[TokenPrices] = (0.1, 0.1)  # of Gemini
PRICE_FACTOR: Final = sum(NEW_PRICES) / (1.25 + 10.0)
WORSE_REWARD: Final = 0.75
PHASES: Final = 3


class Requests(NamedTuple):
    """Prompts: features, one-hot sources, and rewards and dollars of each model."""

    features: Floats  # (N, n) standardised
    sources: Floats  # (N, S)
    rewards: Floats  # (N, 3)
    dollars: Floats  # (N, 3)


class Task(NamedTuple):
    """A stream of requests, its outcomes and its budget."""

    requests: Requests
    order: Ints  # of arrival
    rewards: Floats  # (3, N, 3) of each phase
    dollars: Floats
    rate: float  # dollars a request
    drift: str
    seed: int
    past: Requests | None  # to learn from before the first request

    def phase(self, t: int) -> int:
        """The phase of a round."""
        return t * PHASES // len(self.order)

    def new_price(self, t: int) -> bool:
        """Whether Gemini's price changes before round ``t``."""
        return self.drift == "price" and t > 0 and self.phase(t) != self.phase(t - 1)

    def outcome(self, t: int, arm: int) -> tuple[float, Floats]:
        """The reward and the costs (1,) of an arm in round ``t``."""
        row = self.phase(t), self.order[t]
        return float(self.rewards[row][arm]), self.dollars[row][arm : arm + 1]


class Told(NamedTuple):
    """What an entrant earned per request, what it spent, and how long it took."""

    reward: float
    dollars: float
    seconds: float
    requests: int


class Entrant(NamedTuple):
    """A way to route all requests of a task, and whether it can learn from past requests."""

    route: Callable[[Task], Told]
    warm: bool


def learner_entrant(policy: Policy, by_source: bool = False, safe: bool = False) -> Entrant:
    """A policy of the library; changes of prices are announced to it if it uses contexts."""

    def contexts_of(requests: Requests) -> Floats:
        return requests.sources if by_source else requests.features

    def route(task: Task) -> Told:
        # Start the policy, with what it can learn from past requests
        contexts, count = contexts_of(task.requests)[task.order], len(task.order)
        problem = Problem(
            horizon=count,
            arms=MODELS,
            budget={"usd": task.rate * count},
            cost_max={"usd": dict(zip(MODELS, task.requests.dollars.max(axis=0).tolist(), strict=True))},
            features=contexts.shape[1],
        )
        log = None if task.past is None else past_log(task.past, contexts_of(task.past), task.seed)
        router = DriftsackRouter(policy, problem, task.seed, safe, log)
        # Route until the budget is exhausted; an answer that breaks it does not count
        learner, earned, spent, begun = router.learner, 0.0, 0.0, time.perf_counter()
        for t, context in enumerate(contexts):
            if policy.needs_context and task.new_price(t):
                learner.announce(GEMINI, cost_factor=PRICE_FACTOR if task.phase(t) == 1 else 1.0 / PRICE_FACTOR)
            if learner.done:
                break
            arm = router.choose(context)
            if arm == SKIP:
                continue
            reward, costs = task.outcome(t, arm)
            router.learn(arm, reward, costs)
            if (learner.remaining >= 0.0).all():
                earned += reward
            spent += float(costs[0])
        return Told(earned / count, spent, time.perf_counter() - begun, count)

    return Entrant(route, warm=policy.needs_context)


def past_log(past: Requests, contexts: Floats, seed: int) -> Log:
    """The outcomes of every model on past requests, in random order, as a log."""
    request, arm = np.divmod(generator(seed).permutation(past.rewards.size), len(MODELS))
    return Log(
        arms=MODELS,
        resources=("usd",),
        time=np.arange(float(arm.size)),
        arm=arm.astype(np.int32),
        reward=past.rewards[request, arm],
        costs=past.dollars[request, arm][:, None],
        propensity=None,
        table=None,
        reward_max=1.0,
        cost_max=(float(past.dollars.max()),),
        contexts=contexts[request],
    )


def fixed_entrant(arm: int | None) -> Entrant:
    """Always one model, or a random one, until the budget is exhausted."""

    def route(task: Task) -> Told:
        count = len(task.order)
        phase = np.arange(count) * PHASES // count
        arms = generator(task.seed).integers(0, len(MODELS), count) if arm is None else np.full(count, arm)
        costs = np.cumsum(task.dollars[phase, task.order, arms])
        paid = costs <= task.rate * count
        reward = float(task.rewards[phase, task.order, arms][paid].sum()) / count
        return Told(reward, float(costs[paid].max(initial=0.0)), 0.0, count)

    return Entrant(route, warm=True)


def pareto_entrant(alpha: float) -> Entrant:
    """ParetoBandit; rewards beyond the budget count, since its budget is one on average."""

    def route(task: Task) -> Told:
        features, count = _with_intercept(task.requests.features), len(task.order)
        changes = [t for t in range(count) if task.new_price(t)]
        router = ParetoBandit(
            MODELS,
            PER_MILLION,
            task.rate,
            alpha,
            task.seed,
            dimension=features.shape[1],
            price_changes={t: (GEMINI, NEW_PRICES if task.phase(t) == 1 else PER_MILLION[GEMINI]) for t in changes},
            past=None if task.past is None else (_with_intercept(task.past.features), task.past.rewards),
        )
        earned, spent, begun = 0.0, 0.0, time.perf_counter()
        for t, row in enumerate(task.order.tolist()):
            arm = router.choose(features[row])
            reward, costs = task.outcome(t, arm)
            router.learn(arm, reward, costs)
            earned += reward
            spent += float(costs[0])
        return Told(earned / count, spent, time.perf_counter() - begun, count)

    return Entrant(route, warm=True)


def _with_intercept(features: Floats) -> Floats:
    """Append a constant feature, the last one, which ParetoBandit needs."""
    return np.column_stack([features, np.ones(len(features))])


ROUTERS: Final[dict[str, Entrant]] = {
    "LinearBwK": learner_entrant(LinearBwK()),
    "LinearBwK, safe": learner_entrant(LinearBwK(), safe=True),
    "DisjointBwK by source": learner_entrant(DisjointBwK(), by_source=True),
    "SquareCBwK": learner_entrant(SquareCBwK()),
    "Adaptive, no context": learner_entrant(Adaptive()),
    "ParetoBandit, default": pareto_entrant(0.01),
    "ParetoBandit, alpha 0.05": pareto_entrant(0.05),
    "ParetoBandit, alpha 0.5": pareto_entrant(0.5),
    "Llama": fixed_entrant(0),
    "Mistral": fixed_entrant(1),
    "Gemini": fixed_entrant(2),
    "uniform": fixed_entrant(None),
}
