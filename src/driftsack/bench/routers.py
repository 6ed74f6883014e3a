"""What the routing benchmark compares: policies of the library, ParetoBandit, and always one model."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.core.seeding import generator
from driftsack.logs import Log
from driftsack.policies import Adaptive, DisjointBwK, LinearBwK, Policy, SquareCBwK

MODELS: Final = ("meta-llama/llama-3.1-8b-instruct", "mistralai/mistral-large-2512", "google/gemini-2.5-pro")
PER_MILLION: Final = ((0.1, 0.1), (0.5, 1.5), (1.25, 10.0))  # dollars for tokens in and out
BUDGETS: Final = (3e-4, 6.62e-4, 1.5e-3)  # dollars a request
DRIFTS: Final = ("none", "price", "quality")
MISTRAL, GEMINI = 1, 2
NEW_PRICE: Final = 0.1  # dollars per million tokens of Gemini
PRICE_FACTOR: Final = 2.0 * NEW_PRICE / (1.25 + 10.0)
WORSE_REWARD: Final = 0.75
PHASES: Final = 3


class Requests(NamedTuple):
    """Prompts: features, one-hot sources, and rewards and dollars of each model."""

    features: Floats  # (N, n) standardised
    sources: Floats  # (N, S)
    rewards: Floats  # (N, 3)
    dollars: Floats  # (N, 3)


class Task(NamedTuple):
    """What a router has to do."""

    requests: Requests
    order: Ints  # in which they come
    rewards: Floats  # (3, N, 3) of each phase
    dollars: Floats
    rate: float  # dollars a request
    drift: str
    seed: int
    past: Requests | None  # to learn from first

    def phase(self, t: int) -> int:
        """The phase of a round."""
        return t * PHASES // len(self.order)

    def new_price(self, t: int) -> bool:
        """Whether Gemini's price changes before round ``t``."""
        return self.drift == "price" and t > 0 and self.phase(t) != self.phase(t - 1)


class Told(NamedTuple):
    """What a router earned a request, what it spent, and how long it took."""

    reward: float
    dollars: float
    seconds: float
    requests: int


class Router(NamedTuple):
    """A way to route, and whether it can learn from past requests."""

    route: Callable[[Task], Told]
    warm: bool


def learner_router(policy: Policy, by_source: bool = False, safe: bool = False) -> Router:
    """A policy of the library; it is told of the price if it can be."""

    def contexts_of(requests: Requests) -> Floats:
        return requests.sources if by_source else requests.features

    def route(task: Task) -> Told:
        contexts, count = contexts_of(task.requests)[task.order], len(task.order)
        problem = Problem(
            horizon=count,
            arms=MODELS,
            budget={"usd": task.rate * count},
            cost_max={"usd": dict(zip(MODELS, task.requests.dollars.max(axis=0).tolist(), strict=True))},
            features=contexts.shape[1],
        )
        log = None if task.past is None else past_log(task.past, contexts_of(task.past), task.seed)
        learner = policy.start(problem, seed=task.seed, safe=safe, log=log)
        earned, spent, begun = 0.0, 0.0, time.perf_counter()
        for t, context in enumerate(contexts):
            phase = task.phase(t)
            if policy.needs_context and task.new_price(t):
                learner.announce(GEMINI, cost_factor=PRICE_FACTOR if phase == 1 else 1.0 / PRICE_FACTOR)
            if learner.done:
                break
            decision = learner.ask(context=context)
            if decision.arm == SKIP:
                continue
            reward, cost = (float(part[phase, task.order[t], decision.arm]) for part in (task.rewards, task.dollars))
            learner.tell(decision, reward, [cost])
            if (learner.remaining >= 0.0).all():
                earned += reward
            spent += cost
        return Told(earned / count, spent, time.perf_counter() - begun, count)

    return Router(route, warm=policy.needs_context)


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


def fixed_router(arm: int | None) -> Router:
    """Always one model, or a random one, until the money is gone."""

    def route(task: Task) -> Told:
        count = len(task.order)
        phase = np.arange(count) * PHASES // count
        arms = generator(task.seed).integers(0, len(MODELS), count) if arm is None else np.full(count, arm)
        costs = np.cumsum(task.dollars[phase, task.order, arms])
        paid = costs <= task.rate * count
        reward = float(task.rewards[phase, task.order, arms][paid].sum()) / count
        return Told(reward, float(costs[paid].max(initial=0.0)), 0.0, count)

    return Router(route, warm=True)


