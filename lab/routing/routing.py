"""Route prompts to language models under a budget in dollars, beside ParetoBandit, on the data of its wheel.

The wheel ``paretobandit`` 0.1.1 (Apache-2.0) has 3,609 prompts with the reward and the dollar cost of three models for
each. Nothing of it is copied: install it with ``pip install paretobandit``, which also installs scikit-learn. Features
are TF-IDF with a singular value decomposition to 25 dimensions, standardised. Its two drifts last for the middle third
of the requests: Gemini's price falls, which every router is told, or Mistral's answers become worse.

After a cold start a router routes all prompts in random order. After a warm start it has first learned the outcomes of
all models on the 1,785 prompts of one file of the wheel, and routes the 1,824 of the other.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import numpy as np

from driftsack.benchmarks import lp_contextual
from driftsack.core.arrays import Floats
from driftsack.core.contextual import ContextualInstance
from driftsack.core.errors import SettingError
from driftsack.core.seeding import generator
from driftsack.core.statistics import standard_error
from lab.routing.routers import (
    BUDGETS,
    DRIFTS,
    GEMINI,
    MISTRAL,
    MODELS,
    PHASES,
    PRICE_FACTOR,
    ROUTERS,
    WORSE_REWARD,
    Requests,
    Task,
    Told,
)
from lab.speed.timing import Progress

DIMENSIONS = 25
Row = dict[str, Any]


def read_rows() -> tuple[list[Row], int]:
    """Read the prompts of both files of the wheel, and return them with the number of those in the first file."""
    try:
        directory = files("pareto_bandit") / "data" / "examples"
    except ImportError as error:
        raise SettingError("routing needs other packages: pip install paretobandit==0.1.1.") from error
    texts = [(directory / f"{name}.jsonl").read_text().rstrip("\n").split("\n") for name in ("val", "test_holdout")]
    return [json.loads(line) for text in texts for line in text], len(texts[0])


def outcomes_of(rows: list[Row]) -> Floats:
    """(N, 2, 3) the reward and the dollars of each model for each prompt."""
    return np.array([[[row["arms"][model][key] for model in MODELS] for key in ("reward", "cost")] for row in rows])


def read_requests() -> tuple[Requests, Requests]:
    """Read the prompts of both files of the wheel and compute their features."""
    rows, first = read_rows()
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform([row["prompt"] for row in rows])
    names, source = np.unique([row["source"] for row in rows], return_inverse=True)
    outcomes = outcomes_of(rows)
    features = TruncatedSVD(DIMENSIONS, random_state=0).fit_transform(words)
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    every = Requests(features, np.eye(len(names))[source], outcomes[:, 0], outcomes[:, 1])
    return Requests(*(part[:first] for part in every)), Requests(*(part[first:] for part in every))


def drifted(requests: Requests, drift: str) -> tuple[Floats, Floats]:
    """(3, N, 3) rewards and dollars in each phase."""
    rewards, dollars = np.stack([requests.rewards] * PHASES), np.stack([requests.dollars] * PHASES)
    if drift == "price":
        dollars[1, :, GEMINI] *= PRICE_FACTOR
    if drift == "quality":
        rewards[1, :, MISTRAL] = WORSE_REWARD
    return rewards, dollars


def best_plan(requests: Requests, drift: str, rate: float) -> float:
    """The reward per request of the best plan that knows the means of every phase and source."""
    rewards, dollars = drifted(requests, drift)
    sources = requests.sources[:, requests.sources.any(axis=0)]
    count = sources.sum(axis=0)
    means, costs = (np.einsum("ns,kni->ksi", sources, part) / count[:, None] for part in (rewards, dollars))
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


def routing_rows(quick: bool, seed: int, progress: Progress) -> list[Row]:
    """Measure every router at every budget and drift.

    Args:
        quick: Whether to use three orders at the smallest budget instead of 20 at every budget.
        seed: The seed of the first order.
        progress: Called with the current measurement.

    Returns:
        One row for each start (cold or warm), budget, drift and router.
    """
    past, coming = read_requests()
    both = Requests(*(np.concatenate(parts) for parts in zip(past, coming, strict=True)))
    seeds = range(seed, seed + (3 if quick else 20))
    rows: list[Row] = []
    for start, requests, known in (("cold", both, None), ("warm", coming, past)):
        for rate in BUDGETS[:1] if quick else BUDGETS:
            for drift in DRIFTS:
                best = best_plan(requests, drift, rate)
                outcomes = drifted(requests, drift)
                for name, router in ROUTERS.items():
                    if known is not None and not router.warm:
                        continue
                    progress(f"{start}: {name} at {rate:g} dollars, drift: {drift}")
                    orders = ((k, generator(k).permutation(len(requests.rewards))) for k in seeds)
                    tasks = (Task(requests, order, *outcomes, rate, drift, k, known) for k, order in orders)
                    told = [router.route(task) for task in tasks]
                    place = {"start": start, "router": name, "budget": f"{rate:g}", "drift": drift}
                    rows.append(place | figures(told, rate, best))
    return rows


def figures(told: list[Told], rate: float, best: float) -> Row:
    """Summarise what a router earned and spent over several orders."""
    earned, spent, seconds, count = np.array(told).T
    return {
        "reward": float(earned.mean()),
        "se": standard_error(earned),
        "share of LP": float(earned.mean()) / best,
        "most spent / budget": float((spent / count).max()) / rate,
        "µs a decision": 1e6 * float(np.median(seconds / count)),
    }
