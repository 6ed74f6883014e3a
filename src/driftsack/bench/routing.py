"""Routing prompts to language models under a budget in dollars, beside ParetoBandit, on the data of its wheel.

The wheel ``paretobandit`` 0.1.1 (Apache-2.0) has 3,609 prompts with the reward and the dollar cost of three models for
each. Nothing of it is copied: install it with ``pip install paretobandit``, which also installs scikit-learn. Features
are TF-IDF with a singular value decomposition to 25 dimensions. Its two drifts last for the middle third of the
requests: Gemini's price falls, which every router is told, or Mistral's answers become worse.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from importlib.resources import files
from typing import Any, Final, NamedTuple

import numpy as np

from driftsack.bench.timing import Progress
from driftsack.benchmarks import lp_contextual
from driftsack.core.arrays import Floats, Ints
from driftsack.core.contextual import ContextualInstance
from driftsack.core.decision import SKIP
from driftsack.core.errors import SettingError
from driftsack.core.problem import Problem
from driftsack.core.seeding import generator
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
DIMENSIONS: Final = 25


class Requests(NamedTuple):
    """All prompts: features, one-hot sources, and rewards and dollars of each model."""

    features: Floats  # (N, 25)
    sources: Floats  # (N, S)
    rewards: Floats  # (N, 3)
    dollars: Floats  # (N, 3)


class Told(NamedTuple):
    """What a router earned and spent."""

    reward: float
    dollars: float
    seconds: float


Router = Callable[[Requests, Ints, Floats, Floats, float, str, int], Told]


def read_requests() -> Requests:
    """Read the prompts of the wheel and compute their features."""
    try:
        from sklearn.decomposition import TruncatedSVD  # noqa: PLC0415  (an optional package)
        from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415

        folder = files("pareto_bandit") / "data" / "examples"
    except ImportError as error:
        raise SettingError("--routing needs other packages: pip install paretobandit==0.1.1.") from error
    texts = [(folder / f"{name}.jsonl").read_text() for name in ("val", "test_holdout")]
    rows = [json.loads(line) for text in texts for line in text.rstrip("\n").split("\n")]
    words = TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform([row["prompt"] for row in rows])
    names, source = np.unique([row["source"] for row in rows], return_inverse=True)
    outcomes = np.array([[[row["arms"][model][key] for model in MODELS] for key in ("reward", "cost")] for row in rows])
    features = TruncatedSVD(DIMENSIONS, random_state=0).fit_transform(words)
    return Requests(features, np.eye(len(names))[source], outcomes[:, 0], outcomes[:, 1])


def drifted(requests: Requests, drift: str) -> tuple[Floats, Floats]:
    """(3, N, 3) rewards and dollars of each phase."""
    rewards, dollars = np.stack([requests.rewards] * PHASES), np.stack([requests.dollars] * PHASES)
    if drift == "price":
        dollars[1, :, GEMINI] *= PRICE_FACTOR
    if drift == "quality":
        rewards[1, :, MISTRAL] = WORSE_REWARD
    return rewards, dollars


def yardstick(requests: Requests, drift: str, rate: float) -> float:
    """Reward a request of the best plan that knows the means of every phase and source."""
    rewards, dollars = drifted(requests, drift)
    count = requests.sources.sum(axis=0)
    means, costs = (np.einsum("ns,kni->ksi", requests.sources, part) / count[:, None] for part in (rewards, dollars))
    rounds = len(requests.rewards)
    world = ContextualInstance.by_table(
        np.eye(len(count)),
        means,
        costs[:, :, None],
        rate * rounds,
        horizon=rounds,
        weights=count,
        cost_max=[float(costs.max())],
    )
    return lp_contextual(world).value / rounds


def learner_router(policy: Policy, by_source: bool = False, safe: bool = False) -> Router:
    """A policy of the library; it is told of the price."""

    def route(
        requests: Requests, order: Ints, rewards: Floats, dollars: Floats, rate: float, drift: str, seed: int
    ) -> Told:
        contexts = (requests.sources if by_source else requests.features)[order]
        problem = Problem(
            horizon=len(order),
            arms=MODELS,
            budget={"usd": rate * len(order)},
            cost_max={"usd": dict(zip(MODELS, requests.dollars.max(axis=0).tolist(), strict=True))},
            features=contexts.shape[1],
        )
        learner = policy.start(problem, seed=seed, safe=safe)
        earned, spent, begun = 0.0, 0.0, time.perf_counter()
        for t, context in enumerate(contexts):
            phase = t * PHASES // len(order)
            if drift == "price" and policy.needs_context and t and phase != (t - 1) * PHASES // len(order):
                learner.announce(GEMINI, cost_factor=PRICE_FACTOR if phase == 1 else 1.0 / PRICE_FACTOR)
            if learner.done:
                break
            decision = learner.ask(context=context)
            if decision.arm == SKIP:
                continue
            reward, cost = float(rewards[phase, order[t], decision.arm]), float(dollars[phase, order[t], decision.arm])
            learner.tell(decision, reward, [cost])
            if (learner.remaining >= 0.0).all():
                earned += reward
            spent += cost
        return Told(earned / len(order), spent, time.perf_counter() - begun)

    return route


def fixed_router(arm: int | None) -> Router:
    """Always one model, or a random one, until the money is gone."""

    def route(
        requests: Requests,  # noqa: ARG001
        order: Ints,
        rewards: Floats,
        dollars: Floats,
        rate: float,
        drift: str,  # noqa: ARG001
        seed: int,
    ) -> Told:
        phase, count = np.arange(len(order)) * PHASES // len(order), len(order)
        arms = generator(seed).integers(0, len(MODELS), count) if arm is None else np.full(count, arm)
        costs = np.cumsum(dollars[phase, order, arms])
        paid = costs <= rate * count
        return Told(float(rewards[phase, order, arms][paid].sum()) / count, float(costs[paid][-1]), 0.0)

    return route


def pareto_router(alpha: float) -> Router:
    """ParetoBandit, cold; rewards beyond the budget count, since its budget is one on average."""

    def route(
        requests: Requests, order: Ints, rewards: Floats, dollars: Floats, rate: float, drift: str, seed: int
    ) -> Told:
        router = _pareto(alpha, rate, seed)
        earned, spent, begun = 0.0, 0.0, time.perf_counter()
        for t, row in enumerate(order.tolist()):
            phase = t * PHASES // len(order)
            if drift == "price" and t and phase != (t - 1) * PHASES // len(order):
                prices = (NEW_PRICE, NEW_PRICE) if phase == 1 else PER_MILLION[GEMINI]
                router.update_model_pricing(MODELS[GEMINI], input_cost_per_m=prices[0], output_cost_per_m=prices[1])
            model, log = router.route(requests.features[row])
            arm = MODELS.index(model)
            log.cost_usd = float(dollars[phase, row, arm])
            router.process_feedback(log.request_id, reward=float(rewards[phase, row, arm]))
            earned += rewards[phase, row, arm]
            spent += dollars[phase, row, arm]
        return Told(earned / len(order), spent, time.perf_counter() - begun)

    return route


def _pareto(alpha: float, rate: float, seed: int) -> Any:
    from pareto_bandit import BanditRouter  # noqa: PLC0415
    from pareto_bandit.budget_pacer import BudgetPacer  # noqa: PLC0415
    from pareto_bandit.config import BEST_K3_HPARAMS  # noqa: PLC0415
    from pareto_bandit.feature_service import FeatureService  # noqa: PLC0415

    registry = {
        name: {"input_cost_per_m": prices[0], "output_cost_per_m": prices[1]}
        for name, prices in zip(MODELS, PER_MILLION, strict=True)
    }
    return BanditRouter.create(
        model_registry=registry,
        feature_service=FeatureService.for_precomputed(dimension=DIMENSIONS),
        priors="none",
        alpha=alpha,
        budget_pacer=BudgetPacer(rate),
        forgetting_factor=BEST_K3_HPARAMS["forgetting_factor"],
        bandit_seed=seed,
    )


ROUTERS: Final[dict[str, Router]] = {
    "LinearBwK": learner_router(LinearBwK()),
    "LinearBwK, safe": learner_router(LinearBwK(), safe=True),
    "DisjointBwK by source": learner_router(DisjointBwK(), by_source=True),
    "SquareCBwK": learner_router(SquareCBwK()),
    "Adaptive, no context": learner_router(Adaptive()),
    "ParetoBandit, default": pareto_router(0.01),
    "ParetoBandit, alpha 0.5": pareto_router(0.5),
    "Llama": fixed_router(0),
    "Mistral": fixed_router(1),
    "Gemini": fixed_router(2),
    "uniform": fixed_router(None),
}


def routing_rows(quick: bool, seed: int, progress: Progress) -> list[dict[str, float | str]]:
    """Measure every router at every budget and drift.

    Args:
        quick: Three orders at the smallest budget, instead of 20 at all of them.
        seed: The seed of the first order.
        progress: Called with what is measured.

    Returns:
        One row for each budget, drift and router.
    """
    requests = read_requests()
    rows: list[dict[str, float | str]] = []
    for rate in BUDGETS[:1] if quick else BUDGETS:
        for drift in DRIFTS:
            best = yardstick(requests, drift, rate)
            rewards, dollars = drifted(requests, drift)
            for name, router in ROUTERS.items():
                progress(f"{name} at {rate:g} dollars, drift: {drift}")
                told = []
                for k in range(seed, seed + (3 if quick else 20)):
                    order = generator(k).permutation(len(rewards[0]))
                    told.append(router(requests, order, rewards, dollars, rate, drift, k))
                earned, spent, seconds = np.array(told).T
                count = len(rewards[0])
                rows.append(
                    {
                        "router": name,
                        "budget": f"{rate:g}",
                        "drift": drift,
                        "reward": float(earned.mean()),
                        "se": float(earned.std(ddof=1) / np.sqrt(len(told))),
                        "share of LP": float(earned.mean()) / best,
                        "most spent / budget": float(spent.max()) / (rate * count),
                        "µs a decision": 1e6 * float(np.median(seconds)) / count,
                    }
                )
    return rows