def pareto_router(alpha: float) -> Router:
    """ParetoBandit; rewards beyond the budget count, since its budget is one on average."""

    def route(task: Task) -> Told:
        router, features = _pareto(task, alpha), _with_constant(task.requests.features)
        earned, spent, begun = 0.0, 0.0, time.perf_counter()
        for t, row in enumerate(task.order.tolist()):
            phase = task.phase(t)
            if task.new_price(t):
                prices = (NEW_PRICE, NEW_PRICE) if phase == 1 else PER_MILLION[GEMINI]
                router.update_model_pricing(MODELS[GEMINI], input_cost_per_m=prices[0], output_cost_per_m=prices[1])
            model, log = router.route(features[row])
            arm = MODELS.index(model)
            log.cost_usd = float(task.dollars[phase, row, arm])
            router.process_feedback(log.request_id, reward=float(task.rewards[phase, row, arm]))
            earned += task.rewards[phase, row, arm]
            spent += task.dollars[phase, row, arm]
        count = len(task.order)
        return Told(earned / count, spent, time.perf_counter() - begun, count)

    return Router(route, warm=True)


def _with_constant(features: Floats) -> Floats:
    """Features as ParetoBandit expects them: the last one is its intercept."""
    return np.column_stack([features, np.ones(len(features))])


def _pareto(task: Task, alpha: float) -> Any:
    """The router with its own settings, and with priors from past requests if there are any."""
    from pareto_bandit import BanditRouter  # noqa: PLC0415
    from pareto_bandit.budget_pacer import BudgetPacer  # noqa: PLC0415
    from pareto_bandit.config import BEST_K3_HPARAMS  # noqa: PLC0415
    from pareto_bandit.feature_service import FeatureService  # noqa: PLC0415
    from pareto_bandit.storage import EphemeralContextStore  # noqa: PLC0415

    registry = {
        name: {"input_cost_per_m": prices[0], "output_cost_per_m": prices[1]}
        for name, prices in zip(MODELS, PER_MILLION, strict=True)
    }
    with tempfile.TemporaryDirectory() as folder:
        return BanditRouter.create(
            model_registry=registry,
            feature_service=FeatureService.for_precomputed(dimension=task.requests.features.shape[1] + 1),
            context_store=EphemeralContextStore(),
            priors="none" if task.past is None else _priors(task.past, Path(folder) / "priors.joblib"),
            alpha=alpha,
            budget_pacer=BudgetPacer(task.rate),
            forgetting_factor=BEST_K3_HPARAMS["forgetting_factor"],
            bandit_seed=task.seed,
        )


def _priors(past: Requests, path: Path) -> str:
    """Write priors as its own function for them does: sums over past requests, for every model."""
    import joblib  # noqa: PLC0415

    rows = _with_constant(past.features)
    precision = {model: np.eye(rows.shape[1]) + rows.T @ rows for model in MODELS}
    target = {model: rows.T @ past.rewards[:, arm] for arm, model in enumerate(MODELS)}
    joblib.dump({"A": precision, "b": target, "models": list(MODELS), "pca_whitened": False}, path)
    return str(path)


ROUTERS: Final[dict[str, Router]] = {
    "LinearBwK": learner_router(LinearBwK()),
    "LinearBwK, safe": learner_router(LinearBwK(), safe=True),
    "DisjointBwK by source": learner_router(DisjointBwK(), by_source=True),
    "SquareCBwK": learner_router(SquareCBwK()),
    "Adaptive, no context": learner_router(Adaptive()),
    "ParetoBandit, default": pareto_router(0.01),
    "ParetoBandit, alpha 0.05": pareto_router(0.05),
    "ParetoBandit, alpha 0.5": pareto_router(0.5),
    "Llama": fixed_router(0),
    "Mistral": fixed_router(1),
    "Gemini": fixed_router(2),
    "uniform": fixed_router(None),
}
