"""Answers by language models: dollars and seconds, and feedback that comes hours later or never.

6,000 requests of four days, three models and a fourth that is released on the third day. A request is a chat or a code
completion, and its prompt length is known. Sizes and bursts follow an hour of real requests: prompts and answers are
log-normal by kind, with the fitted parameters below (source: Azure Public Dataset, AzureLLMInferenceTrace, CC-BY 4.0).
At half-time the medium model gets a new version that is better at code, worse at chat and more talkative.
"""

from __future__ import annotations

import numpy as np

import driftsack as ds
from lab.scenarios.scenario import SKIP, Brief, CatalogueEntry, Context, Floats, Request, Rule, Scenario
from lab.scenarios.shapes import around_one, clipped_mean, delays_in_requests, happens, persistent, stream

REQUESTS, DAYS = 6_000, 4
CODE_SHARE = 0.31
PROMPT = ((6.63, 0.99, 8_192.0), (7.00, 1.36, 7_437.0))  # log mean, log spread, maximum: chat, code
ANSWER = ((5.02, 0.86, 1_000.0), (2.79, 0.85, 1_899.0))
BURSTS = ((0.23, 5.7), (0.96, 0.8))  # spread and memory of the rate, in slots: chat, code
MODELS = ("small", "medium", "large", "large-fast")
GOOD = np.array([[0.62, 0.38], [0.76, 0.58], [0.88, 0.80], [0.87, 0.79]])  # (model, kind)
PER_TOKEN = np.array([[0.2, 0.6], [1.0, 3.0], [5.0, 15.0], [3.0, 12.0]]) * 1e-6  # dollars: prompt, answer
SPEED = np.array([0.006, 0.012, 0.03, 0.012])  # seconds a generated token
MAX_TOKENS = np.array([1_000.0, 2_000.0])  # chat, code
WOBBLE = 0.3  # spread of the answer's length between models
TIMEOUT = 60.0  # seconds
BUDGET = {"usd": 0.0030 * REQUESTS, "seconds": 2.2 * REQUESTS}


