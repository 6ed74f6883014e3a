"""How often and by how much ``safe="statistical"`` exceeds a budget, and what it earns beside hard reservations.

Each season is a problem with three arms, one budget that pays for 60% of the requests, and late outcomes. Costs are
coins, or lognormal, and may drift: rise slowly to twice their level, jump to it at a random or at the worst time, or go
up and down.
Rewards are coins as well, and dearer arms earn more. A policy that paces its spending rarely needs its reservations;
one that does not, ``UniformRandom``, spends until they stop it, so that each of its seasons is a test.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.checks import Safe
from driftsack.core.decision import Decision
from driftsack.core.problem import Problem
from driftsack.policies import Adaptive, Policy, UniformRandom

ROUNDS: Final = 4000
LEVELS: Final = (0.5, 1.0, 1.5)  # mean cost of each arm at first
REWARDS: Final = (0.3, 0.45, 0.55)
AFFORDED: Final = 0.6  # share of the requests that the budget pays for
LARGEST: Final = 20.0  # cost_max, in mean costs
DELAYS: Final = (50, 100, 200, 400)
POLICIES: Final[dict[str, Policy]] = {"Adaptive": Adaptive(), "UniformRandom": UniformRandom()}

TITLE: Final = "Statistical reservations"
NOTE: Final = (
    "*Over* is the number of seasons that exceeded their budget, and *largest* by how much at most, as a share of it. "
    "*Spent* is the mean share of the budget, *reward* that of hard reservations on the same seasons, and *blocked* "
    "the rounds in which reservations closed every arm."
)

Shape = Callable[[Floats, np.random.Generator], Floats]
Noise = Callable[[Floats, np.random.Generator], Floats]


class SeasonKind(NamedTuple):
    """A kind of season: the level of the costs over time, from 0 to 1, and the costs about it."""

    shape: Shape
    noise: Noise


def coins(means: Floats, rng: np.random.Generator) -> Floats:
    """Costs of 0 or of the maximum."""
    drawn: Floats = np.where(rng.random(means.shape) < means / LARGEST, LARGEST, 0.0)
    return drawn


def lognormal(sigma: float) -> Noise:
    """Lognormal costs of at most the maximum."""

    def draw(means: Floats, rng: np.random.Generator) -> Floats:
        drawn: Floats = np.minimum(means * rng.lognormal(-(sigma**2) / 2, sigma, means.shape), LARGEST)
        return drawn

    return draw


def still(time: Floats, rng: np.random.Generator) -> Floats:
    """A constant level."""
    return np.ones_like(time)


def rise(time: Floats, rng: np.random.Generator) -> Floats:
    """A level that slowly doubles."""
    level: Floats = 1.0 + time
    return level


def jump(time: Floats, rng: np.random.Generator) -> Floats:
    """A level that doubles at a random time."""
    level: Floats = np.where(time > rng.random(), 2.0, 1.0)
    return level


def late_jump(time: Floats, rng: np.random.Generator) -> Floats:
    """A level that doubles when an unpaced budget is nearly spent, while the last outcomes are pending."""
    level: Floats = np.where(time > 0.6 + 0.15 * rng.random(), 2.0, 1.0)
    return level


def waves(time: Floats, rng: np.random.Generator) -> Floats:
    """A level that goes up and down by half, eight times."""
    angles = 2 * math.pi * (8 * time + rng.random())
    return np.asarray(1.0 + 0.5 * np.sin(angles), dtype=np.float64)


WORLDS: Final[dict[str, SeasonKind]] = {
    "coins": SeasonKind(still, coins),
    "lognormal, sd 1": SeasonKind(still, lognormal(1.0)),
    "lognormal, sd 2": SeasonKind(still, lognormal(2.0)),
    "slow rise": SeasonKind(rise, lognormal(0.5)),
    "jump": SeasonKind(jump, lognormal(0.5)),
    "late jump": SeasonKind(late_jump, lognormal(0.5)),
    "waves": SeasonKind(waves, lognormal(0.5)),
}


class SeasonResult(NamedTuple):
    """The result of one season."""

    over: float  # share of the budget that was spent in addition to it; 0 if it held
    spent: float  # share of the budget that was spent, at most 1
    reward: float
    blocked: int  # rounds


def season(kind: SeasonKind, delay: int, policy: Policy, safe: Safe, seed: int, rounds: int = ROUNDS) -> SeasonResult:
    """Play a season whose outcomes arrive after a geometric delay, and count everything that was spent."""
    rng = np.random.default_rng(seed)
    level = kind.shape(np.arange(rounds) / rounds, rng)
    means = level[:, None] * np.array(LEVELS)
    costs = kind.noise(means, rng)
    rewards = rng.random(means.shape) < np.array(REWARDS)
    waits = rng.geometric(1.0 / delay, rounds)
    budget = AFFORDED * float(means.mean(axis=1).sum())
    learner = policy.start(Problem(rounds, len(LEVELS), budget, cost_max=LARGEST), seed=seed, safe=safe)
    due: list[tuple[int, int, Decision]] = []
    reward = 0.0
    for t in range(rounds):
        while due and due[0][0] <= t:
            _, then, decision = heapq.heappop(due)
            learner.tell(decision, float(rewards[then, decision.arm]), float(costs[then, decision.arm]))
        if learner.done:  # a budget is exceeded
            break
        decision = learner.ask()
        if not decision.skipped:
            reward += rewards[t, decision.arm]
            heapq.heappush(due, (t + int(waits[t]), t, decision))
    for _, then, decision in due:
        learner.tell(decision, float(rewards[then, decision.arm]), float(costs[then, decision.arm]))
    used = 1.0 - float(learner.remaining[0]) / budget
    return SeasonResult(max(used - 1.0, 0.0), min(used, 1.0), reward, learner.blocked)


def reserve_rows(
    seasons: int, delays: tuple[int, ...] = DELAYS, rounds: int = ROUNDS, progress: Callable[[str], None] | None = None
) -> list[dict[str, Any]]:
    """One row for each policy, kind and delay: the statistical mode beside hard reservations on the same seasons."""
    rows = []
    for name, policy in POLICIES.items():
        for kind, world in WORLDS.items():
            for delay in delays:
                if progress is not None:
                    progress(f"{name}, {kind}, delay {delay}")
                both = [
                    [season(world, delay, policy, safe, seed, rounds) for seed in range(seasons)]
                    for safe in ("statistical", True)
                ]
                rows.append({"policy": name, "costs": kind, "delay": delay, **summary(*both)})
    return rows


def summary(ours: list[SeasonResult], hard: list[SeasonResult]) -> dict[str, float]:
    """The figures of a row."""
    over = np.array([one.over for one in ours])
    reward, other = (np.mean([one.reward for one in part]) for part in (ours, hard))
    return {
        "seasons": len(ours),
        "over": int(np.count_nonzero(over)),
        "largest": round(float(over.max()), 5),
        "spent": round(float(np.mean([one.spent for one in ours])), 3),
        "reward": round(float(reward / other), 3),
        "blocked": round(float(np.mean([one.blocked for one in ours]))),
        "hard over": sum(one.over > 0.0 for one in hard),
        "hard spent": round(float(np.mean([one.spent for one in hard])), 3),
        "hard blocked": round(float(np.mean([one.blocked for one in hard]))),
    }


def to_markdown(rows: list[dict[str, Any]], command: str) -> str:
    """The rows as a Markdown page."""
    names = list(rows[0])
    lines = [f"# {TITLE}", "", f"Written by `{command}`; do not edit.", "", NOTE, ""]
    lines += [f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}"]
    lines += [f"| {' | '.join(str(row[name]) for name in names)} |" for row in rows]
    return "\n".join(lines) + "\n"
