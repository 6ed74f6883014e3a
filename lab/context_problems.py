"""Problems with contexts of many kinds: what the recommended policy earns, beside a rule by hand and a weak policy.

Each problem is drawn from a seed. The share of the fluid optimum that the policy earns must reach a bar, and a weak
policy must miss it: ``Adaptive``, which sees no contexts, or where that is nearly enough a policy that explores far too
much. The rule by hand is a ridge regression for each arm with a dual price and 5% exploration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.benchmarks import lp_contextual
from driftsack.core.arrays import Floats
from driftsack.core.contextual import ContextualInstance
from driftsack.core.problem import Problem
from driftsack.core.seeding import generator
from driftsack.core.statistics import standard_error
from driftsack.instances.contextual import linear_contexts, segments
from driftsack.policies import Adaptive, DisjointBwK, LinearBwK, Policy
from driftsack.simulation import simulate
from lab.contexts import Row
from lab.speed.timing import Progress

TOLERANCE: Final = 1e-5  # relative gap of the optimum
POOL: Final = 1_000  # distinct contexts of a problem
SUBJECTS: Final = 57


class Size(NamedTuple):
    """The amount of simulation."""

    worlds: int
    horizon: int


WHOLE: Final = Size(worlds=16, horizon=8_000)
QUICK: Final = Size(worlds=3, horizon=8_000)


class Kind(NamedTuple):
    """A kind of problems."""

    make: Callable[[int, int], ContextualInstance]  # from a horizon and a seed
    policy: Policy
    weak: Policy
    bar: float  # least share of the optimum


def logistic(odds: Floats) -> Floats:
    """The logistic function."""
    return np.asarray(1.0 / (1.0 + np.exp(-odds)), dtype=np.float64)


def by_segment(rng: Generator, count: int) -> tuple[Floats, Floats, Floats]:
    """One-hot segments, a number, and contexts of both."""
    kind, number = np.eye(count)[rng.integers(0, count, POOL)], rng.standard_normal(POOL)
    return kind, number, np.column_stack([kind, number])


def coupons(horizon: int, seed: int, rate: float = 0.25) -> ContextualInstance:
    """Margin times purchase probability by segment and basket; the taste for discounts and the level change twice."""
    rng = generator(seed)
    kind, basket, contexts = by_segment(rng, 4)
    off, size = np.array([0.0, 0.05, 0.1, 0.2]), np.exp(0.5 * basket)
    rewards, costs = np.zeros((3, POOL, 4)), np.zeros((3, POOL, 1, 4))
    for phase in range(3):
        taste, level = rng.uniform(1.0, 14.0, 4), rng.uniform(-3.0, 0.5, 4)
        bought = logistic((kind @ level - 0.3 * basket)[:, None] + (kind @ taste)[:, None] * off)
        rewards[phase] = np.minimum(bought * size[:, None] / 6.0, 1.0)
        costs[phase, :, 0] = np.minimum(bought * size[:, None] * off / 1.2, 1.0)
    return ContextualInstance.by_table(contexts, rewards, costs, rate * 0.2 * horizon, horizon=horizon)


def sparse(horizon: int, seed: int) -> ContextualInstance:
    """About one request in twenty is rewarded, logistic in five features."""
    rng = generator(seed)
    rewards = np.column_stack([rng.normal(0.0, 0.6, (3, 5)), rng.uniform(-3.6, -2.6, 3)])
    costs = np.column_stack([rng.normal(0.0, 0.3, (3, 5)), rng.uniform(-1.5, 0.5, 3)])
    contexts = rng.standard_normal((POOL, 5))
    return ContextualInstance.linear(contexts, rewards, costs[None], 0.12 * horizon, horizon=horizon, logistic=True)


def offers(horizon: int, seed: int) -> ContextualInstance:
    """Rare orders by segment and recency; the budget pays for one contact in ten."""
    rng = generator(seed)
    kind, recency, contexts = by_segment(rng, 5)
    chance = logistic(kind @ rng.uniform(-4.0, -1.8, (5, 3)) - 0.7 * recency[:, None])
    costs = np.broadcast_to(np.array([1.0, 1.0, 3.0]) / 3.0, (POOL, 1, 3))
    return ContextualInstance.by_table(contexts, chance, costs, horizon / 30.0, horizon=horizon)


def worthless(horizon: int, seed: int, jumps: bool = False) -> ContextualInstance:
    """Eight features of noise; with jumps, the means of all arms change three times."""
    rng, phases = generator(seed), 4 if jumps else 1
    rewards, costs = rng.uniform(0.2, 0.8, (phases, 1, 4)), rng.uniform(0.1, 0.7, (phases, 1, 2, 4))
    gains = np.broadcast_to(rewards, (phases, POOL, 4))
    paid = np.broadcast_to(costs, (phases, POOL, 2, 4))
    return ContextualInstance.by_table(rng.standard_normal((POOL, 8)), gains, paid, 0.25 * horizon, horizon=horizon)


def shifted(horizon: int, seed: int, follows: bool) -> ContextualInstance:
    """Halfway all features move by six standard deviations; the means stay, or follow within their range."""
    rng = generator(seed)
    contexts, slopes = rng.standard_normal((POOL, 3)), rng.choice([-0.1, 0.1], (4, 3))
    uses = np.column_stack([rng.choice([-0.05, 0.05], (4, 3)), rng.uniform(0.2, 0.5, 4)])
    levels = rng.uniform(0.4, 0.6, 4)
    gains = np.clip(contexts @ slopes.T + levels, 0.0, 1.0)
    paid = np.clip(np.column_stack([contexts, np.ones(POOL)]) @ uses.T, 0.0, 1.0)
    moved = np.clip(gains + 0.3 * rng.choice([-1.0, 1.0], 4), 0.0, 1.0) if follows else gains
    halves = np.repeat(np.eye(2) / POOL, POOL, axis=1)
    return ContextualInstance.by_table(
        np.vstack([contexts, contexts + 6.0]),
        np.stack([np.vstack([gains, moved])] * 2),
        np.stack([np.vstack([paid, paid])[:, None]] * 2),
        0.2 * horizon,
        horizon=horizon,
        weights=halves,
    )


def subjects(horizon: int, seed: int, in_order: bool) -> ContextualInstance:
    """Requests of 57 subjects, one after the other or shuffled; three models, of which the better ones cost more."""
    rng = generator(seed)
    hard = rng.beta(2.0, 2.0, SUBJECTS)
    rewards = np.clip(0.95 - hard[:, None] * np.array([0.6, 0.4, 0.15]) + rng.normal(0, 0.05, (SUBJECTS, 3)), 0, 1)
    costs = np.broadcast_to(np.array([0.02, 0.15, 0.6]), (SUBJECTS, 1, 3))
    subject = rng.permutation(SUBJECTS)[np.arange(horizon) * SUBJECTS // horizon]
    order = subject if in_order else rng.permutation(subject)
    # Without a horizon each row is used once, in order.
    return ContextualInstance.by_table(np.eye(SUBJECTS)[order], rewards[order], costs[order], 0.2 * horizon)


def dear_pulls(horizon: int, seed: int) -> ContextualInstance:
    """A pull costs the budget of many rounds."""
    rng = generator(seed)
    contexts = rng.standard_normal((POOL, 4))
    rewards = np.column_stack([rng.normal(0.0, 0.8, (3, 4)), rng.uniform(-1.0, 1.0, 3)])
    costs = np.column_stack([rng.normal(0.0, 0.2, (3, 4)), rng.uniform(-2.0, 0.5, 3)])
    return ContextualInstance.linear(contexts, rewards, costs[None], 0.01 * horizon, horizon=horizon, logistic=True)


def hours(horizon: int, seed: int) -> ContextualInstance:
    """What a request is worth follows the hours of 20 days: the price of the day times a response."""
    rng = generator(seed)
    phase = np.arange(horizon) / horizon
    price = np.exp(0.6 * np.cos(40.0 * np.pi * phase) + 0.3 * rng.standard_normal(horizon)) / 4.0
    heat = rng.uniform(0.0, 1.0, horizon)
    response = np.column_stack([heat, 0.3 + 0.2 * (1.0 - heat), np.full(horizon, 0.8)])
    rewards = np.clip(price[:, None] * response, 0.0, 1.0)
    costs = np.broadcast_to(np.array([0.4, 0.15, 0.7]), (horizon, 1, 3))
    return ContextualInstance.by_table(np.column_stack([price, heat]), rewards, costs, 0.12 * horizon)


def one_way(horizon: int, seed: int) -> ContextualInstance:
    """A feature that rewards grow with rises, or falls, through the whole season: earlier requests do not return."""
    rng, up = generator(seed), bool(seed % 2)
    trend = np.linspace(0.0, 1.0, horizon) if up else np.linspace(1.0, 0.0, horizon)
    level, other = trend + 0.15 * rng.standard_normal(horizon), rng.uniform(-1.0, 1.0, horizon)
    rewards = (
        0.15 + 0.4 * level[:, None] * np.array([0.3, 0.8, 1.2]) + 0.2 * other[:, None] * np.array([1.0, -1.0, 0.5])
    )
    costs = np.broadcast_to(np.array([0.1, 0.3, 0.6]), (horizon, 1, 3))
    return ContextualInstance.by_table(
        np.column_stack([level, other]), np.clip(rewards, 0.0, 1.0), costs, 0.2 * horizon
    )


LINEAR: Final = LinearBwK()
BY_SEGMENT: Final = DisjointBwK()
BLIND: Final = Adaptive()
RESTLESS: Final = LinearBwK(exploration=20.0)
KINDS: Final[dict[str, Kind]] = {
    "coupons, two changes": Kind(coupons, LINEAR, RESTLESS, 0.88),
    "coupons, tight budget": Kind(lambda n, seed: coupons(n, seed, 0.1), LINEAR, RESTLESS, 0.87),
    "one request in twenty rewarded": Kind(sparse, LINEAR, BLIND, 0.87),
    "offers to one in ten": Kind(offers, LINEAR, BLIND, 0.6),
    "linear": Kind(lambda n, seed: linear_contexts(n, seed=seed), LINEAR, BLIND, 0.94),
    "linear, jumps": Kind(lambda n, seed: linear_contexts(n, drift="jump", seed=seed), LINEAR, BLIND, 0.81),
    "linear, drift": Kind(lambda n, seed: linear_contexts(n, drift="drift", seed=seed), LINEAR, BLIND, 0.89),
    "8 segments": Kind(lambda n, seed: segments(n, seed=seed), BY_SEGMENT, BLIND, 0.93),
    "8 segments, a jump": Kind(lambda n, seed: segments(n, jump=True, seed=seed), BY_SEGMENT, BLIND, 0.84),
    "worthless": Kind(worthless, LINEAR, RESTLESS, 0.97),
    "worthless, jumps": Kind(lambda n, seed: worthless(n, seed, True), LINEAR, RESTLESS, 0.78),
    "features shift, means stay": Kind(lambda n, seed: shifted(n, seed, False), LINEAR, BLIND, 0.92),
    "features shift, means follow": Kind(lambda n, seed: shifted(n, seed, True), LINEAR, BLIND, 0.9),
    "57 subjects in order": Kind(lambda n, seed: subjects(n, seed, True), LINEAR, RESTLESS, 0.95),
    "57 subjects shuffled": Kind(lambda n, seed: subjects(n, seed, False), LINEAR, RESTLESS, 0.95),
    "a pull costs many budgets": Kind(dear_pulls, LINEAR, BLIND, 0.55),
    "hours of the day": Kind(hours, LINEAR, BLIND, 0.87),
    "a trend that does not return": Kind(one_way, LINEAR, BLIND, 0.94),
}
"""All kinds by name."""


class RidgeByHand:
    """Ridge regression for each arm on standardised features, a dual price for each resource, and 5% exploration."""

    def __init__(self, problem: Problem, seed: int) -> None:
        size, arms, kinds = problem.features + 1, problem.arms, 1 + problem.resources
        self.inverse = np.tile(np.eye(size), (arms, 1, 1))
        self.weights = np.zeros((arms, size, kinds))
        self.rng = np.random.default_rng(seed)
        self.price = np.full(problem.resources, 0.3)
        self.unit = np.array(problem.budget) / problem.horizon

    def choose(self, x: Floats) -> int:
        """The arm at a context, or -1."""
        guess = np.einsum("f,afk->ak", x, self.weights)
        value = guess[:, 0] - np.maximum(guess[:, 1:], 0.0) @ self.price
        arm = int(np.argmax(value)) if value.max() > 0.0 else -1
        return int(self.rng.integers(len(value))) if self.rng.random() < 0.05 else arm

    def learn(self, arm: int, x: Floats, reward: float, costs: Floats) -> None:
        """Update the regression of the arm."""
        product = self.inverse[arm] @ x
        scale = 1.0 + float(x @ product)
        error = np.array([reward, *(costs / self.unit)]) - x @ self.weights[arm]
        self.weights[arm] += np.outer(product, error) / scale
        self.inverse[arm] -= np.outer(product, product) / scale

    def move(self, costs: Floats) -> None:
        """Raise the prices after spending above the even pace, and lower them after spending below it."""
        self.price = np.maximum(self.price + 0.005 * np.clip(costs / self.unit - 1.0, -1.0, 4.0), 0.0)


def hand_share(world: ContextualInstance, seed: int) -> float:
    """The reward of the rule by hand on Bernoulli outcomes, until the budget is gone."""
    rng, rule = generator(seed), RidgeByHand(world.problem, seed)
    order = world.drawn_order(rng)
    left = np.array(world.problem.budget)
    scale = world.contexts.std(axis=0)
    rows = (world.contexts - world.contexts.mean(axis=0)) / np.where(scale > 0.0, scale, 1.0)
    phase, total = np.asarray(world.phase, dtype=np.int64), 0.0
    rewards, costs = world.means_at(phase, np.asarray(order, dtype=np.int64))
    for t in range(world.horizon):
        x = np.append(rows[order[t]], 1.0)
        arm = rule.choose(x)
        paid = np.zeros(left.size)
        if arm >= 0:
            reward = float(rng.random() < rewards[t, arm])
            paid = (rng.random(left.size) < costs[t, :, arm]).astype(np.float64)
            if np.any(paid > left):
                break
            left -= paid
            total += reward
            rule.learn(arm, x, reward, paid)
        rule.move(paid)
    return total


def problem_rows(quick: bool, seed: int, progress: Progress) -> list[Row]:
    """Measure each kind of problem.

    Args:
        quick: Whether to simulate fewer problems, which gives rough figures.
        seed: The first seed; problems of one kind have consecutive seeds.
        progress: Called with the current measurement.
    """
    size = QUICK if quick else WHOLE
    return [kind_row(name, kind, size, seed, progress) for name, kind in KINDS.items()]


def kind_row(name: str, kind: Kind, size: Size, first: int, progress: Progress) -> Row:
    """Measure one kind of problems."""
    ours, weak, hand, spent = np.zeros((4, size.worlds))
    for k in range(size.worlds):
        progress(f"{name}: {k + 1} of {size.worlds}")
        world = kind.make(size.horizon, first + k)
        best = lp_contextual(world, tolerance=TOLERANCE).value
        run = simulate(world, kind.policy, trials=2, seed=first + k, threads=1)
        ours[k] = run.reward.mean() / best
        spent[k] = (run.spent / np.asarray(world.problem.budget)).max(axis=1).mean()
        weak[k] = simulate(world, kind.weak, trials=2, seed=first + k, threads=1).reward.mean() / best
        hand[k] = hand_share(world, first + k) / best
    holds = ours.mean() >= kind.bar > weak.mean()
    return {
        "problem": name,
        "policy": type(kind.policy).__name__,
        "share": round(float(ours.mean()), 4),
        "± se": round(float(standard_error(ours)), 4),
        "spent": round(float(spent.mean()), 3),
        "by hand": round(float(hand.mean()), 3),
        "bar": f"≥ {kind.bar:g}",
        "weak": round(float(weak.mean()), 3),
        "holds": "yes" if holds else "no",
    }