def make(seed: int) -> Scenario:
    """The scenario of a seed."""
    rng, n, m = stream(seed, "llm"), REQUESTS, len(MODELS)
    # Bursts of both kinds of requests, each with its own memory.
    slots = DAYS * 96
    rate = np.stack([np.exp(persistent(rng, slots, memory, np.sqrt(np.log1p(cv**2)))) for cv, memory in BURSTS], axis=1)
    rate *= np.array([1.0 - CODE_SHARE, CODE_SHARE]) / rate.mean(axis=0)
    cell = np.sort(rng.choice(2 * slots, size=n, p=(rate / rate.sum()).ravel()))
    order = np.argsort(cell // 2 + rng.random(n), kind="stable")
    kind = (cell % 2)[order]
    times = np.sort(cell // 2 + rng.random(n)) / 4.0
    # Lengths of prompts and answers; one model becomes wordy in the second half.
    low, spread, most = (np.array([size[i] for size in PROMPT])[kind] for i in range(3))
    prompt = np.minimum(np.exp(rng.normal(low, spread)), most)
    low, spread, most = (np.array([size[i] for size in ANSWER])[kind] for i in range(3))
    longer = np.where(times[:, None] > times[-1] / 2, np.array([1.0, 1.5, 1.0, 1.0]), np.ones(m))
    usual = np.exp(rng.normal(low, spread))  # what this request needs, the same for every model
    generated = np.minimum(usual[:, None] * longer * around_one(rng, (n, m), WOBBLE), most[:, None])
    middle = np.exp(low - 0.5 * WOBBLE**2)[:, None] * longer
    expected = clipped_mean(middle, np.sqrt(spread**2 + WOBBLE**2)[:, None], most[:, None])
    # Quality falls with the length of the prompt and drifts; a new version is better at one kind only.
    good = GOOD[:, kind].T - 0.06 * (np.log(prompt) - 6.6)[:, None] * np.array([1.5, 1.0, 0.3, 0.3])
    new = np.where(kind == 1, 0.12, -0.18) * (times > times[-1] / 2)
    good[:, 1] += new
    good = np.clip(good + persistent(rng, n, 1200.0, 0.03)[:, None], 0.02, 0.98)
    # Dollars and seconds, their means, and their maxima for each request.
    pay = prompt[:, None] * PER_TOKEN[:, 0]
    costs = np.stack(
        [
            pay + generated * PER_TOKEN[:, 1],
            np.minimum(0.4 + generated * SPEED * around_one(rng, (n, m), 0.4), TIMEOUT),
        ],
        axis=2,
    )
    means = np.stack([pay + expected * PER_TOKEN[:, 1], 0.4 + expected * SPEED], axis=2)
    most = MAX_TOKENS[kind][:, None]
    caps = np.stack([pay + most * PER_TOKEN[:, 1], np.minimum(1.0 + 3.0 * most * SPEED, TIMEOUT)], axis=2)
    contexts: list[Context] = [
        {"prompt": float(np.log(prompt[t])), "kind": "code" if kind[t] else "chat"} for t in range(n)
    ]
    return Scenario(
        name="LLM answers",
        arms=MODELS,
        budget=BUDGET,
        cost_max=np.stack([PER_TOKEN @ [8_192.0, 2_000.0], np.minimum(1.0 + 6_000.0 * SPEED, TIMEOUT)], axis=1),
        reward_max=1.0,
        rewards=happens(rng, good),
        costs=costs,
        mean_rewards=good,
        mean_costs=means,
        times=times,
        delays=delays_in_requests(rng, times, m, 3.0, lost=0.05),
        contexts=contexts,
        encoder=ds.Encoder(numbers=["prompt"], categories={"kind": ["chat", "code"]}),
        caps=caps,
        added={3: int(0.55 * n)},
        patience=800,
        bills_at_once=True,
    )


class TableByKind(Rule):
    """Averages for each model and kind; prices of dollars and seconds follow the expected spending."""

    def __init__(self, brief: Brief) -> None:
        super().__init__(brief)
        pace = brief.budget / brief.horizon
        self.good = {kind: np.full(brief.arms, 0.7) for kind in ("chat", "code")}
        self.cost = {kind: np.tile(pace, (brief.arms, 1)) for kind in ("chat", "code")}
        self.pace, self.price = pace, 0.3 / pace
        self.rng = np.random.default_rng(0)

    def choose(self, request: Request) -> int:
        assert request.context is not None
        kind = str(request.context["kind"])
        value = self.good[kind] - self.cost[kind] @ self.price
        arm = max(request.open, key=lambda a: value[a])
        if self.rng.random() < 0.05:
            arm = int(self.rng.choice(request.open))
        elif value[arm] < 0.0:
            arm = SKIP
        used = self.cost[kind][arm] if arm != SKIP else np.zeros(2)
        self.price = self.price * np.exp(0.005 * np.clip(used / self.pace - 1.0, -1.0, 2.0))
        return int(arm)

    def learn(self, request: Request, arm: int, reward: float, costs: Floats) -> None:
        assert request.context is not None
        kind = str(request.context["kind"])
        self.good[kind][arm] += 0.02 * (reward - self.good[kind][arm])
        self.cost[kind][arm] += 0.05 * (costs - self.cost[kind][arm])


class RidgeByModel(Rule):
    """A ridge regression for each model on kind and prompt length, for quality, dollars and seconds."""

    def __init__(self, brief: Brief) -> None:
        super().__init__(brief)
        self.xx = np.tile(np.eye(4), (brief.arms, 1, 1))
        self.xy = np.zeros((brief.arms, 4, 3))
        self.pace = brief.budget / brief.horizon
        self.price, self.left, self.rng = np.full(2, 0.3), brief.budget.copy(), np.random.default_rng(0)

    def row(self, request: Request) -> Floats:
        assert request.context is not None
        code, size = float(request.context["kind"] == "code"), float(request.context["prompt"]) - 6.6
        return np.array([1.0, code, size, code * size])

    def choose(self, request: Request) -> int:
        guess = np.einsum("i,aij->aj", self.row(request), np.linalg.solve(self.xx, self.xy))
        cost = np.maximum(guess[:, 1:], 0.02)  # in units of the even pace
        value = guess[:, 0] - cost @ self.price
        arm = int(max(request.open, key=lambda a: value[a]))
        if self.rng.random() < 0.04:
            return int(self.rng.choice(request.open))
        goal = self.left / self.pace / max(self.brief.horizon - request.index, 1)
        self.price = np.maximum(self.price + 0.003 * ((cost[arm] if value[arm] > 0.0 else 0.0) - goal), 0.0)
        return arm if value[arm] > 0.0 else SKIP

    def learn(self, request: Request, arm: int, reward: float, costs: Floats) -> None:
        row = self.row(request)
        self.xx[arm] = 0.998 * self.xx[arm] + np.outer(row, row)
        self.xy[arm] = 0.998 * self.xy[arm] + np.outer(row, [reward, *(costs / self.pace)])
        self.left -= costs


ENTRY = CatalogueEntry(make, {"table by kind": TableByKind, "ridge by model": RidgeByModel})
