"""The policies that could be advised, and a trial of each on worlds that the log could have come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from driftsack.benchmarks import lp_dynamic
from driftsack.core.arrays import Floats
from driftsack.core.instance import Instance
from driftsack.policies import (
    DetectAndRestart,
    NaiveUCB,
    PlanWithForecast,
    Policy,
    SlidingWindowUCB,
    SpendingPlan,
    ThompsonBwK,
)
from driftsack.simulation import simulate

SCALE: Final = 0.05  # of the radii: at the lengths of logs the theorem's constant would explore all the time
CURIOUS: Final = 0.15  # of the radii, for logs in which the good arm is easily missed
CLOSE: Final = 0.005  # of the best candidate's reward: nearer than this, the simpler one is advised
PERIODS: Final = 50  # of a spending plan


REMEMBERS, FORGETS, RESTARTS, PLANS = FAMILIES = ("remembers", "forgets", "restarts", "plans")


class Candidate(NamedTuple):
    """A policy that could be advised; listed from simple to involved."""

    name: str
    family: str  # one of FAMILIES
    policy: Policy


class Standing(NamedTuple):
    """What a candidate earned on the fitted worlds, as a share of each world's optimum."""

    candidate: Candidate
    reward: float  # mean over the worlds, in people's units
    share: float  # of LP-Dynamic, mean over the worlds
    low: float  # 95% interval of the share, over the worlds
    high: float

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers; the policy as its spec, a forecast as its name only."""
        spec = self.candidate.policy.to_spec()
        if "forecast" in spec:
            spec["forecast"] = "the world fitted to the log"
        about = {"name": self.candidate.name, "family": self.candidate.family, "policy": spec}
        return {**about, "reward": self.reward, "share": self.share, "low": self.low, "high": self.high}


def candidates(world: Instance, plans: bool = True) -> list[Candidate]:
    """Policies for a world like this one; ``plans=False`` leaves out those that trust its timing to come again."""
    horizon = world.horizon
    still = NaiveUCB(scale=SCALE, budget_rule="remaining")
    listed = [
        Candidate("UCB that remembers everything", REMEMBERS, still),
        Candidate("UCB that remembers everything, more curious", REMEMBERS, replace(still, scale=CURIOUS)),
        Candidate("Thompson sampling", REMEMBERS, ThompsonBwK(budget_rule="remaining")),
    ]
    for window in sorted({max(horizon // share, 1) for share in (4, 8, 16)}, reverse=True):
        policy = SlidingWindowUCB(windows=(window, window), scale=SCALE, budget_rule="remaining")
        listed.append(Candidate(f"UCB with a window of {window:,} rounds", FORGETS, policy))
    listed.append(Candidate("UCB that restarts when a change is detected", RESTARTS, DetectAndRestart(base=still)))
    if plans and len(world.rewards) > 1:
        listed += planners(world, still)
    return listed


def planners(world: Instance, still: NaiveUCB) -> list[Candidate]:
    """Policies that spend when the fitted world says so."""
    window = max(world.horizon // 8, 1)
    forgetful = SlidingWindowUCB(windows=(window, window), scale=SCALE)
    curve = spending_curve(world)
    return [
        Candidate("spending plan, UCB that remembers", PLANS, SpendingPlan(still, curve)),
        Candidate(f"spending plan, UCB with a window of {window:,} rounds", PLANS, SpendingPlan(forgetful, curve)),
        Candidate("plan with forecast, half trusted", PLANS, PlanWithForecast(world, trust=0.5, scale=SCALE)),
        Candidate("plan with forecast, trusted", PLANS, PlanWithForecast(world, trust=0.9, scale=SCALE)),
    ]


def spending_curve(world: Instance) -> tuple[tuple[float, ...], ...]:
    """Shares of each budget that the best plan has spent at evenly spaced times; the last is 1."""
    plan = np.asarray(lp_dynamic(world).plan)
    used = np.einsum("kji,ki->kj", world.unit_costs, plan)[world.phase]  # (T, d)
    spent = np.vstack([np.zeros(world.resources), np.cumsum(used, axis=0)])
    times = np.arange(PERIODS + 1) * world.horizon // PERIODS
    total = np.maximum(spent[-1], 1e-12)
    curve = np.where(spent[-1] > 0, spent[times] / total, times[:, None] / world.horizon)
    return tuple(map(tuple, np.minimum(curve, 1.0).T.tolist()))


def trial(
    listed: Sequence[Candidate],
    worlds: Sequence[Instance],
    trials: int,
    seed: int,
    progress: Callable[[str, int], None] = lambda _name, _done: None,
) -> list[Standing]:
    """Play every candidate on every world; ``progress`` is told the candidate and how many worlds it has seen."""
    optima = np.array([lp_dynamic(world).value for world in worlds])
    standings = []
    for candidate in listed:
        rewards = np.zeros(len(worlds))
        for k, world in enumerate(worlds):
            rewards[k] = simulate(world, candidate.policy, trials=trials, seed=seed + k).reward.mean()
            progress(candidate.name, k + 1)
        standings.append(_standing(candidate, rewards, optima))
    return standings


def _standing(candidate: Candidate, rewards: Floats, optima: Floats) -> Standing:
    shares = np.divide(rewards, optima, out=np.ones_like(rewards), where=optima > 0)
    low, high = np.quantile(shares, [0.025, 0.975])
    return Standing(candidate, float(rewards.mean()), float(shares.mean()), float(low), float(high))


def choice(standings: Sequence[Standing], families: Sequence[str] = FAMILIES) -> Standing:
    """The simplest candidate of these families that earns nearly as much as the best of them."""
    able = [standing for standing in standings if standing.candidate.family in families]
    best = max(standing.share for standing in able)
    return next(standing for standing in able if standing.share >= (1.0 - CLOSE) * best)
